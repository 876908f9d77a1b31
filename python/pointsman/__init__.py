"""Predict, route or abstain.

A :class:`Router` is calibrated once, on a classifier's probabilities and several labels per item. It estimates how much of
the loss is irreducible and how much an oracle would save. A policy adds a loss and prices, and decides queries:

>>> import numpy as np
>>> import pointsman
>>> probs = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
>>> votes = np.array([[5, 0], [2, 3], [0, 5], [1, 4]])
>>> router = pointsman.Router(partition="top-class:10").fit(probs, votes)
>>> policy = router.policy(loss="brier", routes={"expert": 0.05}, abstain=0.30)
>>> policy.decide([[0.95, 0.05], [0.82, 0.18]]).action.tolist()
['predict', 'abstain']

Array arguments may be numpy arrays, pandas and polars frames, pyarrow tables and any other object with the Arrow PyCapsule
interface. Only numpy is required; scikit-learn, pandas, polars, pyarrow, matplotlib, tqdm and httpx are imported when they are
needed.

:class:`Client` and :class:`AsyncClient` ask a running ``pointsman serve``.
"""

from typing import TYPE_CHECKING, Any

from ._compare import Comparison, compare
from ._decisions import Decisions
from ._enums import Aggregate, Estimator, Reason, Support, Ties
from ._errors import NotFitted, PointsmanError
from ._native import VERSION as __version__
from ._native import Judgement, Loss, Oracle, Task
from ._partial import Partial
from ._policy import Policy
from ._read import Arrays, read
from ._reports import Decomposition, Diagnosis, Report, decompose, diagnose
from ._router import Router
from .client import AsyncClient, Client, ServiceError, ServiceUnreachable

if TYPE_CHECKING:
    from ._classifier import RoutedClassifier, cost_scorer

__all__ = [
    "__version__",
    "Aggregate",
    "Arrays",
    "AsyncClient",
    "Client",
    "Comparison",
    "Decisions",
    "Decomposition",
    "Diagnosis",
    "Estimator",
    "Judgement",
    "Loss",
    "NotFitted",
    "Oracle",
    "Partial",
    "PointsmanError",
    "Policy",
    "Reason",
    "Report",
    "RoutedClassifier",
    "Router",
    "ServiceError",
    "ServiceUnreachable",
    "Support",
    "Task",
    "Ties",
    "compare",
    "cost_scorer",
    "decompose",
    "diagnose",
    "read",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    # These need scikit-learn, which takes a second to import and may not be installed.
    if name in {"RoutedClassifier", "cost_scorer"}:
        from . import _classifier

        return getattr(_classifier, name)
    raise AttributeError(f"module 'pointsman' has no attribute {name!r}")
