"""The answers to many queries, as arrays and frames."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

_COST = "cost_"


class BatchDecisions:
    """The answers to the queries of a batch, in their order; returned by :meth:`Client.decide_batch`."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __len__(self) -> int:
        rows: int = self._table.num_rows
        return rows

    def _column(self, name: str) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = self._table.column(name).to_numpy()
        return array

    def _texts(self, name: str) -> npt.NDArray[Any]:
        return np.array(self._table.column(name).to_pylist(), dtype=object)

    def _texts_or_none(self, name: str) -> npt.NDArray[Any]:
        return np.array([text or None for text in self._table.column(name).to_pylist()], dtype=object)

    @property
    def decision_id(self) -> npt.NDArray[Any]:
        """The id of each decision."""
        return self._texts("decision_id")

    @property
    def version(self) -> npt.NDArray[np.integer[Any]]:
        """The policy version that decided each row."""
        return self._column("version")

    @cached_property
    def action(self) -> npt.NDArray[Any]:
        """The name of each row's action; ``undetermined`` if labels do not determine it."""
        return self._texts("action")

    @property
    def label(self) -> npt.NDArray[Any]:
        """The class that predicting answers."""
        return self._texts("label")

    @property
    def cell(self) -> npt.NDArray[np.integer[Any]]:
        """The cell of each row."""
        return self._column("cell")

    @property
    def support(self) -> npt.NDArray[Any]:
        """Whether each row's cell has enough calibration rows: ``enough``, ``sparse`` or ``empty``."""
        return self._texts("support")

    @property
    def reason(self) -> npt.NDArray[Any]:
        """The reason for each row's action: ``easy``, ``hard``, ``ambiguous``, ``sparse`` or ``degraded``."""
        return self._texts("reason")

    @property
    def irreducible(self) -> npt.NDArray[np.float64]:
        """The irreducible loss; NaN if labels only bound it."""
        return self._column("irreducible")

    @property
    def reducible(self) -> npt.NDArray[np.float64]:
        """The reducible loss; NaN if labels only bound it."""
        return self._column("reducible")

    @property
    def degraded(self) -> npt.NDArray[Any]:
        """Why the best action could not be taken, ``unavailable`` or ``limit``; ``None`` if it was."""
        return self._texts_or_none("degraded")

    @property
    def would(self) -> npt.NDArray[Any]:
        """In shadow mode, what would have been done; ``None`` otherwise."""
        return self._texts_or_none("would")

    @property
    def action_names(self) -> tuple[str, ...]:
        """The names of the actions, in the order of the columns of ``costs``."""
        names = [name.removeprefix(_COST) for name in self._table.column_names if name.startswith(_COST)]
        return tuple(name.replace("route_", "route:", 1) if name.startswith("route_") else name for name in names)

    @property
    def costs(self) -> npt.NDArray[np.float64]:
        """The expected cost of each action, rows × actions; NaN if labels only bound it."""
        columns = [self._column(name) for name in self._table.column_names if name.startswith(_COST)]
        return np.column_stack(columns)

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows that get each action."""
        names, numbers = np.unique(self.action.astype(str), return_counts=True)
        found = dict(zip(names.tolist(), numbers.tolist(), strict=True))
        return {name: found.get(name, 0) for name in dict.fromkeys([*self.action_names, *found])}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """The answers as a ``pyarrow.Table``."""
        return self._table

    def to_pandas(self) -> Any:
        """The answers as a ``pandas.DataFrame``."""
        return self._table.to_pandas()

    def to_polars(self) -> Any:
        """The answers as a ``polars.DataFrame``."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {n}" for name, n in self.counts.items())
        return f"<BatchDecisions: {len(self)} rows; {counts}>"
