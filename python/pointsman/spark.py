"""Calibrating and deciding on Spark: the rows stay on the executors.

:func:`calibrate` sorts the rows of all partitions into the cells, or the leaves, of a router that was fitted on a sample, and merges the parts
in a tree of merges. :func:`decide` broadcasts a compiled policy and decides the rows of a table where they are. Both give what one machine
would give, byte by byte.

Tables have columns ``prob_<class>``, for calibration ``votes_<class>``, and optionally ``x_<feature>``, ``weight`` and ``id``. The executors'
Python needs this package, numpy and pyarrow. Sessions of Spark Connect have neither broadcasts nor RDDs and are refused.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _inputs
from ._errors import PointsmanError
from ._partial import Partial
from ._policy import Policy
from ._router import Router

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["Split", "calibrate", "decide", "split_sample"]

#: The number of rows on which cells are fitted and trees are grown, by default.
SAMPLE_ROWS = 100_000

#: Batches are joined to at least this many rows before they are added to a part.
ROWS_PER_ADDITION = 1 << 16


class Split(NamedTuple):
    """A random sample of the rows of a table, and all other rows."""

    sample: "DataFrame"
    rest: "DataFrame"


def split_sample(df: "DataFrame", rows: int = SAMPLE_ROWS, *, random_state: int = 0) -> Split:
    """Divides a table into a random sample of about ``rows`` rows, at most half of the table, and the rest.

    A hash of ``random_state`` and the row's ``id`` decides, so the sample does not depend on how rows are partitioned, and the same ids give
    the same sample. The rows are counted first. The number of rows varies as for independent draws: 100,000 ± 1,000.
    """
    if _inputs.whole("rows", rows) == 0:
        raise PointsmanError("rows: a sample needs one row at least")
    seed = _inputs.whole("random_state", random_state)
    _session(df)
    _require(df, ["id"], "a sample is drawn by a hash of each row's id: add a column id with distinct values")
    share = min(rows / max(df.count(), 1), 0.5)
    is_in_sample = _hash_of_id(seed) < int(share * 2.0**64) - 2**63
    return Split(df.where(is_in_sample), df.where(~is_in_sample))


def calibrate(
    df: "DataFrame",
    like: Router | str,
    *,
    cap: int | None = None,
    sample: int = SAMPLE_ROWS,
    random_state: int = 0,
    depth: int = 2,
) -> Router:
    """Calibrates a router on the rows of all partitions.

    Parameters
    ----------
    df:
        The calibration rows.
    like:
        A fitted router, whose cells or trees are used, or a partition such as ``"top-class:10"`` or ``"forest:200"``, which is fitted on a
        sample of the rows on the driver. The rows of the sample count like all others, unless the partition is learned from labels
        (``"tree"``, ``"honest-forest:200"``, ``"forest:200"``, ``"auto"``): then they are left out, so that no row is judged by cells it has
        shaped. For the same reason, a router with such a partition should have been fitted on other rows.
    cap:
        The largest number of rows kept per cell, a random sample weighted to represent all of them; see :class:`Partial`. It needs a column
        ``id`` with distinct values. Without a cap, all rows must fit into the memory of the driver. For a forest, the cells are its about 25
        quantiles of scores.
    sample:
        About how many rows to fit the partition on, at most half of the table; see :func:`split_sample`.
    random_state:
        The seed of the sample, the trees and the cap, a whole number.
    depth:
        The number of levels in which parts are merged, before the driver merges the last few.

    Returns
    -------
    Router
        The same router as by adding all rows to one :class:`Partial`, however rows are partitioned.
    """
    spark = _session(df)
    classes = _classes(df, like)
    used = [name for name in df.columns if name in {"id", "weight"} or name.startswith("x_")]
    df = df.select([_column(f"{prefix}{name}") for prefix in ("prob_", "votes_") for name in classes] + [_column(name) for name in used])
    if cap is not None:
        _require(df, ["id"], "a cap draws rows by their ids: add a column id with distinct values")
    if isinstance(like, str):
        split = split_sample(df, sample, random_state=random_state)
        like = _fit(split.sample, like, classes, random_state, most=2 * sample + 1000)
        df = split.rest if like._fitted().is_learned else df
    empty = Partial(like, cap=cap, random_state=random_state)
    sent = spark.sparkContext.broadcast(empty.to_bytes())
    try:
        parts = df.mapInArrow(_add_to_part(sent), "part binary").rdd
        merged = parts.map(lambda row: Partial.from_bytes(bytes(row[0]))).treeAggregate(None, _merged, _merged, depth)
    finally:
        sent.destroy()
    return (empty if merged is None else merged).finish()


def decide(df: "DataFrame", policy: Policy, *, keep: Sequence[str] | None = None) -> "DataFrame":
    """Decides the rows of a table on the executors.

    The policy is broadcast as its compiled file, without calibration rows unless it has a confidence. The result is lazy, like any other transformation.

    Parameters
    ----------
    df:
        The queries: columns ``prob_<class>``, or ``probs`` with lists, and ``x_<feature>`` for the features that the policy needs.
    policy:
        The policy. Decisions on a limit's margin are drawn by ``id``, if there is one. A cap on the number of routed queries needs all queries
        in one place and is not possible here; a budget is.
    keep:
        The columns to pass on, by default ``id`` if there is one.

    Returns
    -------
    DataFrame
        The columns kept, followed by those of the command ``decide``: ``action``, ``label``, ``reason``, costs and others.
    """
    if not isinstance(policy, Policy):
        raise PointsmanError(f"policy: {policy!r:.60} is not a Policy: compile one by Router.policy, or load one by Policy.load")
    spark = _session(df)
    needed = ["probs"] if "probs" in df.columns else [f"prob_{name}" for name in policy.classes]
    needed += [f"x_{name}" for name in policy.features]
    _require(df, needed, "the policy needs it")
    kept = [name for name in ("id",) if name in df.columns] if keep is None else list(keep)
    _require(df, kept, "keep names it")
    needed += [name for name in dict.fromkeys([*kept, "id"]) if name in df.columns and name not in needed]
    schema, decided = _decision_schema(df, policy, kept)
    sent = spark.sparkContext.broadcast(policy)
    return df.select([_column(name) for name in needed]).mapInArrow(_decide_batches(sent, kept, decided), schema)


def _add_to_part(sent: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What an executor does with a partition of calibration rows: it makes one part of them, as bytes."""

    def add(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        part = Partial.from_bytes(sent.value)
        waiting: list[Any] = []
        for batch in batches:
            waiting.append(batch)
            if sum(one.num_rows for one in waiting) >= ROWS_PER_ADDITION:
                _add_batches(part, waiting)
                waiting = []
        _add_batches(part, waiting)
        yield pyarrow.record_batch({"part": pyarrow.array([part.to_bytes()], pyarrow.binary())})

    return add


def _add_batches(part: Partial, batches: list[Any]) -> None:
    import pyarrow

    if batches:
        _naming_the_id(part.add_batch, pyarrow.Table.from_batches(batches))


def _merged(one: Partial | None, other: Partial | None) -> Partial | None:
    """Two parts as one; ``None`` is a part without rows."""
    return other if one is None else one if other is None else one.merge(other)


def _decide_batches(sent: Any, kept: list[str], decided: list[str]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What an executor does with a partition of queries."""

    def decide(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        policy: Policy = sent.value
        for batch in batches:
            found = pyarrow.table(_naming_the_id(policy._decide_batch, batch))
            columns = {name: batch.column(name) for name in kept}
            columns |= {name: _signed(found.column(name)) for name in decided}
            yield from pyarrow.table(columns).to_batches()

    return decide


def _signed(column: Any) -> Any:
    """The column with a type that Spark has: it knows no unsigned numbers."""
    import pyarrow

    return column.cast(pyarrow.int64()) if pyarrow.types.is_unsigned_integer(column.type) else column


def _naming_the_id(work: Callable[[Any], Any], rows: Any) -> Any:
    """Applies a function to rows; an error of one row names the row's id, since rows of a partition have no numbers that users know."""
    try:
        return work(rows)
    except PointsmanError as error:
        if error.row is None or "id" not in rows.schema.names:
            raise
        name = rows.column("id")[error.row].as_py()
        raise PointsmanError(f"id {name}: {error}", row=error.row, column=error.column) from None


def _decision_schema(df: "DataFrame", policy: Policy, kept: Sequence[str]) -> tuple["StructType", list[str]]:
    """The columns of decisions, and the names of those that are not kept ones."""
    import pyarrow
    from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

    features = np.empty((0, len(policy.features))) if policy.features else None
    found = pyarrow.table(policy.decide(np.empty((0, len(policy.classes))), features=features)).schema
    twice = [name for name in kept if name in found.names]
    if twice:
        raise PointsmanError(f"keep: {twice[0]} is a column of decisions: rename it first", column=twice[0])
    fields = [df.schema[name] for name in kept]
    for column in found:
        is_text, is_real = pyarrow.types.is_string(column.type), pyarrow.types.is_floating(column.type)
        fields.append(StructField(column.name, StringType() if is_text else DoubleType() if is_real else LongType()))
    return StructType(fields), list(found.names)


def _fit(sample: "DataFrame", partition: str, classes: Sequence[str], random_state: int, most: int) -> Router:
    """A router fitted on a sample, on the driver."""
    rows = sample.limit(most).toArrow()
    if rows.num_rows == most:
        raise PointsmanError("the sample has far more rows than asked for: the values of the column id are not distinct")
    if rows.num_rows == 0:
        raise PointsmanError("the sample has no rows: there are too few, or the values of the column id are not distinct")
    features = [name for name in rows.column_names if name.startswith("x_")]
    weights = rows.column("weight").to_numpy() if "weight" in rows.column_names else None
    router = Router(partition, random_state=random_state, classes=classes)
    return router.fit(
        rows.select([f"prob_{name}" for name in classes]),
        rows.select([f"votes_{name}" for name in classes]),
        features=rows.select(features) if features else None,
        sample_weight=weights,
    )


def _classes(df: "DataFrame", like: Router | str) -> list[str]:
    """The classes of a calibration table, in the order of the router or of the columns."""
    if isinstance(like, Router):
        classes = list(like._fitted().classes)
    elif isinstance(like, str):
        classes = [name.removeprefix("prob_") for name in df.columns if name.startswith("prob_")]
    else:
        raise PointsmanError(f"like: {like!r:.60} is neither a Router nor a partition such as 'top-class:10'")
    if not classes:
        raise PointsmanError(f"no columns prob_<class>; there are {', '.join(df.columns)}")
    for prefix in ("prob_", "votes_"):
        _require(df, [f"{prefix}{name}" for name in classes], "calibration needs predictions and votes of every class")
    return classes


def _require(df: "DataFrame", names: Sequence[str], why: str) -> None:
    for name in names:
        if name not in df.columns:
            raise PointsmanError(f"no column {name}; there are {', '.join(df.columns)}: {why}", column=name)


def _column(name: str) -> "Column":
    """A column by its name, which may have dots."""
    from pyspark.sql import functions

    return functions.col(f"`{name.replace('`', '``')}`")


def _hash_of_id(seed: int) -> "Column":
    from pyspark.sql import functions

    return functions.xxhash64(functions.lit(str(seed)), _column("id"))


def _session(df: Any) -> "SparkSession":
    """The session of a table, which must be one of the classic interface."""
    try:
        from pyspark.sql.classic.dataframe import DataFrame
    except ImportError as error:
        raise PointsmanError(f"pointsman.spark needs PySpark 4 or newer, pip install pyspark: {error}") from None
    if not isinstance(df, DataFrame):
        raise PointsmanError(
            f"{type(df).__module__}.{type(df).__name__} is not a table of a classic Spark session: Spark Connect has neither broadcasts nor"
            " RDDs; start the session with a master, as in SparkSession.builder.master(…)"
        )
    return df.sparkSession
