r"""Menus at arrival on a cluster: every (shape, pool, start, booked length) that fits, at a linear price.

With prices p and their sums P, rounds s .. s + L - 1 of n tasks that need a_k each cost
:math:`n \sum_k a_k (P[g,k,s+L] - P[g,k,s])`. The length is bought like the width: a job that is not done at the end of
its booking is stopped. Where its duration d_i is known by its law q_i alone, the surplus is expected::

    sum_i q_i [ w V(s + d_i) 1(d_i <= L) - price of the first min(d_i, L) rounds - phi * price of the rest ]

with a public share phi of what is booked and not used. The job gets the entry of largest surplus for which a placement
exists: the earliest among equals, then the pool named first (those last that have devices for which the job does not
ask), then the shape named first, then the shortest; and none unless its surplus exceeds 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.resources.bookings import Booking


@dataclass(frozen=True, slots=True, eq=False)
class ClusterMenu:
    """The menu of a job when it was served: prices and calendars. It does not depend on the job's report.

    Whether two plays showed a job the same menu is one comparison, bit for bit.
    """

    now: int  # the round
    prefix: NDArray[np.float64]  # (n_pools, n_resources, n + 1), prices of rounds now, now + 1, ... added up
    free: NDArray[np.int32]  # (n_nodes, n_resources, m), parts free in rounds now, now + 1, ...
    devices: NDArray[np.int32]  # (n_devices, m), the same of devices
    phi: float = 0.0  # share of the price of booked rounds that is paid for those not used

    def __eq__(self, other: object) -> bool:
        """Compare bit for bit."""
        if not isinstance(other, ClusterMenu):
            return NotImplemented
        pairs = ((self.prefix, other.prefix), (self.free, other.free), (self.devices, other.devices))
        same = (self.now, self.phi) == (other.now, other.phi)
        return same and all(np.array_equal(x, y) for x, y in pairs)

    def cost(self, width: int, start: int, used: int) -> float:
        """Return what ``used`` rounds on ``width`` nodes from round ``start`` on cost, credits.

        Of a market of identical nodes: one pool, and the node as its only resource.
        """
        total = np.array([width], dtype=np.int64)
        begin = min(start - self.now, self.prefix.shape[2] - 1)
        return float(quoted(self.prefix, 0, total, begin, used)[-1])

    def owed(self, booking: Booking, used: int) -> float:
        """Return what a booking costs whose job ran for so many rounds, credits."""
        wanted = booking.wanted
        total = wanted.tasks * np.asarray(wanted.demand)
        costs = quoted(self.prefix, wanted.pool, total, booking.start - self.now, booking.length)
        return float(costs[used] + self.phi * (costs[-1] - costs[used]))


def quoted(
    prefix: NDArray[np.float64], pool: int, total: NDArray[np.int64], start: int, length: int
) -> NDArray[np.float64]:
    """Return the cost of the first 0, 1, ..., ``length`` rounds of a booking, shape (length + 1,).

    ``prefix`` is as of `entries`; ``total`` are the parts of all its tasks by resource; ``start`` counts from now.
    """
    costs: NDArray[np.float64] = _quoted_kernel(prefix, pool, total, start, length)
    costs.flags.writeable = False  # copies of a market share it
    return costs


@njit(cache=True)
def _cost_kernel(prefix, g, total, begin, end):  # type: ignore[no-untyped-def]
    """Return the price of rounds ``begin .. end - 1`` after the current one."""
    last, cost = prefix.shape[2] - 1, 0.0
    for k in range(total.size):
        cost += total[k] * (prefix[g, k, min(end, last)] - prefix[g, k, min(begin, last)])
    return cost


@njit(cache=True)
def _quoted_kernel(prefix, g, total, start, length):  # type: ignore[no-untyped-def]
    """Return the price of the first 0, 1, ..., ``length`` rounds, as entries count it: what is shown is charged."""
    costs = np.empty(length + 1)
    for used in range(length + 1):
        costs[used] = _cost_kernel(prefix, g, total, start, start + used)
    return costs


@njit(cache=True)
def _entries_kernel(prefix, pools, totals, worths, lengths, chances, values, rounds_left, phi):  # type: ignore[no-untyped-def]
    """Go through starts, then options, then lengths: the order of ties."""
    n, q = lengths.shape
    size = values.size * n * q
    surpluses, found = np.empty(size), np.empty((3, size), np.int64)
    shortest = np.empty(n, np.int64)
    for o in range(n):
        shortest[o] = lengths[o, 0]
        for b in range(1, q):
            shortest[o] = min(shortest[o], lengths[o, b])
    m = 0
    for s in range(values.size):
        for o in range(n):
            for b in range(q):
                booked = lengths[o, b]
                repeated = False
                for c in range(b):
                    repeated = repeated or lengths[o, c] == booked
                if repeated or s + booked > rounds_left or s + shortest[o] >= values.size:
                    continue
                surplus = 0.0
                for c in range(q):
                    used, value = min(lengths[o, c], booked), 0.0
                    if lengths[o, c] <= booked and s + used < values.size:
                        value = worths[o] * values[s + used]
                    cost = _cost_kernel(prefix, pools[o], totals[o], s, s + used)
                    if phi > 0.0 and used < booked:
                        cost += phi * _cost_kernel(prefix, pools[o], totals[o], s + used, s + booked)
                    surplus += chances[c] * (value - cost)
                if surplus > 1e-12:
                    surpluses[m] = surplus
                    found[0, m], found[1, m], found[2, m] = o, s, booked
                    m += 1
    return surpluses[:m].copy(), found[0, :m].copy(), found[1, :m].copy(), found[2, :m].copy()
