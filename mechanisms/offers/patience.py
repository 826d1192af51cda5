r"""How long jobs agree to wait, and what that costs.

With an offer a job chooses a patience P, rounds: of its class it is served in order of arrival + P, and it leaves if it
has not begun to run by then. Who is patient pays less. With the usual announced mean :math:`\bar m` of all jobs that
have left, the rate of an offer is multiplied by

.. math:: \frac{3}{2 + \min(4, P / \bar m)}

which is 1.5 for P = 0, 1 for :math:`P = \bar m`, and 1/2 from :math:`4 \bar m` on. Without a price for it every job
would claim to be urgent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

UNLIMITED = 10**9  # rounds: nobody waits so long


def _posted() -> NDArray[np.int64]:
    steps = ((0, 16, 1), (16, 32, 2), (32, 64, 4), (64, 128, 8), (128, 513, 32))
    return np.concatenate([np.arange(*step, dtype=np.int64) for step in steps])


POSTED = _posted()  # (53,), rounds; of coarser lists jobs find none that suits them
ONE = np.array([UNLIMITED], dtype=np.int64)  # nothing to choose: order of arrival, at the rate itself
POSTED.flags.writeable = ONE.flags.writeable = False


def price_factors(patience: NDArray[np.int64], usual: float) -> NDArray[Any]:
    """Return what the rate is multiplied by for each patience, shape (n,).

    Parameters
    ----------
    patience : ndarray of int, shape (n,)
        Rounds.
    usual : float
        Usual announced mean of all jobs that have left, rounds.

    Examples
    --------
    >>> price_factors(np.array([0, 4, 16, 99]), 4.0).tolist()
    [1.5, 1.0, 0.5, 0.5]
    >>> price_factors(ONE, 4.0).tolist()
    [1.0]
    """
    if patience[0] == UNLIMITED:
        return np.ones(patience.size)
    factors: NDArray[Any] = 3.0 / (2.0 + np.minimum(4.0, patience / max(1.0, usual)))
    return factors


def offered(patience: NDArray[np.int64], longest_wait: int) -> int:
    """Return how many entries a job is offered: those in which it could still end in time, at least the first."""
    if patience[0] == UNLIMITED:
        return 1
    return max(1, int(np.searchsorted(patience, longest_wait, side="right")))
