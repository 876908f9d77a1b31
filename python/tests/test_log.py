"""The exported log of the service, as data frames and as a table that is decided again."""

import json
import os
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import REPOSITORY, World, make_world

from pointsman import Router

TASK = 'abstain = 0.5\n[[route]]\nname = "expert"\ncost = 0.07\n'


@pytest.fixture
def url(command: Callable[..., str], tmp_path: Path) -> Iterator[str]:
    """The address of a service with the deployment `d`, whose router is `router.safetensors`."""
    calibration = make_world(700, seed=7)
    np.savez(tmp_path / "calibration.npz", probs=calibration.probs, votes=calibration.votes, features=calibration.features)
    command("-q", "calibrate", tmp_path / "calibration.npz", "-o", tmp_path / "router.safetensors", "--partition", "forest:9")
    (tmp_path / "task.toml").write_text(TASK)
    binary = os.environ.get("POINTSMAN_TEST_BIN", str(REPOSITORY / "target" / "debug" / "pointsman"))
    line = [binary, "serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as service:
        assert service.stdout is not None
        url = next(word for word in service.stdout.readline().split() if word.startswith("http://")).rstrip(",")
        command("deployments", "put", "d", "--url", url)
        files = ["router.safetensors", "--task", "task.toml", "--activate"]
        command("versions", "add", "d", *files, "--url", url, folder=tmp_path)
        try:
            yield url
        finally:
            service.kill()


def decide(url: str, queries: World) -> list[dict[str, Any]]:
    rows = [{"probs": list(p), "features": list(x)} for p, x in zip(queries.probs, queries.features, strict=True)]
    rows[0] |= {"id": "own", "tags": {"team": "a"}, "input": {"text": "hé"}}
    body = json.dumps({"rows": rows}).encode()
    request = urllib.request.Request(f"{url}/v1/deployments/d/decide", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return list(json.load(answer)["rows"])


def test_parquet_has_plain_types_and_the_same_decisions(command: Callable[..., str], url: str, tmp_path: Path) -> None:
    queries = make_world(300, seed=8)
    answers = decide(url, queries)
    command("decisions", "export", "d", "-o", "log.parquet", "--url", url, folder=tmp_path)
    # These types are read by every program that reads Parquet: no unsigned numbers, no nested columns.
    plain = {pa.string(), pa.int64(), pa.float64(), pa.timestamp("us", tz="UTC")}
    assert set(pq.read_schema(tmp_path / "log.parquet").types) <= plain
    log = pd.read_parquet(tmp_path / "log.parquet")
    assert list(log["decision_id"]) == [answer["decision_id"] for answer in answers]
    assert list(log["action"]) == [answer["action"] for answer in answers]
    assert log["cost_route_expert"].to_numpy().tolist() == [answer["costs"]["route:expert"] for answer in answers]
    assert log["id"][0] == "own" and log["id"][1] == log["decision_id"][1]
    assert json.loads(log["input"][0]) == {"text": "hé"} and pd.isna(log["input"][1])
    assert isinstance(log["at"].dtype, pd.DatetimeTZDtype)
    probs = log[["prob_0", "prob_1", "prob_2"]].to_numpy()
    assert np.array_equal(probs, queries.probs)
    policy = Router.load(tmp_path / "router.safetensors").policy(routes={"expert": 0.07}, abstain=0.5)
    found = policy.decide(probs, features=log[["x_0", "x_1"]].to_numpy())
    assert list(found.action) == list(log["action"])


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_text_has_the_same_numbers(command: Callable[..., str], url: str, tmp_path: Path, name: str) -> None:
    queries = make_world(100, seed=9)
    decide(url, queries)
    command("decisions", "export", "d", "-o", name, "--url", url, folder=tmp_path)
    path = tmp_path / name
    log = pd.read_csv(path) if name == "log.csv" else pd.read_json(path, lines=True, precise_float=True)
    assert np.array_equal(log[["prob_0", "prob_1", "prob_2"]].to_numpy(), queries.probs)
    assert log["input"].notna().sum() == 1
