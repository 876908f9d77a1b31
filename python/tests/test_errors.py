"""Bad input: the right exception, with row and column, and nothing left behind."""

import pickle
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import World
from sklearn.exceptions import NotFittedError

from pointsman import Loss, Oracle, Partial, PointsmanError, Router, Task, diagnose, read


def changed(array: Any, row: int, column: int, value: float) -> Any:
    other = array.copy()
    other[row, column] = value
    return other


PREDICTIONS: list[tuple[str, Any, str, int | None, str | None]] = [
    ("a number", lambda p: 3.0, "two dimensions", None, None),
    ("one dimension", lambda p: p[0], "column_stack", None, None),
    ("three dimensions", lambda p: p[None], "two dimensions", None, None),
    ("too few columns", lambda p: p[:, :2], "2 columns for 3 classes", None, None),
    ("ragged", lambda p: [[0.5, 0.5], [1.0]], "different lengths", None, None),
    ("text", lambda p: np.array([["a", "b", "c"]]), "not a type of real numbers", None, None),
    ("complex", lambda p: p.astype(complex), "complex128", None, None),
    ("nothing", lambda p: None, "NoneType is neither an array nor a frame", None, None),
    ("lazy", lambda p: pl.LazyFrame(p), "LazyFrame.*collect", None, None),
    ("generator", lambda p: (row for row in p), "generator is neither", None, None),
    ("one column", lambda p: pl.Series(p[:, 0]), "one column of numbers", None, None),
    ("a number a column", lambda p: {"0": 0.2, "1": 0.3, "2": 0.5}, "one number per row", None, "0"),
    ("dates", lambda p: pd.DataFrame(p).astype("datetime64[s]"), "datetime64.*not a type", None, "0"),
    ("ragged lists", lambda p: pa.array([[0.5, 0.5, 0.0], [0.5, 0.5]]), "a list of 2 numbers: 3", 1, ""),
    ("missing in pandas", lambda p: pd.DataFrame({"0": [1, pd.NA], "1": [0, 1], "2": 0}), "NaN", 1, "prob_0"),
    ("objects", lambda p: np.array([[0.2, 0.3, 0.5], [0.5, "x", 0.5]], object), "'x' is not a number", 1, "1"),
    ("None", lambda p: [[0.5, None, 0.5]], "NaN is not a probability", 0, "prob_1"),
    ("NaN", lambda p: changed(p, 5, 1, np.nan), "NaN is not a probability", 5, "prob_1"),
    ("infinite", lambda p: changed(p, 5, 2, np.inf), "inf", 5, "prob_2"),
    ("negative", lambda p: changed(p, 0, 0, -0.5), "-0.5", 0, "prob_0"),
    ("NaN in single", lambda p: changed(p.astype(np.float32), 7, 0, np.nan), "NaN", 7, "prob_0"),
    ("sum", lambda p: changed(p, 399, 1, 0.9 + p[399, 1]), "sum to", 399, "prob_*"),
    ("scores", lambda p: p + 0.2, "softmax", 0, "prob_*"),
    ("masked", lambda p: np.ma.masked_equal(changed(p, 4, 1, 0.0), 0.0), "NaN", 4, "prob_1"),
    ("other names", lambda p: pd.DataFrame(p, columns=["a", "b", "c"]), "a, b, c.*0, 1, 2", None, None),
    ("text column", lambda p: pd.DataFrame({"0": ["x"], "1": [0.5], "2": [0.5]}), "'x' is not a number", 0, "0"),
    ("null", lambda p: pa.table({"0": [0.5, None], "1": [0.5, 0.5], "2": [0.0, 0.0]}), "missing", 1, "0"),
    ("arrow text", lambda p: pa.table({"0": ["x"], "1": [0.5], "2": [0.5]}), "column 0: .*not a type", None, "0"),
    ("null list", lambda p: pa.array([[0.5, 0.5, 0.0], None], pa.list_(pa.float64(), 3)), "missing", 1, ""),
    ("hole in list", lambda p: pa.array([[0.5, None, 0.5]], pa.list_(pa.float64(), 3)), "missing", 0, "[1]"),
    ("columns of two lengths", lambda p: {"0": [1.0], "1": [0.0, 0.0], "2": [0.0]}, "different lengths", None, None),
]


