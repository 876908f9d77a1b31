"""Reading table files into arrays."""

import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native


class Arrays(NamedTuple):
    """The arrays of a table; those that the table does not have are ``None``."""

    #: The names of the classes.
    classes: list[str]
    #: The classifier's predictions, rows × classes.
    probs: npt.NDArray[np.float64]
    #: Label counts, rows × classes.
    votes: npt.NDArray[np.uint32] | None
    #: Features by name.
    features: dict[str, npt.NDArray[np.float64]] | None
    #: The predictions of other models by name.
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
    ignored_labels: Sequence[str] = (),
    keep_label: str | None = None,
    strict: bool = False,
    normalize: bool = False,
) -> Arrays:
    """Reads a table as the command line does: CSV, JSONL, Parquet, Arrow or npz.

    Parameters
    ----------
    path:
        The file, or several files with the same columns, whose rows are concatenated.
    annotations:
        A long table ``id,label[,annotator]`` of labels, joined by the table's ``id``. Rows and labels without a counterpart are
        left out; a warning says how many.
    where:
        Conditions ``{column: value}``: only rows with these values are read.
    columns:
        Other names for columns, as in ``{"probs": "p_", "votes": "v_", "id": "uid"}``. The columns of annotations are ``id`` (or ``item``
        if the table has another name for it), ``label``, ``annotator`` and ``date``, by which the labels of an item are sorted.
        Predictions by several whole names, one per class, and labels by several, one label per column; features are given by a
        prefix or by one or several whole names: ``{"features": ["words", "age"]}``.
    format:
        ``"csv"``, ``"tsv"``, ``"jsonl"``, ``"parquet"``, ``"arrow"`` or ``"npz"``; by default that of the file extension.
    delimiter:
        The delimiter of CSV files: one character, such as ``","``, ``";"``, ``"|"`` or a tab. The delimiter of annotations is
        detected.
    first_labels:
        The number of labels kept per item, the first in the order of the file. It corrects for labelling that went on until
        annotators agreed. Votes must be given as labels or annotations, not as counts.
    without:
        Names of annotators whose labels are all left out. Rows without other labels are dropped.
    ignored_labels:
        Labels of annotations that are left out, such as ``["unsure"]``; an empty text for annotations without a label.
    keep_label:
        Which label counts if an annotator labelled an item more than once, differently: ``"latest"`` or ``"first"``, by the column
        of dates if one is named, otherwise in the order of the file. By default such annotations are refused.
    strict:
        Refuse ids that are only in the table or only in the annotations, and ids of several rows.
    normalize:
        Divide the probabilities of rows that do not sum to one by their sum, for percentages and rounded numbers. A warning gives
        the range of the sums. For arrays, use ``probs / probs.sum(axis=1, keepdims=True)``.

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
    >>> with warnings.catch_warnings(record=True) as notes:
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
        ignored_labels=[ignored_labels] if isinstance(ignored_labels, str) else list(ignored_labels),
        keep_label=keep_label,
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
