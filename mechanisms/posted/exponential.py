r"""Relaxed algorithms that price single slots: Algorithm 3 (exponential prices) and fixed prices.

In the relaxed problem supply binds in expectation. A task of weight ``w`` that occupies ``c`` nodes in rounds ``s ..
s+d-1`` adds ``w c`` to the committed expected usage :math:`Y_t` of these slots and pays ``w p(s,c,d)``, with

.. math:: p(s,c,d) = c \sum_{t=s}^{s+d-1} p_t, \qquad p_t = r(Y_t).

Both algorithms are menu-based and receptive (Section 5): they announce a menu, and record any plan that they are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.arrays import grown
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Finite
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.menu import WelfareCertificate
from marketsched.mechanisms.posted.guarantees import price_ends
from marketsched.mechanisms.posted.run_certificate import WelfareLedger

CAP_TOLERANCE = 1e-9  # slack of the hard cap Y_t + c <= C'


@dataclass(frozen=True, slots=True)
class _SlotQuote:
    """The slot prices of one moment, kept for a job until it is charged; read-only."""

    never_changes: ClassVar[bool] = True  # copies of a market share it

    concurrency: int  # nodes
    first_round: int
    slot_prices: NDArray[np.float64]  # (n_rounds,) from first_round on, credits per node-round

    def price(self, start: int, duration: int) -> float:
        """Return the price of (start, duration) in credits, without the hard cap's infinity."""
        i = start - self.first_round
        return float(price_kernel(self.slot_prices, self.concurrency, i, duration))


@dataclass(frozen=True, slots=True)
class ExponentialPricing:
    r"""Algorithm 3: prices grow exponentially in the committed expected usage (20).

    .. math:: r(y) = \text{floor} \cdot (\text{ceiling}/\text{floor})^{y/(C'-c_{max})}

    Parameters
    ----------
    kappa : float
        In (0, 1]. By default ``floor = kappa / (2 c_max D_max)`` and ``ceiling = V_max / kappa``;
        ``kappa = 1`` is (20), made for durations revealed at arrival. With hidden durations take
        for ``kappa`` a lower bound on the probability, given (a, o), of the shortest and of the
        longest duration (Section 7, HID extension).
    floor, ceiling : float, optional
        Replace the two ends (the calibrated curve of Section 15.2), in credits per node-round. Both
        must be fixed before any report.

    Raises
    ------
    InvalidParameterError
        If ``kappa`` is outside (0, 1], or an end is not positive and finite; when a market opens,
        also if floor >= ceiling.

    Notes
    -----
    Whatever the ends, a hard cap is kept: an interval with ``Y_t + c > C'`` in a covered slot is
    not on sale.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, ExactOracle, PostedPriceMechanism, StatementOfWork
    >>> sizes = {"max_concurrency": 1, "max_duration": 1, "max_value": 8.0, "max_delay": 3}
    >>> market = PostedPriceMechanism(9, 6, ExponentialPricing(), ExactOracle(), epsilon=0.0, **sizes)
    >>> plan = market.submit("A", StatementOfWork(1, 1, DeadlineValue(4.0, 3), [(1, 1, 1.0)]))
    >>> market.slot_prices(1, 3).round(3)  # round 1 is dearer by now; the others are at their floor
    array([0.707, 0.5  , 0.5  ])
    """

    kappa: float = 1.0
    floor: float | None = None
    ceiling: float | None = None

    def __post_init__(self) -> None:
        Finite("(0, 1]").check("pricing.kappa", self.kappa)
        for name, end in (("floor", self.floor), ("ceiling", self.ceiling)):
            if end is not None:
                Finite("(0, inf)").check(f"pricing.{name}", end)

    def open(self, supply: float, limits: MarketLimits) -> SlotPricing:
        """Start the algorithm with relaxed supply C', nodes; it has to be above c_max, and ceilings above floors."""
        floor, ceiling = price_ends(
            limits.max_concurrency,
            limits.max_duration,
            limits.max_value,
            kappa=self.kappa,
            floor=self.floor,
            ceiling=self.ceiling,
        )
        if supply <= limits.max_concurrency:
            raise InvalidParameterError(
                f"prices that rise with the load, of C' = (1 - epsilon) capacity = {supply:g} nodes and jobs of up to "
                f"{limits.max_concurrency}: expected C' > max_concurrency, or flat prices (posted-price:price=2)"
            )
        curve = (ceiling / floor, supply - limits.max_concurrency)
        return SlotPricing(supply, limits, np.array([floor]), curve)


