"""Copies of markets that later plays begin from, up to a limit in bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from marketsched.truthfulness.situations.guarded_market import Snapshot

KEPT_BYTES = 64_000_000


class FromMarket:
    """An object with a ``market`` to begin from, or None."""

    market: Snapshot | None

    @property
    def size(self) -> int:
        """Bytes of the market."""
        return 0 if self.market is None else self.market.size


K = TypeVar("K")
V = TypeVar("V", bound=FromMarket)


class KeptMarkets(Generic[K, V]):
    """Those used last, within `KEPT_BYTES`; the last one always."""

    def __init__(self) -> None:
        self.kept: OrderedDict[K, V] = OrderedDict()
        self._bytes = 0

    def get(self, key: K) -> V | None:
        """Return the market kept under a key, and mark it as used last; None: nothing."""
        if key not in self.kept:
            return None
        self.kept.move_to_end(key)
        return self.kept[key]

    def keep(self, key: K, found: V) -> V:
        """Keep a new market under a key, and return it."""
        self.kept[key] = found
        self._bytes += found.size
        while self._bytes > KEPT_BYTES and len(self.kept) > 1:
            _, oldest = self.kept.popitem(last=False)
            self._bytes -= oldest.size
        return found
