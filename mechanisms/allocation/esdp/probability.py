r"""How likely ESDP's guarantees are said to hold: Theorems 1 and 2 of the paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from marketsched.mechanisms.arrays import float_array


def all_ports_bound(probabilities: ArrayLike) -> float:
    r"""Return the bound of ESDP (35) on the probability that every port has a job, with which its theorems hold.

    :math:`\exp\bigl(-\tfrac13 (|\mathcal{L}| - \sum_l \rho_l)^2\bigr)`, from ``probabilities`` of a job at each port.
    In ESDP (34), from which it follows, the exponent is divided by :math:`\sum_l \rho_l`; as printed it is no bound:

    >>> all_ports_bound([0.5] * 10) < 0.5**10
    True
    """
    rho = float_array("probabilities", probabilities, (None,), lowest=0.0, highest=1.0)
    return float(np.exp(-((rho.size - rho.sum()) ** 2) / 3.0))
