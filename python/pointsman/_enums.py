"""Names that have a fixed set of values; plain strings are as good."""

from enum import StrEnum


class Estimator(StrEnum):
    """How the irreducible loss is estimated; ``AUTO`` takes the best of the others for each cell."""

    AUTO = "auto"
    SHRINK = "shrink"
    PLUGIN = "plugin"
    NPMLE = "npmle"
    DIRICHLET = "dirichlet"


class Ties(StrEnum):
    """Which action wins when costs are equal."""

    FRUGAL = "frugal"
    PAPER = "paper"


class Aggregate(StrEnum):
    """What the labels of a panel become."""

    MEAN = "mean"
    PLURALITY = "plurality"
    LAPLACE = "laplace"


class Reason(StrEnum):
    """Why a query gets its action."""

    EASY = "easy"
    """The model is good enough."""
    HARD = "hard"
    """An oracle would help."""
    AMBIGUOUS = "ambiguous"
    """Nobody can know: the labels themselves disagree."""
    SPARSE = "sparse"
    """There is too little support to say."""
    DEGRADED = "degraded"
    """A cap or an unavailable route forced the next-best action."""


class Support(StrEnum):
    """How many calibration rows stand behind a cell."""

    ENOUGH = "enough"
    SPARSE = "sparse"
    EMPTY = "empty"
