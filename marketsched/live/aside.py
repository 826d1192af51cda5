"""A snapshot written by a copy of the process, while the service goes on answering.

The copy (``fork``) has the market as it was at one moment. It shares nothing with the service that it could change:
it closes all files and connections at once, writes the market's bytes into a pipe, and ends.
"""

from __future__ import annotations

import gc
import os
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import NoReturn

from marketsched.live.machine import LiveMarket
from marketsched.live.snapshots import frozen

NICE = 10  # the copy is served after the service
WRITTEN, FAILED = b"+", b"-"  # the first byte of what a copy says

Done = Callable[[bytes | None, str], None]


class Aside:
    """One market that is being written down, as it is now: it may change once this object is made.

    ``done`` is called once, from a thread of its own, with the bytes and an empty text; or with None and why the market
    cannot be written down; or with None and an empty text if the copy was ended from outside, for its memory perhaps.
    OSError if the process cannot be copied.
    """

    def __init__(self, market: LiveMarket, done: Done) -> None:
        self._done = done
        reading, writing = os.pipe()
        try:
            with warnings.catch_warnings():  # of forks beside threads: the copy takes none of their locks
                warnings.simplefilter("ignore", DeprecationWarning)
                self._process = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if self._process == 0:
            _be_the_copy(market, writing)
        os.close(writing)
        self._thread = threading.Thread(target=self._collect, args=(reading,), name="snapshot", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until it is done, at most so long."""
        self._thread.join(seconds)

    def _collect(self, reading: int) -> None:
        with open(reading, "rb") as pipe:
            said = pipe.read()
        _, status = os.waitpid(self._process, 0)
        if status == 0 and said[:1] == WRITTEN:
            self._done(said[1:], "")
        else:
            self._done(None, said[1:].decode(errors="replace") if said[:1] == FAILED else "")


def _be_the_copy(market: LiveMarket, writing: int) -> NoReturn:
    """Write a market into a pipe and end, whatever happens."""
    status = 1
    try:
        gc.disable()  # it would touch, and so copy, all that there is
        os.closerange(0, writing)
        os.closerange(writing + 1, os.sysconf("SC_OPEN_MAX"))  # the database, its lock, connections
        os.nice(NICE)
        try:
            said = WRITTEN + frozen(market)
        except Exception:
            said = FAILED + traceback.format_exc().encode()
        with open(writing, "wb") as pipe:
            pipe.write(said)
        status = 0
    finally:
        os._exit(status)
