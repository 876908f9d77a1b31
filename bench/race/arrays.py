"""The arrays of the race: a world of any size, and the shared data sets."""

import os
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ["cifar10h", "cifar10h-overconfident", "snli", "chaosnli"]


def predictions(rows, classes, seed, dtype=np.float32):
    """Predictions of a model that is sure of some inputs and not of others; a million rows at a time, to spare memory."""
    rng = np.random.default_rng(seed)
    out = np.empty((rows, classes), dtype)
    for start in range(0, rows, 1_000_000):
        part = out[start : start + 1_000_000]
        sharp = rng.uniform(0.5, 6.0, (len(part), 1)).astype(np.float32)
        raw = np.exp(sharp * rng.standard_normal(part.shape, dtype=np.float32))
        part[:] = raw / raw.sum(1, keepdims=True)
    return out


def votes_of(probs, k, seed):
    """`k` labels per row: of some rows everybody says the same, of others opinions differ more than the model thinks."""
    rng = np.random.default_rng(seed)
    sharp = np.where(rng.random((len(probs), 1)) < 0.7, 4.0, 0.6)
    truth = (probs.astype(np.float64) + 1e-9) ** sharp
    return rng.multinomial(k, truth / truth.sum(1, keepdims=True)).astype(np.uint32)


def featured(rows, seed, classes=3, features=20, k=5):
    """Predictions, votes and features, some of which tell how noisy the labels are."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, features))

    def weigh(sharp):
        raw = np.exp(sharp * (x[:, :classes] + 0.3 * x[:, 1 : classes + 1]))
        return raw / raw.sum(1, keepdims=True)

    sharp = np.where(x[:, 7] > 0.5, 8.0, 1.0 + 4.0 * x[:, 8])[:, None]
    return weigh(3.0), rng.multinomial(k, weigh(sharp)).astype(np.uint32), x


def folder():
    """Where the shared data sets are, or None."""
    path = pathlib.Path(os.environ.get("POINTSMAN_TEST_DATA") or ROOT.parent / "shared" / "data")
    return path if all((path / f"{name}.npz").is_file() for name in DATA) else None


def load(name):
    """Calibration and test half of a data set: predictions, votes, features (or None), the single label of each row."""
    with np.load(folder() / f"{name}.npz") as file:
        probs = file["probs"].astype(np.float64)
        probs /= probs.sum(1, keepdims=True)
        features = file["features"].astype(np.float64) if "features" in file else None
        halves = []
        for half in (0, 1):
            rows = file["split"] == half
            mine = None if features is None else features[rows].reshape(rows.sum(), -1)
            halves.append((probs[rows], file["votes"][rows].astype(np.uint32), mine, file["labels"][rows]))
    return halves
