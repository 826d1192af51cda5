"""Where the choices of a random market come from: a seed, or Hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol, TypeVar

import hypothesis.strategies as st

T = TypeVar("T")


class Source(Protocol):
    """Where choices come from."""

    def integer(self, low: int, high: int) -> int:
        """Return a whole number in ``[low, high]``."""
        ...


class SeededSource:
    """Choices from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def integer(self, low: int, high: int) -> int:
        """Return a whole number in ``[low, high]``."""
        return self._random.randint(low, high)


class DrawnSource:
    """Choices drawn (and shrunk) by Hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """Return a whole number in ``[low, high]``."""
        return self._draw(st.integers(low, high))


def pick(source: Source, options: Sequence[T]) -> T:
    """Choose one of the options."""
    return options[source.integer(0, len(options) - 1)]


def chance(source: Source, percent: int) -> bool:
    """Return True in ``percent`` of 100 cases (shrinks to False)."""
    return source.integer(0, 99) >= 100 - percent