@pytest.mark.parametrize("case", PREDICTIONS, ids=lambda case: case[0])
def test_bad_predictions(world: World, queries: World, case: tuple[str, Any, str, int | None, str | None]) -> None:
    _, make, words, row, column = case
    policy = Router("top-class:10").fit(world.probs, world.votes).policy(abstain=0.4)
    with pytest.raises(PointsmanError, match=f"(?s){words}") as caught:
        policy.decide(make(queries.probs))
    assert (caught.value.row, caught.value.column) == (row, column)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(PointsmanError):
        Router("top-class:10", classes=["0", "1", "2"]).fit(make(queries.probs), queries.votes)


VOTES: list[tuple[str, Any, str, int | None, str | None]] = [
    ("negative", lambda v: changed(v, 3, 1, -1), "-1 is not a number of votes", 3, "votes_1"),
    ("half", lambda v: changed(v.astype(float), 3, 2, 0.5), "0.5 is not", 3, "votes_2"),
    ("NaN", lambda v: changed(v.astype(float), 0, 0, np.nan), "nan is not", 0, "votes_0"),
    ("huge", lambda v: changed(v, 2, 0, 1 << 40), "is not a number of votes", 2, "votes_0"),
    ("none", lambda v: changed(np.zeros_like(v), 0, 0, 1), "no votes", 1, "votes_*"),
    ("too few rows", lambda v: v[1:], "599 rows for 600", None, None),
    ("too few columns", lambda v: v[:, :2], "2 columns for 3", None, None),
    ("three dimensions", lambda v: v[None], "3 dimensions", None, None),
    ("unknown label", lambda v: [["0"]] * 7 + [["0", "fox"]], "fox", 7, "labels"),
    ("counts as lists", lambda v: [[5, 0, 0]], "counts come as an array", 0, "labels"),
    ("not a list", lambda v: 3, "list of labels for each row", None, None),
    ("0-d", lambda v: np.array(3), "list of labels for each row", None, None),
    ("text", lambda v: "cat", "list of labels for each row", None, None),
    ("unknown class", lambda v: [{"0": 3}, {"fox": 1}], "'fox' is none of the classes", 1, "votes"),
    ("half by class", lambda v: [{"0": 0.5}], "0.5 is not a number of votes", 0, "votes_0"),
    ("map and list", lambda v: [{"0": 3}, ["0"]], "none of the classes", 1, "votes"),
    ("annotators", lambda v: pd.DataFrame({"ann": ["0"], "bob": ["1"]}), "tolist", None, None),
    ("other names", lambda v: pd.DataFrame(v, columns=["a", "b", "c"]), "a, b, c", None, None),
]


@pytest.mark.parametrize("case", VOTES, ids=lambda case: case[0])
def test_bad_votes(world: World, case: tuple[str, Any, str, int | None, str | None]) -> None:
    _, make, words, row, column = case
    with pytest.raises((PointsmanError, TypeError), match=words) as caught:
        Router("top-class:10").fit(world.probs, make(world.votes))
    assert getattr(caught.value, "row", None) == row and getattr(caught.value, "column", None) == column


def test_arrow_without_rows(world: World) -> None:
    names = ["0", "1", "2"]
    none = pa.table({name: pa.array([], pa.float64()) for name in names})
    policy = Router("top-class:10").fit(world.probs, world.votes).policy(abstain=0.4)
    for empty in [none, none.schema.empty_table().to_reader(), pl.DataFrame(none)]:
        assert len(policy.decide(empty)) == 0
    some = pa.table({name: world.probs[:, i] for i, name in enumerate(names)})
    chunks = pa.chunked_array
    gaps = pa.table({name: chunks([[], some[name].combine_chunks(), []], pa.float64()) for name in names})
    assert (policy.decide(gaps).costs == policy.decide(world.probs).costs).all()
    for lists in [pa.array([], pa.list_(pa.float64())), pa.array([], pa.list_(pa.float32(), 3))]:
        assert len(policy.decide(lists)) == 0
    batch = pa.record_batch({f"prob_{name}": pa.array([], pa.float64()) for name in names})
    assert list(policy.decide_batches([batch])) == []


