"""The decisions of many queries, as arrays and frames."""

from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _native
from ._enums import Reason, Support
from ._errors import PointsmanError

if TYPE_CHECKING:
    from ._policy import Policy

_SUPPORT = np.array([str(support) for support in Support], dtype=object)
_REASONS = np.array([str(reason) for reason in Reason], dtype=object)


class Decisions:
    """The action of each query, its reason and its costs; returned by :meth:`Policy.decide`. Arrays are computed on first use.

    Examples
    --------
    >>> import numpy as np, pointsman
    >>> router = pointsman.Router("top-class:10", classes=["no", "yes"]).fit([[0.9, 0.1], [0.3, 0.7]], np.array([[4, 1], [1, 4]]))
    >>> decisions = router.policy(routes={"expert": 0.5}, abstain=0.3).decide([[0.8, 0.2], [0.4, 0.6]])
    >>> len(decisions), decisions.action_names
    (2, ('predict', 'route:expert', 'abstain'))
    >>> decisions.action_codes.tolist(), decisions.action.tolist()
    ([2, 2], ['abstain', 'abstain'])
    >>> decisions.label.tolist(), decisions.costs.shape
    (['no', 'yes'], (2, 3))
    >>> decisions.reason.tolist(), decisions.next_best.tolist()
    (['sparse', 'sparse'], ['predict', 'predict'])
    """

    def __init__(self, policy: "Policy", decisions: _native.Decisions) -> None:
        self._policy = policy
        self._decisions = decisions

    def __len__(self) -> int:
        return len(self._decisions)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (self._policy, self._decisions.state()))

    @property
    def action_names(self) -> tuple[str, ...]:
        """The names of the actions, which ``action_codes`` index."""
        return self._policy.actions

    @cached_property
    def action_codes(self) -> npt.NDArray[np.int16]:
        """The index of each row's action in ``action_names``; -1 if labels do not determine the action."""
        return self._decisions.actions()

    @property
    def action(self) -> npt.NDArray[Any]:
        """The name of each row's action; ``undetermined`` if labels do not determine it."""
        names = np.array([*self.action_names, "undetermined"], dtype=object)
        return names[self.action_codes]

    @property
    def capped(self) -> npt.NDArray[Any] | None:
        """The name of the action that a cap did not allow; ``None`` for rows that were not capped. ``None`` without caps."""
        codes = self._decisions.wanted()
        return None if codes is None else np.array([*self.action_names, None], dtype=object)[codes]

    @cached_property
    def cell(self) -> npt.NDArray[np.uint32]:
        """The cell of each row."""
        return self._decisions.cells()

    @property
    def support(self) -> npt.NDArray[Any]:
        """Whether each row's cell has enough calibration rows: ``enough``, ``sparse`` or ``empty``."""
        return _SUPPORT[self._decisions.support()]

    @property
    def reason(self) -> npt.NDArray[Any]:
        """The reason for each row's action: ``easy``, ``hard``, ``ambiguous``, ``sparse`` or ``degraded``; see :class:`Reason`."""
        return _REASONS[self._decisions.reasons()]

    @property
    def next_best(self) -> npt.NDArray[Any]:
        """The name of the cheapest action not taken, or of the one that a cap did not allow; ``None`` if there is none."""
        return np.array([*self.action_names, None], dtype=object)[self._decisions.next_best()]

    @cached_property
    def irreducible(self) -> npt.NDArray[np.float64]:
        """The irreducible loss, which no oracle can avoid; NaN if labels only bound it."""
        return self._decisions.irreducible()

    @cached_property
    def reducible(self) -> npt.NDArray[np.float64]:
        """The reducible loss, which a Bayes-optimal oracle would save; NaN if labels only bound it."""
        return self._decisions.reducible()

    @cached_property
    def total(self) -> npt.NDArray[np.float64]:
        """The expected loss of predicting."""
        return self._decisions.total()

    @cached_property
    def margin(self) -> npt.NDArray[np.float64]:
        """The cost of the next-best action minus that of the action taken; negative if a cap did not allow the cheapest one."""
        return self._decisions.margin()

    @cached_property
    def costs(self) -> npt.NDArray[np.float64]:
        """The expected cost of each action, rows × actions; NaN if labels only bound it."""
        return self._decisions.costs()

    @cached_property
    def label_codes(self) -> npt.NDArray[np.uint32]:
        """The index of the class that predicting would answer."""
        return self._decisions.labels()

    @property
    def label(self) -> npt.NDArray[Any]:
        """The class that predicting would answer."""
        return np.array(self._policy.classes, dtype=object)[self.label_codes]

    @property
    def act(self) -> npt.NDArray[Any] | None:
        """The act that predicting would take, if the loss is a cost matrix."""
        codes = self._decisions.acts()
        acts = self._policy.task.loss.acts
        return None if codes is None or acts is None else np.array(acts, dtype=object)[codes]

    @cached_property
    def certain(self) -> npt.NDArray[np.bool_]:
        """Whether each action is certainly optimal in its cell, at the policy's confidence (0.95 by default)."""
        judgement = self._policy.judgement() if self._policy.confidence is None else self._judgement()
        assert judgement is not None
        return self._decisions.certain(judgement)

    def _judgement(self) -> _native.Judgement | None:
        confidence = self._policy.confidence
        return None if confidence is None else self._policy.judgement(confidence)

    def mask(self, action: str) -> npt.NDArray[np.bool_]:
        """A mask of the rows that get this action.

        >>> import numpy as np, pointsman
        >>> router = pointsman.Router("top-class:10").fit([[0.9, 0.1], [0.3, 0.7]], np.array([[4, 1], [1, 4]]))
        >>> router.policy(abstain=0.1).decide([[0.8, 0.2]]).mask("abstain").tolist()
        [True]
        """
        names = [*self.action_names, "undetermined"]
        if action not in names:
            raise PointsmanError(f"no action is called {action!r}; there are: {', '.join(names)}")
        code = names.index(action) if action != "undetermined" else -1
        found: npt.NDArray[np.bool_] = self.action_codes == code
        return found

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows that get each action."""
        names = [*self.action_names, "undetermined"]
        found = np.bincount(self.action_codes % len(names), minlength=len(names))
        return {name: int(n) for name, n in zip(names, found, strict=True) if n or name != "undetermined"}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._decisions.table(self._judgement()).__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """The decisions as a ``pyarrow.Table``, with the columns of the command ``decide``."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> Any:
        """The decisions as a ``polars.DataFrame``."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> Any:
        """The decisions as a ``pandas.DataFrame``, with names as categories."""
        import pandas

        frame: dict[str, Any] = {}
        if self._decisions.ids is not None:
            frame["id"] = self._decisions.ids
        names = [*self.action_names, "undetermined"]
        frame["cell"] = self.cell
        frame["support"] = pandas.Categorical.from_codes(self._decisions.support(), list(_SUPPORT))
        frame["action"] = pandas.Categorical.from_codes(self.action_codes % len(names), names)
        frame["label"] = pandas.Categorical.from_codes(self.label_codes, list(self._policy.classes))
        frame["irreducible"] = self.irreducible
        frame["reducible"] = self.reducible
        for i, name in enumerate(self.action_names):
            frame[f"cost_{name.replace('route:', 'route_', 1)}"] = self.costs[:, i]
        frame["reason"] = pandas.Categorical.from_codes(self._decisions.reasons(), list(_REASONS))
        frame["next_best"] = pandas.Categorical.from_codes(self._decisions.next_best(), list(self.action_names))
        if (act := self.act) is not None:
            frame["act"] = pandas.Categorical(act)
        if self._policy.confidence is not None:
            frame["certain"] = self.certain
        if (capped := self.capped) is not None:
            frame["capped"] = pandas.Categorical(capped, list(self.action_names))
        return pandas.DataFrame(frame)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {n}" for name, n in self.counts.items())
        return f"<Decisions: {len(self)} rows; {counts}>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{n}</td></tr>" for name, n in self.counts.items())
        return f"<table><tr><th>action</th><th>rows</th></tr>{rows}</table>"


def _restored(policy: "Policy", state: tuple[Any, ...]) -> Decisions:
    return policy._restore(state)
