"""The router, with the interface of a scikit-learn estimator."""

import inspect
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from . import _inputs, _native
from ._errors import PointsmanError, not_fitted
from ._inputs import MatrixLike, RandomState
from ._policy import Policy, Routes
from ._progress import bar
from ._reports import Decomposition


class Parameters:
    """``get_params`` and ``set_params`` as in scikit-learn, which need not be installed."""

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls).parameters]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Sets some of the constructor's parameters."""
        for name, value in params.items():
            if name not in self._parameter_names():
                known = ", ".join(self._parameter_names())
                raise PointsmanError(f"{type(self).__name__} has no parameter {name!r}; there are: {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        # Representations are compared, since arrays compare element by element.
        changed = [
            f"{name}={value!r}" for name, value in self.get_params().items() if repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


class Router(Parameters):
    """A partition of inputs into cells, with the calibration rows of each cell. It does not depend on a loss or on prices.

    Parameters
    ----------
    partition:
        ``"auto"`` chooses among ``"pooled"``, ``"tree"``, ``"honest-forest:200"`` and ``"forest:200"`` by the cost in cross-validation.
        ``"auto:certifiable"`` excludes the last, whose cells cannot be certified. The partitions of the paper are
        ``"top-class:10"``, ``"confidence:30"``, ``"level-sets"`` and ``"features:x_a=10,x_b=4"``, joined by ``*`` for products.
    recalibrate:
        Whether to predict the mean label distribution of the cell instead of the classifier's prediction. ``"auto"`` then compares
        partitions by the Brier loss of what is predicted.
    random_state:
        The source of random numbers, as in scikit-learn: the same whole number gives the same router.
    classes:
        The classes in the order of the columns; by default the names of the columns, or their numbers.
    progress:
        Whether to show a progress bar (tqdm) while trees are grown.

    Attributes
    ----------
    classes_:
        The names of the classes, in order.
    partition_:
        The fitted partition; with ``"auto"``, the one that was chosen.
    feature_names_:
        The names of the features given to ``fit``.
    choice_:
        One sentence on what ``"auto"`` chose and why; ``None`` for other partitions and for routers from a file.
    features_used_:
        The names of the features on which decisions depend.
    n_rows_, n_cells_:
        The number of calibration rows kept, and the number of cells.

    Examples
    --------
    >>> import numpy as np, pointsman
    >>> probs = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
    >>> router = pointsman.Router(classes=["no", "yes"])
    >>> router.fit(probs, [["no", "no"], ["no", "yes", "yes"], ["yes"] * 5, ["yes", "no"]])
    Router(classes=['no', 'yes'])
    >>> router.n_rows_, router.classes_.tolist()
    (4, ['no', 'yes'])
    """

    classes_: npt.NDArray[Any]
    partition_: str
    choice_: str | None
    features_used_: list[str]
    feature_names_: list[str]
    n_rows_: int
    n_cells_: int
    n_features_in_: int

    def __init__(
        self,
        partition: str = "auto",
        recalibrate: bool = False,
        random_state: RandomState = 0,
        classes: Sequence[str] | None = None,
        progress: bool = False,
    ) -> None:
        self.partition = partition
        self.recalibrate = recalibrate
        self.random_state = random_state
        self.classes = classes
        self.progress = progress

    def fit(
        self,
        probs: MatrixLike,
        votes: Any,
        *,
        features: MatrixLike | None = None,
        oracles: Mapping[str, MatrixLike] | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Calibrates the router: fits the cells and stores their rows.

        Parameters
        ----------
        probs:
            The classifier's predictions, rows × classes. Each row must sum to one; divide percentages and rounded numbers by their
            sum: ``probs / probs.sum(axis=1, keepdims=True)``.
        votes:
            An array or frame of label counts, rows × classes; or one list of labels per row. The labels of an item must be
            independent: a majority vote must not be counted as a label.
        features:
            Further inputs of the partition: an array, a frame or a mapping of columns. NaN is a missing value.
        oracles:
            The predictions of other models for the same rows, by name. ``Oracle.measured()`` estimates losses from them.
        sample_weight:
            One positive weight per row.
        """
        classes = None if self.classes is None else [str(name) for name in self.classes]
        table, names, named = _inputs.table(
            probs,
            classes=classes,
            votes_given=votes,
            features_given=features,
            oracles_given=oracles,
            sample_weight=sample_weight,
        )
        if not isinstance(self.partition, str):
            raise PointsmanError(f"partition: {self.partition!r} is not text such as 'top-class:10'")
        seed = _inputs.seed(self.random_state)
        steps = _native.Router.steps(self.partition)
        with bar("growing trees", steps, self.progress) as progress:
            router = _native.Router.calibrate(
                table, self.partition, recalibrate=bool(self.recalibrate), seed=seed, progress=progress
            )
        return self._learned(router, named)

    def _learned(self, router: _native.Router, feature_names: list[str]) -> Self:
        self.router_ = router
        self.classes_ = np.array(router.classes, dtype=object)
        self.partition_ = router.partition
        self.choice_ = router.choice
        self.features_used_ = router.features_used
        self.feature_names_ = feature_names
        self.n_rows_ = len(router)
        self.n_cells_ = router.cells
        self.n_features_in_ = len(router.classes)
        return self

    def _fitted(self) -> _native.Router:
        if not hasattr(self, "router_"):
            not_fitted(self)
        return self.router_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "router_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True, multi_output=True))

    def policy(
        self,
        *,
        loss: str | _native.Loss = "brier",
        routes: Routes | None = None,
        abstain: float | None = None,
        budget: float | None = None,
        target_loss: float | None = None,
        estimator: str = "auto",
        ties: str = "frugal",
        confidence: float | None = None,
        task: _native.Task | None = None,
    ) -> Policy:
        """Compiles the router for a loss and prices, in microseconds to milliseconds. The router does not change.

        Parameters
        ----------
        loss:
            A name such as ``"brier"``, ``"cross-entropy"``, ``"zero-one"``, ``"fn-fp:fp=1,fn=3"``, or a :class:`Loss`.
        routes:
            The oracles: name → price, or name → (:class:`Oracle`, price). Prices are in the unit of the loss.
        abstain:
            The price of abstaining; by default abstaining is not allowed.
        budget:
            The largest share of queries to route, in expectation over queries like the calibration rows; a price of routing
            enforces it. For a hard limit on given queries use ``caps`` of :meth:`Policy.decide`.
        target_loss:
            The largest expected loss; as few queries as possible are routed to meet it.
        estimator, ties:
            See :class:`Estimator` and :class:`Ties`.
        confidence:
            The confidence of ``Decisions.certain``, by default 0.95. If given, tables of decisions have a column ``certain``.
        task:
            A :class:`Task` instead of all arguments above except ``confidence``.

        Examples
        --------
        >>> import numpy as np, pointsman
        >>> router = pointsman.Router("top-class:10").fit(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[4, 1], [1, 4]]))
        >>> router.policy(routes={"expert": 0.05, "jury": (pointsman.Oracle.panel(3), 0.02)}).actions
        ('predict', 'route:expert', 'route:jury')
        """
        router = self._fitted()
        asked = _native.Task(
            loss,
            routes,
            abstain=abstain,
            budget=budget,
            target_loss=target_loss,
            estimator=estimator,
            ties=ties,
        )
        if task is None:
            task = asked
        elif not isinstance(task, _native.Task):
            raise PointsmanError(f"task: {task!r} is not a Task; a task file's text is one by Task.parse(text)")
        elif asked != _native.Task():
            raise PointsmanError("a task has its own loss, prices and limits: give either task=… or those")
        return Policy(router, router.policy(task), self.feature_names_, confidence)

    def decompose(self, loss: str | _native.Loss = "brier", *, estimator: str = "auto") -> Decomposition:
        """The irreducible and reducible loss of each cell.

        >>> import numpy as np, pointsman
        >>> router = pointsman.Router("top-class:10").fit(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[4, 1], [1, 4]]))
        >>> len(router.decompose("zero-one"))
        2
        """
        policy = self.policy(loss=loss, estimator=estimator)
        return Decomposition(policy.cells(), str(policy.task.loss), policy.task.loss.unit)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the router file atomically. The command line reads the same file."""
        self._fitted().save(Path(path))

    def to_bytes(self) -> bytes:
        """The bytes of the router file."""
        return self._fitted().to_bytes()

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Reads a router file and checks it."""
        data = Path(path).read_bytes()
        try:
            return cls.from_bytes(data)
        except PointsmanError as error:
            raise PointsmanError(f"{path}: {error}") from None

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Reads a router from the bytes of its file and checks it."""
        router = _native.Router.from_bytes(data)
        made = cls(partition=router.partition, recalibrate=router.recalibrated, classes=list(router.classes))
        return made._learned(router, list(router.features))
