"""The projection as the OgaSched paper prints it (lines 7 to 31 of Algorithm 1), to be compared with the exact one.

As printed, the price of OgaSched (13) is not kept from falling below 0 where there is room, and no port but the first,
of the largest amount, is ever held to its requirement. Amounts of the set B^2, which the text leaves as they were, are
0 here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.legal import Amount, legal


@legal
def printed_projection(point: ArrayLike, bounds: ArrayLike, capacity: Amount) -> NDArray[np.float64]:
    """Return what Algorithm 1 makes of the points and bounds, shape (n_ports,), of one column (an instance and a type).

    Examples
    --------
    Where there is room the nearest legal point is the point itself:

    >>> printed_projection([1.0, 0.5], [3.0, 3.0], 4.0)
    array([2.25, 1.75])
    """
    z = float_array("point", point, (None,))
    a = float_array("bounds", bounds, z.shape, lowest=0.0)
    order = np.argsort(-z, kind="stable")  # line 7
    z, a = z[order], a[order]
    amounts, held, first = np.zeros(z.size), 0, True
    while True:
        if not first:
            if amounts.size == 0 or amounts[0] <= a[0]:  # lines 14 to 17
                break
            held = 1
        free = z.size  # B^3 is the ports held .. free - 1, B^2 the rest
        while True:  # lines 18 to 30
            kept = slice(held, free)
            amounts[:held], amounts[free:] = a[:held], 0.0
            if held >= free:
                break
            price = 2.0 / (free - held) * (z[kept].sum() - capacity + a[:held].sum())
            amounts[kept] = z[kept] - price / 2.0
            below = np.flatnonzero(amounts[kept] < 0.0)
            if not below.size:
                break
            free = held + int(below[0])
        first = False
    found = np.empty(z.size)
    found[order] = amounts
    return found
