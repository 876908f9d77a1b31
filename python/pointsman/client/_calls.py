"""The requests to the service, and how their answers are read. Nothing here connects to anything, so that both clients share it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

from .. import _native
from .._errors import PointsmanError
from .._inputs import MatrixLike
from .._policy import Policy
from .._router import Router
from ._answers import Decision, Deployment, LoggedDecision, StoredFile, Version, WhatIf, read_answer
from ._batch import BatchDecisions
from ._errors import ServiceError
from ._queries import Numbers, from_parquet, from_stream, new_id, new_ids, numbers, query_table, to_json, to_stream

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

#: A time: a ``datetime`` with a time zone, a text such as ``2026-01-31T12:00:00Z``, or seconds or microseconds since 1970.
Time: TypeAlias = datetime | str | int
#: A router or a policy: an object, the bytes or the path of its file, or a file that the service has already.
Source: TypeAlias = Router | Policy | bytes | str | PathLike[str] | StoredFile

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"

#: The header of the request's id.
REQUEST_ID = "X-Request-Id"


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request: what is sent, whether it may be sent again, and how its answer is read."""

    method: str
    path: str
    #: Reads the answer; raises ``ValueError`` or ``KeyError`` if it is not one.
    read: Callable[[httpx.Response], T]
    params: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    content_type: str = JSON
    accept: str = "*/*"
    #: Whether sending it twice does no more than sending it once.
    is_repeatable: bool = False

    def headers(self, request_id: str) -> dict[str, str]:
        """The headers of the request, without the key."""
        headers = {REQUEST_ID: request_id, "Accept": self.accept}
        return headers if self.content is None else headers | {"Content-Type": self.content_type}


def receive(call: Call[T], response: httpx.Response, request_id: str) -> T:
    """The answer to a call. Raises :class:`ServiceError` if it is a problem, or cannot be read."""
    request_id = response.headers.get(REQUEST_ID, request_id)
    if not response.is_success:
        raise _problem(response, request_id)
    try:
        return call.read(response)
    except (ValueError, KeyError, TypeError) as error:
        detail = f"the answer cannot be read ({error}): is this the address of `pointsman serve`?"
        raise ServiceError(detail, status=response.status_code, request_id=request_id) from None


def _problem(response: httpx.Response, request_id: str) -> ServiceError:
    try:
        found = response.json()
    except ValueError:
        found = None
    fields = found if isinstance(found, dict) else {}

    def text(name: str, default: str) -> str:
        return str(fields.get(name) or default)

    return ServiceError(
        text("detail", "the answer has no problem document: is this the address of `pointsman serve`?"),
        status=response.status_code,
        type=text("type", "about:blank"),
        title=text("title", response.reason_phrase),
        pointer=fields.get("pointer"),
        retry_after=_retry_after(response),
        request_id=request_id,
    )


