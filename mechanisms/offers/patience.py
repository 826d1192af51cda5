r"""How long jobs agree to wait, and what that costs.

With an offer a job chooses a patience P, rounds: of its class it is served in order of arrival + P, and it leaves if it
has not begun to run by then. Who is patient pays less. With the usual announced mean :math:`\bar m` of all jobs that
have left, the rate of an offer is multiplied by

.. math:: \frac{3}{2 + \min(4, P / \bar m)}

which is 1.5 for P = 0, 1 for :math:`P = \bar m`, and 1/2 from :math:`4 \bar m` on. Without a price for it every job
would claim to be urgent.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.unit import Unit

UNLIMITED = 10**9  # rounds: nobody waits so long
STEPS = ((0, 16, 1), (16, 32, 2), (32, 64, 4), (64, 128, 8), (128, 513, 32))  # quarters; of coarser ones none suits
LARGE = 512 * 2.0 ** (0.5 * np.arange(1, 23))  # to 2^20 quarters: a deadline far ahead needs no nearer entry


def posted(unit: Unit) -> NDArray[np.int64]:
    """Return each patience that is posted, rounds, rising."""
    quarters = np.concatenate([*(np.arange(*step) for step in STEPS), LARGE])
    found = np.unique(np.rint(quarters * unit.rounds).astype(np.int64))
    found.flags.writeable = False
    return found


POSTED = posted(Unit())  # (75,), where a round is a quarter of an hour
ONE = np.array([UNLIMITED], dtype=np.int64)  # nothing to choose: order of arrival, at the rate itself
ONE.flags.writeable = False


def posted_rates(rates: tuple[float, float], patience: NDArray[np.int64], usual: float) -> NDArray[np.float64]:
    """Return rates of spare and of regular nodes for each patience (rounds), shape (2, n), credits a node and round.

    ``rates`` are before the price of patience; ``usual`` is the usual announced mean of all jobs that have left,
    rounds.

    Examples
    --------
    >>> posted_rates((1.0, 2.0), np.array([0, 4, 16, 99]), 4.0).tolist()
    [[1.5, 1.0, 0.5, 0.5], [3.0, 2.0, 1.0, 1.0]]
    >>> posted_rates((1.0, 2.0), ONE, 4.0).tolist()
    [[1.0], [2.0]]
    """
    if patience[0] == UNLIMITED:
        return np.array(rates).reshape(2, 1)
    found = np.empty((2, patience.size))
    _rates_kernel(*rates, patience, max(1.0, usual), found)
    return found


def offered(patience: NDArray[np.int64], longest_wait: int) -> int:
    """Return how many entries a job is offered: those in which it could still end in time, at least the first."""
    if patience[0] == UNLIMITED:
        return 1
    return max(1, int(np.searchsorted(patience, longest_wait, side="right")))


@njit(cache=True)
def _rates_kernel(spare, regular, patience, usual, found):  # type: ignore[no-untyped-def]
    """Fill both rows."""
    for p in range(patience.size):
        factor = 3.0 / (2.0 + min(4.0, patience[p] / usual))
        found[0, p], found[1, p] = spare * factor, regular * factor
