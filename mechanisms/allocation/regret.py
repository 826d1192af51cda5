r"""Regret as it is measured: what the best fixed allocation would have earned, less what a policy earned.

:math:`R_T = \sum_l n_l(T) q_l(y^*) - \sum_{t \le T} q(t)`, where :math:`n_l(T)` are the run's own arrivals up
to T and :math:`y^*` is best for exactly these (the regret of the OgaSched paper, for one sequence of
arrivals). It may be negative: a policy that adapts, or one that sees arrivals, can beat every fixed
allocation. `best_fixed_allocation` leaves a gap, so that a regret is known as an interval.

How regret grows is judged over several horizons: if it grows like :math:`T^p`, the fitted slope of its
logarithm is p, and regret per slot vanishes if p < 1. A policy whose steps depend on the horizon has
to be run anew for each; its horizons must not be read off one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.fixed_allocation import best_fixed_allocation
from marketsched.mechanisms.checks import check_shape, count_array, finite_parameter, float_array, read_only
from marketsched.mechanisms.errors import InvalidParameterError

_Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRegret:
    """Regret at some horizons; all arrays have shape (n_horizons,) and are read-only.

    Attributes
    ----------
    earned : ndarray of float
        What the policy earned up to each horizon.
    best : ndarray of float
        What a fixed allocation, best for the arrivals up to the horizon, earns: at least this,
    gaps : ndarray of float
        and at most this much more.
    """

    earned: _Array
    best: _Array
    gaps: _Array

    @property
    def regret(self) -> _Array:
        """Regret at each horizon, its lower end."""
        return self.best - self.earned

    @property
    def upper(self) -> _Array:
        """Regret at each horizon, its certified upper end."""
        return self.regret + self.gaps


@dataclass(frozen=True, slots=True, eq=False)
class GrowthFit:
    """The exponent with which something grows with the horizon, fitted run by run.

    Attributes
    ----------
    exponents : ndarray of float, shape (n_runs,)
        Slope of the logarithm over the logarithm of the horizon, least squares, one per run; read-only.
    low, high : float
        Confidence interval of their mean (Student's t over runs).
    confidence : float
        Its level.
    """

    exponents: _Array
    low: float
    high: float
    confidence: float

    @property
    def exponent(self) -> float:
        """Mean over runs."""
        return float(self.exponents.mean())


def measured_regret(
    cluster: BipartiteCluster, earned: ArrayLike, arrival_counts: ArrayLike, *, tolerance: float = 1e-4
) -> MeasuredRegret:
    """Return the regret of sums earned, each against the best fixed allocation for its own arrivals.

    Parameters
    ----------
    cluster : BipartiteCluster
    earned : array_like of float, shape (n_horizons,)
        Reward summed over all slots of each horizon.
    arrival_counts : array_like of int, shape (n_horizons, n_ports)
        Jobs of each port over the same slots.
    tolerance : float
        Largest gap of the best fixed allocation, as a share of its value; keep it well below the
        regret's.

    Raises
    ------
    InvalidParameterError
        If an argument is out of range or the horizons disagree in number.
    SolverError
        If the tolerance is not reached, as in `best_fixed_allocation`.

    Examples
    --------
    >>> cluster = BipartiteCluster([[2.0]], [[3.0]], [[True]], "linear", 1.0, 0.25)
    >>> measured_regret(cluster, [4.0, 12.0], [[4], [9]]).regret.round(6)
    array([2. , 1.5])
    """
    sums = float_array("earned", earned, (None,))
    given = np.asarray(arrival_counts)
    check_shape("arrival_counts", given.shape, (sums.size, cluster.n_ports))
    counts = [count_array(f"arrival_counts[{i}]", row, cluster.n_ports) for i, row in enumerate(given)]
    found = [best_fixed_allocation(cluster, row, tolerance=tolerance) for row in counts]
    arrays = sums.copy(), np.array([x.value for x in found]), np.array([x.gap for x in found])
    for array in arrays:
        read_only(array)
    return MeasuredRegret(*arrays)


def regret_curve(
    cluster: BipartiteCluster,
    rewards: ArrayLike,
    arrivals: ArrayLike,
    horizons: Sequence[int] | None = None,
    *,
    tolerance: float = 1e-4,
) -> tuple[NDArray[np.int64], MeasuredRegret]:
    """Return the regret of one run up to several slots, each against the best for the arrivals until then.

    Parameters
    ----------
    cluster : BipartiteCluster
    rewards : array_like of float, shape (n_slots,)
        What the policy earned in each slot.
    arrivals : array_like of int, shape (n_slots, n_ports)
        Jobs of each port in each slot.
    horizons : sequence of int
        Ascending numbers of slots in [1, n_slots]; T and its halves (T/2, T/4, ...) by default.
    tolerance : float
        As in `measured_regret`.

    Returns
    -------
    tuple of ndarray of int and MeasuredRegret
        The horizons, and the regret at each.

    Raises
    ------
    InvalidParameterError, SolverError
        As `measured_regret`; or if the horizons are not as above.
    """
    earned = float_array("rewards", rewards, (None,))
    given = np.asarray(arrivals)
    check_shape("arrivals", given.shape, (earned.size, cluster.n_ports))
    if earned.size == 0:
        raise InvalidParameterError("rewards has shape (0,): expected at least one slot")
    rows = [count_array(f"arrivals[{t}]", row, cluster.n_ports) for t, row in enumerate(given)]
    counts = np.cumsum(rows, axis=0)
    ends = _halves(earned.size) if horizons is None else count_array("horizons", horizons, len(horizons))
    if ends.size == 0 or ends[0] < 1 or ends[-1] > earned.size or (np.diff(ends) < 1).any():
        raise InvalidParameterError(f"horizons = {ends.tolist()}: expected ascending slots in [1, {earned.size}]")
    return ends, measured_regret(cluster, np.cumsum(earned)[ends - 1], counts[ends - 1], tolerance=tolerance)


def fitted_growth(horizons: ArrayLike, regrets: ArrayLike, *, confidence: float = 0.95) -> GrowthFit:
    """Fit the exponent with which regret grows with the horizon, with an interval over runs.

    Parameters
    ----------
    horizons : array_like of float, shape (n_horizons,)
        Slots, > 0, at least two different ones.
    regrets : array_like of float, shape (n_runs, n_horizons)
        Regret of every run at every horizon, > 0; at least two independent runs.
    confidence : float
        Level of the interval, in (0, 1).

    Raises
    ------
    InvalidParameterError
        If an argument is not so. A regret of zero or less has no logarithm, and that is the finding:
        the policy is no worse than the best fixed allocation there.

    Examples
    --------
    >>> fit = fitted_growth([100, 400], [[10.0, 20.0], [8.0, 16.0], [8.0, 32.0]])
    >>> fit.exponents, round(fit.exponent, 3), round(fit.low, 3), round(fit.high, 3)
    (array([0.5, 0.5, 1. ]), 0.667, -0.05, 1.384)
    """
    slots = float_array("horizons", horizons, (None,), lowest=0.0)
    values = float_array("regrets", regrets, (None, slots.size))
    level = finite_parameter("confidence", confidence, "(0, 1)")
    if np.unique(slots).size < 2 or slots.min() <= 0.0:
        raise InvalidParameterError(f"horizons = {slots.tolist()}: expected at least two different ones, all > 0")
    if values.shape[0] < 2:
        raise InvalidParameterError(f"regrets has shape {values.shape}: expected at least two runs, for an interval")
    if values.min() <= 0.0:
        run, place = (int(i) for i in np.argwhere(values <= 0.0)[0])
        raise InvalidParameterError(
            f"regrets[{run}, {place}] = {values[run, place]}: expected > 0, what is not positive has no growth"
        )
    from scipy.stats import t as student  # slow to import, and rarely needed

    log_slots = np.log(slots) - np.log(slots).mean()
    exponents = np.log(values) @ log_slots / (log_slots @ log_slots)
    read_only(exponents)
    spread = exponents.std(ddof=1) / np.sqrt(exponents.size)
    half = float(student.ppf(0.5 + 0.5 * level, exponents.size - 1) * spread)
    return GrowthFit(exponents, float(exponents.mean()) - half, float(exponents.mean()) + half, level)


def _halves(n_slots: int) -> NDArray[np.int64]:
    """Return T and its halves down to 1/16, ascending."""
    return np.unique(np.array([n_slots // 2**i for i in range(5) if n_slots >> i], dtype=np.int64))
