"""The length of a round of a log, and runs in whole rounds whose node time adds up to that of the log.

Runs are rounded to the nearest round, and the node time that rounding has added or left out is carried to the next
run; each lasts at least one round. So loads and mean waits come out right at every length that is short enough for the
runs, and a single run is right to a round.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numba import njit
from numpy.typing import NDArray

LENGTHS_S, SHORT_S = (3600.0, 1800.0, 900.0, 600.0, 300.0, 120.0, 60.0), (30.0, 10.0)
MOST_ADDED = 0.01  # of the node time, by runs shorter than a round
TYPICAL_ROUNDS = 4.0  # the median run lasts at least so many rounds of a minute or more
MOST_CARRIED = 8192.0  # node-rounds


def chosen_length(runs: pd.DataFrame) -> float:
    """Return the coarsest of 60, 30, 15, 10, 5, 2, 1 minutes, 30 and 10 s that is fine enough for these runs, s.

    Fine enough: `added_share` is at most 1 %, and rounds of a minute or more are a fourth of the median run at most.
    If none is, 10 s.
    """
    typical = float(runs["run_s"].median())
    lengths = [*(s for s in LENGTHS_S if TYPICAL_ROUNDS * s <= typical), *SHORT_S]
    return next((s for s in lengths if added_share(runs, s) <= MOST_ADDED), SHORT_S[-1])


def added_share(runs: pd.DataFrame, length: float) -> float:
    """Return the node time that whole rounds of ``length`` s add to these runs, as a share of it."""
    nodes, seconds = runs["processors"].to_numpy(np.int64), runs["run_s"].to_numpy(np.float64)
    real = float(seconds @ nodes)
    return float(carried(seconds, nodes, length) @ nodes) * length / real - 1.0 if real else 0.0


def carried(seconds: NDArray[np.float64], nodes: NDArray[np.int64], length: float) -> NDArray[np.int64]:
    """Return runs in whole rounds, shape (n,), each the nearest one up or down and at least 1, with carry.

    Parameters
    ----------
    seconds : ndarray of float, shape (n,)
        How long each run took, in order of submission.
    nodes : ndarray of int, shape (n,)
        How many nodes it took.
    length : float
        Of a round, s.

    Examples
    --------
    Nine runs of 20 minutes last nine rounds of 20 minutes; of an hour, three rounds are right, and one each the least:

    >>> carried(np.full(6, 1200.0), np.ones(6, int), 800.0).tolist(), carried(np.full(3, 1200.0), np.ones(3, int), 3600)
    ([2, 1, 2, 1, 2, 1], array([1, 1, 1]))
    """
    rounds = np.empty(seconds.size, np.int64)
    _carried_kernel(seconds, nodes, float(length), MOST_CARRIED, rounds)
    return rounds


@njit(cache=True)
def _carried_kernel(seconds, nodes, length, most, rounds):  # type: ignore[no-untyped-def]
    """Fill ``rounds``; ``carry`` is the node time, in rounds, that those before have left out."""
    carry = 0.0
    for i in range(seconds.size):
        run = seconds[i] / length
        low = max(1, int(np.floor(run)))
        rounds[i] = min(max(low, int(np.rint(run + carry / nodes[i]))), max(low, int(np.ceil(run))))
        carry = min(max(carry + (run - rounds[i]) * nodes[i], -most), most)
