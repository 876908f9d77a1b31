"""The clients of a running service: decisions as the package makes them, one by one and in batches."""

import asyncio
import inspect
import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import World, make_world, real_data
from serving import CLASSES, TASK, Service, deploy, fitted, named

import pointsman
from pointsman import AsyncClient, Client, PointsmanError, Router, ServiceError, Task
from pointsman.client import BatchDecisions, Decision


def assert_same(found: BatchDecisions, wanted: pointsman.Decisions) -> None:
    """Equal to the last bit."""
    for name in ["action", "label", "cell", "support", "reason"]:
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist(), name
    assert found.action_names == wanted.action_names and found.counts == wanted.counts
    for name in ["irreducible", "reducible", "costs"]:
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), strict=True)


@pytest.mark.parametrize("partition", ["top-class:10", "features:x_length=4*confidence:3", "tree", "forest:9"])
def test_decisions_are_those_of_the_policy(client: Client, world: World, queries: World, partition: str) -> None:
    router = fitted(partition, world)
    policy = router.policy(task=TASK)
    name = deploy(client, f"same-{partition.split(':')[0]}", router, TASK)
    for kind in (np.float32, np.float64):
        probs = queries.probs.astype(kind)
        wanted = policy.decide(probs, features=named(queries))
        assert_same(client.decide_batch(name, probs, features=named(queries)), wanted)
        for row in range(0, len(queries), 10):
            features = {key: column[row] for key, column in named(queries).items()}
            found = client.decide(name, probs[row], features=features)
            assert (found.action, found.label, found.cell) == (wanted.action[row], wanted.label[row], wanted.cell[row])
            assert (found.reason, found.support) == (wanted.reason[row], wanted.support[row])
            assert [found.irreducible, found.reducible] == [wanted.irreducible[row], wanted.reducible[row]]
            assert found.costs == dict(zip(wanted.action_names, wanted.costs[row].tolist(), strict=True))
            assert found.margin == wanted.margin[row]


@pytest.mark.parametrize("file", ["snli.npz", "chaosnli.npz", "cifar10h.npz", "cifar10h-overconfident.npz"])
def test_decisions_on_real_data_are_those_of_the_policy(client: Client, file: str) -> None:
    arrays = np.load(real_data(file), allow_pickle=False)
    probs, votes = arrays["probs"], arrays["votes"]
    for partition in ("top-class:10", "forest:9"):
        policy = Router(partition, random_state=1).fit(probs[:2000], votes[:2000]).policy(task=TASK)
        name = deploy(client, f"real-{file}-{partition.split(':')[0]}", policy)
        wanted = policy.decide(probs[-5000:])
        assert_same(client.decide_batch(name, probs[-5000:]), wanted)
        for row in range(0, len(wanted), 250):
            found = client.decide(name, probs[-5000:][row])
            assert found.action == wanted.action[row] and list(found.costs.values()) == wanted.costs[row].tolist()


def test_limits_are_drawn_by_ids_as_the_policy_draws_them(client: Client, world: World, queries: World) -> None:
    policy = fitted("top-class:3", world).policy(routes={"expert": 0.0}, budget=0.3)
    name = deploy(client, "budget", policy)
    ids = [f"q{row}" for row in range(len(queries))]
    wanted = policy.decide(queries.probs, ids=ids)
    assert_same(client.decide_batch(name, queries.probs, ids=ids), wanted)
    # Without ids the draw is that of the content; it differs, so that the test above can fail.
    with Client(client._settings.url, generate_ids=False) as plain:
        by_content = policy.decide(queries.probs)
        assert by_content.action.tolist() != wanted.action.tolist()
        found = [plain.decide(name, row).action for row in queries.probs[:60]]
        assert found == by_content.action[:60].tolist()


def batches(world: World) -> dict[str, Any]:
    """The same queries in every form."""
    own = {"id": [f"own-{row}" for row in range(len(world))]}
    probs = {f"prob_{name}": world.probs[:, i] for i, name in enumerate(CLASSES)}
    turned = {name: world.probs[:, i] for i, name in reversed(list(enumerate(CLASSES)))}
    features = {f"x_{name}": column for name, column in named(world).items()}
    lists = pa.table({"probs": pa.array(world.probs.tolist())})
    return {
        "numpy": (world.probs, named(world)),
        "nested lists": (world.probs.tolist(), pd.DataFrame(named(world))),
        "pandas by class": (pd.DataFrame(turned), pd.DataFrame(features)),
        "pandas by number": (pd.DataFrame(world.probs), pl.DataFrame(named(world))),
        "pandas with everything": (pd.DataFrame(own | probs | features), None),
        "polars": (pl.DataFrame(own | probs | features), None),
        "Arrow": (pa.table(own | probs | features), None),
        "Arrow lists": (lists, pa.table(features)),
        "mapping": (probs, named(world)),
    }


