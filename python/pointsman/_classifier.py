"""A scikit-learn classifier that routes some rows to an oracle."""

import copy
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.model_selection import cross_val_predict
    from sklearn.utils import column_or_1d, get_tags, indexable
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ImportError("RoutedClassifier needs scikit-learn: pip install scikit-learn") from error

from . import _inputs, _native
from ._decisions import Decisions
from ._errors import PointsmanError, not_fitted
from ._inputs import RandomState
from ._policy import Policy
from ._router import Router

#: The name of the route.
_ROUTE = "oracle"


class RoutedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with ``predict_proba`` and an oracle that answers the routed rows.

    ``fit`` calibrates a router on out-of-fold predictions. ``predict`` returns the classifier's labels, asks the oracle about all
    routed rows in one batch, and marks the rows on which it abstains.

    Parameters
    ----------
    estimator:
        The classifier.
    oracle:
        A function of the routed rows of ``X``, or a fitted estimator with ``predict``. It returns labels, or probabilities
        in the order of ``classes_``. Without an oracle nothing is routed. ``clone`` keeps the fitted oracle.
    price:
        The price of the oracle per row, in the unit of the loss.
    kind:
        The kind of the oracle, see :class:`Oracle`. A measured oracle is asked about all rows in ``fit``.
    loss, abstain, budget, partition, recalibrate, random_state:
        As for :class:`Router` and :meth:`Router.policy`.
    cv:
        The cross-validation folds, as in scikit-learn.
    abstention:
        The value that ``predict`` returns for rows on which it abstains: by default -1 if labels are numbers, else ``"abstain"``.
        It must not be a label.

    Attributes
    ----------
    estimator_, router_, policy_, classes_:
        The classifier fitted on all rows, the router, the policy, and the sorted labels.

    Examples
    --------
    >>> import numpy as np, pointsman
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 1))
    >>> chance = 1 / (1 + np.exp(-4 * X[:, 0] ** 2 + 2))
    >>> votes = np.column_stack([5 - (ones := rng.binomial(5, chance)), ones])
    >>> y = (rng.random(600) < chance).astype(int)
    >>> routed = pointsman.RoutedClassifier(LogisticRegression(), lambda X: (X[:, 0] ** 2 > 0.5).astype(int), price=0.02)
    >>> routed.fit(X, y, votes=votes).predict(X[:3]).shape
    (3,)
    """

    def __init__(
        self,
        estimator: Any,
        oracle: Callable[[Any], Any] | Any | None = None,
        *,
        price: float = 0.05,
        kind: str | _native.Oracle = "bayes",
        loss: str | _native.Loss = "brier",
        abstain: float | None = None,
        budget: float | None = None,
        partition: str = "pooled",
        recalibrate: bool = False,
        cv: Any = 5,
        abstention: Any = None,
        random_state: RandomState = 0,
    ) -> None:
        self.estimator = estimator
        self.oracle = oracle
        self.price = price
        self.kind = kind
        self.loss = loss
        self.abstain = abstain
        self.budget = budget
        self.partition = partition
        self.recalibrate = recalibrate
        self.cv = cv
        self.abstention = abstention
        self.random_state = random_state

    def fit(self, X: Any, y: Any, votes: Any = None, sample_weight: Any = None) -> Self:
        """Fits the classifier on all rows, and the router on out-of-fold predictions.

        ``votes`` is as in :meth:`Router.fit`, with columns in the order of the sorted labels. By default each row has the one label
        ``y``. One label per row cannot separate noise from error: rows with an undetermined action are predicted.
        """
        X, y = indexable(X, y)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise PointsmanError(f"y has {len(self.classes_)} class: a classifier needs two at least")
        if self.abstain is not None and self._mark() in self.classes_.tolist():
            raise PointsmanError(f"{self._mark()!r} marks abstentions and is a class too: give another abstention=…")
        if votes is None:
            votes = np.eye(len(self.classes_), dtype=np.uint32)[codes]
            if self.oracle is not None:
                warnings.warn(
                    "one label per row cannot separate noise from error, so that some rows stay undetermined and are predicted:"
                    " give votes=… with several labels for some rows",
                    stacklevel=2,
                )
        if hasattr(self.oracle, "fit") and not callable(self.oracle):
            check_is_fitted(self.oracle)
        weighted: dict[str, Any] = {} if sample_weight is None else {"sample_weight": sample_weight}
        held_out = cross_val_predict(
            clone(self.estimator), X, y, cv=self.cv, method="predict_proba", params=weighted or None
        )
        self.estimator_ = clone(self.estimator).fit(X, y, **weighted)
        oracles = None
        if self._kind() == _native.Oracle.measured() and self.oracle is not None:
            oracles = {_ROUTE: self._answers(self.oracle, X)}
        router = Router(self.partition, self.recalibrate, self.random_state, classes=_names(self.classes_))
        if sample_weight is not None:
            # Routers require positive weights, so rows of weight zero are left out.
            sample_weight = np.asarray(sample_weight, dtype=np.float64)
            kept = np.flatnonzero(sample_weight != 0)
            held_out, votes, sample_weight = held_out[kept], _rows(votes, kept), sample_weight[kept]
            oracles = oracles and {name: answers[kept] for name, answers in oracles.items()}
        self.router_ = router.fit(held_out, votes, oracles=oracles, sample_weight=sample_weight)
        self.policy_ = self._policy(self.router_)
        # The classifier has no such attributes if X is not a matrix, for example a list of texts.
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _kind(self) -> _native.Oracle:
        return self.kind if isinstance(self.kind, _native.Oracle) else _native.Oracle(self.kind)

    def _policy(self, router: Router) -> Policy:
        routes: Mapping[str, Any] = {} if self.oracle is None else {_ROUTE: (self._kind(), self.price)}
        return router.policy(loss=self.loss, routes=routes, abstain=self.abstain, budget=self.budget)

    def __sklearn_clone__(self) -> Self:
        # The oracle is not refitted by `fit`, so it must stay fitted.
        parameters = self.get_params(deep=False)
        made = type(self)(**{
            name: value if name == "oracle" else clone(value, safe=False) for name, value in parameters.items()
        })
        # The metadata requests that `set_fit_request` and similar methods stored.
        if hasattr(self, "_metadata_request"):
            made._metadata_request = copy.deepcopy(self._metadata_request)
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "policy_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = own.sparse, own.allow_nan
        return tags

    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """The classifier's probabilities."""
        if not hasattr(self, "policy_"):
            not_fitted(self)
        found: npt.NDArray[Any] = self.estimator_.predict_proba(X)
        return found

    def decide(self, X: Any) -> Decisions:
        """Decides each row, without asking the oracle."""
        return self.policy_.decide(self.predict_proba(X)) if hasattr(self, "policy_") else not_fitted(self)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The label of each row: the oracle's for routed rows, ``abstention`` for abstentions, else the classifier's."""
        decisions = self.decide(X)
        labels = self.classes_[decisions.label_codes]
        routed = np.flatnonzero(self._routed(decisions))
        if len(routed) > 0:
            answers = self._answers(self.oracle, _rows(X, routed))
            labels[routed] = self.classes_[answers.argmax(axis=1)]
        declined = np.zeros(len(labels), bool) if self.abstain is None else decisions.mask("abstain")
        if declined.any():
            mark = self._mark()
            kind = object if isinstance(mark, str) else np.result_type(labels.dtype, np.min_scalar_type(mark))
            labels = labels.astype(kind)
            labels[declined] = mark
        return labels

    def _routed(self, decisions: Decisions) -> npt.NDArray[np.bool_]:
        return np.zeros(len(decisions), bool) if self.oracle is None else decisions.mask(f"route:{_ROUTE}")

    def _mark(self) -> Any:
        if self.abstention is not None:
            return self.abstention
        return -1 if self.classes_.dtype.kind in "iubf" else "abstain"

    def _answers(self, oracle: Any, X: Any) -> npt.NDArray[np.float64]:
        """The oracle's answers as distributions over the classes."""
        given = np.asarray(oracle(X) if callable(oracle) else oracle.predict(X))
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if given.ndim not in (1, 2):
            raise PointsmanError("the oracle gave neither a label nor probabilities for each row")
        if len(given) != rows:
            raise PointsmanError(f"the oracle gave {len(given)} answers to {rows} rows")
        if given.ndim == 2:
            if given.shape[1] != len(self.classes_):
                raise PointsmanError(f"the oracle gave {given.shape[1]} probabilities for {len(self.classes_)} classes")
            # A table checks them like all predictions.
            answers = _inputs.floats(given, "the oracle's answers").astype(np.float64)
            try:
                _native.Table(_names(self.classes_), answers)
            except PointsmanError as error:
                raise PointsmanError(f"the oracle's answers: {error}", row=error.row, column=error.column) from None
            return answers
        places = {label: place for place, label in enumerate(self.classes_.tolist())}
        answers = np.zeros((rows, len(self.classes_)))
        for row, label in enumerate(given.tolist()):
            if label not in places:
                raise PointsmanError(f"row {row}: the oracle answered {label!r}, which is no class", row=row)
            answers[row, places[label]] = 1.0
        return answers

    def costs(self, X: Any, y: Any) -> npt.NDArray[np.float64]:
        """The realised cost of each row given its label: the loss of the answer plus the price of the action."""
        probs = self.predict_proba(X)
        decisions = self.policy_.decide(probs)
        answers = np.zeros((len(decisions), len(self.classes_)))
        routed = np.flatnonzero(self._routed(decisions))
        if len(routed) > 0:
            answers[routed] = self._answers(self.oracle, _rows(X, routed))
        labels = column_or_1d(y)
        if len(labels) != len(decisions):
            raise PointsmanError(f"y: {len(labels)} labels for {len(decisions)} rows")
        codes = np.searchsorted(self.classes_, labels)
        known = np.isin(labels, self.classes_)
        if not known.all():
            row = int(np.flatnonzero(~known)[0])
            raise PointsmanError(f"row {row}: {labels.tolist()[row]!r} is no class of the classifier", row=row)
        native = self.policy_._policy
        return native.realised(decisions._decisions, _inputs.floats(probs, "probs"), codes.astype(np.uint32), answers)


def _rows(X: Any, rows: npt.NDArray[np.intp]) -> Any:
    """Some rows of an array, a sparse matrix, a frame or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "shape"):
        return X[rows]
    return [X[row] for row in rows.tolist()]


def _names(labels: npt.NDArray[Any]) -> list[str]:
    """Labels as names of classes; whole floats are written like integers."""
    return [str(int(label)) if isinstance(label, float) and label.is_integer() else str(label) for label in labels]


def cost_scorer(estimator: Any, X: Any, y: Any) -> float:
    """A scorer for scikit-learn: minus the mean cost of a :class:`RoutedClassifier`, which may end a pipeline.

    >>> import numpy as np, pointsman
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> routed = pointsman.RoutedClassifier(LogisticRegression(), abstain=0.2)
    >>> bool((cross_val_score(routed, X, y, scoring=pointsman.cost_scorer, cv=3) <= 0).all())
    True
    """
    while not hasattr(estimator, "costs"):
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
            estimator = estimator[-1]
        else:
            raise PointsmanError(f"cost_scorer scores a RoutedClassifier, not {type(estimator).__name__}")
    return -float(np.mean(estimator.costs(X, y)))
