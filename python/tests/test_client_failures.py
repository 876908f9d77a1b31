"""What the clients do when the service refuses, fails, is busy or goes away."""

import asyncio
import json
import logging
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import World
from serving import Service

from pointsman import AsyncClient, Client, PointsmanError, Router, ServiceError, ServiceUnreachable, Task

CANARY = "pk_canary_d41d8cd98f00b204e9800998ecf8427e"
TASK = Task("brier", {"expert": 0.05}, abstain=0.4)
DECISION = {
    **{"decision_id": "x", "version": 1, "action": "predict", "label": "a", "cell": 0, "support": "enough", "irreducible": 0.1},
    **{"reducible": 0.1, "costs": {"predict": 0.2}, "margin": None, "reason": "easy", "audited": False},
}
VERSION = {"version": 1, "active": True, "router": None, "policy": "0" * 64, "task": "", "created": 0}
DEPLOYMENT: dict[str, Any] = {"name": "d", "mode": "active", "active": 1} | dict.fromkeys(
    ["versions", "classes", "features", "actions", "unavailable"], []
)
WHAT_IF: dict[str, Any] = {"decisions": 0, "changed": 0, "matrix": [], "shares_before": {}, "shares": {}, "cells": []} | {
    "cost": {"expected": None, "before": None, "difference": None, "difference_standard_error": None, "not_compared": 0}
}
EVERYTHING = DECISION | VERSION | DEPLOYMENT | WHAT_IF | {"sha256": "0" * 64, "kind": "policy", "next": None}


class Flaky:
    """A server that fails a given number of times, and keeps the requests it gets."""

    def __init__(self) -> None:
        self.failures: list[int | None] = []
        self.headers: dict[str, str] = {}
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.times: list[float] = []
        self.answer: bytes = json.dumps(EVERYTHING).encode()
        flaky = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                flaky.times.append(time.monotonic())
                flaky.requests.append((self.command, self.path, dict(self.headers), body))
                status = flaky.failures.pop(0) if flaky.failures else 200
                if status is None:
                    # The connection ends without an answer.
                    self.close_connection = True
                    return
                failed = json.dumps({"type": "urn:pointsman:unavailable", "title": "Busy", "status": status, "detail": "later"})
                content = flaky.answer if status == 200 else failed.encode()
                self.send_response(status)
                for name, value in flaky.headers.items() if status != 200 else []:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_DELETE = answer

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def flaky() -> Iterator[Flaky]:
    server = Flaky()
    yield server
    server.close()


REPEATED: dict[str, Callable[[Client], object]] = {
    "deployment": lambda client: client.deployment("d"),
    "own id": lambda client: client.decide("d", [0.5, 0.5], id="mine"),
    "generated id": lambda client: client.decide("d", [0.5, 0.5]),
    "dry run": lambda client: client.decide("d", [0.5, 0.5], dry_run=True),
    "put deployment": lambda client: client.put_deployment("d", mode="shadow"),
    "set oracle": lambda client: client.set_oracle("d", "expert", available=True),
}
SENT_ONCE: dict[str, Callable[[Client], object]] = {
    "activate": lambda client: client.activate("d", 1),
    "roll back": lambda client: client.roll_back("d"),
    "upload": lambda client: client.upload(b"file"),
    "what-if": lambda client: client.what_if("d", version=1),
    "delete": lambda client: client.delete_deployment("d"),
}


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("failures", [[503, None], [429, 502]])
def test_what_may_be_repeated_is_sent_again(flaky: Flaky, name: str, failures: list[int | None]) -> None:
    flaky.failures = list(failures)
    with Client(flaky.url) as client:
        REPEATED[name](client)
    assert len(flaky.requests) == 3
    assert len({body for *_, body in flaky.requests}) == 1, "the same request, with the same id"
    assert len({headers["X-Request-Id"] for _, _, headers, _ in flaky.requests}) == 1


@pytest.mark.parametrize("name", SENT_ONCE)
@pytest.mark.parametrize("failure", [503, 429, None])
def test_everything_else_is_sent_once(flaky: Flaky, name: str, failure: int | None) -> None:
    flaky.failures = [failure] * 9
    with Client(flaky.url) as client, pytest.raises(ServiceError) as caught:
        SENT_ONCE[name](client)
    assert len(flaky.requests) == 1 and caught.value.status == failure
    assert isinstance(caught.value, ServiceUnreachable) == (failure is None)


def test_decisions_without_an_id_are_sent_once(flaky: Flaky) -> None:
    with Client(flaky.url, generate_ids=False) as client:
        for ask in (lambda: client.decide("d", [0.5, 0.5]), lambda: client.decide_batch("d", [[0.5, 0.5]])):
            flaky.failures, flaky.requests = [503] * 9, []
            with pytest.raises(ServiceError, match="503 Busy: later"):
                ask()
            assert len(flaky.requests) == 1
        assert b'"id"' not in flaky.requests[0][3]