def test_every_form_of_a_batch_is_decided_alike(client: Client, world: World) -> None:
    queries = make_world(50, seed=4)
    router = fitted("features:x_length=4*confidence:3", world)
    name = deploy(client, "forms", router, TASK)
    wanted = router.policy(task=TASK).decide(queries.probs, features=named(queries))
    for form, (probs, features) in batches(queries).items():
        found = client.decide_batch(name, probs, features=features)
        assert found.action.tolist() == wanted.action.tolist(), form
        np.testing.assert_array_equal(found.costs, wanted.costs, strict=True, err_msg=form)
    own = batches(queries)["Arrow"][0]
    first, again = client.decide_batch(name, own), client.decide_batch(name, own)
    assert first.decision_id.tolist() == again.decision_id.tolist()
    empty = client.decide_batch(name, own.slice(0, 0))
    assert len(empty) == 0 and empty.counts == dict.fromkeys(wanted.action_names, 0)


def test_batches_are_arrays_and_frames(client: Client, world: World, queries: World) -> None:
    name = deploy(client, "frames", fitted("top-class:10", world).policy(task=TASK))
    found = client.decide_batch(name, queries.probs)
    assert repr(found).startswith(f"<BatchDecisions: {len(queries)} rows; predict ")
    assert found.to_pandas()["action"].tolist() == found.to_polars()["action"].to_list() == found.action.tolist()
    assert pa.table(found).equals(found.to_arrow())
    assert set(found.version) == {1} and len(set(found.decision_id)) == len(queries)
    assert set(found.degraded) == set(found.would) == {None}


def test_batches_are_divided_only_with_ids(client: Client, world: World, queries: World) -> None:
    policy = fitted("top-class:10", world).policy(task=TASK)
    name = deploy(client, "divided", policy)
    with pytest.raises(PointsmanError, match="needs ids"):
        client.decide_batch(name, queries.probs, rows_per_request=100)
    with pytest.raises(PointsmanError, match="one row at least"):
        client.decide_batch(name, queries.probs, ids=range(len(queries)), rows_per_request=0)
    found = client.decide_batch(name, queries.probs, ids=range(len(queries)), rows_per_request=150)
    assert_same(found, policy.decide(queries.probs))
    # One request, all or none: one wrong row, and nothing is logged.
    wrong = queries.probs.copy()
    wrong[-1] *= 2
    before = len(list(client.decisions(name)))
    with pytest.raises(ServiceError, match="sum to 2"):
        client.decide_batch(name, wrong)
    assert len(list(client.decisions(name))) == before == len(queries)
    # Several requests: the earlier ones are decided, and the same ids give them again.
    ids = [f"second-{row}" for row in range(len(queries))]
    with pytest.raises(ServiceError, match="sum to 2"):
        client.decide_batch(name, wrong, ids=ids, rows_per_request=150)
    logged = {one.id: one.decision_id for one in client.decisions(name) if str(one.id).startswith("second")}
    assert list(logged) == ids[:300]
    repeated = client.decide_batch(name, queries.probs, ids=ids, rows_per_request=150)
    assert repeated.decision_id[:300].tolist() == list(logged.values())


def test_more_rows_than_allowed_are_refused_with_the_limit(client: Client, world: World) -> None:
    name = deploy(client, "many", fitted("top-class:10", world).policy(task=TASK))
    many = np.tile(world.probs, (17, 1))
    with pytest.raises(ServiceError, match="at most 10000") as caught:
        client.decide_batch(name, many)
    assert caught.value.status == 413
    assert len(client.decide_batch(name, many, ids=range(len(many)), rows_per_request=10_000)) == len(many)


