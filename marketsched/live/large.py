"""Requests with large bodies: one at a time, accounts in turn, and a share of the time while others ask for less.

Reading, planning and answering a statement of 250 cases takes some twenty times as long as one of a single case, and
all of it takes turns for one interpreter. So a large request begins when the one before it is answered; and while
small requests come, it begins only after a rest that is in proportion to what the last one took.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque

SHARE = 1 / 3  # of the time, for large requests together, while small ones come
ASKED_SECONDS = 1.0  # for which a small request counts as one that others ask
LONGEST_REST = 0.5  # seconds


class LargeRequests:
    """Whose large request is next; for the thread of the connections alone."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()  # whose turn it is comes first
        self._busy = False
        self._began = self._small = float("-inf")

    def small(self) -> None:
        """Take note of a small request."""
        self._small = time.monotonic()

    async def enter(self, account: str) -> None:
        """Wait until a large request of this account may begin; `leave` has to follow."""
        if self._busy:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(account, deque()).append(turn)
            await turn
        self._busy, self._began = True, time.monotonic()

    def leave(self) -> None:
        """Let the next one begin, after a rest if others ask for less."""
        now = time.monotonic()
        rest = min(LONGEST_REST, (now - self._began) * (1 / SHARE - 1)) if now - self._small < ASKED_SECONDS else 0.0
        asyncio.get_running_loop().call_later(rest, self._next)

    def _next(self) -> None:
        self._busy = False
        while self._waiting and not self._busy:
            account, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[account] = turns  # behind the others
            if not turn.done():  # else who asked has gone
                self._busy = True
                turn.set_result(None)
