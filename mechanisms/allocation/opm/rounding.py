"""Rounding of shares to whole machines with one draw per machine, OPM (21) and (72).

A machine is given to a job with probability equal to the job's share, and stays idle with what is
left: every draw obeys OPM (3), one job per machine, and its expectation is the shares. For demands,
capacities and limits on the number of tasks see `dependent_rounding`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.opm.kernels import draw_kernel
from marketsched.mechanisms.checks import float_array
from marketsched.mechanisms.errors import InvalidParameterError

SUM_TOLERANCE = 1e-9  # by which shares of a machine may exceed 1: rounding of whoever made them


def round_machines(fractional: ArrayLike, rng: np.random.Generator | int | None = None) -> NDArray[np.int64]:
    """Draw who gets each machine.

    Parameters
    ----------
    fractional : array_like of float, shape (n_jobs, M)
        Shares, >= 0, column sums of at most 1. With one row this is OPM (21).
    rng : Generator, int or None
        One uniform number per machine is drawn from it.

    Returns
    -------
    ndarray of int, shape (M,)
        Row of the job that gets the machine, or -1.

    Raises
    ------
    InvalidParameterError
        If the shares are not such an array.

    Examples
    --------
    >>> round_machines([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 0)
    array([ 0,  1, -1])
    """
    shares = float_array("fractional", fractional, (None, None), lowest=0.0)
    sums = shares.sum(axis=0)
    if sums.size and sums.max() > 1.0 + SUM_TOLERANCE:
        worst = int(sums.argmax())
        raise InvalidParameterError(f"fractional[:, {worst}] sums to {sums[worst]:.12g}: expected at most 1")
    rows = np.empty(shares.shape[1], dtype=np.int64)
    draw_kernel(shares, np.random.default_rng(rng).random(shares.shape[1]), rows)
    return rows
