"""From what users have to what the core reads: conversions, and refusals that say where and what to do.

A matrix is a numpy array of float32 or float64 in C order, which is not copied, or anything that can become one, which is
copied once; or an Arrow table, whose columns are gathered once, or read where they lie if they are one column of lists.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _native
from ._errors import PointsmanError

#: Anything that is read as a matrix: arrays, nested lists, frames, Arrow tables, mappings of columns.
MatrixLike: TypeAlias = Any
Matrix: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.float64] | _native.Rows


def is_frame(value: object) -> bool:
    """Whether this has named columns."""
    return isinstance(value, Mapping) or _is_pandas(value) or _is_arrow(value)


def _is_pandas(value: object) -> bool:
    return hasattr(value, "to_numpy") and hasattr(value, "columns") and hasattr(value, "iloc")


def _is_arrow(value: object) -> bool:
    is_numpy = isinstance(value, np.ndarray | np.generic)
    return not is_numpy and (hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"))


def floats(value: MatrixLike, what: str) -> npt.NDArray[np.float32] | npt.NDArray[np.float64]:
    """A two-dimensional array of floats in C order: the same memory if it is one already."""
    if isinstance(value, np.ma.MaskedArray):
        value = np.ma.filled(np.ma.asarray(value, np.float64), np.nan)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise PointsmanError(f"{what}: rows of different lengths, or not numbers ({error})") from None
    if array.ndim == 1 and array.size == 0:
        array = array.reshape(0, 0)
    if array.ndim != 2:
        shape = " × ".join(map(str, array.shape)) or "a single number"
        raise PointsmanError(
            f"{what}: an array of {shape}; give two dimensions, rows × columns"
            " (for one score s a row: numpy.column_stack([1 - s, s]))"
        )
    if array.dtype.kind == "O":
        array = _numbers(array, what)
    if array.dtype.kind not in "fiub":
        raise PointsmanError(f"{what}: {array.dtype} is not a type of real numbers; convert to float64")
    kind = np.float32 if array.dtype.itemsize == 4 and array.dtype.kind == "f" else np.float64
    plain: npt.NDArray[np.float32] | npt.NDArray[np.float64] = np.require(array, kind, ["C", "A"])
    return plain


def _numbers(array: npt.NDArray[Any], what: str) -> npt.NDArray[np.float64]:
    """Objects as numbers; the first that is none is named."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        for (row, column), value in np.ndenumerate(array):
            try:
                float(value)
            except (TypeError, ValueError):
                message = f"row {row}, column {column}: {value!r} is not a number"
                raise PointsmanError(f"{what}: {message}", row=row, column=str(column)) from None
        raise PointsmanError(f"{what}: not numbers") from None


class Columns:
    """A frame's columns by name, whatever library it is of."""

    def __init__(self, frame: MatrixLike, what: str) -> None:
        self.what = what
        self._pandas = frame if _is_pandas(frame) else None
        self._mapping: Mapping[Any, Any] | None = frame if isinstance(frame, Mapping) else None
        self._arrow: _native.Frame | None = None
        if self._pandas is not None:
            self.names = [str(name) for name in frame.columns]
        elif self._mapping is not None:
            self.names = [str(name) for name in self._mapping]
        else:
            self._arrow = _native.Frame(frame)
            self.names = list(self._arrow.names)
        if len(set(self.names)) != len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise PointsmanError(f"{what}: two columns are called {twice!r}", column=twice)

    def __len__(self) -> int:
        if self._pandas is not None:
            return len(self._pandas)
        if self._mapping is not None:
            return max((len(column) for column in self._mapping.values()), default=0)
        assert self._arrow is not None
        return len(self._arrow)

    def list_size(self) -> int | None:
        """The length of the lists, if all there is is one column of lists of fixed length."""
        return self._arrow.list_size(self.names[0]) if self._arrow is not None and len(self.names) == 1 else None

    def lists(self) -> Matrix:
        """The one column of lists, where it lies."""
        assert self._arrow is not None
        return self._arrow.lists(self.names[0])

    def under(self, prefix: str) -> dict[str, str]:
        """Columns by name without the prefix; if none has it, all by their own names."""
        marked = {name.removeprefix(prefix): name for name in self.names if name.startswith(prefix)}
        return marked or {name: name for name in self.names}

    def matrix(self, names: Sequence[str], *, missing: bool = False) -> Matrix:
        """These columns side by side."""
        if self._arrow is not None:
            return self._arrow.rows(list(names), missing=missing)
        places = [self.names.index(name) for name in names]
        if self._pandas is not None:
            whole = places == list(range(len(self.names)))
            chosen = self._pandas if whole else self._pandas.iloc[:, places]
            return self._checked(chosen.to_numpy(), names)
        assert self._mapping is not None
        columns = list(self._mapping.values())
        arrays = [np.asarray(columns[place]) for place in places]
        lengths = {name: len(array) for name, array in zip(names, arrays, strict=True)}
        if len(set(lengths.values())) > 1:
            raise PointsmanError(f"{self.what}: columns of different lengths: {lengths}")
        return self._checked(np.column_stack(arrays) if arrays else np.empty((0, 0)), names)

    def _checked(self, array: npt.NDArray[Any], names: Sequence[str]) -> Matrix:
        try:
            return floats(array, self.what)
        except PointsmanError as error:
            if error.column is None or not error.column.isdigit():
                raise
            name = names[int(error.column)]
            message = str(error).replace(f"column {error.column}:", f"column {name}:")
            raise PointsmanError(message, row=error.row, column=name) from None

    def texts(self, name: str) -> list[str]:
        """A column as text."""
        if self._arrow is not None:
            return self._arrow.texts(name)
        columns: Any = self._pandas if self._mapping is None else self._mapping
        return [str(value) for value in columns[name]]


