"""When machines are available, slot by slot: Gamma periods as in the OPM paper, or recorded outages and fleets.

A process has ``n_machines`` and ``slots`` (None: no end), begins anew with ``begin``, and says with
``next`` which machines are available in the coming slot: numbers in [0, 1], 1 for available.
"""

from __future__ import annotations

import copy
from typing import Annotated, Protocol

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Finite, Named, Positive, legal
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.randomness import generator_of

LEAST = 1e-3  # of a law of periods: with less, millions of them may lie in one slot
PAPER_UP = (0.34, 94.35)
"""Gamma shape and scale (slots) of available periods in the OPM paper's evaluation."""
PAPER_DOWN = (0.19, 39.92)
"""Gamma shape and scale (slots) of unavailable periods."""


class AvailabilityProcess(Protocol):
    """Which machines are available in each slot."""

    @property
    def n_machines(self) -> int:
        """M."""

    @property
    def slots(self) -> int | None:
        """How many slots there are; None: as many as are asked for."""

    def begin(self) -> None:
        """Go back to the first slot; the same randomness comes again."""

    def next(self) -> NDArray[np.float64]:
        """Return the available part of every machine in the coming slot, in [0, 1]; shape (M,)."""


class IndependentAvailability:
    """Machine i is available in a slot with probability ``shares[i]``, independently of everything else.

    So the theory of OPM assumes service rates, with a mean of each machine. Only a child of ``rng`` is drawn from.
    """

    slots: int | None = None

    def __init__(self, shares: ArrayLike, rng: np.random.Generator) -> None:
        self.shares = float_array("shares", shares, (None,), lowest=0.0, highest=1.0).copy()
        self.n_machines = self.shares.size
        (self._first,) = rng.spawn(1)
        self.begin()

    def begin(self) -> None:
        """Go back to the first slot; the same randomness comes again."""
        self._rng = copy.deepcopy(self._first)

    def next(self) -> NDArray[np.float64]:
        """Return 1 for machines that are available in the coming slot, else 0; shape (M,)."""
        return (self._rng.random(self.n_machines) < self.shares).astype(np.float64)


class GammaAvailability:
    """Available and unavailable periods in turn, Gamma distributed, each of ``n_machines`` on its own.

    ``up`` and ``down`` are shape and scale (slots) of the periods' lengths. A machine's state in a slot is that at the
    slot's middle. The process is stationary from the first slot on: the first period is the rest of a period met at a
    random time. It owns ``rng`` from now on.

    Examples
    --------
    >>> process = GammaAvailability(3, rng=1, up=(1.0, 30.0), down=(1.0, 10.0))
    >>> process.share, process.next().shape
    (0.75, (3,))
    """

    @legal
    def __init__(
        self,
        n_machines: Count,
        rng: np.random.Generator | int | None = None,
        *,
        up: tuple[float, float] = PAPER_UP,
        down: tuple[float, float] = PAPER_DOWN,
    ) -> None:
        self.n_machines = n_machines
        self.slots: int | None = None
        laws = [
            [Finite("(0, inf)").check(f"{name} {part}", x) for part, x in zip(("shape", "scale"), law, strict=True)]
            for name, law in (("down", down), ("up", up))
        ]
        self._laws = np.array(laws)  # row 0: down, row 1: up
        if not ((self._laws[:, 0] >= LEAST) & (self._laws.prod(axis=1) >= LEAST)).any():  # a slot would never end
            legal = f"shape and mean (shape times scale, in slots) of at least {LEAST:g} in it or in down"
            raise InvalidParameterError(place="up", value=tuple(up), legal=legal)
        self._seed = generator_of(rng)
        self.begin()

    @property
    def share(self) -> float:
        """Long-run share of time a machine is available."""
        down, up = self._laws.prod(axis=1)
        return float(up / (up + down))

    def begin(self) -> None:
        """Go back to the first slot; the same randomness comes again."""
        self._rng = copy.deepcopy(self._seed)
        self._time = 0.5
        self._up = (self._rng.random(self.n_machines) < self.share).astype(np.int64)
        shape, scale = self._laws[self._up].T
        # The period met at random is longer than usual (Gamma of one more in shape), at a uniform place in it.
        self._until = self._rng.random(self.n_machines) * self._rng.gamma(shape + 1.0, scale)

    def next(self) -> NDArray[np.float64]:
        """Return 1 for machines that are available in the coming slot, else 0; shape (M,)."""
        _advance_kernel(self._rng, self._time, self._laws, self._up, self._until)
        self._time += 1.0
        return self._up.astype(np.float64)


