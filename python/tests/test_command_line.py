"""The same decisions, routers and reports as the command line, bit for bit."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from conftest import make_world, real_data

from pointsman import Policy, Router, diagnose

TASK = ["--route", "expert=0.07", "--route", "jury=0.05,panel:m=3,aggregate=mean", "--abstain", "0.5"]
ROUTES: dict[str, Any] = {"expert": 0.07, "jury": ("panel:m=3,aggregate=mean", 0.05)}


def decided(command: Callable[..., str], folder: Path, table: Path, *arguments: str) -> pa.Table:
    command("-q", "decide", folder / "router.safetensors", table, *arguments, "--keep", "id", "-o", folder / "out.arrow")
    with pa.ipc.open_file(folder / "out.arrow") as file:
        return file.read_all()


def without_advice(report: dict[str, object]) -> dict[str, object]:
    """Without what the command line alone adds: its files, its warnings and what to do next."""
    return {key: value for key, value in report.items() if key not in ("made_from", "warnings", "next_step")}


def same(found: pa.Table, wanted: pa.Table) -> None:
    """Equal to the last bit, names and types included."""
    assert found.schema == wanted.schema
    assert found.combine_chunks().equals(wanted.combine_chunks())


@pytest.mark.parametrize("partition", ["top-class:10", "level-sets", "features:x_0=4*confidence:3", "tree", "honest-forest:9", "forest:9"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_made_data(command: Callable[..., str], tmp_path: Path, partition: str, kind: type) -> None:
    calibration, queries = make_world(700, seed=7), make_world(500, seed=8)
    for name, world in [("calibration", calibration), ("queries", queries)]:
        arrays = {"probs": world.probs.astype(kind), "votes": world.votes, "features": world.features}
        np.savez(tmp_path / f"{name}.npz", **arrays)
    line = ["--partition", partition, "--seed", "3"]
    command("-q", "calibrate", tmp_path / "calibration.npz", "-o", tmp_path / "router.safetensors", *line)
    router = Router(partition, random_state=3).fit(
        calibration.probs.astype(kind), calibration.votes, features=calibration.features
    )
    assert router.to_bytes() == (tmp_path / "router.safetensors").read_bytes()
    policy = router.policy(routes=ROUTES, abstain=0.5)
    found = policy.decide(queries.probs.astype(kind), features=queries.features)
    same(found.to_arrow(), decided(command, tmp_path, tmp_path / "queries.npz", *TASK))
    printed = command("-q", "evaluate", tmp_path / "router.safetensors", tmp_path / "queries.npz", *TASK, "--json")
    report = policy.evaluate(queries.probs.astype(kind), queries.votes, features=queries.features)
    assert without_advice(report.data) == without_advice(json.loads(printed))


DATA = ["snli.npz", "chaosnli.npz", "cifar10h.npz", "cifar10h-overconfident.npz"]
LOSSES = ["brier", "cross-entropy", "zero-one"]


@pytest.mark.parametrize("file", DATA)
def test_real_data(command: Callable[..., str], tmp_path: Path, file: str) -> None:
    path = real_data(file)
    arrays = np.load(path, allow_pickle=False)
    probs, votes = arrays["probs"], arrays["votes"]
    classes = [str(name) for name in arrays["classes"]] if "classes" in arrays else None
    where: list[str] = []
    fitted = np.ones(len(probs), bool)
    if "split" in arrays:
        fitted = arrays["split"] == 0
        where = ["--where", "split=0"]
    command("-q", "calibrate", path, "-o", tmp_path / "router.safetensors", "--partition", "top-class:10", *where)
    oracles = {name.removeprefix("oracle_"): arrays[name][fitted] for name in arrays if name.startswith("oracle_")}
    router = Router("top-class:10", classes=classes).fit(probs[fitted], votes[fitted], oracles=oracles or None)
    assert router.to_bytes() == (tmp_path / "router.safetensors").read_bytes()
    ids = arrays["id"] if "id" in arrays else None
    for loss in LOSSES:
        policy: Policy = router.policy(loss=loss, routes={"expert": 0.07}, abstain=0.4)
        flags = ["--loss", loss, "--route", "expert=0.07", "--abstain", "0.4"]
        same(policy.decide(probs, ids=ids).to_arrow(), decided(command, tmp_path, path, *flags))
    limited = router.policy(routes={"expert": 0.0}, budget=0.2, confidence=0.9).decide(probs, ids=ids)
    flags = ["--route", "expert=0", "--budget", "0.2", "--confidence", "0.9"]
    same(limited.to_arrow(), decided(command, tmp_path, path, *flags))


def test_diagnosis(command: Callable[..., str], tmp_path: Path) -> None:
    world = make_world(600, seed=9)
    np.savez(tmp_path / "table.npz", probs=world.probs, votes=world.votes)
    flags = ["--route", "expert=0.07", "--abstain", "0.5", "--json"]
    printed = json.loads(command("-q", "diagnose", tmp_path / "table.npz", *flags))
    found = diagnose(world.probs, world.votes, routes={"expert": 0.07}, abstain=0.5).data
    assert found == without_advice(printed)


def split_page(path: Path) -> tuple[str, dict[str, object]]:
    """A page and its data, both without what the command line alone adds."""
    text = re.sub(r'<section class="card advice">.*?</section>\n', "", path.read_text(), flags=re.DOTALL)
    text = re.sub(r'<p id="made-from">.*?</p>', "", text, flags=re.DOTALL)
    before, data, after = re.split(r'(?<=id="data">)(.*?)(?=</script>)', text, maxsplit=1, flags=re.DOTALL)
    return before + after, without_advice(json.loads(data))


def test_pages_are_the_same(command: Callable[..., str], tmp_path: Path) -> None:
    world = make_world(400, seed=10)
    np.savez(tmp_path / "table.npz", probs=world.probs, votes=world.votes)
    command("-q", "calibrate", tmp_path / "table.npz", "-o", tmp_path / "router.safetensors")
    command("-q", "evaluate", tmp_path / "router.safetensors", tmp_path / "table.npz", *TASK, "-o", tmp_path / "report")
    policy = Router.load(tmp_path / "router.safetensors").policy(routes=ROUTES, abstain=0.5)
    policy.evaluate(world.probs, world.votes).save_html(tmp_path / "own.html")
    assert split_page(tmp_path / "own.html") == split_page(tmp_path / "report" / "report.html")
