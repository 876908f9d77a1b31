"""Calibration in parts, for rows that lie on many machines."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from . import _inputs, _native
from ._errors import PointsmanError
from ._inputs import MatrixLike
from ._router import Router


class Partial:
    """A part of a calibration: the rows of one shard in the cells of a router that was fitted on a sample.

    Parts travel by pickle or as bytes. Merged, in any order, they are the router that one machine with all rows would have made,
    byte by byte.

    Parameters
    ----------
    router:
        A fitted router, whose cells are used. Not a forest: its cells are made of its own rows.
    cap:
        The most rows that a cell keeps: a fair sample, whose rows then stand for all that the cell has seen.
    seed:
        Of the sample; the same for all parts.

    Examples
    --------
    >>> import numpy as np, pointsman
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1], 900)
    >>> votes = rng.multinomial(5, probs)
    >>> sample = pointsman.Router().fit(probs[:100], votes[:100])
    >>> parts = [pointsman.Partial(sample).add(probs[i::3], votes[i::3]) for i in range(3)]
    >>> parts[2].merge(parts[0]).merge(parts[1]).finish().n_rows_
    900
    """

    def __init__(self, router: Router, *, cap: int | None = None, seed: int = 0) -> None:
        self._part = _native.Partial(router._fitted(), cap=cap, seed=seed)

    def add(
        self,
        probs: MatrixLike,
        votes: Any,
        *,
        features: MatrixLike | None = None,
        oracles: Mapping[str, MatrixLike] | None = None,
        sample_weight: Any = None,
        ids: Iterable[Any] | None = None,
    ) -> Self:
        """Adds rows, given as to :meth:`Router.fit`.

        With a cap each row needs an id that no other row of any part has: whole numbers, or anything as text.
        """
        table, _, _ = _inputs.table(
            probs,
            classes=self._part.classes,
            votes_given=votes,
            features_given=features,
            feature_names=self._part.features,
            oracles_given=oracles,
            sample_weight=sample_weight,
        )
        self._part.add(table, None if ids is None else _numbered(ids, len(table)))
        return self

    def merge(self, other: "Partial") -> Self:
        """Adds what another part has."""
        if other is self:
            raise PointsmanError("a part cannot be merged with itself: its rows would count twice")
        self._part.merge(other._part)
        return self

    def finish(self) -> Router:
        """The router of all rows added."""
        router = self._part.finish()
        made = Router(partition=router.partition, recalibrate=router.recalibrated, classes=list(router.classes))
        return made._learned(router, list(router.features))

    def to_bytes(self) -> bytes:
        """The part, to be sent elsewhere."""
        return self._part.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """A part from its bytes, checking everything in them."""
        made = cls.__new__(cls)
        made._part = _native.Partial.from_bytes(data)
        return made

    def __len__(self) -> int:
        return len(self._part)

    def __repr__(self) -> str:
        return f"<Partial: {len(self)} rows kept>"


def _numbered(ids: Iterable[Any], rows: int) -> list[int] | list[str]:
    found = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    if len(found) != rows:
        raise PointsmanError(f"ids: {len(found)} for {rows} rows")
    if all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 1 << 64 for one in found):
        return found
    return [str(one) for one in found]
