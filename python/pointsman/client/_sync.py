"""The client for ordinary code."""

import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from .. import _native
from .._inputs import MatrixLike
from . import _calls
from ._answers import Decision, Deployment, LoggedDecision, StoredFile, Version, WhatIf
from ._batch import BatchDecisions
from ._calls import Call, LogFilter, Source, Time
from ._connection import Attempts, Settings, import_httpx, unreachable
from ._errors import ServiceError
from ._queries import Numbers, new_id

T = TypeVar("T")


class Client:
    """A client of ``pointsman serve``. Connections are kept; threads may share a client.

    Calls that may be repeated are sent again if the service cannot be reached or answers that it is busy (429, 502, 503, 504), after a wait
    that doubles, is partly random and is as long as the service asks for. These are reading, ``put_deployment``, ``set_oracle``, and
    decisions with an id. All others are sent once.

    Parameters
    ----------
    url:
        The address of the service, as in ``http://127.0.0.1:7070``.
    key:
        The key, as ``pointsman keys add`` printed it; not needed on a loopback address without keys.
    timeout:
        The seconds that a call may take, repetitions and waits included.
    retries:
        How often a call that may be repeated is sent again.
    generate_ids:
        Whether queries without an id get one, so that they can be sent again without being decided twice. With a limit on routing, the
        random draw at its margin is that of the id; without one, it is that of the query's content, as for ``Policy.decide``.

    Examples
    --------
    ::

        with pointsman.Client("http://127.0.0.1:7070") as client:
            client.put_deployment("intents", mode="shadow")
            client.add_version("intents", router, task=task, activate=True)
            print(client.decide("intents", [0.2, 0.5, 0.3]).action)
    """

    def __init__(
        self, url: str, key: str | None = None, *, timeout: float = 30.0, retries: int = 6, generate_ids: bool = True
    ) -> None:
        self._settings = Settings(url, key, timeout, retries, generate_ids)
        self._httpx = import_httpx()
        self._http = self._httpx.Client(**self._settings.for_httpx())

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client: {self._settings.url}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Client has open connections and a key: make one in each process")

    def _send(self, call: Call[T]) -> T:
        attempts = Attempts(self._settings, call.is_repeatable)
        request_id = new_id()
        while True:
            try:
                response = self._http.request(
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
            time.sleep(wait)

    def decide(
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
        """Decides one query. The decision is in the log before this returns.

        Parameters
        ----------
        deployment:
            The deployment's name.
        probs:
            The classifier's probabilities: one per class in the order of the classes, or by name.
        features:
            The features that the router uses, by name, or in its order. NaN is a missing value.
        id:
            The caller's own id: the same id from the same key gives the first decision again.
        tags:
            Names and values to find the decision by.
        input:
            The input itself, anything that JSON has; it is kept with the decision until it expires.
        explain:
            Whether the answer has an explanation.
        dry_run:
            Whether the decision is not logged.
        """
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
        return self._send(call)

    def decide_batch(
        self,
        deployment: str,
        probs: MatrixLike,
        *,
        features: MatrixLike | None = None,
        ids: Iterable[Any] | None = None,
        rows_per_request: int | None = None,
    ) -> BatchDecisions:
        """Decides many queries together, all or none. Needs pyarrow.

        Parameters
        ----------
        deployment:
            The deployment's name.
        probs:
            The classifier's probabilities, rows × classes, as for ``Policy.decide``. A frame may also have the columns ``x_<feature>`` and
            ``id``.
        features:
            The features that the router uses, as a frame or a mapping of names. The columns of an array are called 0, 1, ….
        ids:
            One id per row, as for :meth:`decide`.
        rows_per_request:
            Send several requests with at most this many rows. Each is decided as a whole, but not all of them together: after a failure,
            earlier ones are in the log. So this needs ids, by which the same call can be repeated. Left out, there is one request, and the
            service refuses more rows than it allows (10,000 by default).
        """
        calls = _calls.decide_batch(deployment, probs, features, ids, rows_per_request, self._settings.generate_ids)
        return _calls.join([self._send(call) for call in calls])

    def decision(self, decision_id: str) -> LoggedDecision:
        """One decision of the log."""
        return self._send(_calls.decision(decision_id))

    def decisions(
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
    ) -> Iterator[LoggedDecision]:
        """The decisions of the log in their order, read page by page.

        Parameters
        ----------
        deployment:
            The deployment's name.
        start, end:
            Decisions from this time on, and before this time.
        action, cell, version:
            Decisions with this action, in this cell, of this version.
        tag:
            Decisions with this name and value of a tag.
        after:
            Decisions after the one with this id.
        rows_per_request:
            The most decisions per page.
        """
        wanted = LogFilter(start, end, action, cell, tag, version)
        while True:
            page = self._send(_calls.page(deployment, wanted, after, rows_per_request))
            yield from page.decisions
            if page.next is None:
                return
            after = page.next

    def decisions_table(
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
        """The decisions of the log as a ``pyarrow.Table``, read at once; ``to_pandas()`` of it gives a frame. Needs pyarrow.

        It has one row per decision with the columns ``id``, ``at``, those of :meth:`decide_batch`, ``prob_<class>`` and ``x_<feature>``, so
        that ``Policy.decide_batches`` can decide it again. Parameters are those of :meth:`decisions`.
        """
        return self._send(_calls.decisions_table(deployment, LogFilter(start, end, action, cell, tag, version)))

    def what_if(
        self,
        deployment: str,
        *,
        task: _native.Task | str | None = None,
        router: Source | None = None,
        version: int | None = None,
        start: Time | None = None,
        end: Time | None = None,
    ) -> WhatIf:
        """Decides the logged queries of a period by another task, router or version, without changing anything.

        Parameters
        ----------
        deployment:
            The deployment's name.
        task:
            A task, or the text of a task file: other prices or routes or, if the service has the router, another loss.
        router:
            Another router, which is uploaded, or the SHA-256 of one that the service has; needs a task.
        version:
            The number of a version; without one, the active version is asked.
        start, end:
            Decisions from this time on, and before this time.
        """
        file = None if router is None else _calls.stored_router(router) or self.upload(router)
        sha256 = None if file is None else file.sha256
        return self._send(
            _calls.what_if(deployment, task=task, router=sha256, version=version, start=start, end=end)
        )

    def deployments(self) -> list[Deployment]:
        """All deployments."""
        return self._send(_calls.deployments())

    def deployment(self, name: str) -> Deployment:
        """One deployment."""
        return self._send(_calls.deployment(name))

    def put_deployment(self, name: str, *, mode: str | None = None) -> Deployment:
        """Creates a deployment, or changes its mode.

        ``active`` answers decisions; ``shadow`` always answers ``predict`` and says what it would have done. Left out, the mode stays as
        it is; a new deployment is active.
        """
        return self._send(_calls.put_deployment(name, mode))

    def delete_deployment(self, name: str) -> None:
        """Deletes a deployment. Its decisions stay in the log until they expire."""
        self._send(_calls.delete_deployment(name))

    def set_oracle(self, deployment: str, oracle: str, *, available: bool) -> None:
        """Marks an oracle as available or not. A route whose oracle is not available leaves the choice."""
        self._send(_calls.set_oracle(deployment, oracle, available))

    def versions(self, deployment: str) -> list[Version]:
        """The versions of a deployment."""
        return self._send(_calls.versions(deployment))

    def upload(self, source: Source) -> StoredFile:
        """Stores a router or a compiled policy, given as an object or as the bytes or the path of its file."""
        return self._send(_calls.upload(source))

    def add_version(
        self, deployment: str, source: Source, *, task: _native.Task | str | None = None, activate: bool = False, force: bool = False
    ) -> Version:
        """Adds a version from a router and a task, or from a policy. A version that is there already is not added again.

        Parameters
        ----------
        deployment:
            The deployment's name.
        source:
            A router or a policy, the bytes or the path of its file, or what :meth:`upload` returned.
        task:
            A task, or the text of a task file. A policy has its own task, which another one with the same loss replaces.
        activate:
            Whether it decides from now on.
        force:
            Whether it does even if its classes or features are not those of the active version, so that requests are read differently.
        """
        file = source if isinstance(source, StoredFile) else self.upload(source)
        return self._send(_calls.add_version(deployment, file, task, activate, force))

    def activate(self, deployment: str, version: int, *, force: bool = False) -> Version:
        """Makes a version the active one.

        One with other classes or features than the active version is refused (409) unless ``force`` is given: requests are read
        differently then, as the ``warning`` of the answer says.
        """
        return self._send(_calls.activate(deployment, version, force))

    def roll_back(self, deployment: str) -> Version:
        """Activates the version that was active before the present one."""
        return self._send(_calls.roll_back(deployment))