class RecordedAvailability:
    """Availability as recorded: the available part of each slot, in [0, 1], shape (slots, M).

    Examples
    --------
    >>> process = RecordedAvailability([[1.0, 0.0], [0.5, 1.0]])  # two slots of two machines
    >>> process.begin()
    >>> process.next(), process.next()
    (array([1., 0.]), array([0.5, 1. ]))
    """

    def __init__(self, available: ArrayLike) -> None:
        given = np.asarray(available)
        if given.dtype == np.bool_:
            given = given.astype(np.float32)
        if given.dtype != np.float32:
            given = float_array("available", given, (None, None), lowest=0.0, highest=1.0)
        elif given.ndim != 2 or not (given.size and given.min() >= 0.0 and given.max() <= 1.0):
            float_array("available", given, (None, None), lowest=0.0, highest=1.0)
        if 0 in given.shape:
            raise InvalidParameterError(f"available has shape {given.shape}: expected at least one slot and machine")
        self._available = given
        self.begin()

    @property
    def n_machines(self) -> int:
        """M."""
        return int(self._available.shape[1])

    @property
    def slots(self) -> int | None:
        """Slots recorded."""
        return int(self._available.shape[0])

    def begin(self) -> None:
        """Go back to the first slot."""
        self._at = 0

    def next(self) -> NDArray[np.float64]:
        """Return the available part of every machine in the coming slot; shape (M,)."""
        row: NDArray[np.float64] = self._available[self._at].astype(np.float64)
        self._at += 1
        return row


@legal
def availability_from_periods(
    machines: ArrayLike,
    starts: ArrayLike,
    ends: ArrayLike,
    *,
    n_machines: Count,
    slots: Count,
    slot_length: Positive,
    periods_are: Annotated[str, Named(("outages", "presence"))] = "outages",
) -> NDArray[np.float32]:
    """Return the available part of every slot and machine, shape (slots, n_machines), from recorded periods.

    Overlapping periods count once, and need not be merged.

    Parameters
    ----------
    machines : array_like of int, shape (n,)
        In [0, n_machines).
    starts, ends : array_like of float, shape (n,)
        Time since the beginning of slot 1; parts outside the slots are cut off; ends >= starts.
    n_machines, slots : int
        M and number of slots.
    slot_length : float
        In the unit of the times.
    periods_are : str
        "outages" (available outside the periods) or "presence" (available inside them).

    Examples
    --------
    >>> availability_from_periods([0, 1], [10, 0], [25, 40], n_machines=2, slots=4, slot_length=10.0)
    array([[1. , 0. ],
           [0. , 0. ],
           [0.5, 0. ],
           [1. , 0. ]], dtype=float32)
    """
    m, n_slots = n_machines, slots
    begin, end = float_array("starts", starts, (None,)), float_array("ends", ends, (None,))
    which = float_array("machines", machines, begin.shape, lowest=0.0, highest=m - 1.0)
    float_array("ends", end, begin.shape)
    backward = np.flatnonzero(end < begin)
    if backward.size:
        k = int(backward[0])
        raise InvalidParameterError(f"ends[{k}] = {end[k]:g}: expected at least starts[{k}] = {begin[k]:g}")
    order = np.lexsort((begin, which))
    check_memory(f"the state of {m} machines in {n_slots} slots", 28.0 * n_slots * m, "fewer machines or slots")
    covered = np.zeros((n_slots, m))
    _cover_kernel(which[order].astype(np.int64), begin[order] / slot_length, end[order] / slot_length, covered)
    covered = np.minimum(covered, 1.0)
    return (1.0 - covered if periods_are == "outages" else covered).astype(np.float32)


@njit(cache=True)
def _advance_kernel(rng, time, laws, up, until):  # type: ignore[no-untyped-def]
    """Bring every machine's state to ``time``; ``until`` is the end of its present period."""
    for i in range(up.size):
        while until[i] <= time:
            up[i] = 1 - up[i]
            until[i] += rng.gamma(laws[up[i], 0], laws[up[i], 1])


@njit(cache=True)
def _cover_kernel(machines, starts, ends, covered):  # type: ignore[no-untyped-def]
    """Add the part of each slot that periods cover; sorted by machine and start, times in slots."""
    n_slots = covered.shape[0]
    machine, reached = -1, 0.0
    for k in range(machines.size):
        if machines[k] != machine:
            machine, reached = machines[k], 0.0
        begin, end = max(starts[k], reached), min(ends[k], float(n_slots))
        if end <= begin:
            continue
        reached = end
        first, last = int(begin), min(int(end), n_slots - 1)
        for slot in range(first, last + 1):
            covered[slot, machine] += min(end, slot + 1.0) - max(begin, float(slot))
