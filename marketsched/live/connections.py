"""Connections that send nothing, or not all of it: each has its time, and together they never keep others out.

uvicorn waits for a request for ever. Here the head of a request has to be there within `HEAD_SECONDS`, a body within
`BODY_SECONDS` (the guard watches that), and when the pool of connections is full, the one that has been waiting longest
without a request goes, so that who comes with one is served. Addresses of other machines have a share of the pool each;
the loopback, where a proxy stands for all of its clients, has all of it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import resource
from collections import Counter
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from marketsched.mechanisms.errors import InvalidParameterError

HEAD_SECONDS = 5.0  # for the head of a request, from the first moment on
BODY_SECONDS = 10.0
MOST_CONNECTIONS = 4000  # fewer where the process may not have so many files
MOST_OF_PEER = 200  # connections of one address that is not of the loopback
FEWEST_FILES = 256  # that a service starts with
SPARE_FILES = 100  # for the database, logs, and what is about to be accepted


class Pool:
    """The connections of one server, and those among them that wait for the head of a request."""

    def __init__(self, most: int = MOST_CONNECTIONS) -> None:
        files = _files()
        if files < FEWEST_FILES:
            legal = f"at least {FEWEST_FILES} open files (ulimit -n, LimitNOFILE)"
            raise InvalidParameterError(place="nofile", value=files, legal=legal)
        self.most = min(most, files - SPARE_FILES)
        self.waiting: dict[TimedConnection, None] = {}  # in order: who waits longest comes first
        self.open = 0
        self.of_peer: Counter[str] = Counter()

    def enter(self, connection: TimedConnection, peer: str) -> bool:
        """Take a connection in; False: it has to go."""
        self.open += 1
        self.of_peer[peer] += 1
        if self.of_peer[peer] > MOST_OF_PEER and not _is_loopback(peer):
            return False
        while self.open > self.most and self.waiting:
            next(iter(self.waiting)).drop()
        return self.open <= self.most

    def leave(self, connection: TimedConnection, peer: str) -> None:
        """Take note that a connection has ended."""
        self.waiting.pop(connection, None)
        self.open -= 1
        self.of_peer -= Counter({peer: 1})


class Together:
    """A transport that sends all that is written before the loop goes on at once: an answer's head with its body."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._held = transport, loop, bytearray()

    def write(self, data: bytes) -> None:
        """Send, very soon."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held += data

    def close(self) -> None:
        """Send what is left, and close."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._held.clear()
        self._transport.abort()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        if self._held:
            data, self._held = bytes(self._held), bytearray()
            self._transport.write(data)


class TimedConnection(H11Protocol):
    """A connection of uvicorn's that is closed if the head of its next request takes too long."""

    pool: Pool  # of the server; set by `connections_of`

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(Together(transport, self.loop))  # type: ignore[arg-type]
        self._timer: asyncio.TimerHandle | None = None
        self._gone = False
        self._peer = self.client[0] if self.client else ""
        if self.pool.enter(self, self._peer):
            self._wait()
        else:
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        super().connection_lost(exc)
        self._stop_waiting()
        if not self._gone:
            self._gone = True
            self.pool.leave(self, self._peer)

    def data_received(self, data: bytes) -> None:
        """Read; an incomplete head has to be complete in time."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Wait for the next request, for as long as uvicorn keeps the connection."""
        super().on_response_complete()
        self._look()

    def send_400_response(self, msg: str) -> None:
        """Refuse input that is no HTTP; an earlier request without an answer so far gets no other answer."""
        under_way = self.cycle is not None and not self.cycle.response_complete
        if under_way:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # half an answer is out, or a whole one that said it was the last
            self.transport.close()

    def drop(self) -> None:
        """Close it without an answer: it has sent no request."""
        self.transport.abort()
        if not self._gone:  # its place is free at once, not when the loop has noticed
            self._gone = True
            self.pool.leave(self, self._peer)
        self._stop_waiting()

    def _look(self) -> None:
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._wait()
        else:
            self._stop_waiting()

    def _wait(self) -> None:
        if self._timer is None and not self._gone:
            self._timer = self.loop.call_later(HEAD_SECONDS, self.drop)
            self.pool.waiting[self] = None

    def _stop_waiting(self) -> None:
        self.pool.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def connections_of(pool: Pool) -> type[TimedConnection]:
    """Return the class of the connections of one server, as uvicorn wants it."""
    fields: dict[str, Any] = {"pool": pool}
    return type("Connection", (TimedConnection,), fields)


def _files() -> int:
    """Let the process have as many files as it may, and return how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft


def _is_loopback(peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer).is_loopback
    except ValueError:
        return False