def shape(matrix: Matrix) -> tuple[int, int]:
    """Rows and columns."""
    rows, columns = matrix.shape
    return rows, columns


def probs(value: MatrixLike, classes: Sequence[str] | None, what: str = "probs", prefix: str = "prob_") -> tuple[Matrix, list[str]]:
    """Predictions and their classes. Named columns are put in the order of the classes, if those are known."""
    if not is_frame(value):
        matrix: Matrix = floats(value, what)
    else:
        columns = Columns(value, what)
        if columns.list_size() is not None:
            matrix = columns.lists()
        else:
            found = columns.under(prefix)
            wanted = list(found) if classes is None else list(classes)
            if set(found) != set(wanted):
                raise PointsmanError(
                    f"{what}: the columns are of the classes {', '.join(found)}, but the classes are"
                    f" {', '.join(wanted)}: give one column for each, named after it"
                )
            return columns.matrix([found[name] for name in wanted]), wanted
    width = shape(matrix)[1]
    names = [str(i) for i in range(width)] if classes is None else list(classes)
    if width != len(names):
        raise PointsmanError(f"{what}: {width} columns for {len(names)} classes: {', '.join(names)}")
    return matrix, names


def features(value: MatrixLike, names: Sequence[str] | None = None) -> tuple[list[str], Matrix]:
    """Features and their names; without names of their own they are those given, or numbers."""
    if is_frame(value):
        columns = Columns(value, "features")
        found = columns.under("x_")
        return list(found), columns.matrix(list(found.values()), missing=True)
    matrix = floats(value, "features")
    width = matrix.shape[1]
    own = [str(i) for i in range(width)] if names is None or len(names) != width else list(names)
    return own, matrix


def wanted_features(value: MatrixLike | None, wanted: Sequence[str], fitted: Sequence[str] | None) -> Matrix | None:
    """The features a router's cells are found by, in its order."""
    if not wanted:
        return None
    if value is None:
        raise PointsmanError(f"this router needs the features {', '.join(wanted)}: give features=…")
    if is_frame(value):
        columns = Columns(value, "features")
        found = columns.under("x_")
    else:
        matrix = floats(value, "features")
        width = matrix.shape[1]
        names = next((list(names) for names in (fitted, wanted) if names is not None and len(names) == width), None)
        if names is None:
            known = f"{len(fitted)} columns ({', '.join(fitted)}) or " if fitted is not None else ""
            raise PointsmanError(f"features: {width} columns; give {known}{len(wanted)} ({', '.join(wanted)})")
        found = {name: name for name in names}
        if names == list(wanted):
            return matrix
        columns = Columns({name: matrix[:, i] for i, name in enumerate(names)}, "features")
    lacking = [name for name in wanted if name not in found]
    if lacking:
        raise PointsmanError(
            f"features: {', '.join(lacking)} is needed; there are {', '.join(found) or 'none'}", column=f"x_{lacking[0]}"
        )
    return columns.matrix([found[name] for name in wanted], missing=True)


