"""Long calls leave the interpreter free, end on Ctrl-C, and say how far they are."""

import _thread
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from conftest import make_world

import pointsman
from pointsman import Router, _native, _progress


@pytest.fixture(scope="module")
def long() -> Any:
    return make_world(20_000, classes=4, seed=3)


def test_interrupting_ends_the_work(long: Any) -> None:
    # Python listens to interrupts unless whoever started it does not, as shells do in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    # Minutes of work, were it not interrupted.
    router = Router("forest:2000")
    threading.Timer(0.5, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        router.fit(long.probs, long.votes, features=long.features)
    signal.signal(signal.SIGINT, before)
    assert not hasattr(router, "router_")
    # What was at work has stopped: the machine is free for the next.
    assert Router("forest:2").fit(long.probs[:500], long.votes[:500]).n_rows_ == 500


def test_other_threads_run_meanwhile(long: Any) -> None:
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    Router("forest:10").fit(long.probs, long.votes)
    end = time.monotonic()
    done.set()
    thread.join()
    assert sum(start < tick < end for tick in ticks) > 3


def test_threads_share_a_policy(long: Any) -> None:
    policy = Router("top-class:10").fit(long.probs, long.votes).policy(abstain=0.5)
    wanted = policy.decide(long.probs).action_codes
    found: list[Any] = [None] * 8

    def work(i: int) -> None:
        found[i] = policy.decide(long.probs).action_codes

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((one == wanted).all() for one in found)


def test_progress_counts_steps(capsys: pytest.CaptureFixture[str]) -> None:
    world = make_world(300)
    steps: list[int] = []
    table = _native.Table(["0", "1", "2"], world.probs, votes=world.votes.astype(np.uint32))
    _native.Router.calibrate(table, "forest:20", progress=steps.append)
    assert 0 < sum(steps) <= _native.Router.steps("forest:20")
    Router("forest:20", progress=True).fit(world.probs, world.votes)
    assert "growing trees" in capsys.readouterr().err
    with _progress.bar("nothing", 3, False) as quiet:
        assert quiet is None


def test_a_failing_callback_ends_the_work() -> None:
    world = make_world(300)
    table = _native.Table(["0", "1", "2"], world.probs, votes=world.votes.astype(np.uint32))

    def fail(steps: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        _native.Router.calibrate(table, "forest:500", progress=fail)
    assert pointsman.Router("top-class:10").fit(world.probs, world.votes).n_rows_ == 300
