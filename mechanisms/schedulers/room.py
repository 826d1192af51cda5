"""The nodes of a round, and reservations ahead for those who do not fit: for none, the first k, all, or strict.

Jobs are tried in the order of a rule. One that fits beside the runs and the reservations starts. Of the others the
first ``k`` reserve, in their order, the first rounds in which they fit by wall times, so that nobody tried later delays
them; k = 1 is EASY backfilling, and reservations for all are conservative backfilling. Reservations are made anew each
round. Strict: nobody starts behind one that does not fit.

Sources: D. Lifka, *The ANL/IBM SP scheduling system*, JSSPP 1995; A. Mu'alem and D. Feitelson, *Utilization,
predictability, workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling*, TPDS 2001.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.legal import LARGEST_WHOLE, Named, Whole

RESERVATIONS = {"none": 0, "head": 1, "all": LARGEST_WHOLE, "strict": -1}
Reserve = Annotated[str | int, Named(tuple(RESERVATIONS), Whole(0))]
WINDOW = 4  # of the longest wall time: so far ahead reservations are made


class Room:
    """Idle nodes of this round, ``free``, and of those ahead; ``longest`` is the longest wall time, rounds.

    ``ends`` returns (rounds, nodes) of every run: the rounds from now on, 1 or more, after which it counts as over.

    Examples
    --------
    Two of four nodes are busy for four rounds more. The first job needs three, and a run of four rounds may pass it,
    or one of five on the node that it leaves over:

    >>> room = Room(2, lambda: [(4, 2)], "head", 9)
    >>> [room.takes(*job) for job in ((3, 9), (1, 5), (1, 5), (1, 4))]
    [False, True, False, True]
    """

    def __init__(self, free: int, ends: Callable[[], list[tuple[int, int]]], reserve: str | int, longest: int) -> None:
        self.free, self._ends, self._longest = free, ends, longest
        self._left: int = RESERVATIONS.get(reserve, reserve)  # type: ignore[arg-type]
        self._begun: list[tuple[int, int]] = []  # runs as in ``ends``
        self._ahead: NDArray[np.int64] | None = None  # idle nodes by round from now on, once somebody reserves some

    def takes(self, width: int, rounds: int) -> bool:
        """Try a job with its nodes and its wall time; True: it starts, False: it waits."""
        if width <= self.free and self._ahead is None:
            self.free -= width
            self._begun.append((rounds, width))
            return True
        if self._left < 0:
            self.free = 0
        if self._left <= 0 and width > self.free:
            return False
        if self._ahead is None:
            self._ahead = self._idle(min(self._left, WINDOW) * self._longest + 1)
        start = _book_kernel(self._ahead, width, rounds, self._ahead.size if self._left else 0)
        if start == 0:
            self.free -= width
        elif self._left:
            self._left -= 1
        return bool(start == 0)

    def _idle(self, window: int) -> NDArray[np.int64]:
        rounds, nodes = np.array([(0, self.free), *self._ends(), *self._begun]).T
        return np.bincount(rounds, nodes, window).cumsum().astype(np.int64)


@njit(cache=True)
def _book_kernel(ahead, width, rounds, last):  # type: ignore[no-untyped-def]
    """Book the first rounds in a row with so many nodes that begin up to ``last``; return the first, or -1."""
    first = 0
    for t in range(ahead.size):
        if ahead[t] < width:
            first = t + 1
            if first > last:
                return -1
        elif t + 1 - first == rounds:
            break
    if first == ahead.size:
        return -1
    ahead[first : first + rounds] -= width
    return first
