"""The log, replays, deployments and versions of a running service, as its clients see them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import World
from serving import TASK, deploy, fitted

from pointsman import Client, Policy, PointsmanError, ServiceError, Task


def test_the_log_is_read_page_by_page(client: Client, world: World, queries: World) -> None:
    name = deploy(client, "log", fitted("top-class:10", world).policy(task=TASK))
    ids = [f"q{row}" for row in range(len(queries))]
    decided = client.decide_batch(name, queries.probs, ids=ids)
    client.decide(name, queries.probs[0], id="tagged", tags={"a": "b=c"})
    found = list(client.decisions(name, rows_per_request=7))
    assert [one.id for one in found] == [*ids, "tagged"]
    assert [one.decision_id for one in found[:-1]] == decided.decision_id.tolist()
    np.testing.assert_array_equal([one.probs for one in found[:-1]], queries.probs)
    assert [one.id for one in client.decisions(name, tag=("a", "b=c"))] == ["tagged"]
    assert {one.action for one in client.decisions(name, action="abstain", rows_per_request=50)} == {"abstain"}
    assert len(list(client.decisions(name, action="abstain", rows_per_request=50))) == sum(one.action == "abstain" for one in found)
    assert {one.cell for one in client.decisions(name, cell=found[0].cell)} == {found[0].cell}
    assert list(client.decisions(name, after=found[-2].decision_id)) == found[-1:]
    assert list(client.decisions(name, version=2)) == list(client.decisions(name, end=found[0].at - timedelta(hours=1))) == []
    assert len(list(client.decisions(name, start=found[0].at - timedelta(hours=1)))) == len(found)
    with pytest.raises(PointsmanError, match="no time zone"):
        next(client.decisions(name, start=datetime(2026, 1, 1)))
    with pytest.raises(ServiceError, match="not a time"):
        next(client.decisions(name, start="yesterday"))


def test_what_if_decides_the_log_again(client: Client, world: World, queries: World, tmp_path: Path) -> None:
    router = fitted("top-class:10", world)
    name = deploy(client, "what-if", router, TASK)
    client.decide_batch(name, queries.probs)
    logged = router.policy(task=TASK).decide(queries.probs)
    dearer = Task("brier", {"expert": 0.2}, abstain=0.6)
    other = fitted("confidence:5", world)
    other.save(tmp_path / "other.safetensors")
    sha256 = client.upload(other).sha256
    asked: list[tuple[dict[str, Any], Policy]] = [
        ({"task": dearer}, router.policy(task=dearer)),
        ({"task": dearer.text}, router.policy(task=dearer)),
        ({"task": Task("zero-one", abstain=0.2)}, router.policy(loss="zero-one", abstain=0.2)),
        ({"version": 1}, router.policy(task=TASK)),
        ({"router": other, "task": TASK}, other.policy(task=TASK)),
        ({"router": tmp_path / "other.safetensors", "task": TASK}, other.policy(task=TASK)),
        ({"router": sha256, "task": TASK}, other.policy(task=TASK)),
    ]
    for arguments, policy in asked:
        found = client.what_if(name, **arguments)
        wanted = policy.decide(queries.probs)
        assert found.decisions == len(queries) == sum(found.matrix.values())
        assert found.changed == (wanted.action != logged.action).sum() == sum(n for (a, b), n in found.matrix.items() if a != b)
        assert found.shares == {one: n / len(queries) for one, n in wanted.counts.items()}
        taken = np.take_along_axis(wanted.costs, wanted.action_codes[:, None].astype(int), axis=1)
        assert found.cost.expected == pytest.approx(taken.mean(), rel=1e-12)
    assert client.what_if(name, version=1, start=datetime.now(UTC) + timedelta(days=1)).decisions == 0
    with pytest.raises(ServiceError) as caught:
        client.what_if(name, task="loss = 3")
    assert (caught.value.status, caught.value.pointer) == (422, "/task")


def test_versions_are_added_activated_and_rolled_back(client: Client, world: World, tmp_path: Path) -> None:
    name = "versions"
    assert client.put_deployment(name).active is None
    with pytest.raises(ServiceError, match="has no version yet") as caught:
        client.decide(name, [0.2, 0.3, 0.5])
    assert caught.value.status == 409
    router = fitted("top-class:10", world)
    policy = router.policy(routes={"expert": 0.02})
    policy.save(tmp_path / "policy.safetensors")
    first = client.add_version(name, router, task=TASK, activate=True)
    assert (first.version, first.active) == (1, True) and Task.parse(first.task) == TASK
    assert client.add_version(name, router.to_bytes(), task=TASK.text) == first, "the same version is added once"
    assert client.add_version(name, client.upload(router), task=TASK) == first
    second = client.add_version(name, tmp_path / "policy.safetensors")
    assert (second.version, second.active, second.router) == (2, False, None)
    assert client.decide(name, [0.2, 0.3, 0.5]).version == 1
    assert client.activate(name, 2).active and client.decide(name, [0.2, 0.3, 0.5]).version == 2
    assert client.deployment(name).actions == policy.actions
    assert client.roll_back(name).version == 1 and client.deployment(name).active == 1
    assert [(one.version, one.active) for one in client.versions(name)] == [(1, True), (2, False)]
    repriced = client.add_version(name, policy, task=Task(routes={"expert": 0.3}), activate=True)
    assert repriced.version == 3 and client.decide(name, [0.2, 0.3, 0.5]).costs["route:expert"] is not None
    with pytest.raises(PointsmanError, match="neither a router nor a policy"):
        client.add_version(name, 3)  # type: ignore[arg-type]
    with pytest.raises(ServiceError) as refused:
        client.add_version(name, b"no router", task=TASK)
    assert refused.value.status == 422
    assert name in [one.name for one in client.deployments()]
    client.delete_deployment(name)
    with pytest.raises(ServiceError) as gone:
        client.deployment(name)
    assert (gone.value.status, gone.value.type) == (404, "urn:pointsman:not-found")


def test_shadow_mode_and_oracles_that_are_away(client: Client, world: World, queries: World) -> None:
    policy = fitted("top-class:10", world).policy(routes={"expert": 0.08})
    name = deploy(client, "shadow", policy)
    assert client.put_deployment(name, mode="shadow").mode == "shadow"
    found = client.decide_batch(name, queries.probs)
    assert set(found.action) == {"predict"} and found.would.tolist() == policy.decide(queries.probs).action.tolist()
    assert client.decide(name, queries.probs[0]).would == found.would[0]
    client.put_deployment(name, mode="active")
    client.set_oracle(name, "expert", available=False)
    assert client.deployment(name).unavailable == ("expert",)
    away = client.decide_batch(name, queries.probs)
    assert set(away.action) == {"predict"} and set(away.degraded) == {None, "unavailable"}
    one = client.decide(name, queries.probs[np.flatnonzero(away.degraded == "unavailable")[0]])
    assert (one.degraded, one.wanted) == ("unavailable", "route:expert")
    client.set_oracle(name, "expert", available=True)
    assert set(client.decide_batch(name, queries.probs).degraded) == {None}
    with pytest.raises(ServiceError, match="no route"):
        client.set_oracle(name, "nobody", available=True)


def test_ids_answered_by_an_earlier_version_keep_their_costs(client: Client, world: World, queries: World) -> None:
    router = fitted("top-class:10", world)
    name = deploy(client, "earlier", router, Task("brier", {"cheap": 0.01}, abstain=0.5))
    ids = range(len(queries))
    first = client.decide_batch(name, queries.probs, ids=ids)
    client.add_version(name, router, task=Task("brier", {"dear": 0.3}, abstain=0.5), activate=True)
    again = client.decide_batch(name, queries.probs, ids=ids)
    assert again.decision_id.tolist() == first.decision_id.tolist() and set(again.version) == {1}
    assert again.action_names == ("predict", "route:dear", "abstain")
    np.testing.assert_array_equal(again.costs[:, [0, 2]], first.costs[:, [0, 2]])
    assert np.isnan(again.costs[:, 1]).all(), "version 1 has no route:dear"
