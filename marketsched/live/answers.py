"""Answers on their way from the market's thread to the connections: the loop is woken once for all that are ready."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Any


class Answers:
    """Answers that wait for one loop."""

    def __init__(self) -> None:
        self._ready: deque[tuple[Future[Any], asyncio.Future[Any]]] = deque()
        self._woken = False

    async def of(self, asked: Future[Any]) -> Any:
        """Return the answer to what was asked of the market; if its reader goes first, the market need not answer."""
        self._loop = asyncio.get_running_loop()
        waiting: asyncio.Future[Any] = self._loop.create_future()
        asked.add_done_callback(lambda done: self._wake((done, waiting)))
        try:
            return await waiting
        except asyncio.CancelledError:
            asked.cancel()
            raise

    def _wake(self, answer: tuple[Future[Any], asyncio.Future[Any]]) -> None:
        """Take an answer; in any thread."""
        self._ready.append(answer)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._woken = False  # first: what comes from here on wakes the loop again
        while self._ready:
            done, waiting = self._ready.popleft()
            if waiting.done() or done.cancelled():
                continue
            if (error := done.exception()) is not None:
                waiting.set_exception(error)
            else:
                waiting.set_result(done.result())
