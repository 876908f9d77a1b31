"""Exceptions for requests that the service refused or did not answer."""

from typing import Any


class ServiceError(Exception):
    """The service refused a request or failed. The fields are those of its problem document (RFC 9457).

    >>> import pointsman
    >>> error = pointsman.ServiceError("row 3 sums to 1.2", status=422, title="A value cannot be used", pointer="/rows/3/probs")
    >>> print(error)
    422 A value cannot be used: /rows/3/probs: row 3 sums to 1.2
    """

    #: What is wrong this time, and what to do about it.
    detail: str
    #: The HTTP status; ``None`` if no answer came.
    status: int | None
    #: The kind of problem, a name to compare such as ``urn:pointsman:invalid``.
    type: str
    #: The kind of problem in words.
    title: str
    #: The field of the request that is wrong, as a JSON pointer.
    pointer: str | None
    #: How long the service asks to wait before the next attempt, in seconds.
    retry_after: float | None
    #: The id that was sent with the request as ``X-Request-Id``, or the one of the answer if it has another.
    request_id: str | None

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        type: str = "about:blank",
        title: str = "",
        pointer: str | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        kind = " ".join(str(part) for part in (status, title) if part)
        super().__init__(": ".join(part for part in (kind, pointer, detail) if part))
        self.detail = detail
        self.status = status
        self.type = type
        self.title = title
        self.pointer = pointer
        self.retry_after = retry_after
        self.request_id = request_id

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (type(self), self.detail, self.__dict__))


class ServiceUnreachable(ServiceError):
    """No answer came: the service could not be reached, ended the connection, or took too long.

    Nothing says whether the request was carried out. Calls that may be sent again have been, as often as the client's settings allow.
    """


def _restored(kind: type[ServiceError], detail: str, fields: dict[str, Any]) -> ServiceError:
    """A pickled exception."""
    given = {name: fields[name] for name in ("status", "type", "title", "pointer", "retry_after", "request_id")}
    return kind(detail, **given)
