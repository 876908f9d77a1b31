"""A router compiled for a task."""

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from types import EllipsisType
from typing import Any, Self, TypeAlias

from . import _inputs, _native
from ._decisions import Decisions
from ._errors import PointsmanError
from ._inputs import Columns, MatrixLike, RandomState
from ._progress import bar
from ._reports import Report

#: The default confidence of ``Decisions.certain``.
CONFIDENCE = 0.95


#: Routes by name: a price, or an oracle and a price.
Routes: TypeAlias = Mapping[str, float | tuple[_native.Oracle | str, float]]


class Policy:
    """A router compiled for a task, which decides queries; returned by :meth:`Router.policy`.

    A policy file (:meth:`save`, :meth:`load`) has what deciding needs and no calibration rows. A policy from a file decides bit for bit as
    the one that was saved and can be repriced; :meth:`judgement` and :meth:`evaluate` need the router. A pickled policy is its file, unless it
    has a confidence: then it is pickled with its calibration rows, which ``Decisions.certain`` needs.

    Examples
    --------
    >>> import numpy as np, pointsman
    >>> router = pointsman.Router("top-class:10").fit(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[4, 1], [1, 4]]))
    >>> policy = router.policy(routes={"expert": 0.5}, abstain=0.6)
    >>> policy.actions
    ('predict', 'route:expert', 'abstain')
    >>> dearer = policy.reprice(routes={"expert": 0.7}, abstain=0.6)
    >>> dearer.decide(np.array([[0.5, 0.5]], dtype=np.float32)).costs.shape
    (1, 3)
    """

    def __init__(
        self, router: _native.Router | None, policy: _native.Policy, feature_names: list[str], confidence: float | None
    ) -> None:
        if confidence is not None and not 0 < confidence < 1:
            raise PointsmanError(f"confidence: {confidence} is not between 0 and 1, as in 0.95")
        # None if the policy comes from a policy file.
        self._router = router
        self._policy = policy
        self._feature_names = feature_names
        self._judgements: dict[float, _native.Judgement] = {}
        #: The confidence of ``Decisions.certain``, if it was given.
        self.confidence = confidence

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in order."""
        return tuple(self._policy.classes)

    @property
    def features(self) -> tuple[str, ...]:
        """The features that decisions need."""
        return tuple(self._policy.features)

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions, in the order of the columns of costs: ``predict``, ``route:<name>`` …, ``abstain`` if allowed."""
        return tuple(self._policy.actions)

    @property
    def task(self) -> _native.Task:
        """The task: the loss, the routes and the prices."""
        return self._policy.task

    @property
    def shares(self) -> dict[str, float]:
        """The share of the calibration rows that each action would get."""
        return self._policy.shares

    @property
    def has_calibration_rows(self) -> bool:
        """Whether the policy has its router's calibration rows; false for policies from files."""
        return self._policy.has_rows

    @property
    def surcharge(self) -> dict[str, float] | None:
        """The price of routing that enforces a budget or a target loss, and its effect; ``None`` without a limit."""
        return self._policy.surcharge

    def promise(self) -> dict[str, Any] | None:
        """The expected cost of new queries like the calibration rows, with standard errors.

        It is cross-fitted: rows are evaluated under decisions made without them, so choosing the cheapest of several estimates adds no
        bias. ``identified`` is the interval of costs that are compatible with the labels whatever the number of rows; it is ``None``
        for the Brier loss. The result is ``None`` if labels give only bounds.
        """
        return self._policy.promise()

    def cells(self) -> list[dict[str, Any]]:
        """Each cell with its name, rows, losses, costs and action."""
        return self._policy.cells()

    def reprice(
        self,
        *,
        routes: Routes | None | EllipsisType = ...,
        abstain: float | None | EllipsisType = ...,
        task: _native.Task | None = None,
    ) -> "Policy":
        """The same policy at other prices, in microseconds.

        Arguments left out keep their present values; ``abstain=None`` forbids abstaining. ``routes`` replaces all routes; a route given
        by its price alone keeps its oracle. ``task`` replaces all of them, and limits and ties as well; its loss and estimator must be those
        of the policy, since another loss is estimated from calibration rows by :meth:`Router.policy`.

        >>> import numpy as np, pointsman
        >>> router = pointsman.Router("top-class:10").fit(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[4, 1], [1, 4]]))
        >>> policy = router.policy(routes={"jury": (pointsman.Oracle.panel(3), 0.05)}, abstain=0.3)
        >>> policy.reprice(routes={"jury": 0.07}).task
        <Task: brier, jury panel:m=3,aggregate=mean at 0.07, abstain at 0.3>
        """
        if task is None:
            native = self._policy.reprice({} if routes is None else routes, abstain)
        elif not isinstance(task, _native.Task):
            raise PointsmanError(f"task: {task!r} is not a Task; a task file's text is one by Task.parse(text)")
        elif routes is not ... or abstain is not ...:
            raise PointsmanError("a task has its own routes and prices: give either task=… or those")
        else:
            native = self._policy.for_task(task)
        return Policy(self._router, native, self._feature_names, self.confidence)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a policy file atomically: losses and prices, without calibration rows. The command line reads the same file.

        The promised cost is estimated first, which takes longer than compiling. The confidence is not stored.
        """
        self._policy.save(Path(path))

    def to_bytes(self) -> bytes:
        """The bytes of the policy file."""
        return self._policy.to_bytes()

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Reads a policy file and checks it."""
        data = Path(path).read_bytes()
        try:
            return cls.from_bytes(data)
        except PointsmanError as error:
            raise PointsmanError(f"{path}: {error}") from None

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Reads a policy from the bytes of its file and checks it.

        >>> import numpy as np, pointsman
        >>> router = pointsman.Router("top-class:10").fit(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[4, 1], [1, 4]]))
        >>> policy = pointsman.Policy.from_bytes(router.policy(routes={"expert": 0.05}).to_bytes())
        >>> policy.reprice(routes={"expert": 0.2}).task
        <Task: brier, expert bayes at 0.2>
        >>> policy.has_calibration_rows
        False
        """
        native = _native.Policy.from_bytes(data)
        return cls(None, native, list(native.features), None)

    def judgement(self, confidence: float = CONFIDENCE) -> _native.Judgement:
        """Which actions are certainly optimal in their cells, and a bound on the regret."""
        if confidence not in self._judgements:
            self._judgements[confidence] = self._policy.judge(confidence)
        return self._judgements[confidence]

    def decide(
        self,
        probs: MatrixLike,
        *,
        features: MatrixLike | None = None,
        ids: Iterable[Any] | None = None,
        labels: bool = True,
        caps: Mapping[str, int | str] | None = None,
    ) -> Decisions:
        """Decides queries.

        float32 and float64 arrays in C order and Arrow columns of lists are not copied; other inputs are copied once.

        Parameters
        ----------
        probs:
            The classifier's predictions, rows × classes. Named columns are matched to classes by name. Each row sums to one, as
            in :meth:`Router.fit`.
        features:
            The features that the router needs, if any.
        ids:
            One id per row. With a limit on routing, a random draw decides queries for which routing and not routing cost the same. It
            is seeded by the id instead of the row's content.
        labels:
            Whether to compute the class that predicting would answer. Deciding is faster without it.
        caps:
            The largest number or share of these queries per route, as ``{"expert": 500}`` or ``{"expert": "5%"}``. It is never
            exceeded and goes to the queries that save most. Other queries take their next-best action, see ``Decisions.capped``.

        >>> import numpy as np, pointsman
        >>> router = pointsman.Router("top-class:10").fit([[0.9, 0.1], [0.3, 0.7]], np.array([[1, 1], [1, 3]]))
        >>> policy = router.policy(routes={"expert": 0.01})
        >>> policy.decide([[0.8, 0.2], [0.9, 0.1], [0.7, 0.3]]).counts
        {'predict': 0, 'route:expert': 3}
        >>> policy.decide([[0.8, 0.2], [0.9, 0.1], [0.7, 0.3]], caps={"expert": 1}).counts
        {'predict': 2, 'route:expert': 1}
        """
        matrix, _ = _inputs.probs(probs, self.classes)
        wanted = _inputs.wanted_features(features, self.features, self._feature_names)
        named = None if ids is None else _inputs.ids(ids, _inputs.shape(matrix)[0])
        return Decisions(self, self._policy.decide(matrix, wanted, named, labels=labels, caps=caps))

    def decide_batches(self, batches: Any) -> Iterator[Any]:
        """Decides Arrow batches one by one, for engines that map functions over batches. A table is read as its batches.

        A batch has one column ``prob_<class>`` per class, or a column ``probs`` of lists with one number per class; one column
        ``x_<name>`` per feature that the router needs; and optionally ``id``. The results are ``pyarrow.RecordBatch`` with the columns
        of the command ``decide``.

        >>> import pyarrow as pa, numpy as np, pointsman
        >>> router = pointsman.Router("top-class:10", classes=["no", "yes"]).fit([[0.9, 0.1], [0.3, 0.7]], np.array([[4, 1], [1, 4]]))
        >>> batch = pa.record_batch({"id": ["q1"], "prob_no": [0.8], "prob_yes": [0.2]})
        >>> [one.num_rows for one in router.policy(abstain=0.3).decide_batches([batch])]
        [1]
        """
        import pyarrow

        if isinstance(batches, pyarrow.RecordBatch):
            batches = [batches]
        elif hasattr(batches, "__arrow_c_stream__"):
            batches = pyarrow.RecordBatchReader.from_stream(batches)
        for number, batch in enumerate(batches):
            try:
                decided = self._decide_batch(batch)
            except PointsmanError as error:
                message = f"batch {number}: {str(error).removeprefix('batch: ')}"
                raise PointsmanError(message, row=error.row, column=error.column) from None
            yield from pyarrow.table(decided).to_batches()

    def _decide_batch(self, batch: Any) -> Decisions:
        columns = Columns(batch, "batch")
        if "probs" in columns.names:
            matrix: _inputs.Matrix = _native.Frame(batch).lists("probs", len(self.classes))
        else:
            lacking = [name for name in self.classes if f"prob_{name}" not in columns.names]
            if lacking:
                raise PointsmanError(
                    f"batch: no column prob_{lacking[0]}; there are {', '.join(columns.names)}",
                    column=f"prob_{lacking[0]}",
                )
            matrix = columns.matrix([f"prob_{name}" for name in self.classes])
        wanted = _inputs.wanted_features(batch, self.features, None)
        ids = columns.texts("id") if "id" in columns.names else None
        return Decisions(self, self._policy.decide(matrix, wanted, ids))

    def evaluate(
        self,
        probs: MatrixLike,
        votes: Any = None,
        *,
        truth: MatrixLike | None = None,
        features: MatrixLike | None = None,
        oracles: Mapping[str, MatrixLike] | None = None,
        sample_weight: Any = None,
        caps: Mapping[str, int | str] | None = None,
        ids: Iterable[Any] | None = None,
        calibration_error: bool = True,
        random_state: RandomState = 0,
        progress: bool = False,
    ) -> Report:
        """Evaluates the policy on held-out rows, against always predicting, always routing and the best possible decisions.

        Arguments are those of :meth:`Router.fit`; ``truth`` has the true label distributions, if they are known. With ``caps``, and ``ids``
        that order rows of equal cost, the rows are decided as by :meth:`decide` with these arguments. ``report.data["caps"]`` has the use of
        each cap and ``report.data["capped"]`` what the caps cost, with its standard error.

        >>> import numpy as np, pointsman
        >>> rng = np.random.default_rng(0)
        >>> probs = rng.dirichlet([1, 1], 400)
        >>> votes = rng.multinomial(5, probs)
        >>> policy = pointsman.Router("top-class:10").fit(probs[:200], votes[:200]).policy(routes={"expert": 0.05})
        >>> report = policy.evaluate(probs[200:], votes[200:])
        >>> report.rows, sorted(report.shares)
        (200, ['predict', 'route:expert'])
        """
        table = self._held_out("evaluate", probs, votes, truth, features, oracles, sample_weight)
        seed = _inputs.seed(random_state)
        named = None if ids is None else _inputs.ids(ids, len(table))
        with bar("calibration error", self._policy.cell_count, progress) as report:
            native = self._policy.evaluate(
                table, caps=caps, ids=named, calibration_error=calibration_error, seed=seed, progress=report
            )
        return Report(native)

    def _held_out(
        self,
        caller: str,
        probs: MatrixLike,
        votes: Any,
        truth: MatrixLike | None,
        features: MatrixLike | None,
        oracles: Mapping[str, MatrixLike] | None,
        sample_weight: Any,
    ) -> _native.Table:
        """The table of held-out rows."""
        if votes is None and truth is None:
            raise PointsmanError(f"{caller} needs votes or truth")
        table, _, _ = _inputs.table(
            probs,
            classes=self.classes,
            votes_given=votes,
            truth=truth,
            features_given=features,
            feature_names=self._feature_names,
            oracles_given=oracles,
            sample_weight=sample_weight,
        )
        return table

    def __reduce__(self) -> tuple[Any, ...]:
        if self._router is None or self.confidence is None:
            return (_from_file, (self.to_bytes(), self._feature_names))
        return (_recompiled, (self._router, self.task, self._feature_names, self.confidence))

    def _restore(self, state: tuple[Any, ...]) -> Decisions:
        """Restores pickled decisions."""
        return Decisions(self, self._policy.restore(state))

    def __repr__(self) -> str:
        return f"<Policy: {self.task.loss}; {', '.join(self.actions)}; {self._policy.cell_count} cells>"


def _from_file(data: bytes, feature_names: list[str]) -> Policy:
    """A pickled policy."""
    return Policy(None, _native.Policy.from_bytes(data), feature_names, None)


def _recompiled(
    router: _native.Router, task: _native.Task, feature_names: list[str], confidence: float
) -> Policy:
    """A pickled policy with a confidence."""
    return Policy(router, router.policy(task), feature_names, confidence)
