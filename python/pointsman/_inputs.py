"""Converting arguments into the arrays that the core reads, with messages that locate errors.

A numpy array of float32 or float64 in C order is not copied; anything that can be converted into one is copied once. The columns
of an Arrow table are copied once; a single column of lists is not copied.
"""

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _native
from ._errors import PointsmanError

#: A matrix argument: an array, nested lists, a frame, an Arrow table or a mapping of columns.
MatrixLike: TypeAlias = Any
#: The source of random numbers, as in scikit-learn.
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
Matrix: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.float64] | _native.Rows


def is_frame(value: object) -> bool:
    """Whether a value has named columns."""
    return isinstance(value, Mapping) or _is_pandas(value) or _is_arrow(value)


def _is_pandas(value: object) -> bool:
    return hasattr(value, "to_numpy") and hasattr(value, "columns") and hasattr(value, "iloc")


def _is_numbered(frame: Any) -> bool:
    """Whether the columns of a pandas frame are numbered, as in frames made from arrays."""
    return list(frame.columns) == list(range(len(frame.columns)))


def _is_arrow(value: object) -> bool:
    is_numpy = isinstance(value, np.ndarray | np.generic)
    return not is_numpy and (hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"))


def whole(what: str, value: Any) -> int:
    """Checks that a value is a whole number from 0 to 2**64 - 1."""
    try:
        number = index(value)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 64:
        raise PointsmanError(f"{what}: {value!r} is not a whole number from 0 to 2**64 - 1")
    return number


def seed(random_state: RandomState) -> int:
    """The seed for a ``random_state``, as in scikit-learn; for ``None`` it is drawn from numpy's global generator."""
    if random_state is None:
        return int(np.random.randint(1 << 31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 63))
    return whole("random_state", random_state)


def floats(value: MatrixLike, what: str) -> npt.NDArray[np.float32] | npt.NDArray[np.float64]:
    """Converts a value into a two-dimensional array of floats in C order, without a copy if it is one already."""
    if isinstance(value, np.ma.MaskedArray):
        value = np.ma.filled(np.ma.asarray(value, np.float64), np.nan)
    try:
        array = np.asarray(value)
        if array.ndim == 1 and array.dtype.kind == "O":
            # Each row may be an object, such as a list or an array.
            array = np.asarray(array.tolist())
    except ValueError as error:
        raise PointsmanError(f"{what}: rows of different lengths, or not numbers ({error})") from None
    if array.ndim == 1 and array.size == 0:
        array = array.reshape(0, 0)
    if array.ndim != 2:
        raise PointsmanError(f"{what}: {_described(value, array)}; give two dimensions, rows × columns{_hint(what, array)}")
    if array.dtype.kind == "O":
        array = _numbers(array, what)
    if array.dtype.kind not in "fiub":
        raise PointsmanError(f"{what}: {array.dtype} is not a type of real numbers; convert to float64")
    kind = np.float32 if array.dtype.itemsize == 4 and array.dtype.kind == "f" else np.float64
    plain: npt.NDArray[np.float32] | npt.NDArray[np.float64] = np.require(array, kind, ["C", "A"])
    return plain


def _described(value: object, array: npt.NDArray[Any]) -> str:
    if array.ndim > 0:
        return f"an array of {' × '.join(map(str, array.shape))}"
    if array.dtype.kind in "fiub":
        return "a single number"
    return f"{type(value).__name__} is neither an array nor a frame (a lazy frame has collect, a sparse matrix toarray)"


def _hint(what: str, array: npt.NDArray[Any]) -> str:
    if array.ndim != 1:
        return ""
    if what == "features":
        return " (for one feature x: x.reshape(-1, 1), or {name: x})"
    return " (for one query p: [p]; for one score s per row: numpy.column_stack([1 - s, s]))"


def _numbers(array: npt.NDArray[Any], what: str) -> npt.NDArray[np.float64]:
    """Converts objects into numbers; the message names the first that is not a number."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        found = np.empty(array.shape)
        for place, value in np.ndenumerate(array):
            try:
                # The missing value of pandas cannot be converted into a float.
                found[place] = np.nan if type(value).__name__ == "NAType" else float(value)
            except (TypeError, ValueError):
                row, column = place
                cure = ": encode text as numbers" if isinstance(value, str) else ""
                message = f"row {row}, column {column}: {value!r:.60} is not a number{cure}"
                raise PointsmanError(f"{what}: {message}", row=row, column=str(column)) from None
        return found


class Columns:
    """The columns of a frame of any library, by name."""

    def __init__(self, frame: MatrixLike, what: str) -> None:
        self.what = what
        self._pandas = frame if _is_pandas(frame) else None
        self._mapping: Mapping[Any, Any] | None = frame if isinstance(frame, Mapping) else None
        self._arrow: _native.Frame | None = None
        self.numbered = self._pandas is not None and _is_numbered(frame)
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
            return max((np.size(column) for column in self._mapping.values()), default=0)
        assert self._arrow is not None
        return len(self._arrow)

    def lists(self, width: int | None) -> Matrix | None:
        """The matrix of a single column of lists of length ``width`` (by default that of the first); ``None`` for other frames."""
        if len(self.names) != 1:
            return None
        if self._arrow is None:
            column = self._pandas.iloc[:, 0] if self._pandas is not None else next(iter((self._mapping or {}).values()))
            rows = list(column) if np.ndim(column) == 1 else []
            return floats(rows, self.what) if rows and isinstance(rows[0], list | tuple | np.ndarray) else None
        size = self._arrow.list_size(self.names[0])
        return None if size is None else self._arrow.lists(self.names[0], size if width is None else width)

    def under(self, prefix: str) -> dict[str, str]:
        """The columns with a prefix, by name without the prefix; all columns if none has it."""
        marked = {name.removeprefix(prefix): name for name in self.names if name.startswith(prefix)}
        return marked or {name: name for name in self.names}

    def matrix(self, names: Sequence[str], *, missing: bool = False) -> Matrix:
        """The columns as a matrix."""
        if self._arrow is not None:
            return self._arrow.rows(list(names), missing=missing)
        places = [self.names.index(name) for name in names]
        if self._pandas is not None:
            everything = places == list(range(len(self.names)))
            chosen = self._pandas if everything else self._pandas.iloc[:, places]
            for name, kind in zip(names, chosen.dtypes, strict=True):
                self._real(name, getattr(kind, "kind", "O"), kind)
            return self._checked(chosen.to_numpy(), names)
        assert self._mapping is not None
        columns = list(self._mapping.values())
        arrays = [np.asarray(columns[place]) for place in places]
        for name, array in zip(names, arrays, strict=True):
            self._real(name, array.dtype.kind, array.dtype)
            if array.ndim != 1:
                raise PointsmanError(f"{self.what}: column {name}: give one number per row", column=name)
        lengths = {name: len(array) for name, array in zip(names, arrays, strict=True)}
        if len(set(lengths.values())) > 1:
            raise PointsmanError(f"{self.what}: columns of different lengths: {lengths}")
        return self._checked(np.column_stack(arrays) if arrays else np.empty((0, 0)), names)

    def _real(self, name: str, kind: str, dtype: object) -> None:
        if kind not in "fiubO":
            raise PointsmanError(f"{self.what}: column {name}: {dtype} is not a type of real numbers", column=name)

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
        """The values of a column as text."""
        if self._arrow is not None:
            return self._arrow.texts(name)
        columns: Any = self._pandas if self._mapping is None else self._mapping
        return [str(value) for value in columns[name]]


def shape(matrix: Matrix) -> tuple[int, int]:
    """The numbers of rows and columns."""
    rows, columns = matrix.shape
    return rows, columns


def probs(value: MatrixLike, classes: Sequence[str] | None, what: str = "probs", prefix: str = "prob_") -> tuple[Matrix, list[str]]:
    """Predictions and their classes. Named columns are put in the order of ``classes``, if given."""
    if not is_frame(value):
        matrix: Matrix = floats(value, what)
    else:
        columns = Columns(value, what)
        found = columns.under(prefix)
        wanted = list(found) if classes is None else list(classes)
        if set(found) == set(wanted) and len(found) > 1:
            return columns.matrix([found[name] for name in wanted]), wanted
        lists = columns.lists(None if classes is None else len(classes))
        if lists is not None:
            matrix = lists
        elif columns.numbered:
            matrix = columns.matrix(columns.names)
        elif len(columns.names) == 1:
            raise PointsmanError(f"{what}: one column of numbers; give one for each class, or lists of one number per class")
        else:
            raise PointsmanError(
                f"{what}: the columns are of the classes {', '.join(found)}, but the classes are"
                f" {', '.join(wanted)}: give one column for each, named after it"
            )
    width = shape(matrix)[1]
    names = [str(i) for i in range(width)] if classes is None else list(classes)
    if width != len(names):
        raise PointsmanError(f"{what}: {width} columns for {len(names)} classes: {', '.join(names)}")
    return matrix, names


def _framed(value: MatrixLike) -> MatrixLike:
    """Converts a series into a frame of one column; other values are returned as they are."""
    return value.to_frame() if hasattr(value, "to_frame") else value


def features(value: MatrixLike, names: Sequence[str] | None = None) -> tuple[list[str], Matrix]:
    """Features and their names. Columns without names are called ``names``, if those are as many, or by their numbers."""
    value = _framed(value)
    if is_frame(value):
        columns = Columns(value, "features")
        found = columns.under("x_")
        return list(found), columns.matrix(list(found.values()), missing=True)
    matrix = floats(value, "features")
    width = matrix.shape[1]
    own = [str(i) for i in range(width)] if names is None or len(names) != width else list(names)
    return own, matrix


def wanted_features(value: MatrixLike | None, wanted: Sequence[str], fitted: Sequence[str] | None) -> Matrix | None:
    """The features that a router needs, in its order; ``None`` if it needs none."""
    if not wanted:
        return None
    if value is None:
        raise PointsmanError(f"this router needs the features {', '.join(wanted)}: give features=…")
    value = _framed(value)
    if is_frame(value):
        columns = Columns(value, "features")
        found = columns.under("x_")
    else:
        matrix = floats(value, "features")
        width = matrix.shape[1]
        names = next((list(names) for names in (fitted, wanted) if names is not None and len(names) == width), None)
        if names is None:
            known = f"{len(fitted)} ({', '.join(fitted)}) or " if fitted is not None and list(fitted) != list(wanted) else ""
            raise PointsmanError(
                f"features: {width} columns; give {known}{len(wanted)} ({', '.join(wanted)}), or a frame that names them"
            )
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
    """Converts votes into label counts, one column per class.

    Two-dimensional arrays and frames of numbers are counts, rows × classes. Lists and arrays of text are labels, any number per row.
    Mappings are counts by class. A one-dimensional array is one label per row. Masked entries, ``None`` and NaN are not labels.
    """
    if _is_pandas(value) and _is_numbered(value):
        value = value.to_numpy()
    if is_frame(value) and not _is_list_column(value):
        counts = _counts(_columns_of_votes(Columns(value, "votes"), classes), classes)
    elif isinstance(value, np.ma.MaskedArray):
        counts = _native.count_labels(list(classes), value.tolist())
    elif isinstance(value, np.ndarray) and value.ndim == 2 and not _is_text(value):
        counts = _counts(value, classes)
    elif isinstance(value, np.ndarray) and value.ndim > 2:
        raise PointsmanError(f"votes: an array of {value.ndim} dimensions; give counts, rows × classes, or lists of labels")
    else:
        found = _label_rows(value)
        if found and isinstance(found[0], Mapping):
            counts = _counts(_mappings(found, classes), classes)
        else:
            is_many = (list, tuple, set, frozenset, np.ndarray)
            counts = _native.count_labels(list(classes), [row if isinstance(row, is_many) else [row] for row in found])
    if len(counts) != rows:
        raise PointsmanError(f"votes: {len(counts)} rows for {rows} rows of predictions")
    return counts


def _columns_of_votes(columns: Columns, classes: Sequence[str]) -> npt.NDArray[Any]:
    found = columns.under("votes_")
    if set(found) == set(classes):
        return _array(columns.matrix([found[name] for name in classes]))
    raise PointsmanError(
        f"votes: the columns are of the classes {', '.join(found)}, the predictions of {', '.join(classes)}: a frame holds counts;"
        " if it has a column per annotator, give frame.to_numpy().tolist(), if a column of lists, that column"
    )


def _is_list_column(value: Any) -> bool:
    return _is_arrow(value) and not _is_pandas(value) and not hasattr(value, "column_names") and not hasattr(value, "columns")


def _is_text(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind in "UST" or (array.dtype.kind == "O" and any(isinstance(one, str) for one in array.flat))


def _label_rows(value: Any) -> list[Any]:
    if hasattr(value, "to_pylist"):
        value = value.to_pylist()
    elif hasattr(value, "isna") and hasattr(value, "to_list"):
        # pandas has missing values that are neither None nor NaN.
        value = [None if gap else one for one, gap in zip(value.to_list(), value.isna(), strict=True)]
    elif hasattr(value, "to_list"):
        value = value.to_list()
    if isinstance(value, str) or not hasattr(value, "__iter__") or (isinstance(value, np.ndarray) and value.ndim == 0):
        raise PointsmanError(f"votes: {value!r:.60}: give counts, rows × classes, or a list of labels for each row")
    return list(value)


def _mappings(rows: Sequence[Any], classes: Sequence[str]) -> npt.NDArray[Any]:
    """Converts one mapping of counts per row into an array."""
    counts = np.zeros((len(rows), len(classes)), dtype=object)
    places = {name: place for place, name in enumerate(classes)}
    for row, found in enumerate(rows):
        for name, count in found.items() if isinstance(found, Mapping) else [(found, 0)]:
            if str(name) not in places:
                reason = f"{name!r:.60} is none of the classes {', '.join(classes)}"
                raise PointsmanError(f"row {row}, column votes: {reason}", row=row, column="votes")
            counts[row, places[str(name)]] = 0 if count is None else count
    return counts


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
    """Checks one weight per row."""
    try:
        array = np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PointsmanError(f"sample_weight: not numbers ({error})") from None
    if array.ndim != 1 or len(array) != rows:
        raise PointsmanError(f"sample_weight: {' × '.join(map(str, array.shape))} weights for {rows} rows")
    return array


def ids(value: Any, rows: int) -> list[str]:
    """Converts one id per row into text."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise PointsmanError(f"ids: {value!r:.60}: give one per row")
    texts = [str(one) for one in value]
    if len(texts) != rows:
        raise PointsmanError(f"ids: {len(texts)} for {rows} rows")
    return texts


def oracles(value: Mapping[str, MatrixLike] | None, classes: Sequence[str], rows: int) -> list[tuple[str, Matrix]]:
    """The predictions of other models by name. A label is a prediction with probability one."""
    if value is not None and not isinstance(value, Mapping):
        raise PointsmanError("oracles: give {name: predictions}")
    found = []
    for name, predictions in (value or {}).items():
        what = f"oracle {name!r}"
        if _is_flat(predictions):
            matrix: Matrix = _sure(predictions, classes, what)
        else:
            matrix, _ = probs(predictions, classes, what, f"oracle_{name}_")
        if shape(matrix)[0] != rows:
            raise PointsmanError(f"{what}: {shape(matrix)[0]} rows for {rows} rows of predictions")
        found.append((str(name), matrix))
    return found


def _is_flat(value: Any) -> bool:
    """Whether a value is one label per row."""
    if isinstance(value, Mapping) or hasattr(value, "columns") or not hasattr(value, "__len__"):
        return False
    first: Any = None if isinstance(value, np.ndarray) and value.ndim == 0 else next(iter(value), None)
    first = first.as_py() if hasattr(first, "as_py") else first
    return isinstance(first, str | int | np.integer | np.bool_)


def _sure(labels: Any, classes: Sequence[str], what: str) -> npt.NDArray[np.float64]:
    counts = _native.count_labels(list(classes), [[label] for label in _label_rows(labels)])
    empty = np.flatnonzero(counts.sum(axis=1) == 0)
    if len(empty) > 0:
        raise PointsmanError(f"{what}: row {empty[0]}: no label", row=int(empty[0]))
    return counts.astype(np.float64)


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
