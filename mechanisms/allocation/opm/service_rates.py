"""What OPM knows of the machines' service rates: upper confidence bounds from the work it saw.

A machine that has run ``n`` tasks with total work ``w`` has the empirical mean ``w / (n + 1)`` of
OPM (13) and (67), the radius of OPM (14), and the estimate of OPM (12) and (66), which is at most 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.opm.kernels import upper_rates_kernel
from marketsched.mechanisms.checks import finite_parameter, float_array


def confidence_radius(mean: ArrayLike, samples: ArrayLike, gamma: float) -> NDArray[np.float64]:
    """Return ``sqrt(gamma * mean / samples) + gamma / samples``, OPM (14).

    Parameters
    ----------
    mean : array_like of float
        Empirical mean, >= 0.
    samples : array_like of float
        Number of samples, > 0.
    gamma : float
        Weight of exploration, >= 0.
    """
    n = np.asarray(samples, dtype=np.float64)
    return np.asarray(np.sqrt(gamma * np.asarray(mean) / n) + gamma / n)


def upper_rates(works: ArrayLike, plays: ArrayLike, gamma: float) -> NDArray[np.float64]:
    """Return the estimates of OPM (12) and (66) of machines.

    Parameters
    ----------
    works : array_like of float, shape (M,)
        Work each machine has delivered in all its tasks so far.
    plays : array_like of float, shape (M,)
        Number of these tasks.
    gamma : float
        Weight of exploration, ln(M T / delta) in the theorems.

    Returns
    -------
    ndarray of float, shape (M,)
        In (0, 1]; 1 for a machine that was never used if gamma >= 1/2.

    Raises
    ------
    InvalidParameterError
        If an array or gamma is out of range.

    Examples
    --------
    >>> upper_rates([0.0, 50.0], [0, 99], 0.25).round(3)
    array([0.5 , 0.576])
    """
    done = float_array("works", works, (None,), lowest=0.0)
    tasks = float_array("plays", plays, done.shape, lowest=0.0)
    rates = np.empty_like(done)
    upper_rates_kernel(done, tasks, finite_parameter("gamma", gamma), rates)
    return rates
