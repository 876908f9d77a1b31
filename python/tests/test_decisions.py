"""Decisions: their arrays agree with each other and with their tables."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import World, make_world

from pointsman import Decisions, Loss, Oracle, PointsmanError, Policy, Reason, Router, Support, Task


@pytest.fixture(scope="module")
def policy(world: World) -> Policy:
    return Router("top-class:10").fit(world.probs, world.votes).policy(routes={"expert": 0.07, "llm": 0.09}, abstain=0.62)


def check(decisions: Decisions) -> None:
    """What must hold whatever was decided."""
    rows, actions = len(decisions), decisions.action_names
    assert decisions.costs.shape == (rows, len(actions)) and decisions.costs.dtype == np.float64
    for array in [decisions.action, decisions.cell, decisions.support, decisions.irreducible, decisions.label]:
        assert array.shape == (rows,)
    known = decisions.action_codes >= 0
    taken = decisions.costs[known, decisions.action_codes[known]]
    least = np.nanmin(decisions.costs[known], axis=1, initial=np.inf)
    # Where labels only bound the cost of what is taken, it has no number.
    assert (np.isnan(taken) | (np.abs(taken - least) < 1e-12)).all()
    assert np.allclose(decisions.total, decisions.costs[:, 0])
    assert (decisions.action == [actions[code] if code >= 0 else "undetermined" for code in decisions.action_codes]).all()
    assert set(decisions.support) <= set(Support)
    assert sum(decisions.counts.values()) == rows
    assert all((decisions.mask(name) == (decisions.action == name)).all() for name in actions)


def test_arrays_agree_with_each_other(policy: Policy, queries: World) -> None:
    decisions = policy.decide(queries.probs)
    check(decisions)
    assert decisions.counts["route:llm"] == 0 and decisions.counts["route:expert"] > 0
    gap = decisions.total - decisions.irreducible
    assert np.allclose(decisions.reducible, np.maximum(gap, 0))
    assert (decisions.label == queries.probs.argmax(1).astype(str)).all()
    assert decisions.act is None
    assert "predict" in repr(decisions) and "<table>" in decisions._repr_html_()
    with pytest.raises(PointsmanError, match="there are: predict"):
        decisions.mask("route")


def test_tables_agree_with_arrays(policy: Policy, queries: World) -> None:
    ids = [f"q{i}" for i in range(len(queries))]
    decisions = policy.decide(queries.probs, ids=ids)
    arrow, pandas = decisions.to_arrow(), decisions.to_pandas()
    names = ["id", "cell", "support", "action", "label", "irreducible", "reducible"]
    names += ["cost_predict", "cost_route_expert", "cost_route_llm", "cost_abstain", "reason", "next_best"]
    assert arrow.column_names == names and list(pandas.columns) == names
    for name in names:
        assert arrow[name].to_pylist() == pandas[name].tolist()
    assert pandas["action"].dtype == "category" and pandas["id"].tolist() == ids
    assert pl.DataFrame(decisions).equals(decisions.to_polars())
    assert pa.table(decisions).equals(arrow)


def test_reasons_and_what_comes_next(policy: Policy, queries: World) -> None:
    decisions = policy.decide(queries.probs)
    assert set(decisions.reason) <= {str(reason) for reason in Reason}
    assert (decisions.reason[decisions.mask("route:expert") & (decisions.support == "enough")] == "hard").all()
    assert (decisions.next_best != decisions.action).all()
    # The cheapest of the actions not taken.
    costs = decisions.costs.copy()
    np.put_along_axis(costs, decisions.action_codes[:, None].astype(int), np.inf, axis=1)
    next_cost = decisions.costs[np.arange(len(costs)), [decisions.action_names.index(name) for name in decisions.next_best]]
    np.testing.assert_allclose(next_cost, costs.min(axis=1), rtol=1e-9)


def test_limits_draw_lots_by_id(world: World, queries: World) -> None:
    policy = Router("top-class:10").fit(world.probs, world.votes).policy(routes={"expert": 0.0}, budget=0.2)
    assert policy.surcharge is not None and policy.surcharge["share"] == pytest.approx(0.2)
    same = np.repeat(queries.probs[:1], 2000, axis=0)
    by_content = policy.decide(queries.probs)
    assert (by_content.action == policy.decide(queries.probs[::-1]).action[::-1]).all()
    shares = [len(set(policy.decide(np.repeat(row[None], 200, 0), ids=range(200)).action)) for row in queries.probs[:100]]
    assert max(shares) == 2, "some rows are at the margin"
    assert len(set(policy.decide(same).action)) == 1


def test_the_expected_cost_has_an_error(world: World) -> None:
    policy = Router("top-class:3").fit(world.probs, world.votes).policy(routes={"expert": 0.05}, abstain=0.9)
    promise = policy.promise()
    assert promise is not None and 0 < promise["standard_error"] < promise["cost"]
    assert promise["shares"] == policy.shares and set(promise["always"]) == set(policy.actions)
    assert promise["identified"] is None, "two labels identify the Brier loss"


def test_few_labels_leave_the_cross_entropy_open(world: World) -> None:
    policy = Router("top-class:3").fit(world.probs, world.votes).policy(loss="cross-entropy", routes={"expert": 0.01})
    promise = policy.promise()
    assert promise is not None and promise["identified"] is not None
    low, high = promise["identified"]
    assert low <= promise["cost"] <= high and low < high


def test_certainty_is_asked_for(world: World, queries: World) -> None:
    router = Router("top-class:2").fit(*(lambda w: (w.probs, w.votes))(make_world(5000, seed=5)))
    policy = router.policy(routes={"expert": 1.5}, confidence=0.9)
    decisions = policy.decide(queries.probs)
    assert decisions.certain.all() and decisions.to_arrow()["certain"].to_pylist() == ["true"] * len(queries)
    assert decisions.to_pandas()["certain"].all()
    judgement = policy.judgement(0.9)
    assert judgement.certain_share == 1 and judgement.regret_bound == 0 and all(judgement.cells)
    router = Router("top-class:10").fit(world.probs, world.votes)
    doubtful = router.policy(routes={"expert": 0.07}, abstain=0.62).decide(queries.probs)
    assert not doubtful.certain.all() and "certain" not in doubtful.to_arrow().column_names
    with pytest.raises(PointsmanError):
        Router("forest:3").fit(world.probs, world.votes).policy().decide(queries.probs).certain


def test_forests_have_costs_of_their_own(world: World, queries: World) -> None:
    router = Router("forest:7", random_state=3).fit(world.probs, world.votes, features=world.features)
    decisions = router.policy(routes={"expert": 0.1}, abstain=0.6).decide(queries.probs, features=queries.features)
    check(decisions)
    assert len(np.unique(decisions.irreducible)) > decisions.cell.max()


def test_one_label_a_row_leaves_bounds(world: World, queries: World) -> None:
    policy = Router("top-class:10").fit(world.probs, world.votes.argmax(1)).policy(routes={"expert": 0.1}, abstain=0.8)
    decisions = policy.decide(queries.probs)
    check(decisions)
    assert decisions.counts["undetermined"] > 0
    open_ = np.isnan(decisions.irreducible)
    assert open_.mean() > 0.8 and (np.isnan(decisions.costs[:, 1]) == open_).all()
    assert decisions.to_arrow()["irreducible"].null_count == open_.sum()
    assert decisions.to_pandas()["action"].eq("undetermined").sum() == decisions.counts["undetermined"]


def test_acts_of_a_matrix_are_named(world: World, queries: World) -> None:
    loss = Loss.matrix([[0, 3, 3], [1, 0, 1], [0.4, 0.4, 0.4]], acts=["ship", "hold", "ask"])
    policy = Router("top-class:10", recalibrate=True).fit(world.probs, world.votes).policy(loss=loss, routes={"expert": 0.05})
    decisions = policy.decide(queries.probs)
    check(decisions)
    act = decisions.act
    assert act is not None and set(act) <= {"ship", "hold", "ask"} and "ask" in act
    assert decisions.to_arrow()["act"].to_pylist() == act.tolist() == decisions.to_pandas()["act"].tolist()
    fast = policy.decide(queries.probs, labels=False)
    assert (fast.costs == decisions.costs).all()
    for use in [lambda: fast.label, lambda: fast.to_arrow(), lambda: fast.act]:
        with pytest.raises(PointsmanError, match="labels=False"):
            use()


def test_prices_change_without_the_router(policy: Policy, queries: World, world: World) -> None:
    router = Router("top-class:10").fit(world.probs, world.votes)
    jury = {"jury": (Oracle.panel(3), 0.05)}
    for routes, abstain in [({"jury": 0.01}, 0.6), ({"jury": 0.5}, None), ({}, 0.3)]:
        old = router.policy(routes=jury, abstain=0.62).reprice(routes=routes, abstain=abstain)
        new = router.policy(
            routes={name: (Oracle.panel(3), price) for name, price in routes.items()}, abstain=abstain
        )
        assert old.task == new.task
        assert (old.decide(queries.probs).costs == new.decide(queries.probs).costs).all()
    # What is left out stays as it is; None is never.
    assert policy.reprice().task == policy.task
    assert policy.reprice(abstain=0.3).task.routes == policy.task.routes
    assert policy.reprice(routes={"llm": 0.1}).actions == ("predict", "route:llm", "abstain")
    assert policy.reprice(routes=None, abstain=None).actions == ("predict",)
    limited = router.policy(routes=jury, budget=0.2).reprice(routes={"jury": 0.001})
    assert limited.task.budget == 0.2 and limited.task.routes == [("jury", Oracle.panel(3), 0.001)]
    with pytest.raises(PointsmanError, match="policy of its own"):
        policy.reprice(routes={"expert": (Oracle.panel(3), 0.1)})
    assert sum(policy.shares.values()) == pytest.approx(1)


def test_many_chunks_are_one(policy: Policy) -> None:
    many = np.tile(make_world(3000, seed=4).probs, (100, 1))
    decisions = policy.decide(many, ids=np.arange(len(many)))
    first = policy.decide(many[:3000])
    for i in (0, 43, 99):
        assert (decisions.action_codes[3000 * i : 3000 * (i + 1)] == first.action_codes).all()
    assert decisions.to_arrow()["id"][299_999].as_py() == "299999"
    many[200_001] = 0.5
    with pytest.raises(PointsmanError) as caught:
        policy.decide(many)
    assert caught.value.row == 200_001


def test_batches_go_in_and_come_out(world: World, queries: World) -> None:
    router = Router("features:x_b=3*confidence:4", classes=["a", "b", "c"])
    router.fit(world.probs, world.votes, features={"b": world.features[:, 0]})
    policy = router.policy(routes={"expert": 0.1}, abstain=0.6)
    ids = [f"q{i}" for i in range(len(queries))]
    columns: dict[str, Any] = {"id": ids, "x_b": queries.features[:, 0], "text": ids}
    wide = pa.table({**columns, **{f"prob_{name}": queries.probs[:, i] for i, name in enumerate("abc")}})
    lists = pa.table({**columns, "probs": pa.FixedSizeListArray.from_arrays(pa.array(queries.probs.ravel()), 3)})
    wanted = policy.decide(queries.probs, features={"b": queries.features[:, 0]}, ids=ids).to_arrow()
    for table in [wide, lists]:
        out = list(policy.decide_batches(table.to_batches(max_chunksize=50)))
        assert len(out) == 8 and all(isinstance(batch, pa.RecordBatch) for batch in out)
        assert pa.Table.from_batches(out).combine_chunks().equals(wanted.combine_chunks())
    assert [batch.num_rows for batch in policy.decide_batches(wide.slice(0, 0).to_batches())] in ([], [0])
    for whole in [wide, wide.to_reader(), wide.combine_chunks().to_batches()[0], pl.DataFrame(wide)]:
        assert sum(batch.num_rows for batch in policy.decide_batches(whole)) == wide.num_rows
    bad = pa.record_batch({"x_b": [0.5], **{f"prob_{name}": [0.2] for name in policy.classes}})
    with pytest.raises(PointsmanError, match="batch 1: row 0") as caught:
        list(policy.decide_batches([wide.to_batches()[0], bad]))
    assert caught.value.row == 0
    with pytest.raises(PointsmanError, match="no column prob_b") as caught:
        list(policy.decide_batches([pa.record_batch({"prob_a": [1.0]})]))
    assert caught.value.column == "prob_b"


def test_tasks_and_losses_are_values() -> None:
    task = Task(Loss("brier"), [("jury", Oracle.panel(3, "laplace", smoothing=0.5), 0.1)], abstain=0.3, budget=0.2)
    import pickle

    assert pickle.loads(pickle.dumps(task)) == task and "jury" in repr(task) and "budget 0.2" in repr(task)
    by_name = {"jury": (Oracle.panel(3, "laplace", smoothing=0.5), 0.1)}
    assert Task("brier", by_name, abstain=0.3, budget=0.2) == task
    assert Loss.matrix(np.array([[0, 1], [2, 0]])) == Loss.matrix([[0, 1], [2, 0]])
    assert Loss.matrix(pd.DataFrame([[0, 1], [2, 0]])) == Loss.matrix([[0, 1], [2, 0]])
    text = 'abstain = 0.35\nloss = "brier"\n[[route]]\nname = "expert"\ncost = 0.05\n'
    parsed = Task.parse(text)
    assert parsed.abstain == 0.35 and parsed.routes == [("expert", Oracle.bayes(), 0.05)]
    assert Task.parse(parsed.text) == parsed and Task.parse(task.text) == task
    for loss in [Loss("fn-fp:fp=1,fn=3"), Loss("asymmetric:2"), Loss.matrix([[0, 1], [2, 0]], acts=["a", "b"])]:
        assert pickle.loads(pickle.dumps(loss)) == loss and eval(repr(loss)) == loss
        assert len({loss, pickle.loads(pickle.dumps(loss))}) == 1
    assert Loss("cross-entropy").unit == "nats" or Loss("cross-entropy").unit
    assert Oracle("panel:m=3,aggregate=mean") == Oracle.panel(3)


def test_cost_matrices_are_bound_to_class_names() -> None:
    cost, acts = [[0, 3], [1, 0]], ["ship", "hold"]
    named = Loss.matrix(cost, acts=acts, classes=["no", "yes"])
    turned = Loss.matrix([[3, 0], [0, 1]], acts=acts, classes=["yes", "no"])
    frame = Loss.matrix(pd.DataFrame([[3, 0], [0, 1]], columns=["yes", "no"]), acts=acts)
    assert named.classes == ["no", "yes"] and frame == turned
    router = Router(classes=["no", "yes"]).fit([[0.9, 0.1], [0.3, 0.7]], np.array([[4, 1], [1, 4]]))
    queries = [[0.8, 0.2], [0.4, 0.6]]
    wanted = router.policy(loss=Loss.matrix(cost, acts=acts), abstain=0.5).decide(queries)
    for loss in [named, turned, frame]:
        decisions = router.policy(loss=loss, abstain=0.5).decide(queries)
        assert decisions.costs.tolist() == wanted.costs.tolist()
        assert pickle.loads(pickle.dumps(loss)) == loss
    other = Loss.matrix(cost, acts=acts, classes=["no", "maybe"])
    with pytest.raises(PointsmanError, match="only the matrix has maybe, only the predictions have yes"):
        router.policy(loss=other)


def test_caps_are_kept_exactly() -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], 600)
    votes = rng.multinomial(3, 0.5 * probs + 0.5 * rng.dirichlet([1, 1, 1], 600))
    policy = Router("top-class:10").fit(probs[:300], votes[:300]).policy(routes={"expert": 0.02}, abstain=0.6)
    plain = policy.decide(probs[300:])
    wanting = plain.counts["route:expert"]
    assert plain.capped is None and wanting > 20
    for cap, most in [(0, 0), (7, 7), ("5%", 15), (10_000, wanting)]:
        decisions = policy.decide(probs[300:], caps={"expert": cap})
        assert decisions.counts["route:expert"] == min(most, wanting)
        capped = decisions.capped
        assert capped is not None
        assert sum(name == "route:expert" for name in capped) == wanting - min(most, wanting)
        assert [name for name in decisions.to_arrow()["capped"].to_pylist() if name] == [n for n in capped if n]
        assert "capped" in decisions.to_pandas()
    report = policy.evaluate(probs[300:], votes[300:], caps={"expert": 7}, calibration_error=False)
    assert report.data["caps"][0]["granted"] == 7 and report.shares["route:expert"] == 7 / 300
    assert report.data["capped"]["standard_error"] > 0
    ids = range(300)
    with pytest.raises(PointsmanError, match="ids: 300 for 299 rows"):
        policy.evaluate(probs[301:], votes[301:], caps={"expert": 7}, ids=ids)
    order = rng.permutation(300)
    once = policy.decide(probs[300:], caps={"expert": 7}).action
    assert (policy.decide(probs[300:][order], caps={"expert": 7}).action == once[order]).all()
    for caps in [{"expert": 1.5}, {"expert": -1}, {"expert": "lots"}, {"nobody": 3}, {}, 3]:
        with pytest.raises(PointsmanError):
            policy.decide(probs[300:], caps=caps)  # type: ignore[arg-type]


@pytest.mark.parametrize("partition", ["top-class:10", "forest:20"])
def test_decisions_can_be_pickled(world: World, partition: str) -> None:
    router = Router(partition).fit(world.probs, world.votes, features=world.features)
    oracle = {"expert": 0.07, "panel": (Oracle.panel(3), 0.05)}
    policy = router.policy(routes=oracle, abstain=0.62, budget=0.2)
    features = world.features if partition.startswith("forest") else None
    ids = [f"q{row}" for row in range(len(world))]
    for decisions in [
        policy.decide(world.probs, features=features, ids=ids),
        policy.decide(world.probs, features=features, labels=False),
        policy.decide(world.probs, features=features, caps={"expert": 5}),
    ]:
        copy = pickle.loads(pickle.dumps(decisions))
        assert len(copy) == len(decisions) and repr(copy) == repr(decisions)
        np.testing.assert_array_equal(copy.costs, decisions.costs)
        np.testing.assert_array_equal(copy.action_codes, decisions.action_codes)
        if decisions.capped is not None:
            assert copy.to_arrow().equals(decisions.to_arrow()) and list(copy.capped) == list(decisions.capped)


def test_state_of_another_policy_is_refused(world: World) -> None:
    cells, forest = (Router(p).fit(world.probs, world.votes).policy(routes={"expert": 0.1}) for p in ["top-class:10", "forest:20"])
    rebuild, (_, state) = cells.decide(world.probs).__reduce__()
    with pytest.raises(PointsmanError, match="another policy"):
        rebuild(forest, state)
    chunks, ids, labels, capped = state
    codes, *rest = chunks[0]
    with pytest.raises(PointsmanError, match="row 3"):
        rebuild(cells, ([(np.where(np.arange(len(codes)) == 3, 1 << 30, codes).astype(np.uint32), *rest)], ids, labels, capped))
