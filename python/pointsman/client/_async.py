"""The client for asynchronous code."""

from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from .. import _native
from .._inputs import MatrixLike
from . import _calls
from ._answers import Decision, Deployment, LoggedDecision, StoredFile, Version, WhatIf
from ._batch import BatchDecisions
from ._calls import Call, LogFilter, Source, Time
from ._connection import CONNECTIONS, Attempts, Settings, import_httpx, unreachable
from ._errors import ServiceError
from ._queries import Numbers, new_id

T = TypeVar("T")


class AsyncClient:
    """A client of ``pointsman serve`` for ``asyncio`` and ``trio``, with the methods and parameters of :class:`Client`.

    Of the calls that are started together, 16 are sent at a time; the time of the others begins when they are sent.

    Examples
    --------
    ::

        async with pointsman.AsyncClient("http://127.0.0.1:7070") as client:
            answers = await asyncio.gather(*(client.decide("intents", probs) for probs in queries))
    """

    def __init__(
        self, url: str, key: str | None = None, *, timeout: float = 30.0, retries: int = 6, generate_ids: bool = True
    ) -> None:
        self._settings = Settings(url, key, timeout, retries, generate_ids)
        self._httpx = import_httpx()
        # Installed with httpx, and like it for every event loop.
        import anyio

        self._anyio = anyio
        # The pool of httpx compares all waiting requests with all connections at each step, so that few may wait there.
        self._places = anyio.Semaphore(CONNECTIONS)
        self._http = self._httpx.AsyncClient(**self._settings.for_httpx())

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncClient: {self._settings.url}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an AsyncClient has open connections and a key: make one in each process")

    async def _send(self, call: Call[T]) -> T:
        async with self._places:
            return await self._send_now(call)

    async def _send_now(self, call: Call[T]) -> T:
        attempts = Attempts(self._settings, call.is_repeatable)
        request_id = new_id()
        while True:
            try:
                response = await self._http.request(
                    call.method,
                    call.path,
                    params=call.params,
                    content=call.content,
                    headers=call.headers(request_id),
                    timeout=attempts.seconds_left(),
                )
                return _calls.receive(call, response, request_id)
            except ServiceError as error:
                wait = attempts.wait_after(error)
                if wait is None:
                    raise
            except self._httpx.HTTPError as broken:
                failure = unreachable(broken, self._settings.url, request_id, call.is_repeatable)
                wait = attempts.wait_after(failure)
                if wait is None:
                    raise failure from broken
            await self._anyio.sleep(wait)

    async def decide(
        self,
        deployment: str,
        probs: Numbers,
        *,
        features: Numbers | None = None,
        id: str | None = None,
        tags: Mapping[str, str] | None = None,
        input: Any = None,
        explain: bool = False,
        dry_run: bool = False,
    ) -> Decision:
        """Decides one query. The decision is in the log before this returns."""
        call = _calls.decide(
            deployment,
            probs,
            features=features,
            id=id,
            tags=tags,
            input=input,
            explain=explain,
            dry_run=dry_run,
            generate_ids=self._settings.generate_ids,
        )
        return await self._send(call)

    async def decide_batch(
        self,
        deployment: str,
        probs: MatrixLike,
        *,
        features: MatrixLike | None = None,
        ids: Iterable[Any] | None = None,
        rows_per_request: int | None = None,
    ) -> BatchDecisions:
        """Decides many queries together, all or none. Needs pyarrow."""
        calls = _calls.decide_batch(deployment, probs, features, ids, rows_per_request, self._settings.generate_ids)
        return _calls.join([await self._send(call) for call in calls])

    async def decision(self, decision_id: str) -> LoggedDecision:
        """One decision of the log."""
        return await self._send(_calls.decision(decision_id))

    async def decisions(
        self,
        deployment: str,
        *,
        start: Time | None = None,
        end: Time | None = None,
        action: str | None = None,
        cell: int | None = None,
        tag: tuple[str, str] | None = None,
        version: int | None = None,
        after: str | None = None,
        rows_per_request: int = 1000,
    ) -> AsyncIterator[LoggedDecision]:
        """The decisions of the log in their order, read page by page."""
        wanted = LogFilter(start, end, action, cell, tag, version)
        while True:
            page = await self._send(_calls.page(deployment, wanted, after, rows_per_request))
            for one in page.decisions:
                yield one
            if page.next is None:
                return
            after = page.next

    async def decisions_table(
        self,
        deployment: str,
        *,
        start: Time | None = None,
        end: Time | None = None,
        action: str | None = None,
        cell: int | None = None,
        tag: tuple[str, str] | None = None,
        version: int | None = None,
    ) -> Any:
        """The decisions of the log as a ``pyarrow.Table``, read at once; ``to_pandas()`` of it gives a frame. Needs pyarrow."""
        return await self._send(_calls.decisions_table(deployment, LogFilter(start, end, action, cell, tag, version)))

    async def what_if(
        self,
        deployment: str,
        *,
        task: _native.Task | str | None = None,
        router: Source | None = None,
        version: int | None = None,
        start: Time | None = None,
        end: Time | None = None,
    ) -> WhatIf:
        """Decides the logged queries of a period by another task, router or version, without changing anything."""
        file = None if router is None else _calls.stored_router(router) or await self.upload(router)
        sha256 = None if file is None else file.sha256
        return await self._send(
            _calls.what_if(deployment, task=task, router=sha256, version=version, start=start, end=end)
        )

    async def deployments(self) -> list[Deployment]:
        """All deployments."""
        return await self._send(_calls.deployments())

    async def deployment(self, name: str) -> Deployment:
        """One deployment."""
        return await self._send(_calls.deployment(name))

    async def put_deployment(self, name: str, *, mode: str | None = None) -> Deployment:
        """Creates a deployment, or changes its mode."""
        return await self._send(_calls.put_deployment(name, mode))

    async def delete_deployment(self, name: str) -> None:
        """Deletes a deployment. Its decisions stay in the log until they expire."""
        await self._send(_calls.delete_deployment(name))

    async def set_oracle(self, deployment: str, oracle: str, *, available: bool) -> None:
        """Marks an oracle as available or not. A route whose oracle is not available leaves the choice."""
        await self._send(_calls.set_oracle(deployment, oracle, available))

    async def versions(self, deployment: str) -> list[Version]:
        """The versions of a deployment."""
        return await self._send(_calls.versions(deployment))

    async def upload(self, source: Source) -> StoredFile:
        """Stores a router or a compiled policy, given as an object or as the bytes or the path of its file."""
        return await self._send(_calls.upload(source))

    async def add_version(
        self, deployment: str, source: Source, *, task: _native.Task | str | None = None, activate: bool = False, force: bool = False
    ) -> Version:
        """Adds a version from a router and a task, or from a policy. A version that is there already is not added again."""
        file = source if isinstance(source, StoredFile) else await self.upload(source)
        return await self._send(_calls.add_version(deployment, file, task, activate, force))

    async def activate(self, deployment: str, version: int, *, force: bool = False) -> Version:
        """Makes a version the active one."""
        return await self._send(_calls.activate(deployment, version, force))

    async def roll_back(self, deployment: str) -> Version:
        """Activates the version that was active before the present one."""
        return await self._send(_calls.roll_back(deployment))
