"""Utilities of channels, slot by slot: Gaussian as in the ESDP paper, or recorded ones.

A source draws nothing ahead; ``begin`` goes back to the first slot, and the same utilities come again, whatever was
selected. All utilities are net of the supply costs and lie in [0, 1], as ESDP (7) asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from marketsched.mechanisms.arrays import float_array, read_only
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Positive, legal
from marketsched.mechanisms.randomness import Rng, own_stream


class UtilitySource(Protocol):
    """The interface of utilities for a channel environment."""

    @property
    def means(self) -> NDArray[np.float64]:
        """True mean utility of each channel, for the oracle; shape (E,)."""

    @property
    def slots(self) -> int | None:
        """How many slots there are; None: no last one."""

    @property
    def scaling(self) -> str:
        """How utilities came to lie in [0, 1], in words for a table's foot."""

    def begin(self) -> None:
        """Go back to the first slot."""

    def draw(self) -> NDArray[np.float64]:
        """Return the utilities of the next slot, shape (E,), in [0, 1]."""


class GaussianUtilities:
    """Independent Gaussian computation utilities less supply costs, in some unit, cut off at 0 and 1.

    ``utility = min(max((Z - cost_scale * cost) / unit, 0), 1)`` with ``Z ~ N(mean, deviation)``; arrays have shape
    (E,). Attribute ``means`` has the exact mean utilities, the cutting-off included. Only a child of ``rng`` is drawn
    from.

    Examples
    --------
    >>> source = GaussianUtilities([0.5, 3.0], [0.0, 0.0], [0.1, 0.1], np.random.default_rng(0))
    >>> source.draw(), source.means
    (array([0.4, 1. ]), array([0.4, 1. ]))
    """

    slots: int | None = None

    @legal
    def __init__(
        self,
        means: ArrayLike,
        deviations: ArrayLike,
        costs: ArrayLike,
        rng: Rng,
        *,
        cost_scale: Amount = 1.0,
        unit: Positive = 1.0,
    ) -> None:
        mu = float_array("means", means, (None,), lowest=0.0)
        sigma = float_array("deviations", deviations, mu.shape, lowest=0.0)
        cost = float_array("costs", costs, mu.shape, lowest=0.0)
        self.cost_scale = cost_scale
        self.unit = unit
        self._centre = (mu - self.cost_scale * cost) / self.unit
        self._spread = sigma / self.unit
        self.means = read_only(_mean_cut_off(self._centre, self._spread))
        self._first = own_stream(rng)
        self.begin()

    @property
    def scaling(self) -> str:
        """How utilities came to lie in [0, 1]."""
        return f"(Z - {self.cost_scale:.4g} * costs) / {self.unit:g}, cut off at 0 and 1"

    def begin(self) -> None:
        """Go back to the first slot; the same utilities come again."""
        self._rng = deepcopy(self._first)

    def draw(self) -> NDArray[np.float64]:
        """Return the utilities of the next slot, shape (E,)."""
        drawn = self._centre + self._spread * self._rng.standard_normal(len(self.means))
        return np.asarray(np.clip(drawn, 0.0, 1.0))


class RecordedUtilities:
    """Utilities taken from records: one array of samples in [0, 1] per channel, at least one each; copied.

    With ``rng`` every slot draws one sample of each channel, independently, with replacement. Without, samples are
    replayed in order, each channel from its first again after its last. ``means``, shape (E,), are those of the
    samples.

    Examples
    --------
    >>> source = RecordedUtilities([[0.25, 0.75], [1.0]])
    >>> [source.draw().tolist() for _ in range(3)], source.means
    ([[0.25, 1.0], [0.75, 1.0], [0.25, 1.0]], array([0.5, 1. ]))
    """

    slots: int | None = None

    def __init__(self, samples: Sequence[ArrayLike], rng: Rng = None) -> None:
        arrays = [float_array(f"samples[{e}]", one, (None,), lowest=0.0, highest=1.0) for e, one in enumerate(samples)]
        if not arrays:
            raise InvalidParameterError("samples is empty: expected one array per channel")
        self._lengths = np.array([len(one) for one in arrays], dtype=np.int64)
        if (self._lengths == 0).any():
            raise InvalidParameterError(
                f"samples[{int(np.argmin(self._lengths))}] is empty: expected at least one sample of each channel"
            )
        self._offsets = np.concatenate(([0], np.cumsum(self._lengths[:-1])))
        self._flat = np.concatenate(arrays)
        self.means = read_only(np.array([float(one.mean()) for one in arrays]))
        self._first = None if rng is None else own_stream(rng)
        self.begin()

    @property
    def scaling(self) -> str:
        """How utilities came to lie in [0, 1]."""
        return "as recorded"

    def begin(self) -> None:
        """Go back to the first slot; the same utilities come again."""
        self._rng = deepcopy(self._first)
        self._slot = 0

    def draw(self) -> NDArray[np.float64]:
        """Return the utilities of the next slot, shape (E,)."""
        at = self._slot % self._lengths if self._rng is None else self._rng.integers(self._lengths)
        self._slot += 1
        return np.asarray(self._flat[self._offsets + at])


def relative_speeds(times: Sequence[ArrayLike]) -> list[NDArray[np.float64]]:
    """Turn times for the same piece of work, an array for each channel, into utilities ``min(all times) / time``.

    The fastest of all has 1, twice its time 1/2. InvalidParameterError if there is no time, or one is not positive.

    Examples
    --------
    >>> relative_speeds([[2.0, 4.0], [8.0]])
    [array([1. , 0.5]), array([0.25])]
    """
    arrays = [float_array(f"times[{i}]", one, (None,), lowest=0.0) for i, one in enumerate(times)]
    shortest = min((float(one.min()) for one in arrays if one.size), default=0.0)
    if shortest <= 0.0:
        raise InvalidParameterError(f"times has a shortest of {shortest:g}: expected at least one, all > 0")
    return [shortest / one for one in arrays]


def _mean_cut_off(centre: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return E[min(max(X, 0), 1)] for X ~ N(centre, spread)."""
    safe = np.where(spread > 0.0, spread, 1.0)
    low, high = -centre / safe, (1.0 - centre) / safe
    density = (np.exp(-0.5 * low**2) - np.exp(-0.5 * high**2)) / math.sqrt(2.0 * math.pi)
    mean = centre * (ndtr(high) - ndtr(low)) + safe * density + ndtr(-high)
    return np.where(spread > 0.0, np.clip(mean, 0.0, 1.0), np.clip(centre, 0.0, 1.0))
