"""A router and a task, compiled."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import _inputs, _native
from ._decisions import Decisions
from ._errors import PointsmanError
from ._inputs import Columns, MatrixLike
from ._progress import bar
from ._reports import Report

#: How sure ``Decisions.certain`` is unless told otherwise.
CONFIDENCE = 0.95


def loss_of(loss: str | _native.Loss) -> _native.Loss:
    """A loss by name, or as it is."""
    return loss if isinstance(loss, _native.Loss) else _native.Loss(loss)


def routes_of(routes: Mapping[str, Any] | None) -> list[tuple[str, _native.Oracle, float]]:
    """Routes as name, oracle and price."""
    found = []
    for name, value in (routes or {}).items():
        oracle, price = value if isinstance(value, tuple) else (_native.Oracle.bayes(), value)
        if isinstance(oracle, str):
            oracle = _native.Oracle(oracle)
        if not isinstance(oracle, _native.Oracle):
            raise PointsmanError(f"route {name!r}: give a price, or (Oracle, price)")
        found.append((str(name), oracle, _number(f"route {name!r}", price)))
    return found


def _number(what: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise PointsmanError(f"{what}: {value!r} is not a number") from None


def task_of(
    *,
    loss: str | _native.Loss,
    routes: Mapping[str, Any] | None,
    abstain: float | None,
    budget: float | None,
    target_loss: float | None,
    estimator: str,
    ties: str,
) -> _native.Task:
    """A task from what a user gives."""
    known = {"abstain": abstain, "budget": budget, "target_loss": target_loss}
    prices = {name: None if value is None else _number(name, value) for name, value in known.items()}
    return _native.Task(loss_of(loss), routes_of(routes), estimator=str(estimator), ties=str(ties), **prices)


class Policy:
    """Decides queries; made by :meth:`Router.policy`.

    Examples
    --------
    >>> import numpy as np, pointsman
    >>> router = pointsman.Router().fit(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[4, 1], [1, 4]]))
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

    def cells(self) -> list[dict[str, Any]]:
        """Every cell: what lies in it, its rows, losses, costs and action."""
        return self._policy.cells()

    def reprice(self, *, routes: Mapping[str, Any] | None = None, abstain: float | None = None) -> "Policy":
        """The same policy under other prices, in microseconds; the routes must ask the same oracles."""
        task = self.task
        named = {name: oracle for name, oracle, _ in task.routes}
        new = [
            (name, named[name] if name in named and not isinstance(value, tuple) else oracle, price)
            for (name, oracle, price), value in zip(routes_of(routes), (routes or {}).values(), strict=True)
        ]
        priced = _native.Task(
            task.loss,
            new,
            abstain=None if abstain is None else _number("abstain", abstain),
            budget=task.budget,
            target_loss=task.target_loss,
            estimator=task.estimator,
            ties=task.ties,
        )
        return Policy(self._router, self._policy.reprice(priced), self._feature_names, self.confidence)

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
    ) -> Decisions:
        """Decides queries.

        float32 and float64 arrays in C order are read where they lie, as is an Arrow column of lists of fixed length; anything
        else is copied once.

        Parameters
        ----------
        probs:
            The classifier's predictions, rows × classes. Columns that have names are found by them.
        features:
            The features the router needs, if it needs any.
        ids:
            One id a row. At the margin of a budget, lots are drawn by it instead of by the row's content.
        labels:
            Whether to work out which class predicting would answer. Without it, deciding is faster.
        """
        matrix, _ = _inputs.probs(probs, self.classes)
        wanted = _inputs.wanted_features(features, self.features, self._feature_names)
        named = None if ids is None else _inputs.ids(ids, _inputs.shape(matrix)[0])
        return Decisions(self, self._policy.decide(matrix, wanted, named, labels=labels))

    def decide_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Decides Arrow batches one by one: what any engine that maps Arrow batches can run.

        A batch has a column ``prob_<class>`` for each class, or ``probs``, lists of fixed length; ``x_<name>`` for each feature
        the router needs; and perhaps ``id``. What comes out has the columns of the command line's ``decide``, as
        ``pyarrow.RecordBatch``.

        >>> import pyarrow as pa, numpy as np, pointsman
        >>> router = pointsman.Router(classes=["no", "yes"]).fit([[0.9, 0.1], [0.3, 0.7]], np.array([[4, 1], [1, 4]]))
        >>> batch = pa.record_batch({"id": ["q1"], "prob_no": [0.8], "prob_yes": [0.2]})
        >>> [one.num_rows for one in router.policy(abstain=0.3).decide_batches([batch])]
        [1]
        """
        import pyarrow

        for batch in batches:
            columns = Columns(batch, "batch")
            if "probs" in columns.names:
                matrix: _inputs.Matrix = _native.Frame(batch).lists("probs")
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
            decided = Decisions(self, self._policy.decide(matrix, wanted, ids))
            yield from pyarrow.table(decided).to_batches()

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
        seed: int = 0,
        progress: bool = False,
    ) -> Report:
        """What the policy costs on rows the router has not seen, against always predicting, always routing and the best possible.

        Arguments are those of :meth:`Router.fit`; ``truth`` holds true label distributions where they are known.

        >>> import numpy as np, pointsman
        >>> rng = np.random.default_rng(0)
        >>> probs = rng.dirichlet([1, 1], 400)
        >>> votes = rng.multinomial(5, probs)
        >>> policy = pointsman.Router().fit(probs[:200], votes[:200]).policy(routes={"expert": 0.05})
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
        with bar("calibration error", self._router.cells, progress) as told:
            native = self._policy.evaluate(table, calibration_error=calibration_error, seed=seed, progress=told)
        return Report(native)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (self._router, self.task, self._feature_names, self.confidence))

    def __repr__(self) -> str:
        return f"<Policy: {self.task.loss}; {', '.join(self.actions)}; {self._router.cells} cells>"


def _restored(
    router: _native.Router, task: _native.Task, feature_names: list[str], confidence: float | None
) -> Policy:
    return Policy(router, router.policy(task), feature_names, confidence)
