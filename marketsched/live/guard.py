"""Checks that every request passes first: host and origin, size, form, token, and rate.

A body is read whole, up to a limit, and has to be JSON as `json_lines` reads it: no NaN, no field twice, not too
deep. Slow connections and many of them are a matter of the reverse proxy (docs/live.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from marketsched.config.json_lines import parse_line
from marketsched.live.principal import Principal
from marketsched.live.problems import problem
from marketsched.live.service import LiveService
from marketsched.mechanisms.errors import EventError

MOST_BYTES = 64 * 1024  # of a body
LONGEST_HEADER = 300  # characters of a token or a key
OPEN_PATHS = ("/v1/health", "/v1/public", "/openapi.json", "/", "/page.css", "/page.js")  # without a token
BURST = 2.0  # seconds of its rate that a token may use at once
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Guard:
    """The checks of one service, which knows tokens and accounts.

    It is reached under the names ``hosts``, beside those of the loopback.
    """

    def __init__(self, service: LiveService, hosts: Iterable[str] = ()) -> None:
        self._service = service
        self._hosts = {*LOOPBACK, *(host.lower() for host in hosts)}
        self._budgets: dict[str, tuple[float, float]] = {}  # account: requests left, and when that was

    async def refusal(self, request: Request) -> Response | None:
        """Return the refusal of a request; None: it may pass, and its state holds the principal and the body."""
        refused = self._foreign(request)
        if refused is None and request.scope["path"] not in OPEN_PATHS:
            refused = self._unknown(request)
        if refused is None and request.method in ("POST", "PUT", "PATCH", "DELETE"):
            refused = await self._unread(request) or _malformed(request)
        return refused

    def _foreign(self, request: Request) -> Response | None:
        """Refuse what a page of another site makes a browser send."""
        host = _hostname(f"//{request.headers.get('host', '')}")
        if host not in self._hosts:
            return problem(421, "Host: expected a name of this service", legal=", ".join(sorted(self._hosts)))
        origin = request.headers.get("origin")
        if origin is not None and _hostname(origin) not in self._hosts:
            return problem(403, "Origin: expected none, or this service itself: pages of other sites are not served")
        return None

    def _unknown(self, request: Request) -> Response | None:
        """Refuse requests without a valid token, or above the rate limit."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        name = None
        if kind.lower() == "bearer" and 0 < len(token.strip()) <= LONGEST_HEADER:
            name = self._service.account_of(token.strip())
        account = None if name is None else self._service.market.accounts.known.get(name)
        if account is None:
            challenge = {"WWW-Authenticate": 'Bearer realm="marketsched"'}
            return problem(401, "Authorization: expected Bearer and a token that is good", headers=challenge)
        wait = self._over_rate(account.name)
        if wait > 0:
            return problem(429, "too many requests with this token", headers={"Retry-After": str(int(wait) + 1)})
        request.state.who = Principal(account.name, account.role)
        return None

    def _over_rate(self, account: str) -> float:
        """Take one request off an account's budget; return for how many seconds it is used up."""
        rate, now = self._service.config.requests_per_second, time.monotonic()
        most = max(1.0, rate * BURST)
        left, then = self._budgets.get(account, (most, now))
        left = min(most, left + (now - then) * rate)
        self._budgets[account] = (left - 1.0 if left >= 1.0 else left), now
        return 0.0 if left >= 1.0 else (1.0 - left) / rate

    def charge(self, account: str, requests: int) -> None:
        """Take more off an account's budget: for a request that stands for several."""
        left, then = self._budgets[account]
        self._budgets[account] = left - requests, then

    async def _unread(self, request: Request) -> Response | None:
        """Refuse a body that is too large; else the state of the request holds it."""
        key = request.headers.get("idempotency-key")
        if key is not None and not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
            return problem(400, "Idempotency-Key: expected 1 to 255 characters of ASCII to print")
        length, body = request.headers.get("content-length", "0"), bytearray()
        if not (length.isascii() and length.isdigit() and int(length[:12]) <= MOST_BYTES):
            return _too_large()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BYTES:
                    return _too_large()
        except ClientDisconnect:
            return Response(status_code=400)  # there is no reader
        request.state.raw = bytes(body)
        return None


def _malformed(request: Request) -> Response | None:
    """Refuse a body that is not one JSON object; else the state of the request holds the object."""
    body, request.state.said = request.state.raw, {}
    if not body:
        return None
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return problem(415, "Content-Type: expected application/json")
    found = _read(body)
    if isinstance(found, str):
        return problem(400, found)
    request.state.said = found
    return None


def _read(body: bytes) -> dict[str, Any] | str:
    """Return the JSON object that a body is, or say what it is instead."""
    try:
        said = parse_line(body)
    except (EventError, RecursionError) as error:
        return f"the body: {error}"
    if not isinstance(said, dict) or (b"\\u" in body and not _can_be_kept(said)):  # JSON writes such letters as \u
        return "the body: expected one JSON object, its texts without zero bytes and half characters"
    return said


def _too_large() -> Response:
    return problem(413, f"the body: expected at most {MOST_BYTES} bytes", headers={"Connection": "close"})


@lru_cache(maxsize=256)
def _hostname(url: str) -> str:
    """Return the host that a URL names; empty if it names none."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _can_be_kept(x: Any) -> bool:
    """Tell whether every text inside can be written to a database."""
    if isinstance(x, str):
        return "\0" not in x and not any("\ud800" <= letter <= "\udfff" for letter in x)
    if isinstance(x, dict):
        return all(_can_be_kept(key) and _can_be_kept(value) for key, value in x.items())
    return not isinstance(x, list) or all(map(_can_be_kept, x))
