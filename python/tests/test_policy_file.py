"""Compiled policies: files that decide as the policy that was saved, and are refused if anything is wrong with them."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import World

from pointsman import Loss, Oracle, Policy, PointsmanError, Router, Task

PARTITIONS = ["top-class:10", "features:x_0=3*confidence:2", "pooled", "tree", "honest-forest:8", "forest:8"]


def compiled(world: World, partition: str, **task: Any) -> Policy:
    answers = {"llm": np.roll(world.probs, 1, axis=1)}
    router = Router(partition).fit(world.probs, world.votes, features=world.features, oracles=answers)
    routes = {"expert": 0.05, "jury": (Oracle.panel(3, "laplace"), 0.03), "llm": (Oracle.measured(), 0.01)}
    return router.policy(**({"routes": routes, "abstain": 0.45} | task))


def features(policy: Policy, world: World) -> Any:
    return {name: world.features[:, int(name)] for name in policy.features} or None


def assert_same_decisions(one: Policy, other: Policy, queries: World, **more: Any) -> None:
    ids = [f"q{row}" for row in range(len(queries))]
    first, second = (p.decide(queries.probs, features=features(p, queries), ids=ids, **more) for p in (one, other))
    assert first.to_arrow().equals(second.to_arrow())
    assert first.costs.tobytes() == second.costs.tobytes()


@pytest.mark.parametrize("partition", PARTITIONS)
def test_saved_policies_decide_bit_for_bit(world: World, queries: World, tmp_path: Path, partition: str) -> None:
    for task in [{}, {"budget": 0.2}, {"loss": "cross-entropy"}, {"loss": Loss.matrix([[0, 3, 3], [1, 0, 1]], acts=["a", "b"])}]:
        policy = compiled(world, partition, **task)
        policy.save(tmp_path / "policy.safetensors")
        loaded = Policy.load(tmp_path / "policy.safetensors")
        for copy in [loaded, Policy.load(str(tmp_path / "policy.safetensors")), pickle.loads(pickle.dumps(policy)), pickle.loads(pickle.dumps(loaded))]:
            assert policy.has_calibration_rows and not copy.has_calibration_rows
            assert_same_decisions(policy, copy, queries)
            assert copy.to_bytes() == policy.to_bytes()
            assert (copy.classes, copy.actions, copy.features) == (policy.classes, policy.actions, policy.features)
            assert (copy.shares, copy.surcharge, copy.promise()) == (policy.shares, policy.surcharge, policy.promise())
            assert repr(copy) == repr(policy) and copy.cells() == policy.cells() and copy.task == policy.task


@pytest.mark.parametrize("partition", ["top-class:10", "forest:8"])
def test_prices_routes_and_caps_can_be_changed(world: World, queries: World, partition: str) -> None:
    policy = compiled(world, partition)
    loaded = Policy.from_bytes(policy.to_bytes())
    for prices in [
        {"routes": {"expert": 0.2, "jury": 0.01}, "abstain": 0.3},
        {"abstain": None},
        {"routes": None},
        {"routes": {"second": 0.02}},
        {"task": Task("brier", {"expert": 0.1}, ties="paper")},
    ]:
        assert_same_decisions(policy.reprice(**prices), loaded.reprice(**prices), queries)
    assert_same_decisions(policy, loaded, queries, caps={"expert": 7, "jury": "5%"})
    if partition.startswith("top-class"):
        limited = Task("brier", {"expert": 0.01}, budget=0.1)
        assert_same_decisions(policy.reprice(task=limited), loaded.reprice(task=limited), queries)


def test_what_needs_calibration_rows_is_refused_with_advice(world: World, queries: World) -> None:
    policy = compiled(world, "forest:8")
    loaded = Policy.from_bytes(policy.to_bytes())
    other_loss = Task("zero-one", {"expert": 0.1})
    with pytest.raises(PointsmanError, match="compiled for the loss brier .* no calibration rows .*Router.load.path..policy"):
        loaded.reprice(task=other_loss)
    with pytest.raises(PointsmanError, match="not the loss or the estimator: .*router.policy"):
        policy.reprice(task=other_loss)
    with pytest.raises(PointsmanError, match="compiled for .* estimator"):
        loaded.reprice(task=Task("brier", {"expert": 0.1}, estimator="plugin"))
    with pytest.raises(PointsmanError, match="needs a policy of its own: router.policy"):
        loaded.reprice(routes={"jury": (Oracle.panel(5), 0.1)})
    with pytest.raises(PointsmanError, match="found from calibration rows"):
        loaded.reprice(task=Task("brier", {"expert": 0.1}, budget=0.1))
    with pytest.raises(PointsmanError, match="judgement needs calibration rows.*Router.load"):
        loaded.judgement()
    with pytest.raises(PointsmanError, match="evaluate needs calibration rows.*Router.load"):
        loaded.evaluate(queries.probs, queries.votes, features=queries.features)
    with pytest.raises(PointsmanError, match="either task"):
        loaded.reprice(task=other_loss, abstain=0.1)
    with pytest.raises(PointsmanError, match="is not a Task"):
        loaded.reprice(task="brier")  # type: ignore[arg-type]


def test_policies_with_a_confidence_keep_their_rows_in_pickles(world: World, queries: World) -> None:
    router = Router("top-class:4").fit(world.probs, world.votes)
    policy = router.policy(routes={"expert": 0.05}, confidence=0.9)
    copy = pickle.loads(pickle.dumps(policy))
    assert copy.has_calibration_rows and copy.confidence == 0.9
    decisions = pickle.loads(pickle.dumps(policy.decide(queries.probs)))
    assert decisions.to_arrow().equals(policy.decide(queries.probs).to_arrow())


def test_damaged_files_are_refused(world: World, tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    policy = Router("top-class:2").fit(world.probs, world.votes).policy(routes={"expert": 0.05})
    good = policy.to_bytes()
    router = Router("top-class:2").fit(world.probs, world.votes).to_bytes()
    newer = good.replace(rb"\"version\":1,\"task", rb"\"version\":9,\"task")
    assert newer != good
    for data, words in [
        (b"", "policy"),
        (b"junk" * 100, "policy"),
        (good[:-30], "policy"),
        (good[: len(good) // 2], "policy"),
        (router, "it is a router"),
        (newer, "format 9"),
    ]:
        path.write_bytes(data)
        with pytest.raises(PointsmanError, match=words) as refused:
            Policy.load(path)
        assert str(refused.value).startswith(str(path))
    with pytest.raises(PointsmanError, match="it is a policy"):
        Router.from_bytes(good)
    with pytest.raises(FileNotFoundError):
        Policy.load(tmp_path / "missing.safetensors")
    with pytest.raises(OSError):
        policy.save(tmp_path / "missing" / "policy.safetensors")
    for position in range(0, len(good), 7):
        flipped = bytearray(good)
        flipped[position] ^= 1 << position % 8
        try:
            other = Policy.from_bytes(bytes(flipped))
        except PointsmanError:
            continue
        assert other.to_bytes() == good, position


def test_the_command_line_writes_the_same_file(world: World, tmp_path: Path, command: Callable[..., str]) -> None:
    for partition in ["top-class:4", "forest:5"]:
        router = Router(partition).fit(world.probs, world.votes, features=world.features)
        router.save(tmp_path / "router.safetensors")
        line = ["compile", "router.safetensors", "--route", "expert=0.08", "--abstain", "0.47", "-o", "policy.safetensors"]
        command(*line, folder=tmp_path)
        policy = Router.load(tmp_path / "router.safetensors").policy(routes={"expert": 0.08}, abstain=0.47)
        assert (tmp_path / "policy.safetensors").read_bytes() == policy.to_bytes()
        assert Policy.load(tmp_path / "policy.safetensors").task == policy.task