def test_both_clients_repeat_alike(flaky: Flaky) -> None:
    async def ask() -> None:
        async with AsyncClient(flaky.url) as client:
            flaky.failures = [503, None]
            await client.decide("d", [0.5, 0.5])
            assert len(flaky.requests) == 3
            flaky.failures, flaky.requests = [503, None], []
            with pytest.raises(ServiceError):
                await client.activate("d", 1)
            assert len(flaky.requests) == 1

    asyncio.run(ask())


@pytest.mark.parametrize("status", [400, 404, 408, 422, 500])
def test_other_statuses_are_not_repeated(flaky: Flaky, status: int) -> None:
    flaky.failures = [status] * 9
    with Client(flaky.url) as client, pytest.raises(ServiceError) as caught:
        client.deployments()
    assert len(flaky.requests) == 1 and caught.value.status == status


def test_waits_are_bounded_and_as_long_as_asked(flaky: Flaky) -> None:
    flaky.failures, flaky.headers = [503], {"Retry-After": "1"}
    with Client(flaky.url) as client:
        client.deployment("d")
        assert flaky.times[1] - flaky.times[0] >= 1.0
        # As a date, which is a whole number of seconds.
        flaky.failures, flaky.times = [503], []
        flaky.headers = {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)}
        client.deployment("d")
        assert flaky.times[1] - flaky.times[0] >= 0.9
        # A service that asks for a long wait is not asked again.
        flaky.failures, flaky.requests, flaky.headers = [503], [], {"Retry-After": "60"}
        with pytest.raises(ServiceError) as caught:
            client.deployment("d")
        assert len(flaky.requests) == 1 and caught.value.retry_after == 60.0
    flaky.headers = {}
    for retries in (3, 0):
        flaky.failures, flaky.requests = [503] * 9, []
        with Client(flaky.url, retries=retries) as client, pytest.raises(ServiceError, match="503"):
            client.deployment("d")
        assert len(flaky.requests) == retries + 1
    flaky.failures, start = [503] * 1000, time.monotonic()
    with Client(flaky.url, retries=1000, timeout=1.0) as client, pytest.raises(ServiceError, match="503"):
        client.deployment("d")
    assert time.monotonic() - start < 3.0 and len(flaky.failures) > 900


def test_answers_that_are_not_of_the_service_are_named(flaky: Flaky) -> None:
    with Client(flaky.url, retries=0) as client:
        for answer in (b"<html>", b"[]", b'{"name": "d"}', b'{"deployments": 3}'):
            flaky.answer = answer
            for ask in (client.deployments, lambda: client.deployment("d"), lambda: client.decide_batch("d", [[0.5, 0.5]])):
                with pytest.raises(ServiceError, match="is this the address of `pointsman serve`"):
                    ask()
        flaky.failures, flaky.headers = [307], {"Location": "http://127.0.0.1:1/elsewhere"}
        with pytest.raises(ServiceError) as caught:
            client.deployments()
        assert caught.value.status == 307, "redirects are not followed: the key is for this address"


def test_a_service_that_does_not_answer_in_time(flaky: Flaky) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        start = time.monotonic()
        with Client(url, timeout=0.5) as client, pytest.raises(ServiceUnreachable, match="timed out") as caught:
            client.deployments()
        assert time.monotonic() - start < 3 and caught.value.status is None
        with Client(url, timeout=0.5) as client, pytest.raises(ServiceUnreachable, match="nothing says whether"):
            client.activate("d", 1)


def test_errors_have_the_fields_of_the_problem_and_can_be_pickled(service: Service) -> None:
    with Client(service.url) as client:
        client.put_deployment("errors")
        with pytest.raises(ServiceError) as caught:
            client.put_deployment("errors", mode="half")
        error = caught.value
        assert (error.status, error.type, error.pointer) == (422, "urn:pointsman:invalid", "/mode")
        assert error.title == "A value cannot be used" and "half" in error.detail and error.request_id
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is ServiceError and str(again) == str(error) and again.__dict__ == error.__dict__
        with pytest.raises(ServiceError) as missing:
            client.decide("nobody at all/..", [0.5, 0.5])
        assert missing.value.status == 404 and "nobody at all/.." in str(missing.value)
        for name in ["", ".", ".."]:
            with pytest.raises(PointsmanError, match="is not a name"):
                client.deployment(name)
    with Client("http://127.0.0.1:9", retries=1) as nobody, pytest.raises(ServiceUnreachable) as unreachable:
        nobody.deployments()
    again = pickle.loads(pickle.dumps(unreachable.value))
    assert type(again) is ServiceUnreachable and again.__dict__ == unreachable.value.__dict__
    assert "127.0.0.1:9" in str(again)


