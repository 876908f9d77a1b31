"""Whatever predictions, votes and features come in, the decisions are the same."""

import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import World

from pointsman import PointsmanError, Router, _inputs, _native

CLASSES = ["cat", "dog", "eel"]


def columns(array: Any, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}{name}": array[:, i] for i, name in enumerate(CLASSES)}


def backwards(array: Any, prefix: str = "") -> dict[str, Any]:
    return dict(reversed(columns(array, prefix).items()))


KINDS: dict[str, Any] = {
    "f64": lambda a: a,
    "fortran": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
    "reversed": lambda a: a[::-1][::-1],
    "byteswapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "objects": lambda a: a.astype(object),
    "read-only": lambda a: np.frombuffer(a.tobytes()).reshape(a.shape),
    "lists": lambda a: a.tolist(),
    "dict": columns,
    "pandas": lambda a: pd.DataFrame(columns(a)),
    "pandas backwards": lambda a: pd.DataFrame(backwards(a)),
    "pandas prefixed": lambda a: pd.DataFrame(backwards(a, "prob_")).assign(other="text"),
    "polars": lambda a: pl.DataFrame(backwards(a)),
    "pyarrow table": lambda a: pa.table(backwards(a)),
    "pyarrow chunks": lambda a: pa.concat_tables([pa.table(backwards(a[:7])), pa.table(backwards(a[7:]))]),
    "pyarrow batch": lambda a: pa.record_batch(backwards(a, "prob_")),
    "pyarrow reader": lambda a: pa.table(columns(a)).to_reader(max_chunksize=9),
    "pyarrow lists": lambda a: pa.FixedSizeListArray.from_arrays(pa.array(a.ravel()), 3),
    "pyarrow list slice": lambda a: pa.FixedSizeListArray.from_arrays(pa.array(np.tile(a.ravel(), 2)), 3)[: len(a)],
    "pyarrow lists of any length": lambda a: pa.array(a.tolist()),
    "pyarrow list chunks": lambda a: pa.chunked_array([a[:5].tolist(), [], a[5:].tolist()]),
    "pyarrow lists sliced": lambda a: pa.array([[9.0], *a.tolist()])[1:],
    "pyarrow large lists": lambda a: pa.array(a.tolist(), pa.large_list(pa.float64())),
    "pyarrow table of lists": lambda a: pa.table({"probs": a.tolist()}),
    "polars lists": lambda a: pl.Series("p", a.tolist()),
    "polars frame of lists": lambda a: pl.DataFrame({"p": a.tolist()}),
    "pandas series of lists": lambda a: pd.Series(a.tolist()),
    "pandas series of arrays": lambda a: pd.Series(list(a), index=range(7, 7 + len(a))),
    "pandas frame of lists": lambda a: pd.DataFrame({"probs": a.tolist()}),
    "pandas without names": pd.DataFrame,
    "pandas nullable": lambda a: pd.DataFrame(columns(a)).astype("Float64"),
    "array of lists": lambda a: np.array([*a.tolist(), None], dtype=object)[:-1],
    "polars arrays": lambda a: pl.Series("p", a, dtype=pl.Array(pl.Float64, 3)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_predictions_is_decided_alike(world: World, queries: World, kind: str) -> None:
    policy = Router("top-class:10", classes=CLASSES).fit(world.probs, world.votes).policy(routes={"expert": 0.07}, abstain=0.62)
    wanted = policy.decide(queries.probs)
    found = policy.decide(KINDS[kind](queries.probs))
    assert (found.costs == wanted.costs).all() and (found.label == wanted.label).all()
    assert (found.action == wanted.action).all() and len(set(found.action)) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_predictions_is_fitted_alike(world: World, kind: str) -> None:
    wanted = Router("top-class:10", classes=CLASSES).fit(world.probs, world.votes)
    found = Router("top-class:10", classes=CLASSES).fit(KINDS[kind](world.probs), world.votes)
    assert found.to_bytes() == wanted.to_bytes()


def test_single_precision_is_decided_as_the_same_numbers(world: World, queries: World) -> None:
    single = queries.probs.astype(np.float32)
    for partition in ["top-class:10", "level-sets", "forest:5"]:
        policy = Router(partition).fit(world.probs, world.votes).policy(abstain=0.45)
        wanted = policy.decide(single.astype(np.float64))
        kinds = [single, np.asfortranarray(single), pd.DataFrame(single, columns=["0", "1", "2"])]
        for frame in [*kinds, pa.table({str(i): single[:, i] for i in range(3)})]:
            assert (policy.decide(frame).costs == wanted.costs).all()


def test_names_of_columns_are_the_classes(world: World) -> None:
    frame = pd.DataFrame(columns(world.probs))
    router = Router("top-class:10").fit(frame, pd.DataFrame(backwards(world.votes)))
    assert router.classes_.tolist() == CLASSES
    assert router.to_bytes() == Router("top-class:10", classes=CLASSES).fit(world.probs, world.votes).to_bytes()
    policy = router.policy(abstain=0.4)
    with pytest.raises(PointsmanError, match=r"cat, dog, fox.*cat, dog, eel"):
        policy.decide(frame.rename(columns={"eel": "fox"}))
    with pytest.raises(PointsmanError, match="two columns"):
        policy.decide(pd.DataFrame(world.probs, columns=["cat", "dog", "dog"]))


@pytest.mark.parametrize(
    "votes",
    [
        lambda v: v.astype(np.uint8),
        lambda v: v.astype(float),
        np.asfortranarray,
        lambda v: pd.DataFrame(backwards(v)),
        lambda v: pl.DataFrame(backwards(v, "votes_")),
        lambda v: pa.table(columns(v)),
        lambda v: [np.repeat(CLASSES, row).tolist() for row in v],
        lambda v: [np.repeat(CLASSES, row) for row in v],
        lambda v: pa.array([np.repeat(CLASSES, row).tolist() for row in v]),
        lambda v: pl.Series([np.repeat(CLASSES, row).tolist() for row in v]),
        lambda v: np.array([np.repeat(CLASSES, row) for row in v]),
        lambda v: np.array([[*np.repeat(CLASSES, row), None] for row in v], dtype=object),
        lambda v: pd.DataFrame([np.repeat(CLASSES, row) for row in v]),
        pd.DataFrame,
        lambda v: [dict(zip(CLASSES, row, strict=True)) for row in v.tolist()],
        lambda v: [Counter(np.repeat(CLASSES, row).tolist()) for row in v],
        lambda v: pd.Series([np.repeat(CLASSES, row).tolist() + [None, float("nan")] for row in v]),
    ],
)
def test_votes_are_counts_or_labels(world: World, votes: Any) -> None:
    wanted = Router("top-class:10", classes=CLASSES).fit(world.probs, world.votes)
    assert Router("top-class:10", classes=CLASSES).fit(world.probs, votes(world.votes)).to_bytes() == wanted.to_bytes()


def test_masked_labels_are_left_out(world: World) -> None:
    labels = np.ma.masked_equal(np.array([[0, 1, -1], [2, -1, -1], [0, 0, 2]]), -1)
    counts = np.array([[1, 1, 0], [0, 0, 1], [2, 0, 1]])
    wanted = Router("top-class:10").fit(world.probs[:3], counts).to_bytes()
    assert Router("top-class:10").fit(world.probs[:3], labels).to_bytes() == wanted
    assert Router("top-class:10").fit(world.probs[:3], labels.astype(float)).to_bytes() == wanted
    assert Router("top-class:10").fit(world.probs[:3], [[0, 1], [2.0], [0, np.int64(0), "2"]]).to_bytes() == wanted
    assert Router("top-class:10").fit(world.probs[:3], [[0, 1, pd.NA], [np.float32(2)], [0, np.uint8(0), np.str_("2")]]).to_bytes() == wanted


def test_one_label_a_row_may_be_flat(world: World) -> None:
    flat = world.votes.argmax(1)
    wanted = Router("top-class:10").fit(world.probs, np.eye(3, dtype=int)[flat]).to_bytes()
    for one in [flat, flat.tolist(), pd.Series(flat), flat.astype(str)]:
        assert Router("top-class:10").fit(world.probs, one).to_bytes() == wanted


def test_an_oracle_may_answer_with_labels(world: World) -> None:
    flat = world.votes.argmax(1)
    sure = np.eye(3)[flat]
    wanted = Router("top-class:10").fit(world.probs, world.votes, oracles={"llm": sure}).to_bytes()
    for labels in [flat, flat.tolist(), flat.astype(str), pd.Series(flat, index=flat + 5), pl.Series(flat.astype(str)), pa.array(flat)]:
        assert Router("top-class:10").fit(world.probs, world.votes, oracles={"llm": labels}).to_bytes() == wanted


def test_missing_values_of_pandas(world: World) -> None:
    labels = pd.Series(world.votes.argmax(1).astype(str), dtype="string")
    labels[3] = pd.NA
    with pytest.raises(PointsmanError, match="no votes") as caught:
        Router("top-class:10").fit(world.probs, labels)
    assert caught.value.row == 3
    features = pd.DataFrame(world.features, columns=["a", "b"])
    holes = features.mask(features > 0.9)
    wanted = Router("tree").fit(world.probs, world.votes, features=holes).to_bytes()
    assert Router("tree").fit(world.probs, world.votes, features=holes.astype("Float64")).to_bytes() == wanted


def test_a_series_is_a_feature(world: World) -> None:
    wanted = Router("features:x_a=3").fit(world.probs, world.votes, features={"a": world.features[:, 0]}).to_bytes()
    for series in [pd.Series(world.features[:, 0], name="a"), pl.Series("a", world.features[:, 0])]:
        router = Router("features:x_a=3").fit(world.probs, world.votes, features=series)
        assert router.to_bytes() == wanted
        assert len(router.policy().decide(world.probs, features=series)) == len(world)


FEATURES: dict[str, Any] = {
    "dict": lambda a: {"a": a[:, 0], "b": a[:, 1]},
    "pandas": lambda a: pd.DataFrame({"b": a[:, 1], "unused": 1, "a": a[:, 0]}),
    "prefixed": lambda a: pd.DataFrame({"x_b": a[:, 1], "x_a": a[:, 0], "id": "text"}),
    "polars": lambda a: pl.DataFrame({"a": a[:, 0], "b": a[:, 1]}),
    "pyarrow": lambda a: pa.table({"b": a[:, 1], "a": a[:, 0]}),
    "array": lambda a: a,
}


@pytest.mark.parametrize("kind", FEATURES)
def test_features_are_found_by_name(world: World, queries: World, kind: str) -> None:
    frame = pd.DataFrame({"a": world.features[:, 0], "b": world.features[:, 1]})
    router = Router("features:x_b=3,x_a=4").fit(world.probs, world.votes, features=frame)
    policy = router.policy(abstain=0.5)
    assert policy.features == ("b", "a") and router.feature_names_ == ["a", "b"]
    wanted = policy.decide(queries.probs, features=FEATURES["dict"](queries.features))
    found = policy.decide(queries.probs, features=FEATURES[kind](queries.features))
    assert (found.cell == wanted.cell).all() and len(set(found.cell)) == 12
    if kind != "array":
        other = Router("features:x_b=3,x_a=4").fit(world.probs, world.votes, features=FEATURES[kind](world.features))
        assert other.to_bytes() == router.to_bytes()


def test_missing_features_go_down_trees(world: World, queries: World) -> None:
    holes = queries.features.copy()
    holes[::3, 0] = np.nan
    router = Router("tree").fit(world.probs, world.votes, features=world.features)
    arrow = pa.table({"0": pa.array(holes[:, 0], from_pandas=True), "1": holes[:, 1]})
    found = router.policy().decide(queries.probs, features=arrow)
    assert (found.cell == router.policy().decide(queries.probs, features=holes).cell).all()
    cells = Router("features:x_0=3").fit(world.probs, world.votes, features=world.features)
    with pytest.raises(PointsmanError) as caught:
        cells.policy().decide(queries.probs, features=holes)
    assert caught.value.row == 0 and caught.value.column == "x_0"


def test_arrays_are_read_where_they_lie(queries: World) -> None:
    for array in [queries.probs, queries.probs.astype(np.float32)]:
        assert _inputs.floats(array, "probs") is array
        half = array[: len(array) // 2]
        assert np.shares_memory(_inputs.floats(half, "probs"), array)
    fortran = np.asfortranarray(queries.probs)
    assert not np.shares_memory(_inputs.floats(fortran, "probs"), fortran)


def test_arrow_lists_are_read_where_they_lie(queries: World) -> None:
    for kind in [pa.float32(), pa.float64()]:
        values = pa.array(queries.probs.ravel(), kind)
        lists = pa.FixedSizeListArray.from_arrays(values, 3)
        rows = _native.Frame(lists).lists("", 3)
        assert rows.address == values.buffers()[1].address and rows.shape == (len(queries), 3)
        batch = pa.record_batch({"probs": lists})
        assert _native.Frame(batch).lists("probs", 3).address == values.buffers()[1].address
        loose = lists.cast(pa.list_(kind))
        assert _native.Frame(loose).lists("", 3).address == loose.flatten().buffers()[1].address
        later = lists[5:]
        size = kind.bit_width // 8
        assert _native.Frame(later).lists("", 3).address == values.buffers()[1].address + 15 * size


def test_deciding_does_not_copy() -> None:
    # A process of its own, since the peak of this one is behind it already. The array is 400 MB, the decisions 40.
    code = """
import resource, numpy as np, pointsman
rng = np.random.default_rng(0)
probs = rng.dirichlet([1] * 10, 1000)
policy = pointsman.Router("top-class:10").fit(probs, rng.multinomial(5, probs)).policy(abstain=0.5)
many = np.zeros((10_000_000, 10), np.float32)
many[:, 3] = 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
policy.decide(many, labels=False)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 120, done.stdout
