"""Comparing policies on the same held-out rows."""

import json
from collections.abc import Mapping
from typing import Any

from . import _native
from ._errors import PointsmanError
from ._inputs import MatrixLike
from ._policy import Policy
from ._reports import _table


class Comparison:
    """The costs of policies on the same held-out rows, and their differences; returned by :func:`compare`."""

    def __init__(self, text: str) -> None:
        self._text = text
        #: The comparison as ``pointsman compare --json`` prints it.
        self.data: dict[str, Any] = json.loads(text)

    def to_json(self) -> str:
        """The comparison as JSON text."""
        return self._text

    @property
    def rows(self) -> int:
        """The number of held-out rows."""
        return int(self.data["rows"])

    @property
    def baseline(self) -> str:
        """The policy that the others are compared with."""
        return str(self.data["baseline"])

    @property
    def costs(self) -> dict[str, float | None]:
        """The mean cost per query of each policy; ``None`` if one label per item does not identify it."""
        return {policy["name"]: policy["cost"] for policy in self.data["policies"]}

    @property
    def differences(self) -> dict[str, dict[str, Any]]:
        """The cost of each policy minus that of the baseline: ``estimate``, paired ``standard_error`` and 95 % ``interval``.

        Policies under a loss other than the baseline's have no difference.
        """
        found = {policy["name"]: policy["difference"] for policy in self.data["policies"]}
        return {name: difference for name, difference in found.items() if difference is not None}

    @property
    def shares(self) -> dict[str, dict[str, float]]:
        """The share of the rows that each action gets, for each policy."""
        return {policy["name"]: dict(policy["shares"]) for policy in self.data["policies"]}

    def _lines(self) -> list[tuple[Any, ...]]:
        def line(policy: dict[str, Any]) -> tuple[Any, ...]:
            difference = policy["difference"] or {}
            numbers = (policy["cost"], policy["standard_error"], difference.get("estimate"), difference.get("standard_error"))
            return (policy["name"], *numbers)

        return [line(policy) for policy in self.data["policies"]]

    def __repr__(self) -> str:
        return f"<Comparison: {', '.join(self.costs)} on {self.rows} rows; baseline {self.baseline}>"

    def _repr_html_(self) -> str:
        return _table(["", "cost per query", "standard error", "difference", "standard error"], self._lines())


def compare(
    policies: Mapping[str, Policy],
    probs: MatrixLike,
    votes: Any = None,
    *,
    truth: MatrixLike | None = None,
    features: MatrixLike | None = None,
    oracles: Mapping[str, MatrixLike] | None = None,
    sample_weight: Any = None,
    baseline: str | None = None,
) -> Comparison:
    """Compares policies on the same held-out rows.

    Parameters
    ----------
    policies:
        Policies by name, of different routers or of one router under different tasks. Costs under different losses have
        different units, so they have no difference.
    probs, votes, truth, features, oracles, sample_weight:
        The held-out rows, as in :meth:`Policy.evaluate`. Features must have names that all routers know, or be those of
        the first router.
    baseline:
        The name of the policy that the others are compared with; by default the first.

    Examples
    --------
    >>> import numpy as np, pointsman
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1], 400)
    >>> votes = rng.multinomial(5, probs)
    >>> router = pointsman.Router("top-class:10").fit(probs[:200], votes[:200])
    >>> policies = {"cheap": router.policy(routes={"expert": 0.01}), "dear": router.policy(routes={"expert": 0.3})}
    >>> found = pointsman.compare(policies, probs[200:], votes[200:])
    >>> found
    <Comparison: cheap, dear on 200 rows; baseline cheap>
    >>> sorted(found.differences["dear"])
    ['differing_rows', 'estimate', 'identified', 'interval', 'standard_error']
    """
    if not isinstance(policies, Mapping) or not all(isinstance(policy, Policy) for policy in policies.values()):
        raise PointsmanError("compare: give policies by name, as in {'old': policy, 'new': other}")
    if len(policies) < 2:
        raise PointsmanError("compare: one policy cannot be compared; give two or more")
    first = next(iter(policies.values()))
    table = first._held_out("compare", probs, votes, truth, features, oracles, sample_weight)
    named = [(str(name), policy._policy) for name, policy in policies.items()]
    return Comparison(_native.compare(named, table, baseline))
