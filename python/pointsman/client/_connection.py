"""How a client connects, and when it sends a request again."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .._errors import PointsmanError
from ._errors import ServiceError, ServiceUnreachable

if TYPE_CHECKING:
    import httpx

#: The wait before the second attempt, in seconds; each further wait is twice as long, and the second half of each is random.
FIRST_WAIT = 0.1
#: The longest wait between two attempts, in seconds. A service that asks for a longer one is not asked again.
LONGEST_WAIT = 10.0
#: The statuses after which a call that may be repeated is sent again: too many requests, and a service or proxy that cannot answer now.
BUSY = frozenset({429, 502, 503, 504})
#: The most connections that a client opens; all of them are kept for further requests. With more, httpx spends its time on choosing one: 1,000
#: decisions took 2.6 s of processor time with 16 connections, and 4.4 s with 100.
CONNECTIONS = 16
#: The seconds after which an unused connection is closed, before the service does so.
KEPT_SECONDS = 5.0


@dataclass(frozen=True)
class Settings:
    """The settings of a client."""

    url: str
    #: Never shown.
    key: str | None = field(repr=False)
    timeout: float
    retries: int
    generate_ids: bool

    def __post_init__(self) -> None:
        _check_url(self.url)
        if self.key is not None:
            object.__setattr__(self, "key", _checked_key(self.key))
        if not 0 < self.timeout < float("inf"):
            raise PointsmanError(f"timeout: {self.timeout} is not a number of seconds")
        if self.retries < 0:
            raise PointsmanError(f"retries: {self.retries} is not a number of repetitions")

    def for_httpx(self) -> dict[str, Any]:
        """The arguments of a client of httpx."""
        httpx = import_httpx()
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        limits = httpx.Limits(
            max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=KEPT_SECONDS
        )
        return {"base_url": self.url, "headers": headers, "limits": limits}


def import_httpx() -> Any:
    """The module httpx, which is installed with the extra ``client``."""
    try:
        import httpx
    except ImportError:
        raise PointsmanError("the client needs httpx: pip install 'pointsman[client]'") from None
    return httpx


def _check_url(url: str) -> None:
    if "@" in url:
        # It is not shown, since it may have a password.
        raise PointsmanError("url: give the address without a user and password; the key is an argument of its own")
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or parts.query or parts.fragment:
        raise PointsmanError(f"url: {url!r} is not the address of a service: give one such as http://127.0.0.1:7070")


def _checked_key(key: str) -> str:
    """The key without surrounding space. What is wrong with a key is said without showing it."""
    text = key.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise PointsmanError("key: this is not a key of the service: `pointsman keys add` prints one, as pk_…")
    return text


class Attempts:
    """The attempts of one call, within its time."""

    def __init__(self, settings: Settings, is_repeatable: bool) -> None:
        self._end = time.monotonic() + settings.timeout
        self._left = settings.retries if is_repeatable else 0
        self._backoff = FIRST_WAIT

    def seconds_left(self) -> float:
        """The time that is left for an attempt."""
        return max(self._end - time.monotonic(), 0.001)

    def wait_after(self, error: ServiceError) -> float | None:
        """The seconds to wait before the next attempt; ``None`` if there is none."""
        is_passing = isinstance(error, ServiceUnreachable) or error.status in BUSY
        if not is_passing or self._left == 0:
            return None
        asked = error.retry_after or 0.0
        wait = asked + self._backoff * (0.5 + 0.5 * random.random())
        if asked > LONGEST_WAIT or wait >= self._end - time.monotonic():
            return None
        self._left -= 1
        self._backoff = min(2 * self._backoff, LONGEST_WAIT)
        return wait


def unreachable(error: httpx.HTTPError, url: str, request_id: str, is_repeatable: bool) -> ServiceUnreachable:
    """The exception for a request without an answer."""
    what = str(error) or type(error).__name__
    advice = "" if is_repeatable else "; nothing says whether the request was carried out, so it was not sent again"
    return ServiceUnreachable(f"{url}: {what}{advice}", title="No answer", request_id=request_id)
