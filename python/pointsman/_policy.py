"""A router and a task, compiled."""

from collections.abc import Iterable, Iterator, Mapping
from types import EllipsisType
from typing import Any, TypeAlias

from . import _inputs, _native
from ._decisions import Decisions
from ._errors import PointsmanError
from ._inputs import Columns, MatrixLike, RandomState
from ._progress import bar
from ._reports import Report

#: How sure ``Decisions.certain`` is unless told otherwise.
CONFIDENCE = 0.95


#: Whom one can ask: a price for each name, or an oracle and a price.
Routes: TypeAlias = Mapping[str, float | tuple[_native.Oracle | str, float]]


class Policy:
    """Decides queries; made by :meth:`Router.policy`.

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
        self, router: _native.Router, policy: _native.Policy, feature_names: list[str], confidence: float | None
    ) -> None:
        if confidence is not None and not 0 < confidence < 1:
            raise PointsmanError(f"confidence: {confidence} is not between 0 and 1, as in 0.95")
        self._router = router
        self._policy = policy
        self._feature_names = feature_names
        self._judgements: dict[float, _native.Judgement] = {}
        #: How sure ``Decisions.certain`` is to be, if that was given.
        self.confidence = confidence

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in order."""
        return tuple(self._router.classes)

    @property
    def features(self) -> tuple[str, ...]:
        """The features that decisions need."""
        return tuple(self._router.features)

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions in the order of costs: ``predict``, ``route:<name>`` …, ``abstain`` if allowed."""
        return tuple(self._policy.actions)

    @property
    def task(self) -> _native.Task:
        """The loss and the prices."""
        return self._policy.task

    @property
    def shares(self) -> dict[str, float]:
        """Which share of the calibration rows each action would get."""
        return self._policy.shares

    @property
    def surcharge(self) -> dict[str, float] | None:
        """The price that a budget or a target loss comes to."""
        return self._policy.surcharge

    def promise(self) -> dict[str, Any] | None:
        """What new queries like the calibration rows are expected to cost, with standard errors.

        Decisions are made without the rows that judge them, so that the cheapest of several estimates is not taken at its word.
        ``identified`` is between what the cost lies as far as the labels identify it, however many rows there are: ``None`` for the
        Brier loss. ``None`` instead of all that if labels give only bounds.
        """
        return self._policy.promise()

    def cells(self) -> list[dict[str, Any]]:
        """Every cell: its name, rows, losses, costs and action."""
        return self._policy.cells()

    def reprice(
        self, *, routes: Routes | None | EllipsisType = ..., abstain: float | None | EllipsisType = ...
    ) -> "Policy":
        """The same policy under other prices, in microseconds.

        What is left out stays as it is; ``abstain=None`` is never to abstain. Routes that are given are all there are, and ask
        the oracles they asked.

        >>> import numpy as np, pointsman
        >>> router = pointsman.Router("top-class:10").fit(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[4, 1], [1, 4]]))
        >>> policy = router.policy(routes={"jury": (pointsman.Oracle.panel(3), 0.05)}, abstain=0.3)
        >>> policy.reprice(routes={"jury": 0.07}).task
        <Task: brier, jury panel:m=3,aggregate=mean at 0.07, abstain at 0.3>
        """
        routes = {} if routes is None else routes
        return Policy(self._router, self._policy.reprice(routes, abstain), self._feature_names, self.confidence)

    def judgement(self, confidence: float = CONFIDENCE) -> _native.Judgement:
        """Which actions are certainly the best of their cells, and a bound on the regret."""
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

        float32 and float64 arrays in C order are read where they lie, as is an Arrow column of lists; anything else is copied
        once.

        Parameters
        ----------
        probs:
            The classifier's predictions, rows × classes. Columns that have names are found by them. Each row sums to one, as in
            :meth:`Router.fit`.
        features:
            The features the router needs, if it needs any.
        ids:
            One id per row. At the margin of a budget, lots are drawn by it instead of by the row's content.
        labels:
            Whether to work out which class predicting would answer. Without it, deciding is faster.
        caps:
            How many of these queries each route may get, as ``{"expert": 500}`` or ``{"expert": "5%"}``: kept exactly and spent
            where it saves most. Other queries take their next-best action; ``Decisions.capped`` says which.

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
        """Decides Arrow batches one by one: what any engine that maps Arrow batches can run. A table is its batches.

        A batch has a column ``prob_<class>`` for each class, or ``probs``, lists of one number per class; ``x_<name>`` for each feature
        the router needs; and perhaps ``id``. What comes out has the columns of the command line's ``decide``, as
        ``pyarrow.RecordBatch``.

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
        calibration_error: bool = True,
        random_state: RandomState = 0,
        progress: bool = False,
    ) -> Report:
        """What the policy costs on rows the router has not seen, against always predicting, always routing and the best possible.

        Arguments are those of :meth:`Router.fit`; ``truth`` holds true label distributions where they are known.

        >>> import numpy as np, pointsman
        >>> rng = np.random.default_rng(0)
        >>> probs = rng.dirichlet([1, 1], 400)
        >>> votes = rng.multinomial(5, probs)
        >>> policy = pointsman.Router("top-class:10").fit(probs[:200], votes[:200]).policy(routes={"expert": 0.05})
        >>> report = policy.evaluate(probs[200:], votes[200:])
        >>> report.rows, sorted(report.shares)
        (200, ['predict', 'route:expert'])
        """
        if votes is None and truth is None:
            raise PointsmanError("evaluate needs votes or truth")
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
        seed = _inputs.seed(random_state)
        with bar("calibration error", self._router.cells, progress) as told:
            native = self._policy.evaluate(table, calibration_error=calibration_error, seed=seed, progress=told)
        return Report(native)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (self._router, self.task, self._feature_names, self.confidence))

    def _restore(self, state: tuple[Any, ...]) -> Decisions:
        """The decisions of an unpickled state."""
        return Decisions(self, self._policy.restore(state))

    def __repr__(self) -> str:
        return f"<Policy: {self.task.loss}; {', '.join(self.actions)}; {self._router.cells} cells>"


def _restored(
    router: _native.Router, task: _native.Task, feature_names: list[str], confidence: float | None
) -> Policy:
    return Policy(router, router.policy(task), feature_names, confidence)
