"""The service as a process, for tests of its clients."""

import signal
import subprocess
import threading
from pathlib import Path
from typing import Any


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