def votes(value: Any, classes: Sequence[str], rows: int) -> npt.NDArray[np.uint32]:
    """Label counts, one column a class.

    An array or frame holds counts, n × classes; lists hold the annotators' labels, as many as there are; one label a row may come
    as an array of one dimension. Masked entries, ``None`` and NaN are no labels.
    """
    if is_frame(value) and not _is_list_column(value):
        columns = Columns(value, "votes")
        found = columns.under("votes_")
        if set(found) != set(classes):
            raise PointsmanError(
                f"votes: the columns are of the classes {', '.join(found)}, the predictions of {', '.join(classes)}"
            )
        counts = _counts(_array(columns.matrix([found[name] for name in classes])), classes)
    elif isinstance(value, np.ma.MaskedArray):
        counts = _native.count_labels(list(classes), value.tolist())
    elif isinstance(value, np.ndarray) and value.ndim == 2:
        counts = _counts(value, classes)
    elif isinstance(value, np.ndarray) and value.ndim > 2:
        raise PointsmanError(f"votes: an array of {value.ndim} dimensions; give counts, rows × classes, or lists of labels")
    else:
        counts = _native.count_labels(list(classes), _label_rows(value))
    if len(counts) != rows:
        raise PointsmanError(f"votes: {len(counts)} rows for {rows} rows of predictions")
    return counts


def _is_list_column(value: Any) -> bool:
    return _is_arrow(value) and not _is_pandas(value) and not hasattr(value, "column_names") and not hasattr(value, "columns")


def _label_rows(value: Any) -> Iterable[Any]:
    if hasattr(value, "to_pylist"):
        value = value.to_pylist()
    elif hasattr(value, "to_list"):
        value = value.to_list()
    rows: list[Any] = list(value)
    is_many = (list, tuple, set, np.ndarray)
    return [row if isinstance(row, is_many) else [row] for row in rows]


def _array(matrix: Matrix) -> npt.NDArray[Any]:
    return matrix.numpy() if isinstance(matrix, _native.Rows) else matrix


def _counts(array: npt.NDArray[Any], classes: Sequence[str]) -> npt.NDArray[np.uint32]:
    if array.shape[1] != len(classes):
        raise PointsmanError(
            f"votes: {array.shape[1]} columns for {len(classes)} classes ({', '.join(classes)});"
            " an array holds counts, labels come as lists"
        )
    if array.dtype.kind not in "fiub":
        array = _numbers(array, "votes")
    if array.dtype.kind in "bu" and array.dtype.itemsize <= 4:
        return np.ascontiguousarray(array, dtype=np.uint32)  # Every value is a count.
    with np.errstate(invalid="ignore"):
        bad = ~((array >= 0) & (array <= np.iinfo(np.uint32).max) & (array == np.trunc(array)))
    if bad.any():
        row, place = (int(i) for i in np.argwhere(bad)[0])
        column = f"votes_{classes[place]}"
        raise PointsmanError(
            f"row {row}, column {column}: {array[row, place]} is not a number of votes", row=row, column=column
        )
    return np.ascontiguousarray(array, dtype=np.uint32)


def weights(value: Any, rows: int) -> npt.NDArray[np.float64]:
    """One weight a row."""
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.ndim != 1 or len(array) != rows:
        raise PointsmanError(f"sample_weight: {' × '.join(map(str, array.shape))} weights for {rows} rows")
    return array


def ids(value: Any, rows: int) -> list[str]:
    """One id a row, as text."""
    texts = [str(one) for one in value]
    if len(texts) != rows:
        raise PointsmanError(f"ids: {len(texts)} for {rows} rows")
    return texts


def oracles(value: Mapping[str, MatrixLike] | None, classes: Sequence[str], rows: int) -> list[tuple[str, Matrix]]:
    """Other models' predictions by name."""
    found = []
    for name, predictions in (value or {}).items():
        matrix, _ = probs(predictions, classes, f"oracle {name!r}", f"oracle_{name}_")
        if shape(matrix)[0] != rows:
            raise PointsmanError(f"oracle {name!r}: {shape(matrix)[0]} rows for {rows} rows of predictions")
        found.append((str(name), matrix))
    return found


def table(
    predictions: MatrixLike,
    *,
    classes: Sequence[str] | None,
    votes_given: Any = None,
    truth: MatrixLike | None = None,
    features_given: MatrixLike | None = None,
    feature_names: Sequence[str] | None = None,
    oracles_given: Mapping[str, MatrixLike] | None = None,
    sample_weight: Any = None,
) -> tuple[_native.Table, list[str], list[str]]:
    """A checked table, its classes and the names of its features."""
    matrix, names = probs(predictions, classes)
    rows = shape(matrix)[0]
    named: list[str] = []
    own_features = None
    if features_given is not None:
        named, values = features(features_given, feature_names)
        if shape(values)[0] != rows:
            raise PointsmanError(f"features: {shape(values)[0]} rows for {rows} rows of predictions")
        own_features = (named, values)
    built = _native.Table(
        names,
        matrix,
        votes=None if votes_given is None else votes(votes_given, names, rows),
        truth=None if truth is None else probs(truth, names, "truth", "true_")[0],
        weights=None if sample_weight is None else weights(sample_weight, rows),
        features=own_features,
        oracles=oracles(oracles_given, names, rows),
    )
    return built, names, named