def test_no_rows(world: World) -> None:
    for empty in [np.empty((0, 3)), np.empty((0, 3), np.float32), pd.DataFrame({"0": [], "1": [], "2": []}, dtype=float)]:
        with pytest.raises(PointsmanError, match="at least one row"):
            Router("top-class:10").fit(empty, np.empty((0, 3), int))
        policy = Router("top-class:10").fit(world.probs, world.votes).policy(abstain=0.4)
        decisions = policy.decide(empty)
        assert len(decisions) == 0 and decisions.costs.shape == (0, 2) and decisions.to_arrow().num_rows == 0
        with pytest.raises(PointsmanError):
            policy.evaluate(empty, np.empty((0, 3), int))
        with pytest.raises(PointsmanError):
            diagnose(empty, np.empty((0, 3), int))
    with pytest.raises(PointsmanError):
        Router("top-class:10").fit([], [])


def test_bad_features_oracles_weights_and_ids(world: World, queries: World) -> None:
    def fit(**given: Any) -> Router:
        return Router("features:x_0=3").fit(world.probs, world.votes, **{"features": world.features, **given})

    for given, words in [
        ({"features": None}, "x_0 is needed"),
        ({"features": world.features[1:]}, "599 rows for 600"),
        ({"features": changed(world.features, 4, 0, np.inf)}, "row 4, column x_0"),
        ({"oracles": {"llm": world.probs[1:]}}, "599 rows"),
        ({"oracles": {"llm": world.probs * 2}}, "row 0, column oracle_llm_"),
        ({"oracles": {"": world.probs}}, "without a name"),
        ({"oracles": world.probs}, "give {name: predictions}"),
        ({"oracles": {"llm": ["0", "fox"]}}, "fox"),
        ({"oracles": {"llm": ["0", None] * 300}}, "row 1: no label"),
        ({"features": {"0": ["a"] * 600}}, "column 0: .*not a type of real numbers"),
        ({"features": pd.DataFrame({"0": ["a"] * 600})}, "row 0, column 0: 'a' is not a number: encode"),
        ({"features": world.features[:, 0]}, "reshape"),
        ({"sample_weight": ["heavy"] * 600}, "sample_weight: not numbers"),
        ({"sample_weight": np.ones(3)}, "3 weights for 600"),
        ({"sample_weight": np.zeros(600)}, "row 0, column weight"),
    ]:
        with pytest.raises(PointsmanError, match=words):
            fit(**given)
    policy = fit().policy(abstain=0.4)
    for given, words in [
        ({}, "needs the features 0"),
        ({"features": queries.features[:, [0, 1, 1]]}, "3 columns"),
        ({"features": {"z": queries.features[:, 0]}}, "0 is needed"),
        ({"features": queries.features[1:]}, "399 rows of 1 features"),
        ({"features": queries.features, "ids": ["a"]}, "1 for 400 rows"),
        ({"features": queries.features, "ids": 7}, "ids: 7: give one per row"),
    ]:
        with pytest.raises(PointsmanError, match=words):
            policy.decide(queries.probs, **given)


def test_bad_tasks(world: World) -> None:
    router = Router("top-class:10").fit(world.probs, world.votes)
    for given, words in [
        ({"loss": "no-loss"}, "no-loss"),
        ({"loss": Loss.matrix([[0, 1], [1, 0]])}, "classes"),
        ({"abstain": -1}, "not a price"),
        ({"abstain": "cheap"}, "'cheap' is not a number"),
        ({"routes": {"a": float("nan")}}, "not a price"),
        ({"routes": {"": 0.1}}, "route name"),
        ({"routes": {"a": (3, 0.1)}}, "Oracle, price"),
        ({"routes": {"a": (Oracle.bayes(), 0.1, 2)}}, "not a number"),
        ({"routes": "a"}, "give {name: price}"),
        ({"routes": 3}, "give {name: price}"),
        ({"loss": [[0, 1], [1, 0]]}, "Loss.matrix"),
        ({"task": "brier"}, "Task.parse"),
        ({"task": Task(), "abstain": 0.3}, "either task"),
        ({"confidence": 95}, "between 0 and 1"),
        ({"routes": {"a": ("measured", 0.1)}}, "a"),
        ({"routes": {"a": 0.1}, "budget": 2}, "share"),
        ({"routes": {"a": 0.1}, "budget": 0.2, "target_loss": 0.1}, "one of them"),
        ({"estimator": "guess"}, "guess"),
        ({"ties": "lots"}, "lots"),
    ]:
        with pytest.raises(PointsmanError, match=words):
            router.policy(**given)
    for make in [
        lambda: Loss.matrix([[0, 1], [1]]),
        lambda: Loss.matrix([[0, -1], [1, 0]]),
        lambda: Loss.matrix([[0, 1]], acts=["a", "b"]),
        lambda: Loss.matrix([0, 1]),
        lambda: Loss.matrix([["a", 1], [1, 0]]),
        lambda: Oracle.panel(0),
        lambda: Oracle.panel(-1),
        lambda: Oracle.panel(1 << 40),
        lambda: Oracle.panel(3, "median"),
        lambda: Task.parse("loss = 3"),
        lambda: Loss("brier").entropy([0.5, 0.6]),
        lambda: Loss("brier").expected([0.5, 0.5], [1.0]),
    ]:
        with pytest.raises(PointsmanError):
            make()