def test_the_key_is_never_shown(flaky: Flaky, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []

    def fail(make: Callable[[], Client], ask: Callable[[Client], object]) -> None:
        try:
            with make() as client:
                shown.append(repr(client))
                shown.append(repr(client.__dict__))
                ask(client)
        except (ServiceError, PointsmanError, TypeError) as error:
            shown.append("".join(traceback.format_exception(error)))
            shown.append(repr(error.__dict__))
            shown.append(repr(pickle.dumps(error)))
        else:
            raise AssertionError("it does not fail")

    flaky.failures = [503, 401, None, 403]
    flaky.headers = {"Retry-After": "60"}
    for _ in range(2):
        fail(lambda: Client(flaky.url, CANARY), lambda client: client.deployments())
    fail(lambda: Client(flaky.url, f" {CANARY}\n", retries=0), lambda client: client.activate("d", 1))
    fail(lambda: Client("http://127.0.0.1:9", CANARY, retries=0), lambda client: client.deployments())
    fail(lambda: Client(flaky.url, CANARY), lambda client: pickle.dumps(client))
    for key in (f"{CANARY}\r\nX:y", f"{CANARY} {CANARY}", f"{CANARY}é"):
        fail(lambda: Client(flaky.url, key), lambda client: client.deployments())
    for address in ("127.0.0.1:9", "127.0.0.1:x"):
        fail(lambda: Client(f"http://user:{CANARY}@{address}"), lambda client: client.deployments())
    assert CANARY in repr(flaky.requests), "it was sent"
    assert flaky.requests[2][2]["Authorization"] == f"Bearer {CANARY}", "without the surrounding space"
    secret = CANARY.split("_")[2]
    assert len(shown) > 25 and not any(secret in text for text in shown)
    assert caplog.records and secret not in caplog.text


@pytest.mark.parametrize("url", ["127.0.0.1:7070", "ftp://host", "http://", "http://host:x", "http://host/?q=1"])
def test_addresses_are_checked(url: str) -> None:
    with pytest.raises(PointsmanError, match="give one such as http://127.0.0.1:7070"):
        Client(url)


@pytest.mark.parametrize("settings", [{"timeout": 0}, {"timeout": float("nan")}, {"retries": -1}, {"key": " "}])
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(PointsmanError, match=next(iter(settings))):
        AsyncClient("http://127.0.0.1:7070", **settings)


def test_missing_libraries_are_named() -> None:
    code = """
import sys
sys.modules["httpx"] = sys.modules["pyarrow"] = None
import pointsman
for make in (pointsman.Client, pointsman.AsyncClient):
    try:
        make("http://127.0.0.1:7070")
    except pointsman.PointsmanError as error:
        assert "pip install 'pointsman[client]'" in str(error), error
    else:
        raise AssertionError
del sys.modules["httpx"]
try:
    pointsman.Client("http://127.0.0.1:7070").decide_batch("d", [[0.5, 0.5]])
except pointsman.PointsmanError as error:
    assert "batches and tables need pyarrow" in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def policy_of(world: World) -> Any:
    return Router("top-class:10").fit(world.probs, world.votes).policy(task=TASK)


def test_keys_have_scopes_and_rates(binary: Path, tmp_path: Path, world: World) -> None:
    with Service(binary, tmp_path) as service:
        with Client(service.url) as free:
            free.put_deployment("d")
            free.add_version("d", policy_of(world), activate=True)
        decide, slow = service.add_key("caller", "--scope", "decide"), service.add_key("slow", "--scope", "read", "--rate", "1")
        service.end()
        service.start()
        with Client(service.url) as nobody, pytest.raises(ServiceError) as caught:
            nobody.deployments()
        assert (caught.value.status, caught.value.type) == (401, "urn:pointsman:unauthorized")
        with Client(service.url, decide) as client:
            assert client.decide("d", [0.2, 0.3, 0.5]).version == 1
            with pytest.raises(ServiceError, match="scope") as forbidden:
                client.deployments()
            assert forbidden.value.status == 403
        with Client(service.url, slow, retries=0) as client, pytest.raises(ServiceError) as limited:
            for _ in range(20):
                client.deployments()
        assert limited.value.status == 429 and limited.value.retry_after == 1.0
        with Client(service.url, slow) as client:
            assert [len(client.deployments()) for _ in range(3)] == [1, 1, 1]
        assert service.end() == 0
        assert decide not in service.log and slow not in service.log


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "stopped"])
def test_a_restart_loses_and_doubles_nothing(binary: Path, tmp_path: Path, world: World, is_killed: bool) -> None:
    policy = policy_of(world)
    wanted = policy.decide(world.probs).action
    with Service(binary, tmp_path) as service, Client(service.url) as client:
        client.put_deployment("d")
        client.add_version("d", policy, activate=True)
        stop = threading.Event()

        def ask(caller: int) -> dict[str, str]:
            answers = {}
            while not stop.is_set():
                row = len(answers) % len(world)
                found = client.decide("d", world.probs[row])
                assert found.action == wanted[row]
                answers[str(found.id)] = str(found.decision_id)
            return answers

        with ThreadPoolExecutor(4) as callers:
            asked = [callers.submit(ask, caller) for caller in range(4)]
            for _ in range(3):
                time.sleep(0.4)
                service.kill() if is_killed else service.end()
                service.start()
            time.sleep(0.4)
            stop.set()
            answered = {key: value for one in asked for key, value in one.result().items()}
        logged = [(one.id, one.decision_id) for one in client.decisions("d")]
        assert len(answered) > 100
        # A decision may be logged whose answer was lost; its repetition was answered with the same decision.
        assert sorted(logged) == sorted(answered.items())
