"""Worlds whose truth is known, and the command line beside them."""

import os
import subprocess
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pytest
from serving import Service

from pointsman import Client

REPOSITORY = Path(__file__).resolve().parents[2]


def skip(reason: str, is_data: bool = False) -> NoReturn:
    """Skips a test. With `CI=true` it fails instead, unless data sets are missing, which only the machine's owner can provide."""
    if os.environ.get("CI") == "true" and not is_data:
        pytest.fail(f"nothing is skipped with CI=true: {reason}")
    warnings.warn(f"SKIPPED: {reason}", stacklevel=2)
    pytest.skip(f"SKIPPED: {reason}")


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
def binary() -> Path:
    """The program: the one that `POINTSMAN_TEST_BIN` names, or a debug build."""
    default = REPOSITORY / "target" / "debug" / "pointsman"
    binary = Path(os.environ.get("POINTSMAN_TEST_BIN", default))
    if not binary.exists():
        skip(f"{binary} is missing; build it: cargo build -p pointsman-cli")
    return binary


@pytest.fixture(scope="session")
def command(binary: Path) -> Callable[..., str]:
    """Runs the command line and gives its standard output."""

    def run(*arguments: object, folder: Path | None = None) -> str:
        line = [str(binary), *map(str, arguments)]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def service(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that tests share; each uses a deployment of its own."""
    with Service(binary, tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="session")
def client(service: Service) -> Iterator[Client]:
    """A client of the shared service."""
    with Client(service.url) as client:
        yield client


def real_data(file: str) -> Path:
    """A file of the real data; `POINTSMAN_TEST_DATA=none` declares that there is none."""
    folder = Path(os.environ.get("POINTSMAN_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (folder / file).exists():
        reason = f"{folder / file} is missing; set POINTSMAN_TEST_DATA to the folder of the data sets"
        skip(reason, is_data=True)
    return folder / file
