"""Files as arrays."""

import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native


class Arrays(NamedTuple):
    """What a table holds; what it does not hold is ``None``."""

    #: The names of the classes.
    classes: list[str]
    #: The classifier's predictions, rows × classes.
    probs: npt.NDArray[np.float64]
    #: Label counts, rows × classes.
    votes: npt.NDArray[np.uint32] | None
    #: Features by name.
    features: dict[str, npt.NDArray[np.float64]] | None
    #: Other models' predictions by name.
    oracles: dict[str, npt.NDArray[np.float64]]
    #: One weight per row.
    sample_weight: npt.NDArray[np.float64] | None
    #: One id per row.
    ids: list[str] | None


def read(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    annotations: str | PathLike[str] | None = None,
    where: Mapping[str, Any] | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    first_labels: int | None = None,
    without: Sequence[str] = (),
    strict: bool = False,
    normalize: bool = False,
) -> Arrays:
    """Reads a table as the command line does: CSV, JSONL, Parquet, Arrow or npz.

    Parameters
    ----------
    path:
        The table, or several with the same columns, whose rows are put together.
    annotations:
        A long table ``id,label[,annotator]`` that gives the votes, joined by the table's ``id``. Rows and labels without a
        counterpart are left out, with a warning that says how many.
    where:
        Only rows with these values in these columns.
    columns:
        Other names for columns, as in ``{"probs": "p_", "votes": "v_", "id": "uid"}``; those of annotations are ``id``, ``label``,
        ``annotator`` and ``date``, by which the labels of an item are sorted. Features go by a prefix or by whole names, one or
        several: ``{"features": ["words", "age"]}``.
    format:
        ``"csv"``, ``"tsv"``, ``"jsonl"``, ``"parquet"``, ``"arrow"`` or ``"npz"``; by default that of the file's extension.
    delimiter:
        What separates the values of CSV: one character, such as ``","``, ``";"``, ``"|"`` or a tab. Annotations may be separated by
        another one of these.
    first_labels:
        Keep only so many labels of every item, the first in the file's order: the cure where labelling went on until annotators
        agreed. For votes given as labels or annotations.
    without:
        Names of annotators whose labels are left out, all of them; rows that nobody else labelled are dropped.
    strict:
        Refuse ids that only one of the table and its annotations has, and ids that several rows have.
    normalize:
        Divide the probabilities of rows that do not sum to one by their sum: percentages, rounded numbers. A warning says what
        they summed to. Arrays that do not come from a file are divided by ``probs / probs.sum(axis=1, keepdims=True)``.

    Examples
    --------
    >>> import pathlib, tempfile, warnings, pointsman
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> table, labels = folder / "predictions.csv", folder / "labels.csv"
    >>> _ = table.write_text("id,prob_no,prob_yes\\na,0.9,0.1\\nb,0.4,0.6\\n")
    >>> _ = labels.write_text("id,label\\nb,yes\\na,no\\nb,no\\n")
    >>> rows = pointsman.read(table, annotations=labels)
    >>> rows.classes, rows.votes.tolist()
    (['no', 'yes'], [[1, 0], [1, 1]])
    >>> _ = table.write_text("p_no;p_yes\\n0.9;0.1\\n")
    >>> pointsman.read(table, columns={"probs": "p_"}, delimiter=";").probs
    array([[0.9, 0.1]])
    >>> with warnings.catch_warnings(record=True) as told:
    ...     _ = table.write_text("prob_no,prob_yes\\n93,7\\n")
    ...     pointsman.read([table, table], normalize=True).probs.tolist()
    [[0.93, 0.07], [0.93, 0.07]]
    """
    filters = [(str(column), str(value)) for column, value in (where or {}).items()]
    paths = [path] if isinstance(path, str | PathLike) else list(path)
    names = [
        (key, name)
        for key, given in (columns or {}).items()
        for name in ([given] if isinstance(given, str) else list(given))
    ]
    found = _native.read(
        [Path(one) for one in paths],
        annotations=None if annotations is None else Path(annotations),
        filters=filters,
        columns=names,
        format=format,
        delimiter=delimiter,
        first_labels=first_labels,
        without=[without] if isinstance(without, str) else list(without),
        strict=strict,
        normalize=normalize,
    )
    for note in found["notes"]:
        warnings.warn(note, stacklevel=2)
    features = None
    if "features" in found:
        features = {name: found["features"][:, i] for i, name in enumerate(found["feature_names"])}
    return Arrays(
        classes=found["classes"],
        probs=found["probs"],
        votes=found.get("votes"),
        features=features,
        oracles=found["oracles"],
        sample_weight=found.get("sample_weight"),
        ids=found["ids"],
    )