def test_one_query_has_everything_that_the_service_takes(client: Client, world: World) -> None:
    router = fitted("features:x_length=4*confidence:3", world)
    name = deploy(client, "single", router, TASK)
    query: dict[str, Any] = {"features": {"length": 0.2, "hour": np.nan, "other": 3}, "tags": {"country": "no"}}
    by_name = client.decide(name, {"owl": 0.25, "cat": 0.25, "dog": 0.5}, **query, id="mine", input={"text": "æøå"})
    assert by_name.id == "mine" and by_name.decision_id is not None
    assert client.decide(name, [0.25, 0.5, 0.25], **query, id="mine") == by_name, "the first decision again"
    with pytest.raises(ServiceError, match="another query") as reused:
        client.decide(name, [0.9, 0.1, 0.0], **query, id="mine")
    assert (reused.value.status, reused.value.type, reused.value.pointer) == (422, "urn:pointsman:id-reused", "/id")
    dry = client.decide(name, (0.25, 0.5, 0.25), **query, dry_run=True, explain=True)
    assert dry.decision_id is None and dry.explanation is not None and dry.explanation.rows > 0
    assert replace(dry, explanation=None, decision_id=by_name.decision_id, id="mine") == by_name
    logged = client.decision(by_name.decision_id)
    assert logged.input == {"text": "æøå"} and logged.tags == {"country": "no"} and logged.probs == (0.25, 0.5, 0.25)
    assert logged.features == {"length": 0.2} and logged.deployment == name
    assert abs(logged.at - datetime.now(UTC)) < timedelta(minutes=5)
    assert pickle.loads(pickle.dumps(logged)) == logged
    assert list(client.decisions(name)) == [logged], "the dry run is not logged"
    for wrong, words in [(np.eye(3), "decide_batch"), ([0.5, np.nan, 0.5], "1: nan"), ("abc", "one number"), ([0.5, "x"], "'x'")]:
        with pytest.raises(PointsmanError, match=words):
            client.decide(name, wrong)  # type: ignore[arg-type]
    with pytest.raises(PointsmanError, match="cannot be written as JSON"):
        client.decide(name, [0.25, 0.5, 0.25], **query, input={"when": datetime.now(UTC)})


def test_many_requests_at_once(service: Service, client: Client, world: World) -> None:
    queries = make_world(500, seed=5)
    policy = fitted("top-class:10", world).policy(task=TASK)
    name = deploy(client, "concurrent", policy)

    async def ask() -> tuple[list[Decision], BatchDecisions, list[str]]:
        async with AsyncClient(service.url) as asking:
            answers = await asyncio.gather(*(asking.decide(name, row, id=str(i)) for i, row in enumerate(queries.probs)))
            batch = await asking.decide_batch(name, queries.probs, ids=range(len(queries)), rows_per_request=200)
            return answers, batch, [one.decision_id or "" async for one in asking.decisions(name, rows_per_request=100)]

    answers, batch, logged = asyncio.run(ask())
    wanted = policy.decide(queries.probs)
    assert [one.action for one in answers] == wanted.action.tolist()
    assert [one.decision_id for one in answers] == batch.decision_id.tolist()
    assert sorted(logged) == sorted(batch.decision_id) and len(set(logged)) == len(queries)


def test_the_asynchronous_client_has_the_same_methods(service: Service, client: Client, world: World) -> None:
    def signatures(kind: type) -> dict[str, list[tuple[str, object, object]]]:
        methods = {name: member for name, member in vars(kind).items() if not name.startswith("_")}
        parameters = {name: inspect.signature(member).parameters.values() for name, member in methods.items()}
        return {name: [(one.name, one.kind, one.default) for one in given] for name, given in parameters.items()}

    assert signatures(AsyncClient) == signatures(Client)
    assert inspect.signature(AsyncClient) == inspect.signature(Client)
    router = fitted("top-class:10", world)

    async def use() -> None:
        async with AsyncClient(service.url) as asking:
            await asking.put_deployment("async", mode="shadow")
            file = await asking.upload(router)
            await asking.add_version("async", file, task=TASK, activate=True)
            await asking.add_version("async", router, task=Task("zero-one", {"expert": 0.1}))
            decided = await asking.decide("async", [0.2, 0.3, 0.5])
            assert (await asking.decision(str(decided.decision_id))).would == decided.would
            assert (await asking.what_if("async", router=router, task=TASK)).changed == 0
            assert [one.version for one in await asking.versions("async")] == [1, 2]
            assert (await asking.activate("async", 2)).version == 2 and (await asking.roll_back("async")).version == 1
            await asking.set_oracle("async", "expert", available=False)
            assert (await asking.deployment("async")).unavailable == ("expert",)
            await asking.delete_deployment("async")
            assert "async" not in [one.name for one in await asking.deployments()]
            assert repr(asking) == f"<AsyncClient: {service.url}>"

    asyncio.run(use())
