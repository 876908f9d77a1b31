"""Calibration in parts: one part per shard of the rows, merged into one router."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from . import _inputs, _native
from ._errors import PointsmanError
from ._inputs import Columns, MatrixLike, RandomState
from ._progress import bar
from ._router import Router


class Partial:
    """The rows of one shard, in the cells or leaves of a router that was fitted on a sample.

    The merged router does not depend on how rows are distributed among parts, nor on the order of merging.

    Parameters
    ----------
    like:
        The router whose cells are used or, with a forest such as ``"forest:200"``, whose trees are: the rows added fill its leaves. If
        cells or trees were learned from labels (``"tree"``, ``"honest-forest:200"``, ``"forest:200"``), do not add the rows on which the
        router was fitted: certificates and expected costs would not be valid.
    cap:
        The largest number of rows kept per cell: a uniform random sample of the rows added, weighted to represent them. Each row
        then needs an id that no other row of any part has.
    random_state:
        The seed of that sample, a whole number. Parts to be merged must have the same seed.

    Examples
    --------
    >>> import numpy as np, pointsman
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1], 400)
    >>> votes = rng.multinomial(5, probs)
    >>> like = pointsman.Router("top-class:10").fit(probs[:50], votes[:50])
    >>> first = pointsman.Partial(like).add(probs[:300], votes[:300])
    >>> second = pointsman.Partial.from_bytes(pointsman.Partial(like).add(probs[300:], votes[300:]).to_bytes())
    >>> router = first.merge(second).finish()
    >>> router.to_bytes() == pointsman.Partial(like).add(probs, votes).finish().to_bytes()
    True
    """

    def __init__(self, like: Router, *, cap: int | None = None, random_state: int = 0) -> None:
        if not isinstance(like, Router):
            raise PointsmanError(f"like: {like!r} is not a Router")
        kept = None if cap is None else _inputs.whole("cap", cap)
        self._part = _native.Partial(like._fitted(), cap=kept, seed=_inputs.whole("random_state", random_state))

    def add(
        self,
        probs: MatrixLike,
        votes: Any,
        *,
        features: MatrixLike | None = None,
        oracles: Mapping[str, MatrixLike] | None = None,
        sample_weight: Any = None,
        ids: Any = None,
    ) -> Self:
        """Adds rows. Arguments are those of :meth:`Router.fit`; ``ids`` are whole numbers or text. All features are kept."""
        table, _, _ = _inputs.table(
            probs,
            classes=self._part.classes,
            votes_given=votes,
            features_given=features,
            oracles_given=oracles,
            sample_weight=sample_weight,
        )
        self._part.add(table, None if ids is None else _numbers(ids, len(table)))
        return self

    def add_batch(self, batch: Any) -> Self:
        """Adds an Arrow batch with columns ``prob_<class>`` and ``votes_<class>``; ``x_<name>``, ``weight`` and ``id`` are optional.

        >>> import pyarrow as pa, numpy as np, pointsman
        >>> like = pointsman.Router("top-class:10", classes=["no", "yes"]).fit([[0.9, 0.1], [0.3, 0.7]], np.array([[4, 1], [1, 4]]))
        >>> batch = pa.record_batch({"prob_no": [0.8], "prob_yes": [0.2], "votes_no": [3], "votes_yes": [2]})
        >>> len(pointsman.Partial(like).add_batch(batch))
        1
        """
        columns = Columns(batch, "batch")
        classes = self._part.classes

        def of(prefix: str) -> dict[str, str]:
            lacking = [f"{prefix}{name}" for name in classes if f"{prefix}{name}" not in columns.names]
            if lacking:
                known = ", ".join(columns.names)
                raise PointsmanError(f"batch: no column {lacking[0]}; there are {known}", column=lacking[0])
            return {name: f"{prefix}{name}" for name in classes}

        def array(names: list[str], missing: bool = False) -> npt.NDArray[Any]:
            return _inputs._array(columns.matrix(names, missing=missing))

        features = [name for name in columns.names if name.startswith("x_")]
        given = {name.removeprefix("x_"): array([name], True)[:, 0] for name in features}
        return self.add(
            array(list(of("prob_").values())),
            array(list(of("votes_").values())),
            features=given or None,
            sample_weight=array(["weight"])[:, 0] if "weight" in columns.names else None,
            ids=columns.texts("id") if "id" in columns.names else None,
        )

    def merge(self, *others: "Partial") -> Self:
        """Adds the rows of other parts, which must have the same router, cap and columns."""
        for other in others:
            if not isinstance(other, Partial):
                raise PointsmanError(f"merge: {other!r} is not a Partial")
            if other is self:
                raise PointsmanError("merge: a part cannot be merged with itself, its rows would count twice")
            self._part.merge(other._part)
        return self

    def finish(self, partition: str | None = None, *, random_state: RandomState = 0, progress: bool = False) -> Router:
        """The router of all rows added. With a partition, a new router is calibrated on the rows kept.

        A forest keeps its trees, except for splits that the rows do not fill.
        """
        if partition is None:
            router = self._part.finish()
        else:
            with bar("growing trees", _native.Router.steps(partition), progress) as report:
                router = self._part.calibrate(partition, seed=_inputs.seed(random_state), progress=report)
        made = Router(partition=router.partition, recalibrate=router.recalibrated, classes=list(router.classes))
        return made._learned(router, list(self._part.features))

    def to_bytes(self) -> bytes:
        """The part as bytes, to be sent to the process that merges."""
        return self._part.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Reads a part from its bytes and checks it."""
        made = cls.__new__(cls)
        made._part = _native.Partial.from_bytes(data)
        return made

    def __len__(self) -> int:
        """The number of rows kept."""
        return len(self._part)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).from_bytes, (self.to_bytes(),))

    def __repr__(self) -> str:
        cap = "" if self._part.cap is None else f", at most {self._part.cap[0]} per cell"
        return f"<Partial: {len(self)} rows{cap}>"


def _numbers(ids: Any, rows: int) -> npt.NDArray[np.uint64]:
    """Converts ids into numbers."""
    array = np.asarray(ids)
    if array.ndim == 1 and array.dtype.kind in "iu" and len(array) == rows:
        return np.ascontiguousarray(array).astype(np.uint64)
    return _native.number_ids(_inputs.ids(ids, rows))
