"""Machines that are available in each slot on their own account, some more often than others."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.checks import float_array


class IndependentAvailability:
    """Machine i is available in a slot with probability ``shares[i]``, independently of everything else.

    What the theory of OPM assumes of service rates: independent over slots, and a mean that is the
    machine's own.

    Parameters
    ----------
    shares : array_like of float, shape (M,)
        In [0, 1].
    rng : Generator
        Only a child of it is drawn from.

    Raises
    ------
    InvalidParameterError
        If a share is out of range.
    """

    slots: int | None = None

    def __init__(self, shares: ArrayLike, rng: np.random.Generator) -> None:
        self.shares = float_array("shares", shares, (None,), lowest=0.0, highest=1.0).copy()
        self.n_machines = self.shares.size
        (self._first,) = rng.spawn(1)
        self.begin()

    def begin(self) -> None:
        """Go back to the first slot; the same randomness comes again."""
        self._rng = deepcopy(self._first)

    def next(self) -> NDArray[np.float64]:
        """Return 1 for machines that are available in the coming slot, else 0; shape (M,)."""
        return (self._rng.random(self.n_machines) < self.shares).astype(np.float64)
