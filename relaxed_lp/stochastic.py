r"""The stochastic mechanism's prices: laws -> LP (23) -> unit allocation -> bundle menu (24)-(25).

Known in advance are the jobs and, for each, a law over what it will report. From these laws alone,
before anything is reported:

1. the linear program (23) places the expected demand at an LP capacity :math:`C_{LP}`;
2. construction STAR cuts its solution into bundles, each of at most :math:`c_{max}` expected nodes
   and at most :math:`B = \lfloor C' / (2 c_{max}) \rfloor` of them over any round;
3. bundle k of value :math:`F_k` is priced per node between :math:`F_k/(2 c_{max})` and
   :math:`F_k/(2 W_k)` (24), and sold until :math:`c_{max}` of it is taken (25).

The proven scale :math:`C_{LP} = c_{max}(B-H-2)/2`, :math:`H = \lceil \log_2 D_{max} \rceil`, always
packs; a bracketing search finds a larger one whose packing still passes the checker. Then, if the laws are
true, jobs are independent, durations are revealed, and the order of submissions does not depend on
the reports (gap G5), the expected welfare in the relaxed problem is at least half of
:math:`\sum_k F_k` (Lemma E.3, (26)).

References
----------
.. [BLLMSW22] Babaioff, Lempel, Lucier, Menache, Slivkins, Wong: Truthful Online Scheduling of
   Cloud Workloads under Uncertainty, WWW 2022, arXiv:2203.01213. Section 5.2, Appendix E.
.. [CMT19] Chawla, Miller, Teng: Pricing for Online Resource Allocation: Intervals and Paths, SODA
   2019, arXiv:1708.00043. The unit allocation this construction stands in for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Positive, legal
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.statement_law import StatementLaw, statement_laws
from marketsched.relaxed_lp.bundle_prices import BundlePricing
from marketsched.relaxed_lp.packing import Bound, PackingProgram
from marketsched.relaxed_lp.tasks import tasks_of_laws
from marketsched.relaxed_lp.unit_allocation import UnitAllocation, fractional_unit_allocation

PriceEnd = Literal["low", "high"]
Laws = Iterable[StatementLaw | Iterable[Sequence[object]]]

MOST_TRIES = 6  # LP capacities tried between the proven scale and all of it
PRECISION = 0.02  # of B c_max: how narrow a bracket of the LP capacity is narrow enough
KEPT = 4  # pricings that are remembered, so that equal laws are not solved again
NEGLIGIBLE = 1e-9  # LP shares up to this are left out: noise of the solver


class _Packing(NamedTuple):
    """A packing of an LP solution."""

    capacity: float  # C_LP, nodes
    bundles: UnitAllocation
    value: float  # sum of F_k, credits
    overlap: int  # most bundles over a round


class StochasticPricing:
    """Prices for jobs whose statements of work are drawn from known laws.

    Parameters
    ----------
    laws : iterable of StatementLaw, or of their cases
        One law per job; see `StatementLaw`. Durations revealed.
    supply : float
        C' of the relaxed problem, nodes: ``(1 - epsilon) * capacity`` inside Algorithm 2.
    horizon : int
        T, rounds.
    max_concurrency, max_duration : int
        c_max (nodes) and D_max (rounds): no statement of a law exceeds them.
    max_delay : int, optional
        S: completions at birth + S or later are worth nothing; None: the value curves tell.
    price_end : {"low", "high"}
        Which end of (24): ``F_k / (2 c_max)`` or ``F_k / (2 W_k)``.
    starts_per_task : int, optional
        Keep the program small: at most so many evenly spread starts of each task. The menu stays
        sound; what it earns, and the guarantee, may be less.
    widen : bool
        Afterwards add rounds to bundles wherever fewer than B lie over a round.
    time_limit : float, optional
        Seconds for each solve.

    Attributes
    ----------
    lp_value : float
        LP (23) at supply ``B c_max``, credits.
    certificate : float
        ``sum F_k / lp_value``, the share that the packing keeps: at least ``(B-H-2)/(2B)``.
    lp_capacity : float
        C_LP of the packing, nodes.
    bundles : UnitAllocation
        The packing; ``bundles.value`` are the F_k, all positive.
    prices : ndarray of float, shape (n_bundles,)
        q_k, credits per node.
    guarantee : float or None
        ``2 LP(C') / sum F_k``: E[best relaxed welfare] / E[welfare] of the relaxed problem is proven
        to be at most this; (27) bounds it for all laws. None with ``starts_per_task``: not known.

    Raises
    ------
    InvalidParameterError
        If a law is malformed or hides durations, a statement exceeds the limits, a number is out of
        range, the supply is below ``2 c_max (H + 3)``, or no statement is ever worth anything.
    SolverError
        If the linear program is not solved.

    Examples
    --------
    >>> from marketsched.mechanisms.sow import StatementOfWork
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 3), [(1, 2, 1.0)])
    >>> pricing = StochasticPricing([[(sow, 0.5), (None, 0.5)]] * 4, 8, 3, max_concurrency=1, max_duration=2)
    >>> round(pricing.lp_value, 6), pricing.bundles.first.tolist(), pricing.prices.round(6).tolist()
    (8.0, [1, 1], [2.0, 2.0])
    """

    @legal
    def __init__(
        self,
        laws: Laws,
        supply: Positive,
        horizon: Count,
        *,
        max_concurrency: Count,
        max_duration: Count,
        max_delay: int | None = None,
        price_end: PriceEnd = "low",
        starts_per_task: int | None = None,
        widen: bool = True,
        time_limit: float | None = None,
    ) -> None:
        self.supply = supply
        self.horizon = horizon
        self.max_concurrency = max_concurrency
        self.max_duration = max_duration
        if price_end not in ("low", "high"):
            raise InvalidParameterError(place="price_end", value=price_end, legal="'low' or 'high'")
        self.overlap_limit = _overlap_limit(self.supply, self.max_concurrency, self.max_duration)
        checked = statement_laws(laws)
        _check_statements(checked, self.max_concurrency, self.max_duration)
        tasks = tasks_of_laws(checked, self.horizon, max_delay=max_delay, starts_per_task=starts_per_task)
        if tasks.n_tasks == 0:
            raise InvalidParameterError("laws: no statement is worth anything within the horizon: expected one")
        program = PackingProgram(tasks, self.horizon)
        self._method: Literal["ipm"] | None = None if starts_per_task is None else "ipm"  # faster on thinned tasks
        at_limit = float(self.max_concurrency * self.overlap_limit)
        solution = program.solve(at_limit, time_limit=time_limit, method=self._method)
        self.lp_value = solution.value
        packing = self._pack_most(program, solution, time_limit)
        self.lp_capacity = packing.capacity
        self.certificate = packing.value / solution.dual_value  # the same, but for what the solver left open
        self.guarantee: float | None = None
        if starts_per_task is None:
            self.guarantee = 2 * program.solve(self.supply, time_limit=time_limit).dual_value / packing.value
        bundles = packing.bundles.widened(self.overlap_limit, self.horizon) if widen else packing.bundles
        bundles.verify(self.overlap_limit * self.max_concurrency)
        self.bundles = bundles
        self.prices = _prices(bundles, self.max_concurrency, price_end)
        self.prices.flags.writeable = False  # shared by all markets that are opened

    def open(self, supply: float, limits: MarketLimits) -> BundlePricing:
        """Start selling, in a market of at least the size the menu was made for.

        Raises
        ------
        InvalidParameterError
            If the market has less supply, or admits wider or longer jobs than the laws.
        """
        if supply < self.supply * (1 - 1e-12):
            raise InvalidParameterError(
                f"relaxed supply C' = {supply:g}: expected at least {self.supply:g}, for which the bundles were made"
            )
        for name in ("max_concurrency", "max_duration", "horizon"):
            if getattr(limits, name) != getattr(self, name):
                raise InvalidParameterError(
                    place=name,
                    value=getattr(limits, name),
                    legal=f"{getattr(self, name)}, as in the stochastic pricing",
                )
        figures = {
            "lp_value": self.lp_value,
            "lp_capacity": self.lp_capacity,
            "packed_share": self.certificate,
            "guarantee": self.guarantee,
        }
        bundles = self.bundles
        return BundlePricing(bundles.first, bundles.last, self.prices, supply, limits, figures)

    def _pack_most(self, program: PackingProgram, at_limit: Bound, time_limit: float | None) -> _Packing:
        """Return the most valuable packing found while bracketing the largest LP capacity that packs.

        Overlap grows about in proportion to the capacity: the next one tried is where it would just
        fit, kept away from the ends of the bracket.
        """
        limit, widest = self.overlap_limit, self.max_concurrency
        low, high = widest * (limit - _ceil_log2(self.max_duration) - 2) / 2, float(widest * limit)
        proven, precision = low, PRECISION * high
        tried, found = self._pack(program, at_limit, high), []
        if tried.overlap <= limit:
            return tried
        for _ in range(MOST_TRIES):
            if high - low <= precision:
                break
            margin = (high - low) / 8
            capacity = min(max(tried.capacity * limit / tried.overlap, low + margin), high - margin)
            tried = self._pack(program, program.solve(capacity, time_limit=time_limit, method=self._method), capacity)
            if tried.overlap <= limit:
                low = capacity
                found.append(tried)
            else:
                high = capacity
        if not found:
            found.append(self._pack(program, program.solve(proven, time_limit=time_limit, method=self._method), proven))
        return max(found, key=lambda packing: packing.value)

    def _pack(self, program: PackingProgram, solution: Bound, capacity: float) -> _Packing:
        """Return the STAR packing of an LP solution."""
        kept = np.flatnonzero(solution.allocation > NEGLIGIBLE)
        task, start = program.column_task[kept], program.column_start[kept]
        tasks = program.tasks
        bundles = fractional_unit_allocation(
            start,
            start + tasks.durations[task] - 1,
            tasks.widths[task],
            solution.allocation[kept],
            tasks.values[kept],
            max_concurrency=self.max_concurrency,
            max_duration=self.max_duration,
        )
        return _Packing(capacity, bundles, float(bundles.value.sum()), bundles.max_overlap)


@dataclass(frozen=True)
class StochasticChoice:
    """`StochasticPricing` before supply and limits are known: the pricing of a configuration.

    Parameters as there; ``open`` solves the program for the market at hand.

    Examples
    --------
    See `StochasticPricing`, which it opens.
    """

    laws: Laws
    price_end: PriceEnd = "low"
    starts_per_task: int | None = None
    widen: bool = True

    def open(self, supply: float, limits: MarketLimits) -> BundlePricing:
        """Make the bundles for this market, and start selling them.

        Raises
        ------
        InvalidParameterError, SolverError
            As `StochasticPricing`.
        """
        pricing = _solved(
            tuple(statement_laws(self.laws)),
            supply,
            limits.horizon,
            max_concurrency=limits.max_concurrency,
            max_duration=limits.max_duration,
            max_delay=limits.max_delay,
            price_end=self.price_end,
            starts_per_task=self.starts_per_task,
            widen=self.widen,
        )
        return pricing.open(supply, limits)


_solved = lru_cache(maxsize=KEPT)(StochasticPricing)  # runs of one scenario that differ in their seed share it


def _ceil_log2(number: int) -> int:
    """Return H = ceil(log2(number)) of a whole number >= 1."""
    return (number - 1).bit_length()


def _overlap_limit(supply: float, max_concurrency: int, max_duration: int) -> int:
    """Return B = floor(C' / (2 c_max)), or say that it is too small for the theorem."""
    limit = int(supply / (2 * max_concurrency) * (1 + 1e-12))
    least = _ceil_log2(max_duration) + 3
    if limit < least:
        raise InvalidParameterError(
            f"supply = {supply:g} with max_concurrency = {max_concurrency}, max_duration = {max_duration}: expected at "
            f"least 2 max_concurrency (H + 3) = {2 * max_concurrency * least}, H = ceil(log2(max_duration))"
        )
    return limit


def _check_statements(laws: list[StatementLaw], max_concurrency: int, max_duration: int) -> None:
    if not laws:
        raise InvalidParameterError("laws is empty: expected at least one law")
    for j, law in enumerate(laws):
        for sow, _ in law.cases:
            if sow is not None and sow.concurrency > max_concurrency:
                raise InvalidParameterError(
                    f"laws[{j}]: concurrency = {sow.concurrency}: expected at most max_concurrency = {max_concurrency}"
                )
            if sow is not None and (longest := int(sow.law.durations.max())) > max_duration:
                raise InvalidParameterError(
                    f"laws[{j}]: duration = {longest}: expected at most max_duration = {max_duration}"
                )


def _prices(bundles: UnitAllocation, max_concurrency: int, price_end: PriceEnd) -> NDArray[np.float64]:
    """Return q_k (24)."""
    if price_end == "low":
        return np.asarray(bundles.value / (2 * max_concurrency))
    return np.asarray(bundles.value / (2 * bundles.weight))
