"""The service's answers as values. Fields have the names that the service gives them; those of newer services are left out."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

Answer = TypeVar("Answer")


def read_answer(kind: type[Answer], data: Any) -> Answer:
    """An answer from JSON.

    Raises ``ValueError`` if it is not one.
    """
    if not isinstance(data, dict):
        raise ValueError(f"{type(data).__name__} instead of an object")
    values: dict[str, Any] = {}
    for one in fields(kind):  # type: ignore[arg-type]
        if one.name in data:
            read: Callable[[Any], Any] | None = one.metadata.get("read")
            values[one.name] = data[one.name] if read is None or data[one.name] is None else read(data[one.name])
        elif one.default is MISSING and one.default_factory is MISSING:
            raise ValueError(f"the field {one.name} is missing")
    return kind(**values)


def _read_by(read: Callable[[Any], Any], **options: Any) -> Any:
    """A field that is converted by a function."""
    return field(metadata={"read": read}, **options)


def _time(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """More about a decision."""

    #: The cell in words.
    cell_name: str
    #: The number of calibration rows that the costs were estimated from.
    rows: int
    #: Where these rows come from: the ``cell``, rows of the same ``confidence``, or ``all`` rows.
    level: str
    #: The action that comes next.
    next_best: str | None
    #: The number of trees that the costs were averaged over, if the router has a forest.
    trees: int | None
    #: The unit of losses and costs.
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer to a query."""

    #: The id of the decision; ``None`` if it was a dry run, which is not logged.
    decision_id: str | None
    #: The policy version that decided.
    version: int
    #: What to do: ``predict``, ``route:<name>``, ``abstain``, or ``undetermined`` if the labels do not decide.
    action: str
    #: The class that predicting answers.
    label: str
    #: The query's cell.
    cell: int
    #: Whether the cell has ``enough`` calibration rows, is ``sparse``, or ``empty``.
    support: str
    #: The part of the expected loss that nobody can avoid; ``None`` if labels only bound it.
    irreducible: float | None
    #: The part of the expected loss that an oracle would save; ``None`` if labels only bound it.
    reducible: float | None
    #: The expected cost of each action; ``None`` where labels only bound it.
    costs: Mapping[str, float | None]
    #: By how much the action is cheaper than the next-best one; ``None`` if there is no other, negative if the best one could not be taken.
    margin: float | None
    #: Why: ``easy``, ``hard``, ``ambiguous``, ``sparse`` or ``degraded``.
    reason: str
    #: Whether the decision is audited by people.
    audited: bool
    #: The caller's own id.
    id: str | None = None
    #: The act of least expected loss, if the loss has acts of its own.
    act: str | None = None
    #: Why the best action could not be taken, if so: ``unavailable`` or ``limit``.
    degraded: str | None = None
    #: The action that could not be taken.
    wanted: str | None = None
    #: In shadow mode, what would have been done.
    would: str | None = None
    #: Whether it is in the log; false only of a service that answers without logging (``on_log_failure``).
    logged: bool = True
    #: More about the decision, if it was asked for.
    explanation: Explanation | None = _read_by(lambda data: read_answer(Explanation, data), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedDecision(Decision):
    """A decision of the log: the answer, and what was asked."""

    #: When it was decided.
    at: datetime = _read_by(_time)
    #: The deployment's name.
    deployment: str
    #: The probabilities, in the order of the classes.
    probs: tuple[float, ...] = _read_by(tuple)
    #: The features that the router uses, by name; ``None`` if missing.
    features: Mapping[str, float | None]
    #: The caller's tags.
    tags: Mapping[str, str] = field(default_factory=dict)
    #: The input, if the caller sent it and it has not expired.
    input: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A named place where queries arrive."""

    #: Its name.
    name: str
    #: ``active`` answers decisions, ``shadow`` always answers ``predict``.
    mode: str
    #: The number of the active version; ``None`` if there is none yet.
    active: int | None
    #: The numbers of all versions.
    versions: tuple[int, ...] = _read_by(tuple)
    #: The classes of the active version, in order.
    classes: tuple[str, ...] = _read_by(tuple)
    #: The features that the active version uses, in order.
    features: tuple[str, ...] = _read_by(tuple)
    #: The actions of the active version, in the order of costs.
    actions: tuple[str, ...] = _read_by(tuple)
    #: Oracles that are marked as unavailable.
    unavailable: tuple[str, ...] = _read_by(tuple)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A policy version of a deployment. It never changes."""

    #: Its number.
    version: int
    #: Whether it decides now.
    active: bool
    #: The SHA-256 of the router; ``None`` if a compiled policy was uploaded.
    router: str | None
    #: The SHA-256 of the compiled policy.
    policy: str
    #: The task, as the text of a task file.
    task: str
    #: When it was added.
    created: datetime = _read_by(_time)
    #: What callers must know, if requests are read differently since it was activated: its classes or features are not those of the
    #: version before.
    warning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A router or a compiled policy that the service keeps."""

    #: The SHA-256 that versions name it by.
    sha256: str
    #: ``router`` or ``policy``.
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfCost:
    """The cost per query of replayed decisions, by the estimates and prices asked for."""

    #: The expected cost per query; ``None`` without decisions.
    expected: float | None
    #: The expected cost per query of the logged actions; ``None`` if the task lacks one of them, so that its cost is unknown.
    before: float | None
    #: The mean difference of both: negative if it would be cheaper.
    difference: float | None
    #: The standard error of the difference over queries; the error of the estimates comes on top.
    difference_standard_error: float | None
    #: The number of decisions whose action the task does not have.
    not_compared: int
    #: The cost measured by labels; ``None`` without labels.
    measured: float | None = None


def _matrix(flows: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    return {(flow["from"], flow["to"]): flow["decisions"] for flow in flows}


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """How logged decisions would change."""

    #: The number of decisions in the period.
    decisions: int
    #: How many of them change.
    changed: int
    #: The number of decisions by their logged action and the other one.
    matrix: Mapping[tuple[str, str], int] = _read_by(_matrix)
    #: The share of each action as it was logged.
    shares_before: Mapping[str, float]
    #: The share of each action as it would be.
    shares: Mapping[str, float]
    #: The cost per query.
    cost: WhatIfCost = _read_by(lambda data: read_answer(WhatIfCost, data))
    #: What changes per cell: ``cell``, ``name``, ``decisions``, ``changed``, ``expected_cost`` and ``difference``.
    cells: tuple[Mapping[str, Any], ...] = _read_by(tuple)
