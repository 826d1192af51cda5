"""The order of requests: a deficit round robin over accounts, in seconds of service.

Every account that waits gets the same share of the market's thread, whatever its requests cost. An account is served
while its credit lasts; a request that takes longer leaves a debt, which it waits off while others are served. Who is
alone never waits.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from typing import Generic, TypeVar

QUANTUM = 0.002  # seconds of service that an account gets each time round
LARGEST_DEBT = 0.5  # seconds: one long request is not held against an account for ever

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """What waits, by account. Any thread puts; one thread gets, and reports the time that each item took."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: OrderedDict[str, deque[Item]] = OrderedDict()  # whose turn it is comes first
        self._credit: dict[str, float] = {}  # seconds; below 0: a debt; absent: 0

    def put(self, account: str, item: Item) -> None:
        """Let something wait."""
        with self._changed:
            self._waiting.setdefault(account, deque()).append(item)
            self._changed.notify()

    def get(self, timeout: float | None = None) -> tuple[str, Item] | None:
        """Return the next item and its account; None if nothing comes within ``timeout`` seconds (None: ever)."""
        end = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self._waiting:
                self._credit.clear()  # no account waited: what they took held no other back
                left = None if end is None else end - time.monotonic()
                if (left is not None and left <= 0) or not self._changed.wait(left):
                    return None
            account = self._turn()
            items = self._waiting[account]
            item = items.popleft()
            if not items:
                del self._waiting[account]
            return account, item

    def spent(self, account: str, seconds: float) -> None:
        """Say how long the market's thread worked for an account."""
        with self._changed:
            left = max(-LARGEST_DEBT, self._credit.get(account, 0.0) - seconds)
            if left < 0:
                self._credit[account] = left
            else:
                self._credit[account] = left if account in self._waiting else 0.0

    def _turn(self) -> str:
        """Return whose turn it is."""
        while True:
            for _ in range(len(self._waiting)):
                account = next(iter(self._waiting))
                if self._credit.get(account, 0.0) > 0:
                    return account
                self._waiting.move_to_end(account)
            # No account has credit: as many times round as the first of them needs.
            least = min(-self._credit.get(account, 0.0) for account in self._waiting)
            rounds = math.floor(least / QUANTUM) + 1
            for account in self._waiting:
                self._credit[account] = self._credit.get(account, 0.0) + rounds * QUANTUM
