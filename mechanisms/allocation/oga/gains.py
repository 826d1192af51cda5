r"""The four gains :math:`f_r^k` of (27) of the OgaSched paper, their slopes, and their names.

===============  ====================================  =======================================
name             :math:`f(y)`                          :math:`f'(y)`
===============  ====================================  =======================================
``linear``       :math:`\alpha y`                      :math:`\alpha`
``log``          :math:`\alpha \ln(y + 1)`             :math:`\alpha / (y + 1)`
``reciprocal``   :math:`1/\alpha - 1/(y + \alpha)`     :math:`1 / (y + \alpha)^2`
``poly``         :math:`\alpha \sqrt{y + 1} - \alpha`  :math:`\alpha / (2 \sqrt{y + 1})`
===============  ====================================  =======================================

All are concave, increasing, and zero at zero.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.arrays import check_shape
from marketsched.mechanisms.errors import InvalidParameterError

LINEAR: Final = 0
LOG: Final = 1
RECIPROCAL: Final = 2
POLY: Final = 3
GAIN_NAMES: Final = ("linear", "log", "reciprocal", "poly")  # a name's place is its code


def gain_codes(gain: str | ArrayLike, n_instances: int, n_types: int) -> NDArray[np.int8]:
    """Return the codes of gains, shape (n_instances, n_types), given by name or code: one for all, or one for each."""
    shape = (n_instances, n_types)
    given = np.asarray(gain)
    if given.ndim == 0:
        given = np.full(shape, given)
    check_shape("gain", given.shape, shape)
    known: dict[object, int] = {name: code for code, name in enumerate(GAIN_NAMES)}
    if given.dtype.kind in "iu":
        known = {code: code for code in range(len(GAIN_NAMES))}
    codes = np.empty(shape, dtype=np.int8)
    for name in np.unique(given):
        if name.item() not in known:
            place = [int(i) for i in np.argwhere(given == name)[0]]
            raise InvalidParameterError(f"gain{place} = {name.item()!r}: expected one of {', '.join(GAIN_NAMES)}")
        codes[given == name] = known[name.item()]
    return codes


def gain_values(codes: ArrayLike, alpha: ArrayLike, amounts: ArrayLike) -> NDArray[np.float64]:
    """Return :math:`f(y)` entry by entry; the three arguments are broadcast, amounts are >= 0."""
    codes, alpha, y = np.broadcast_arrays(np.asarray(codes), np.asarray(alpha, float), np.asarray(amounts, float))
    forms = [alpha * y, alpha * np.log1p(y), 1.0 / alpha - 1.0 / (y + alpha), alpha * np.sqrt(y + 1.0) - alpha]
    return np.asarray(np.choose(codes, forms), dtype=np.float64)


def gain_slopes(codes: ArrayLike, alpha: ArrayLike, amounts: ArrayLike) -> NDArray[np.float64]:
    """Return :math:`f'(y)` entry by entry; the three arguments are broadcast, amounts are >= 0."""
    codes, alpha, y = np.broadcast_arrays(np.asarray(codes), np.asarray(alpha, float), np.asarray(amounts, float))
    forms = [alpha + 0.0 * y, alpha / (y + 1.0), (y + alpha) ** -2.0, 0.5 * alpha / np.sqrt(y + 1.0)]
    return np.asarray(np.choose(codes, forms), dtype=np.float64)


def steepest_slopes(codes: ArrayLike, alpha: ArrayLike) -> NDArray[np.float64]:
    r"""Return :math:`\varpi = f'(0)` entry by entry, the bound of (8) of the OgaSched paper."""
    return gain_slopes(codes, alpha, 0.0)
