"""Proper losses in numpy, for the peers: what they are trained on and what every method is judged by."""

import numpy as np

FLOOR = 1e-6
LOSSES = ["brier", "cross-entropy", "spherical", "zero-one", "asymmetric:2"]


def costs(loss, f):
    """What each class costs if it is true and `f` was predicted, one row a prediction."""
    if loss == "brier":
        return 1.0 - 2.0 * f + (f * f).sum(1, keepdims=True)
    if loss == "cross-entropy":
        return -np.log(_project(f))
    if loss == "spherical":
        return 1.0 - f / np.sqrt((f * f).sum(1, keepdims=True))
    if loss == "zero-one":
        return _of_acts(1.0 - np.eye(f.shape[1]), f)
    if loss.startswith("asymmetric:"):
        matrix = 1.0 - np.eye(f.shape[1])
        matrix[0] *= float(loss.split(":")[1])
        return _of_acts(matrix, f)
    raise ValueError(loss)


def expected(loss, truth, f):
    return (truth * costs(loss, f)).sum(1)


def reducible(loss, truth, f):
    """What knowing the truth would save."""
    return expected(loss, truth, f) - expected(loss, truth, truth)


def _of_acts(matrix, f):
    return matrix[(f @ matrix.T).argmin(1)]


def _project(f):
    """The prediction with no class below the floor: the rest is scaled down, until none falls below."""
    below = np.zeros(f.shape, bool)
    while True:
        free = np.where(below, 0.0, f).sum(1, keepdims=True)
        scale = (1.0 - below.sum(1, keepdims=True) * FLOOR) / free
        more = below | (f * scale < FLOOR)
        if (more == below).all():
            return np.where(below, FLOOR, f * scale)
        below = more


def gain(scores, saved):
    """The normalised gain of routing rows in order of a score: 0 is a random order, 1 the best one.

    Rows of equal scores save what they save on average; areas are trapezoids over the n + 1 shares routed.
    """

    def area(scores):
        order = np.argsort(-scores, kind="stable")
        _, group = np.unique(-scores[order], return_inverse=True)
        mean = np.bincount(group, saved[order]) / np.bincount(group)
        curve = np.concatenate([[0.0], np.cumsum(mean[group])])
        return (curve[1:] + curve[:-1]).mean()

    random, best = area(np.zeros(len(saved))), area(saved)
    return float((area(scores) - random) / (best - random))