@dataclass(frozen=True, slots=True)
class PostedPricing:
    """A fixed price per node and round; usage is recorded, but neither prices nor caps react to it.

    Parameters
    ----------
    prices : sequence of float
        Credits per node-round, round 1 first; the last one holds on.

    Raises
    ------
    InvalidParameterError
        If there is no price, or one is negative or not finite.

    Examples
    --------
    >>> from marketsched.mechanisms import ExactOracle, PostedPriceMechanism
    >>> sizes = {"max_concurrency": 1, "max_duration": 1, "max_value": 9.0, "max_delay": 3}
    >>> market = PostedPriceMechanism(1, 6, PostedPricing([2.0, 1.0]), ExactOracle(), epsilon=-0.5, **sizes)
    >>> market.slot_prices(1, 4)
    array([2., 1., 1., 1.])
    """

    prices: ArrayLike | Sequence[float]

    def __post_init__(self) -> None:
        try:
            prices = np.atleast_1d(np.asarray(self.prices, dtype=np.float64)).ravel()
        except (TypeError, ValueError, OverflowError):
            raise InvalidParameterError(
                place="pricing.prices", value=self.prices, legal="a list of numbers >= 0"
            ) from None
        if prices.size == 0 or not (np.isfinite(prices).all() and (prices >= 0).all()):
            raise InvalidParameterError(
                place="pricing.prices", value=prices.tolist(), legal="at least one finite number, all >= 0"
            )
        object.__setattr__(self, "prices", tuple(prices.tolist()))

    def open(self, supply: float, limits: MarketLimits) -> SlotPricing:
        """Start with these prices; ``supply`` is only recorded."""
        given = np.asarray(self.prices, dtype=np.float64)
        return SlotPricing(supply, limits, np.concatenate([given[:1], given]), None)


class Prices(NamedTuple):
    """What `SlotPricing` holds, for a kernel that reads and changes it."""

    usage: NDArray[np.float64]  # Y_t, nodes
    prices: NDArray[np.float64]  # p_t, credits per node-round
    base: NDArray[np.float64]  # p_t at Y_t = 0
    ratio: float  # of the curve's ends; 1: prices do not react
    room: float  # C' - c_max, nodes
    supply: float  # C' of the hard cap, nodes; inf: there is none


