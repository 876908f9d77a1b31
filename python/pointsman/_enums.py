"""Enumerations of names. Plain strings are accepted too."""

from enum import StrEnum


class Estimator(StrEnum):
    """Estimators of the irreducible loss; ``AUTO`` chooses one of the others for each cell."""

    AUTO = "auto"
    SHRINK = "shrink"
    PLUGIN = "plugin"
    NPMLE = "npmle"
    DIRICHLET = "dirichlet"


class Ties(StrEnum):
    """Rules that choose between actions of equal cost."""

    FRUGAL = "frugal"
    PAPER = "paper"


class Aggregate(StrEnum):
    """Rules that combine the labels of a panel into one answer."""

    MEAN = "mean"
    PLURALITY = "plurality"
    LAPLACE = "laplace"


class Reason(StrEnum):
    """Reasons for an action."""

    EASY = "easy"
    """Predicting costs no more than the cheapest other action does on average."""
    HARD = "hard"
    """The query is routed, or most of its loss is reducible."""
    AMBIGUOUS = "ambiguous"
    """Most of the loss is irreducible: the labels disagree."""
    SPARSE = "sparse"
    """There are too few calibration rows or labels to give another reason."""
    DEGRADED = "degraded"
    """A cap, a limit on routing or an unavailable route forced the next-best action."""


class Support(StrEnum):
    """Whether a cell has enough calibration rows."""

    ENOUGH = "enough"
    SPARSE = "sparse"
    EMPTY = "empty"
