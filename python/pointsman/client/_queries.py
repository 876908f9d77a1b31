"""Queries as the service reads them: one as JSON, many as an Arrow stream."""

import json
import math
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _inputs, _native
from .._errors import PointsmanError
from .._inputs import Columns, MatrixLike

#: The numbers of one query: in order, or by name.
Numbers: TypeAlias = Sequence[float] | Mapping[str, float] | npt.NDArray[Any]


def new_id() -> str:
    """A new id. Ids increase with time, so that the service's index of them grows at its end."""
    return f"{time.time_ns():016x}{secrets.token_hex(8)}"


def new_ids(count: int) -> list[str]:
    """New ids for the rows of a batch."""
    batch = new_id()
    return [f"{batch}-{row}" for row in range(count)]


def to_json(what: str, value: Any) -> bytes:
    """A value as JSON."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise PointsmanError(f"{what}: this cannot be written as JSON: {error}") from None


def numbers(what: str, value: Numbers, *, missing: bool = False) -> list[float | None] | dict[str, float | None]:
    """The numbers of one query. NaN is a missing value, if those are allowed."""
    if isinstance(value, Mapping):
        return {str(name): _number(what, name, one, missing) for name, one in value.items()}
    if isinstance(value, np.ndarray) and value.ndim != 1:
        raise PointsmanError(f"{what}: an array of {value.ndim} dimensions; one query has one, decide_batch takes several queries")
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise PointsmanError(f"{what}: {value!r:.60}: give one number per class or feature, or a mapping of names")
    return [_number(what, place, one, missing) for place, one in enumerate(value)]


def _number(what: str, place: object, value: Any, missing: bool) -> float | None:
    try:
        number = math.nan if value is None and missing else float(value)
    except (TypeError, ValueError):
        number = math.inf
    if missing and math.isnan(number):
        return None
    if not math.isfinite(number):
        raise PointsmanError(f"{what}: {place}: {value!r:.60} is not a finite number", column=str(place))
    return number


def query_table(probs: MatrixLike, features: MatrixLike | None, ids: Iterable[Any] | None) -> Any:
    """The ``pyarrow.Table`` of a batch: ``id``, ``prob_<class>`` or ``probs``, and ``x_<feature>`` or ``features``.

    A frame of predictions may have columns ``x_<feature>`` and ``id``, too; they are used unless arguments replace them.
    """
    pyarrow = _pyarrow()
    frame = Columns(probs, "probs") if _inputs.is_frame(probs) else None
    columns = _predictions(pyarrow, probs, frame)
    rows = len(next(iter(columns.values())))
    if features is not None:
        columns |= _features(pyarrow, features, rows)
    elif frame is not None:
        own = [name for name in frame.names if name.startswith("x_")]
        columns |= _separate(pyarrow, own, frame.matrix(own, missing=True)) if own else {}
    if ids is not None:
        columns["id"] = pyarrow.array(_inputs.ids(ids, rows), pyarrow.string())
    elif frame is not None and "id" in frame.names:
        columns["id"] = pyarrow.array(frame.texts("id"), pyarrow.string())
    return pyarrow.table(columns)


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise PointsmanError("batches and tables need pyarrow: pip install pyarrow") from None
    return pyarrow


def _predictions(pyarrow: Any, probs: MatrixLike, frame: Columns | None) -> dict[str, Any]:
    matrix, names = _inputs.probs(probs, None)
    is_named = frame is not None and not frame.numbered and frame.lists(None) is None
    if is_named:
        return _separate(pyarrow, [f"prob_{name}" for name in names], matrix)
    array = _array(matrix)
    values = pyarrow.array(array.reshape(-1))
    return {"probs": pyarrow.FixedSizeListArray.from_arrays(values, max(array.shape[1], 1))}


def _features(pyarrow: Any, features: MatrixLike, rows: int) -> dict[str, Any]:
    names, matrix = _inputs.features(features)
    if _inputs.shape(matrix)[0] != rows:
        raise PointsmanError(f"features: {_inputs.shape(matrix)[0]} rows for {rows} rows of predictions")
    return _separate(pyarrow, [f"x_{name}" for name in names], matrix)


def _separate(pyarrow: Any, names: Sequence[str], matrix: _inputs.Matrix) -> dict[str, Any]:
    """One column per name."""
    array = _array(matrix)
    return {name: pyarrow.array(np.ascontiguousarray(array[:, place])) for place, name in enumerate(names)}


def _array(matrix: _inputs.Matrix) -> npt.NDArray[Any]:
    return matrix.numpy() if isinstance(matrix, _native.Rows) else matrix


def to_stream(table: Any) -> bytes:
    """A ``pyarrow.Table`` as an Arrow IPC stream."""
    pyarrow = _pyarrow()
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_stream(data: bytes) -> Any:
    """The ``pyarrow.Table`` of an Arrow IPC stream."""
    with _pyarrow().ipc.open_stream(data) as reader:
        return reader.read_all()


def from_parquet(data: bytes) -> Any:
    """The ``pyarrow.Table`` of a Parquet file."""
    pyarrow = _pyarrow()
    from pyarrow import parquet

    return parquet.read_table(pyarrow.BufferReader(data))