def test_seeds_and_partitions_are_checked(world: World) -> None:
    for router in [Router(random_state=-1), Router(random_state=1.5), Router(random_state=1 << 70), Router(partition=None)]:  # type: ignore[arg-type]
        with pytest.raises(PointsmanError, match="random_state|partition"):
            router.fit(world.probs, world.votes)
    with pytest.raises(PointsmanError, match="cap: -1"):
        Partial(Router("top-class:10").fit(world.probs, world.votes), cap=-1)


def test_files_that_are_not_there(world: World, tmp_path: Path) -> None:
    router = Router("top-class:10").fit(world.probs, world.votes)
    for use in [
        lambda: router.save(tmp_path / "no" / "router.safetensors"),
        lambda: Router.load(tmp_path / "router.safetensors"),
        lambda: read(tmp_path / "table.csv"),
        lambda: router.decompose().save_html(tmp_path / "no" / "page.html"),
    ]:
        with pytest.raises(FileNotFoundError, match="router.safetensors|table.csv|no/page.html"):
            use()
    (tmp_path / "table.csv").write_text("prob_a,prob_b\n0.5,0.5\n0.5,x\n")
    with pytest.raises(PointsmanError, match="row 2 .line 3., column prob_b") as caught:
        read(tmp_path / "table.csv")
    assert (caught.value.row, caught.value.column) == (1, "prob_b")


def test_what_is_not_pickled_says_what_is(world: World) -> None:
    policy = Router("top-class:10").fit(world.probs, world.votes).policy(routes={"expert": 0.1})
    report = policy.evaluate(world.probs, world.votes, calibration_error=False)
    diagnosis = diagnose(world.probs, world.votes)
    for one, words in [(report, "save_html"), (diagnosis, "save_html")]:
        with pytest.raises(TypeError, match=words):
            pickle.dumps(one)


def test_errors_can_be_pickled(world: World) -> None:
    with pytest.raises(PointsmanError) as caught:
        Router("top-class:10").fit(changed(world.probs, 3, 0, np.nan), world.votes)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.row, copy.column, str(copy)) == (3, "prob_0", str(caught.value))
    with pytest.raises(NotFittedError) as unfitted:
        Router().policy()
    again = pickle.loads(pickle.dumps(unfitted.value))
    assert isinstance(again, PointsmanError) and isinstance(again, NotFittedError) and str(again) == str(unfitted.value)


def test_a_million_failing_calls_leave_nothing_behind(world: World) -> None:
    policy = Router("top-class:10").fit(world.probs, world.votes).policy(abstain=0.4)
    native = policy._policy
    bad = [
        np.array([[0.5, 0.5, 0.5]]),
        np.array([[0.5, np.nan, 0.5]], np.float32),
        np.array([[0.5, 0.5]]),
        np.asfortranarray(np.full((2, 3), 0.3)),
    ]

    def fail(calls: int) -> None:
        for array in bad:
            for _ in range(calls // len(bad)):
                try:
                    native.decide(array)
                except PointsmanError:
                    continue
                raise AssertionError("accepted")

    fail(20_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fail(1_000_000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 8 * 1024, f"{grown} KiB"
