"""Copies of a market in the middle of a run."""

from __future__ import annotations

import gc
import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager

from marketsched.mechanisms.sow import Law, StatementOfWork
from marketsched.truthfulness.playing import Playing


class Snapshot:
    """A market as bytes, to be copied many times; what is never changed is shared by the copies.

    Raises
    ------
    Exception
        Whatever stands against pickling the mechanism.
    """

    def __init__(self, market: Playing) -> None:
        self._shared: list[object] = []
        numbers: dict[int, int] = {}

        def persistent_id(part: object) -> int | None:
            if type(part) not in (StatementOfWork, Law):
                return None
            if id(part) not in numbers:
                numbers[id(part)] = len(self._shared)
                self._shared.append(part)
            return numbers[id(part)]

        buffer = io.BytesIO()
        pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
        pickler.persistent_id = persistent_id  # type: ignore[method-assign]
        pickler.dump(market)
        self._bytes = buffer.getvalue()

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self._bytes)

    def copy(self) -> Playing:
        """Return a market that can be played on."""
        unpickler = pickle.Unpickler(io.BytesIO(self._bytes))
        unpickler.persistent_load = self._shared.__getitem__  # type: ignore[method-assign]
        market: Playing = unpickler.load()
        return market


def snapshot(market: Playing) -> Snapshot | None:
    """Return the market to be copied, or None if the mechanism does not pickle."""
    try:
        return Snapshot(market)
    except Exception:  # pickling runs the mechanism's own code: anything may come
        return None


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector from walking through a large market while a copy is made."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
