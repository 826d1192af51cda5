"""Arrival processes: how many jobs come to each port, one slot at a time.

A process draws nothing ahead. ``begin`` goes back to the first slot, and the same arrivals come again. Each process
owns a child of the generator it was made with, so that no draw elsewhere moves its arrivals.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.arrays import count_array, float_array, read_only
from marketsched.mechanisms.errors import DecisionError, InvalidParameterError
from marketsched.mechanisms.legal import Count, Whole, legal
from marketsched.mechanisms.randomness import Rng, own_stream


class ArrivalProcess(Protocol):
    """The interface of arrivals for a cluster environment; counts are never above `most`."""

    @property
    def n_ports(self) -> int:
        """L."""

    @property
    def slots(self) -> int | None:
        """How many slots there are; None: no last one."""

    @property
    def most(self) -> NDArray[np.int64]:
        """J_l, the most jobs that can come to a port in one slot; shape (L,)."""

    def begin(self) -> None:
        """Go back to the first slot."""

    def draw(self) -> NDArray[np.int64]:
        """Return the counts of the next slot, shape (L,), an array of the caller's own."""


class BinomialArrivals:
    """Every port has its own number of users, and each sends a job with the port's probability.

    Parameters
    ----------
    most : array_like of int, shape (L,)
        J_l, users of each port.
    probabilities : float or array_like of float, shape (L,)
    rng : int, Generator or None
        Only a child of it is drawn from: two processes made with one generator are independent.

    Examples
    --------
    >>> BinomialArrivals([2, 3], 1.0, np.random.default_rng(0)).draw()
    array([2, 3])
    """

    slots: int | None = None

    def __init__(self, most: ArrayLike, probabilities: ArrayLike, rng: Rng) -> None:
        self.most = _counts("most", most, 1)
        self.n_ports = n = len(self.most)
        given = float_array("probabilities", probabilities, (n,) if np.ndim(probabilities) else (), lowest=0, highest=1)
        self.probabilities = read_only(np.broadcast_to(given, (n,)).copy())
        self._first = own_stream(rng)
        self.begin()

    def begin(self) -> None:
        """Go back to the first slot; the same arrivals come again."""
        self._rng = deepcopy(self._first)

    def draw(self) -> NDArray[np.int64]:
        """Return the counts of the next slot, shape (L,)."""
        return self._rng.binomial(self.most, self.probabilities)


class BernoulliArrivals(BinomialArrivals):
    """At most one job per port and slot: x_l(t) is 1 with the port's probability (OgaSched (1)).

    ``n_ports``, L, is needed if ``probabilities`` is one number; the rest is as of `BinomialArrivals`.

    Examples
    --------
    >>> BernoulliArrivals([1.0, 0.0], np.random.default_rng(0)).draw()
    array([1, 0])
    """

    @legal
    def __init__(self, probabilities: ArrayLike, rng: Rng, n_ports: Count | None = None) -> None:
        if n_ports is None:
            if np.ndim(probabilities) == 0:
                raise InvalidParameterError("n_ports = None: expected the number of ports beside a single probability")
            n_ports = Whole(1).check("n_ports", np.size(probabilities))
        super().__init__(np.ones(n_ports, dtype=np.int64), probabilities, rng)

    def draw(self) -> NDArray[np.int64]:
        """Return who has a job in the next slot: zeros and ones, shape (L,)."""
        return np.asarray(self._rng.random(self.n_ports) < self.probabilities, dtype=np.int64)


class RecordedArrivals:
    """Arrivals that are known beforehand: ``counts``, jobs per slot and port, shape (T, L); copied.

    Examples
    --------
    >>> RecordedArrivals([[1, 0], [2, 1]]).most
    array([2, 1])
    """

    def __init__(self, counts: ArrayLike) -> None:
        self.counts = _counts("counts", counts, 2)
        self.n_ports = self.counts.shape[1]
        self.slots: int | None = self.counts.shape[0]
        self.most = read_only(self.counts.max(axis=0))
        self.begin()

    def begin(self) -> None:
        """Go back to the first slot."""
        self._next = 0

    def draw(self) -> NDArray[np.int64]:
        """Return the counts of the next slot, shape (L,); InvalidParameterError after the last."""
        if self._next == self.slots:
            raise InvalidParameterError(f"slot {self._next + 1}: expected at most {self.slots} slots, as recorded")
        self._next += 1
        return np.array(self.counts[self._next - 1], dtype=np.int64)


class ArrivalStage:
    """The arrivals' half of an environment: when a slot's arrivals are drawn, and who is shown them.

    It owns ``arrivals`` from now on, at most one a port and slot; a subclass calls `begin` once it is complete.
    ``arrival_counts``, shape (n_ports,), are the jobs of each port in the slots played so far.
    """

    def __init__(self, arrivals: ArrivalProcess, n_ports: int) -> None:
        if arrivals.n_ports != n_ports:
            raise InvalidParameterError(f"arrivals have {arrivals.n_ports} ports: expected {n_ports}, as the cluster")
        if arrivals.most.max() > 1:
            raise InvalidParameterError(
                f"port {int(arrivals.most.argmax())} can get {arrivals.most.max()} jobs in one slot: expected at most "
                "1 (PortCopies gives every job a port of its own)"
            )
        self._arrivals = arrivals

    @property
    def slots(self) -> int | None:
        """How many slots the arrivals last."""
        return self._arrivals.slots

    def begin(self) -> None:
        """Go back to the first slot; the same arrivals come again."""
        self._arrivals.begin()
        self._drawn: NDArray[np.int64] | None = None
        self._slot, self._observed = 1, False
        self.arrival_counts: NDArray[np.int64] = np.zeros(self._arrivals.n_ports, dtype=np.int64)

    def observation(self, observes: str) -> tuple[Any, ...]:
        """Return nothing, or the slot's counts, drawn only for a policy that observes them; DecisionError if twice."""
        if self._observed:
            raise DecisionError(f"slot {self._slot} is observed twice: expected what the policy declared, once")
        self._observed = True
        return (self._draw(),) if observes == "arrivals" else ()

    def _draw(self) -> NDArray[np.int64]:
        """Return the slot's counts, the same ones until the slot is over; the loop has observed it before."""
        if not self._observed:
            raise DecisionError(f"slot {self._slot} is played before it is observed: expected the loop's order")
        if self._drawn is None:
            self._drawn = self._arrivals.draw()
        return self._drawn

    def _end_slot(self) -> None:
        self.arrival_counts += self._draw()
        self._drawn = None
        self._slot, self._observed = self._slot + 1, False


def _counts(name: str, x: ArrayLike, n_axes: int) -> NDArray[np.int64]:
    """Return whole numbers >= 0 as a read-only copy with ``n_axes`` axes, none of them empty."""
    counts = count_array(name, x, (None,) * n_axes).copy()
    if not counts.size:
        raise InvalidParameterError(f"has shape {counts.shape}", place=name, legal="no empty axis")
    return read_only(counts)