def _retry_after(response: httpx.Response) -> float | None:
    """The seconds of the header ``Retry-After``, which may also be a date."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isdigit():
        return float(text)
    try:
        then = parsedate_to_datetime(text)
        return max((then - datetime.now(then.tzinfo)).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None


def _json(kind: type[T]) -> Callable[[httpx.Response], T]:
    return lambda response: read_answer(kind, response.json())


def _list(kind: type[T], name: str) -> Callable[[httpx.Response], list[T]]:
    return lambda response: [read_answer(kind, one) for one in response.json()[name]]


def _segment(what: str, value: object) -> str:
    """A part of a path."""
    text = str(value)
    if text in {"", ".", ".."}:
        raise PointsmanError(f"{what}: {text!r} is not a name")
    return quote(text, safe="")


def _deployment(name: str, rest: str = "") -> str:
    return f"/v1/deployments/{_segment('deployment', name)}{rest}"


def decide(
    deployment: str,
    probs: Numbers,
    *,
    features: Numbers | None,
    id: str | None,
    tags: Mapping[str, str] | None,
    input: Any,
    explain: bool,
    dry_run: bool,
    generate_ids: bool,
) -> Call[Decision]:
    """Decides one query."""
    if id is None and generate_ids and not dry_run:
        id = new_id()
    body: dict[str, Any] = {"probs": numbers("probs", probs)}
    if features is not None:
        body["features"] = numbers("features", features, missing=True)
    given = {"id": id, "tags": None if tags is None else dict(tags), "input": input, "explain": explain, "dry_run": dry_run}
    body |= {name: value for name, value in given.items() if value is not None and value is not False}
    return Call(
        "POST",
        _deployment(deployment, "/decide"),
        _json(Decision),
        content=to_json("the query", body),
        is_repeatable=dry_run or id is not None,
    )


def decide_batch(
    deployment: str,
    probs: MatrixLike,
    features: MatrixLike | None,
    ids: Iterable[Any] | None,
    rows_per_request: int | None,
    generate_ids: bool,
) -> Iterator[Call[BatchDecisions]]:
    """Decides many queries: one request, or several with at most ``rows_per_request`` rows."""
    if rows_per_request is not None and rows_per_request < 1:
        raise PointsmanError(f"rows_per_request: {rows_per_request}: a request has one row at least")
    table = query_table(probs, features, ids)
    has_ids = "id" in table.column_names
    if rows_per_request is not None and not has_ids:
        raise PointsmanError(
            "rows_per_request needs ids=…: several requests are not decided together, and after a failure only the same ids give the"
            " decisions of the rows that were decided already"
        )
    if generate_ids and not has_ids:
        table = table.append_column("id", [new_ids(table.num_rows)])
    size = max(table.num_rows, 1) if rows_per_request is None else rows_per_request
    for start in range(0, max(table.num_rows, 1), size):
        yield _decide_table(deployment, table.slice(start, size))


def _decide_table(deployment: str, table: Any) -> Call[BatchDecisions]:
    rows = table.num_rows

    def read(response: httpx.Response) -> BatchDecisions:
        answers = BatchDecisions(from_stream(response.content))
        if len(answers) != rows:
            raise ValueError(f"{len(answers)} answers to {rows} queries")
        return answers

    return Call(
        "POST",
        _deployment(deployment, "/decide"),
        read,
        content=to_stream(table),
        content_type=ARROW,
        is_repeatable="id" in table.column_names,
    )


def join(answers: list[BatchDecisions]) -> BatchDecisions:
    """The answers of several requests as one batch."""
    if len(answers) == 1:
        return answers[0]
    import pyarrow

    # A version that was activated meanwhile may have other actions.
    return BatchDecisions(pyarrow.concat_tables([one.to_arrow() for one in answers], promote_options="default"))


def _time(what: str, value: Time) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise PointsmanError(f"{what}: {value} has no time zone: give one, as in datetime.now(timezone.utc)")
        return value.isoformat()
    return str(value)


def _period(start: Time | None, end: Time | None) -> dict[str, str]:
    period = {"from": ("start", start), "to": ("end", end)}
    return {name: _time(what, value) for name, (what, value) in period.items() if value is not None}


def decision(decision_id: str) -> Call[LoggedDecision]:
    """One decision of the log."""
    return Call("GET", f"/v1/decisions/{_segment('decision_id', decision_id)}", _json(LoggedDecision), is_repeatable=True)


@dataclass(frozen=True)
class Page:
    """A page of the log, and the id after which the next one begins."""

    decisions: list[LoggedDecision]
    next: str | None


@dataclass(frozen=True)
class LogFilter:
    """Which decisions of the log are meant."""

    start: Time | None = None
    end: Time | None = None
    action: str | None = None
    cell: int | None = None
    tag: tuple[str, str] | None = None
    version: int | None = None

    def params(self) -> dict[str, str]:
        """The parameters of the request."""
        tag = None if self.tag is None else "=".join(self.tag)
        given = {"action": self.action, "cell": self.cell, "tag": tag, "version": self.version}
        return _period(self.start, self.end) | {name: str(value) for name, value in given.items() if value is not None}


def page(deployment: str, wanted: LogFilter, after: str | None, rows: int) -> Call[Page]:
    """A page of the log."""

    def read(response: httpx.Response) -> Page:
        data = response.json()
        return Page([read_answer(LoggedDecision, one) for one in data["decisions"]], data["next"])

    params = wanted.params() | {"limit": str(rows)} | ({} if after is None else {"after": after})
    return Call("GET", _deployment(deployment, "/decisions"), read, params=params, is_repeatable=True)


def decisions_table(deployment: str, wanted: LogFilter) -> Call[Any]:
    """Decisions of the log as a ``pyarrow.Table``."""
    path = _deployment(deployment, "/decisions")
    return Call("GET", path, lambda response: from_parquet(response.content), wanted.params(), accept=PARQUET, is_repeatable=True)


def task_text(task: _native.Task | str | None) -> str | None:
    """The text of a task file."""
    return task.text if isinstance(task, _native.Task) else task


def what_if(
    deployment: str,
    *,
    task: _native.Task | str | None,
    router: str | None,
    version: int | None,
    start: Time | None,
    end: Time | None,
) -> Call[WhatIf]:
    """Decides the logged queries of a period by another task, router or version."""
    given = {"task": task_text(task), "router": router, "version": version}
    body = _period(start, end) | {name: value for name, value in given.items() if value is not None}
    return Call("POST", _deployment(deployment, "/what-if"), _json(WhatIf), content=to_json("the request", body))


def deployments() -> Call[list[Deployment]]:
    """All deployments."""
    return Call("GET", "/v1/deployments", _list(Deployment, "deployments"), is_repeatable=True)


def deployment(name: str) -> Call[Deployment]:
    """One deployment."""
    return Call("GET", _deployment(name), _json(Deployment), is_repeatable=True)


def put_deployment(name: str, mode: str | None) -> Call[Deployment]:
    """Creates a deployment or changes its mode."""
    content = to_json("mode", {} if mode is None else {"mode": mode})
    return Call("PUT", _deployment(name), _json(Deployment), content=content, is_repeatable=True)


def delete_deployment(name: str) -> Call[None]:
    """Deletes a deployment."""
    return Call("DELETE", _deployment(name), lambda _: None)


def set_oracle(name: str, oracle: str, available: bool) -> Call[None]:
    """Marks an oracle as available or not."""
    path = _deployment(name, f"/oracles/{_segment('oracle', oracle)}")
    return Call("PUT", path, lambda _: None, content=to_json("available", {"available": available}), is_repeatable=True)


def versions(name: str) -> Call[list[Version]]:
    """The versions of a deployment."""
    return Call("GET", _deployment(name, "/versions"), _list(Version, "versions"), is_repeatable=True)


def stored_router(source: Source) -> StoredFile | None:
    """The router that the service has already, if a source is one or the SHA-256 of one."""
    if isinstance(source, str) and re.fullmatch("[0-9a-f]{64}", source):
        return StoredFile(sha256=source, kind="router")
    return source if isinstance(source, StoredFile) else None


def upload(source: Source) -> Call[StoredFile]:
    """Stores a router or a compiled policy."""
    if isinstance(source, Router | Policy):
        data = source.to_bytes()
    elif isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
    elif isinstance(source, str | PathLike):
        data = Path(source).read_bytes()
    else:
        raise PointsmanError(f"{type(source).__name__} is neither a router nor a policy: give one, or the bytes or path of its file")
    return Call("POST", "/v1/files", _json(StoredFile), content=data, content_type="application/octet-stream")


def add_version(name: str, file: StoredFile, task: _native.Task | str | None, activate: bool, force: bool) -> Call[Version]:
    """Adds a version from a stored file."""
    body: dict[str, Any] = {file.kind: file.sha256, "activate": activate}
    if force:
        body["force"] = True
    if task is not None:
        body["task"] = task_text(task)
    return Call("POST", _deployment(name, "/versions"), _json(Version), content=to_json("the version", body))


def activate(name: str, version: int, force: bool) -> Call[Version]:
    """Makes a version the active one."""
    path = _deployment(name, f"/versions/{_segment('version', version)}/activate")
    return Call("POST", path, _json(Version), params={"force": "true"} if force else {})


def roll_back(name: str) -> Call[Version]:
    """Activates the version that was active before."""
    return Call("POST", _deployment(name, "/rollback"), _json(Version))
