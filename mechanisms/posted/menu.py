r"""The announced menu: prices, and failure probabilities after thresholding (Algorithm 2).

.. math:: \tilde f(s,c,d) = \min(1, \hat f(s,c,d)) \text{ if } \hat f > \theta \text{ else } 0,
   \qquad \tilde f = 1 \text{ where } s+d-1 > T
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.posted.launch_plan import ZERO_TOLERANCE


def check_menu(n_starts: int, n_durations: int) -> None:
    """Refuse a table that no memory holds, by TooLargeError, before prices or failures are computed."""
    at_once = 5 * n_starts * n_durations * 8.0  # prices and failures, each as computed and as announced; a mask
    check_memory(
        f"a menu of {n_starts} starts x {n_durations} durations", at_once, "a smaller max_delay or max_duration"
    )


def announced_failures(
    estimates: NDArray[np.float64], threshold: float, first_start: int, horizon: int
) -> NDArray[np.float64]:
    """Return the announced table; estimates within 1e-12 of the threshold theta count as 0.

    ``estimates``, shape (n_starts, n_durations), are of starts ``first_start + i`` and durations ``k + 1``, rounds.
    """
    announced = np.where(estimates > threshold + ZERO_TOLERANCE, np.minimum(estimates, 1.0), 0.0)
    n_starts, n_durations = estimates.shape
    last_rounds = np.add.outer(first_start + np.arange(n_starts), np.arange(n_durations))
    announced[last_rounds > horizon] = 1.0
    return announced


def announced_prices(prices: NDArray[np.float64], longest: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the prices, +inf for durations longer than those on sale."""
    durations = np.arange(1, prices.shape[1] + 1)
    return np.where(durations <= longest[:, np.newaxis], prices, np.inf)
