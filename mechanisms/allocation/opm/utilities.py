"""Utilities of jobs that may be executed in part: concave in the work done by the deadline.

The OPM paper models the utility of job j as ``f_j(X) = v_j X^beta``, with beta in [0.5, 1) in its
evaluation; any exponent in (0, 1] is concave and allowed here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.checks import finite_parameter

FLOOR = 1e-2  # work per slot; where the slope of a job that has done next to nothing is taken


@dataclass(frozen=True, slots=True)
class PowerUtility:
    """``f(X) = weight * X ** exponent`` for work ``X >= 0``.

    Parameters
    ----------
    weight : float
        v, credits for one unit of work; > 0.
    exponent : float
        beta, in (0, 1].

    Raises
    ------
    InvalidParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> f = PowerUtility(3.0, 0.5)
    >>> f(4.0), f.slope(4.0), f.per_slot(64.0, 16)
    (6.0, 0.75, 96.0)
    """

    weight: float
    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", finite_parameter("weight", self.weight, "(0, inf)"))
        object.__setattr__(self, "exponent", finite_parameter("exponent", self.exponent, "(0, 1]"))

    def __call__(self, work: float) -> float:
        """Return the utility of ``work`` units, in credits."""
        return float(self.weight * finite_parameter("work", work) ** self.exponent)

    def slope(self, work: float, floor: float = FLOOR) -> float:
        """Return the slope at ``work``, or at ``floor`` if that is larger: at 0 it would be infinite."""
        at = max(finite_parameter("work", work), finite_parameter("floor", floor, "(0, inf)"))
        return float(self.weight * self.exponent * at ** (self.exponent - 1.0))

    def per_slot(self, work: float, slots: int) -> float:
        """Return ``slots * f(work / slots)``: the utility as OPM (6) counts it, over ``slots`` = d - a."""
        return slots * self(finite_parameter("work", work) / slots)


def power_utilities(weights: ArrayLike, exponents: ArrayLike, works: ArrayLike) -> NDArray[np.float64]:
    """Return ``weights * works ** exponents``, element by element; shapes as NumPy broadcasts them."""
    return np.asarray(np.asarray(weights) * np.asarray(works, dtype=np.float64) ** np.asarray(exponents))
