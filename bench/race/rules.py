"""What a careful user would write without Pointsman: calibration in pandas and in numpy, decisions in numpy."""

import numpy as np
import pandas as pd

BINS = 10


def brier_split(probs, votes):
    """Total and irreducible Brier loss of each row; the latter from pairs of labels, without bias."""
    f = probs.astype(np.float64)
    k = votes.sum(1)
    total = 1.0 - 2.0 * (votes * f).sum(1) / k + (f * f).sum(1)
    noise = (1.0 - (votes.astype(np.float64) ** 2).sum(1) / k**2) * k / (k - 1)
    return total, noise


def calibrate_pandas(probs, votes):
    """Quantiles of the confidence within each top class, and the mean losses there."""
    total, noise = brier_split(probs, votes)
    frame = pd.DataFrame({"top": probs.argmax(1), "confidence": probs.max(1), "total": total, "irreducible": noise})
    bins = frame.groupby("top")["confidence"].transform(lambda c: pd.qcut(c, BINS, labels=False, duplicates="drop"))
    return frame.assign(bin=bins).groupby(["top", "bin"])[["total", "irreducible"]].agg(["mean", "sem", "size"])


def edges_of(top, confidence, classes):
    """The inner edges of each top class: every n/BINS-th of its sorted confidences."""
    edges = []
    for c in range(classes):
        own = np.sort(confidence[top == c])
        found = np.unique(own[[i * len(own) // BINS for i in range(1, BINS)]]) if len(own) else own
        edges.append(found[found > own[:1].sum()])
    return edges


def calibrate_numpy(probs, votes):
    """The same without pandas, and with the cells of Pointsman."""
    total, noise = brier_split(probs, votes)
    rule = Rule(edges_of(probs.argmax(1), probs.max(1), probs.shape[1]))
    cell = rule.cells(probs)
    size = np.bincount(cell, minlength=rule.count)
    return rule, np.bincount(cell, total, rule.count) / size, np.bincount(cell, noise, rule.count) / size


class Rule:
    """A row's cell, found by one search: confidences of different classes are moved apart so that all edges form one list."""

    def __init__(self, edges):
        self.edges = np.concatenate([np.concatenate([[2.0 * c], 2.0 * c + own]) for c, own in enumerate(edges)])
        self.count = len(self.edges)

    def cells(self, probs):
        top = probs.argmax(1)
        confidence = np.take_along_axis(probs, top[:, None], 1)[:, 0]
        return np.searchsorted(self.edges, 2.0 * top + confidence, side="right") - 1

    def decide(self, probs, actions):
        """All rows at once."""
        return actions[self.cells(probs)]

    def decide_in_blocks(self, probs, actions, rows=16_384):
        """Blocks that stay in the cache: what a numpy user does when all rows at once are too slow."""
        out = np.empty(len(probs), actions.dtype)
        for start in range(0, len(probs), rows):
            out[start : start + rows] = actions[self.cells(probs[start : start + rows])]
        return out


def actions_at(total, irreducible, route, abstain):
    """0 predict, 1 route, 2 abstain: whatever costs least, the first of equals."""
    return np.stack([total, irreducible + route, np.full_like(total, abstain)]).argmin(0).astype(np.int16)
