"""Worlds whose truth is known, and the command line beside them."""

import os
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass
class World:
    """Predictions, label counts and a feature that tells more than the prediction."""

    probs: npt.NDArray[np.float64]
    votes: npt.NDArray[np.int64]
    features: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.probs)


def make_world(rows: int, classes: int = 3, labels: int = 5, seed: int = 0) -> World:
    """The classifier is right where the first feature is small, and overconfident elsewhere."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(classes, 0.7), rows)
    features = rng.random((rows, 2))
    flat = np.full((rows, classes), 1 / classes)
    blend = features[:, :1] * 0.8
    votes = rng.multinomial(labels, probs * (1 - blend) + flat * blend)
    return World(probs, votes, features)


@pytest.fixture(scope="session")
def world() -> World:
    return make_world(600, seed=1)


@pytest.fixture(scope="session")
def queries() -> World:
    return make_world(400, seed=2)


@pytest.fixture(scope="session")
def command() -> Callable[..., str]:
    """Runs the command line and gives its standard output."""
    default = REPOSITORY / "target" / "debug" / "pointsman"
    binary = Path(os.environ.get("POINTSMAN_BIN", default))
    if not binary.exists():
        warnings.warn(f"SKIPPED: {binary} is not there; build it: cargo build -p pointsman-cli", stacklevel=1)
        pytest.skip(f"SKIPPED: {binary} is not there")

    def run(*arguments: object, folder: Path | None = None) -> str:
        line = [str(binary), *map(str, arguments)]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def real_data(file: str) -> Path:
    """A file of the real data; skips loudly where it is not."""
    folder = Path(os.environ.get("POINTSMAN_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (folder / file).exists():
        warnings.warn(f"SKIPPED: {folder / file} is not here; set POINTSMAN_DATA", stacklevel=2)
        pytest.skip(f"SKIPPED: {folder / file} is not here; set POINTSMAN_DATA to the folder with the real data")
    return folder / file
