"""The menu of a job that is submitted now, and the certificate that posted prices give a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidParameterError


@dataclass(frozen=True, slots=True)
class Menu:
    """The menu of a job of given concurrency that is submitted now.

    Row ``i`` is the start ``first_start + i``, column ``k`` the duration ``k + 1``.

    Examples
    --------
    >>> menu = Menu(1, 4, np.array([[1.0, 2.0], [0.5, np.inf]]), np.zeros((2, 2)))
    >>> menu.price(start=4, duration=2), menu.price([5, 5, 6], [1, 2, 1])
    (2.0, array([0.5, inf, inf]))
    """

    concurrency: int
    first_start: int
    prices: NDArray[np.float64]  # (n_starts, max_duration), credits, +inf where not on sale
    failures: NDArray[np.float64]  # (n_starts, max_duration), announced failure probabilities

    def _look_up(self, table: NDArray[np.float64], start: ArrayLike, duration: ArrayLike, beyond: float) -> ArrayLike:
        rows = np.asarray(start, dtype=np.float64) - self.first_start
        columns = np.asarray(duration, dtype=np.float64) - 1
        if not all(np.isfinite(x).all() and (x == np.floor(x)).all() for x in (rows, columns)):
            raise InvalidParameterError(f"start = {start!r}, duration = {duration!r}: expected whole rounds")
        inside = (rows >= 0) & (rows < table.shape[0]) & (columns >= 0) & (columns < table.shape[1])
        places = np.where(inside, rows, 0).astype(np.int64), np.where(inside, columns, 0).astype(np.int64)
        found = np.where(inside, table[places], beyond)
        return float(found) if found.ndim == 0 else found

    def price(self, start: ArrayLike, duration: ArrayLike) -> ArrayLike:
        """Return the price in credits; +inf outside the table."""
        return self._look_up(self.prices, start, duration, np.inf)

    def failure(self, start: ArrayLike, duration: ArrayLike) -> ArrayLike:
        """Return the announced failure probability; 1 outside the table. Errors as of `price`."""
        return self._look_up(self.failures, start, duration, 1.0)


@dataclass(frozen=True, slots=True)
class WelfareCertificate:
    """An upper bound on the best randomised offline welfare of some of the jobs, those of J' in (22).

    With hidden durations: of their launch plans, which is less than hindsight allows.

    ``bound``: twice the right side of (22), credits. ``in_j_prime`` of ``n_jobs`` reports have a
    plan that maximises (10). ``valid`` tells whether the conditions held; ``reason`` why not.
    """

    bound: float
    in_j_prime: int
    n_jobs: int
    valid: bool
    reason: str
    cap_bindings: int  # jobs of J' that lost a start of positive utility to the hard cap
