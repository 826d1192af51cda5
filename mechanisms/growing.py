"""Arrays over rounds that grow with the market, instead of covering its horizon.

Only rounds up to the current one plus max_delay and max_duration are ever read, so a market with a far horizon
costs no more than one that ends soon.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.memory import check_memory

N = TypeVar("N", np.int64, np.float64)
FIRST = 1024  # rounds, of an array that is new


def grown(array: NDArray[N], wanted: int, most: int, fill: float, what: str) -> NDArray[N]:
    """Return ``array``, made longer if it has fewer than ``wanted`` entries.

    Parameters
    ----------
    array : ndarray, shape (n,)
        Not changed.
    wanted : int
        Entries that are about to be used; those beyond ``most`` are not.
    most : int
        Entries that there can ever be.
    fill : float
        What new entries hold.
    what : str
        The array's name in an error.

    Raises
    ------
    TooLargeError
        If there is no memory for it.

    Examples
    --------
    >>> grown(np.zeros(2), 3, 5, 1.0, "the list").tolist()
    [0.0, 0.0, 1.0, 1.0, 1.0]
    """
    if array.size >= min(wanted, most):
        return array
    size = min(most, max(FIRST, wanted, 2 * array.size))
    check_memory(f"{what} of {size} rounds", 3 * size * 8.0, "a smaller horizon, max_delay or max_duration")
    longer = np.full(size, fill, dtype=array.dtype)
    longer[: array.size] = array
    return longer
