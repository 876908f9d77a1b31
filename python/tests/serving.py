"""The service as a process, for tests of its clients."""

import signal
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pointsman import Client, Router, Task

if TYPE_CHECKING:
    from conftest import World

CLASSES = ["cat", "dog", "owl"]
ROUTES: dict[str, Any] = {"expert": 0.07, "jury": ("panel:m=3,aggregate=mean", 0.05)}
TASK = Task("brier", ROUTES, abstain=0.5)


class Service:
    """A running `pointsman serve` with its store in a folder."""

    def __init__(self, binary: Path, folder: Path, settings: str = "") -> None:
        self._binary = binary
        self._folder = folder
        self._address = "127.0.0.1:0"
        (folder / "service.toml").write_text(settings, encoding="utf-8")
        self.start()

    def start(self) -> None:
        """Starts it, on the same port as before."""
        line = [str(self._binary), "serve", "--config", "service.toml", "--store", f"sqlite:{self._folder}/pointsman.db", "--listen", self._address]
        log = (self._folder / "log.txt").open("a", encoding="utf-8")
        self._process = subprocess.Popen(line, cwd=self._folder, stdout=subprocess.PIPE, stderr=log, text=True)
        log.close()
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        assert "http://" in first, (self._folder / "log.txt").read_text()
        self.url = first.split("http://")[1].split(",")[0].split()[0]
        self._address, self.url = self.url, f"http://{self.url}"
        # The rest is read, so that the service never waits for a reader.
        threading.Thread(target=self._process.stdout.read, daemon=True).start()

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends it and gives its exit code."""
        self._process.send_signal(how)
        return self._process.wait(timeout=40)

    def kill(self) -> None:
        """Ends it without warning."""
        self.end(signal.SIGKILL)

    @property
    def log(self) -> str:
        """What it wrote to standard error."""
        return (self._folder / "log.txt").read_text(encoding="utf-8")

    def add_key(self, *arguments: str) -> str:
        """Makes a key."""
        line = [str(self._binary), "-q", "keys", "add", *arguments, "--store", f"sqlite:{self._folder}/pointsman.db"]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        return next(word for word in done.stdout.split() if word.startswith("pk_"))

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._process.poll() is None:
            self.kill()


def named(world: "World") -> dict[str, npt.NDArray[np.float64]]:
    """The features of a world by name."""
    return {"length": world.features[:, 0], "hour": world.features[:, 1]}


def fitted(partition: str, world: "World") -> Router:
    """A router on a world."""
    return Router(partition, classes=CLASSES, random_state=3).fit(world.probs, world.votes, features=named(world))


def deploy(client: Client, name: str, source: Any, task: Task | None = None) -> str:
    """Makes a deployment with one active version."""
    client.put_deployment(name)
    client.add_version(name, source, task=task, activate=True)
    return name