class SlotPricing:
    """Slot prices at work: committed usage Y, current prices p, and derived quantities."""

    def __init__(
        self, supply: float, limits: MarketLimits, base: NDArray[np.float64], curve: tuple[float, float] | None
    ) -> None:
        # base: p_t at Y_t = 0 from round 0 (unused) on, the last one holds on;
        # curve: (R, C' - c_max) of (20), or None for fixed prices without a cap.
        self.supply = supply
        # Rounds 0 .. T, and what a last launch may cover; kept are those that the market has come to.
        self._size = limits.horizon + 2 * limits.max_duration + 2
        self._ahead = self._size - limits.horizon
        self.base = base[: self._size]
        self._usage, self._prices = np.zeros(self.base.size), self.base.copy()
        self._curve = (1.0, 1.0) if curve is None else curve
        self._capped = curve is not None
        self._reach(limits.window + self._ahead)

    def price_table(
        self, concurrency: int, first_start: int, n_starts: int, n_durations: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return prices (n_starts, n_durations) and the longest duration on sale per start (n_starts,)."""
        self._reach(first_start + n_starts + n_durations if n_starts else 0)
        prices = np.empty((n_starts, n_durations))
        longest = np.empty(n_starts, dtype=np.int64)
        room = self.supply - concurrency + CAP_TOLERANCE if self._capped else np.inf
        price_table_kernel(self._prices, self._usage, first_start, concurrency, room, prices, longest)
        return prices, longest

    def arrays(self, end: int) -> Prices:
        """Return prices and usage of all rounds before ``end``, at least, as they are kept."""
        self._reach(end)
        return Prices(self._usage, self._prices, self.base, *self._curve, self.supply if self._capped else np.inf)

    def quote(self, concurrency: int, first_start: int, last_start: int) -> _SlotQuote:
        """Return the current prices of launches between two starts, to charge later."""
        end = last_start + self._ahead
        self._reach(end)
        prices = self._prices[first_start:end].copy()
        prices.flags.writeable = False
        return _SlotQuote(concurrency, first_start, prices)

    def commit(
        self,
        concurrency: int,
        starts: NDArray[np.int64],
        durations: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> None:
        """Record tasks; ``starts`` of -1 are not run."""
        tasks = concurrency, starts, durations, weights
        end = commit_kernel(self._usage, self._prices, self.base, *self._curve, *tasks, self._size)
        if end > 0:
            self._reach(end)
            commit_kernel(self._usage, self._prices, self.base, *self._curve, *tasks, 0)

    def usage(self, first: int, count: int) -> NDArray[np.float64]:
        """Return Y_t of rounds ``first .. first + count - 1``; 0 beyond the kept rounds."""
        return _slice(self._usage, first, count, 0.0)

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return p_t of rounds ``first .. first + count - 1``, credits per node-round."""
        return _slice(self._prices, first, count, float(self.base[-1]))

    def certificate(self, ledger: WelfareLedger) -> WelfareCertificate:
        """Return the run-time certificate (22) for the submissions so far."""
        # Rounds after T, too: plans that do not see a duration pay for them; (12) loads them no more than T.
        beyond = np.full(self._size - self.base.size, self.base[-1])
        prices, base = (np.concatenate([array[1:], beyond]) for array in (self._prices, self.base))
        return ledger.certificate(self.supply, prices, base)

    def _reach(self, end: int) -> None:
        """Keep prices and usage of all rounds before ``end``."""
        if self.base.size < min(end, self._size):
            last, what = float(self.base[-1]), "the prices"
            self.base = grown(self.base, end, self._size, last, what)
            self._prices = grown(self._prices, end, self._size, last, what)
            self._usage = grown(self._usage, end, self._size, 0.0, what)

    def statistics(self) -> dict[str, Any]:
        """Return nothing: the slot prices tell all there is."""
        return {}


def _slice(array: NDArray[np.float64], first: int, count: int, beyond: float) -> NDArray[np.float64]:
    """Return ``count`` entries from ``first`` on, padded with ``beyond``."""
    part = array[first : first + count].copy()
    return part if part.size == count else np.concatenate([part, np.full(count - part.size, beyond)])


@njit(cache=True)
def price_kernel(slot_prices, concurrency, start, duration):  # type: ignore[no-untyped-def]
    """Return the price of ``duration`` slots from place ``start`` on; beyond the last one they cost nothing."""
    return concurrency * _sum_kernel(slot_prices[start : start + duration])


@njit(cache=True)
def _sum_kernel(terms):  # type: ignore[no-untyped-def]
    """Return the sum, added in the order in which numpy adds; payments have always been these."""
    n = terms.size
    if n > 128:
        half = n // 2 - n // 2 % 8
        return _sum_kernel(terms[:half]) + _sum_kernel(terms[half:])
    total, done = 0.0, 0
    if n >= 8:
        done = n - n % 8
        r = np.zeros(8)
        for i in range(done):
            r[i % 8] += terms[i]
        total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
    for i in range(done, n):
        total += terms[i]
    return total


@njit(cache=True)
def price_table_kernel(slot_prices, usage, first_start, concurrency, room, prices, longest):  # type: ignore[no-untyped-def]
    """Fill ``prices`` by running sums, and ``longest`` by the first slot without room."""
    n_starts, n_durations = prices.shape
    for i in range(n_starts):
        total = 0.0
        longest[i] = n_durations
        for k in range(n_durations):
            t = first_start + i + k
            if t < slot_prices.size:
                total += slot_prices[t]
                if usage[t] > room and k < longest[i]:
                    longest[i] = k
            prices[i, k] = concurrency * total


@njit(cache=True)
def commit_kernel(usage, prices, base, ratio, room, concurrency, starts, durations, weights, most):  # type: ignore[no-untyped-def]
    """Add the tasks' expected usage, price the slots touched, return 0; if arrays are too short, the size wanted."""
    wanted = 0
    for i in range(starts.size):
        wanted = max(wanted, starts[i] + durations[i] + 1)
    if usage.size < min(wanted, most):
        return wanted
    low, high = usage.size, 0
    for i in range(starts.size):
        if starts[i] < 0 or weights[i] <= 0.0:
            continue
        end = min(starts[i] + durations[i], usage.size)
        for t in range(starts[i], end):
            usage[t] += weights[i] * concurrency
        low, high = min(low, starts[i]), max(high, end)
    if ratio > 1.0:
        for t in range(low, high):
            prices[t] = base[t] * ratio ** (usage[t] / room)
    return 0
