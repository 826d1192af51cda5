r"""The constants of the theorems, one small function each (docs/mathematics.md, sections 3 to 9).

`guarantees` puts them together. Symbols: ``C`` nodes, ``c_max`` largest concurrency, ``D_max`` largest duration, ``S``
largest delay, ``V_max`` largest value, ``eps`` capacity slack; values lie in {0} u [1, V_max].

**What is proven.** With *durations revealed* (the signal seen at arrival determines the duration):
everything here. With *durations hidden* only the sampling size (28), the failure bounds (15)-(18),
the ratio of the relaxed algorithm in its ``kappa`` form, against the best launch plans (12), and
the weaker truthfulness bound (8) hold; Theorem T and Theorem 4.1 do not (gaps G1, G3), so
`guarantees` reports infinity for what they would promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Finite, PositiveShare, Whole, legal

Oracle = Literal["exact", "monte-carlo"]


def _window(max_delay: int, max_duration: int, revealed: bool) -> int:
    """Return Sbar (2): rounds after a birth that can matter to the job."""
    return max_delay if revealed else max_delay + max_duration


def _default_errors(epsilon: float, max_value: float, oracle: Oracle = "monte-carlo") -> tuple[float, float, float]:
    """Return (delta, gamma, eta) of Theorem 4.1 (19), for 0 <= eps < 1 and V_max >= 1.

    Monte Carlo: all three are eps/(8 V_max). Exact oracle: delta = eps/(2 V_max), the others 0.
    """
    if oracle == "exact":
        return epsilon / (2 * max_value), 0.0, 0.0
    if oracle == "monte-carlo":
        level = epsilon / (8 * max_value)
        return level, level, level
    raise InvalidParameterError(place="oracle", value=oracle, legal="'exact' or 'monte-carlo'")


def _hidden_truthfulness_gain(delta: float, max_value: float) -> float:
    """Return 2 delta/(1 - delta) V_max (8): most gained if estimates are 0 and failures at most ``delta`` < 1."""
    return 2 * delta / (1 - delta) * max_value if delta < 1 else math.inf


def _chernoff(threshold: float, mean: float, width: float) -> float:
    """Return Lemma C (15): Pr[sum U_i >= K] <= exp(-(K ln(K/m) - K + m)/w), and 1 if K <= m.

    ``mean`` m >= 0 bounds the sum of conditional means almost surely; ``width`` w > 0 is the largest U_i.
    """
    if not (mean >= 0 and width > 0):
        raise InvalidParameterError(f"mean = {mean!r}, width = {width!r}: expected mean >= 0 and width > 0")
    if threshold <= mean:
        return 1.0
    if mean == 0:
        return 0.0
    return math.exp(-(threshold * math.log(threshold / mean) - threshold + mean) / width)


def overload_probability(capacity: float, max_concurrency: int, epsilon: float) -> float:
    """Return rho (16): a round's chance to leave fewer than c_max nodes free. 1 if c_max >= eps C."""
    threshold = capacity - max_concurrency
    return _chernoff(threshold, (1 - epsilon) * capacity, max_concurrency)


def _simple_overload_probability(capacity: float, max_concurrency: int, epsilon: float) -> float:
    """Return the simple form of (16), exp(-eps^2 C/(8 c_max)) >= rho; 1 unless c_max <= eps C/2."""
    if max_concurrency > epsilon * capacity / 2:
        return 1.0
    return math.exp(-(epsilon**2) * capacity / (8 * max_concurrency))


def failure_tail(rho: float, window: int, delta: float) -> float:
    """Return Sbar rho/delta (17), at most 1: Pr[some f of one submission exceeds delta]; delta > 0."""
    return min(1.0, window * rho / delta)


def _block_failure_tail(rho: float, max_delay: int, max_duration: int, delta: float, *, revealed: bool = True) -> float:
    """Return (S + Sbar) rho/delta (18), at most 1: as (17), for all submissions of S rounds."""
    window = _window(max_delay, max_duration, revealed)
    return min(1.0, (max_delay + window) * rho / delta)


def _admissible_overload(alpha: float, max_concurrency: int, max_value: float, max_delay: int, epsilon: float) -> float:
    """Return the largest rho of Theorem 4.1 (19), eps^2/(64 alpha S^2 c_max V_max^2); eps > 0."""
    return epsilon**2 / (64 * alpha * max_delay**2 * max_concurrency * max_value**2)


def _sufficient_capacity(alpha: float, max_concurrency: int, max_value: float, max_delay: int, epsilon: float) -> int:
    """Return the C of (19) in closed form, (8 c_max/eps^2) ln(64 alpha S^2 c_max V_max^2/eps^2), rounded up."""
    logarithm = math.log(64 * alpha * max_concurrency) + 2 * math.log(max_delay * max_value / epsilon)
    return math.ceil(8 * max_concurrency / epsilon**2 * logarithm)


def smallest_capacity(alpha: float, max_concurrency: int, max_value: float, max_delay: int, epsilon: float) -> int:
    """Return the smallest C whose exact rho (16) meets (19); rho falls as C grows, so bisection."""
    largest = _admissible_overload(alpha, max_concurrency, max_value, max_delay, epsilon)
    low, high = max_concurrency, 2 * max_concurrency
    while overload_probability(high, max_concurrency, epsilon) > largest:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if overload_probability(middle, max_concurrency, epsilon) <= largest:
            high = middle
        else:
            low = middle
    return high


@legal
def price_ends(
    max_concurrency: int,
    max_duration: int,
    max_value: float,
    *,
    kappa: PositiveShare = 1.0,
    floor: float | None = None,
    ceiling: float | None = None,
) -> tuple[float, float]:
    """Return the ends of the price curve: kappa/(2 c_max D_max) and V_max/kappa (20), or those given (15.2).

    Per node and round: the price of an empty round and of one filled to C' - c_max. ``kappa`` in
    (0, 1] is 1 for revealed durations; hidden: each (arrival, signal) gives its shortest and its
    longest duration at least this probability. Ends of one's own (15.2) must be fixed before any
    report; ``floor`` at most half the smallest value per node-round, and the cap must never bind.
    """
    low = kappa / (2 * max_concurrency * max_duration) if floor is None else floor
    high = max_value / kappa if ceiling is None else ceiling
    if not (0 < low < high and math.isfinite(high)):
        raise InvalidParameterError(f"floor = {low!r}, ceiling = {high!r}: expected 0 < floor < ceiling, both finite")
    return low, high


def relaxed_ratio(floor: float, ceiling: float) -> float:
    """Return alpha = 4 ln(2 ceiling/floor): (21) with the ends of (20), its kappa form, or 15.2."""
    return 4 * math.log(2 * ceiling / floor)


def smallest_supply(max_concurrency: int, floor: float, ceiling: float) -> float:
    """Return the relaxed supply C' that Theorem 5.1 needs, c_max (1 + log2(ceiling/floor)), in nodes."""
    return max_concurrency * (1 + math.log2(ceiling / floor))


def stochastic_ratio(bundles: int, max_duration: int) -> float:
    """Return alpha = 8 B/(B - H - 2) (27) with H = ceil(log2 D_max): B = floor(C'/(2 c_max)) > H + 2.

    Revealed durations only.
    """
    height = (max_duration - 1).bit_length()
    if bundles <= height + 2:
        raise InvalidParameterError(
            place="bundles", value=bundles, legal=f"more than {height + 2} for this max_duration"
        )
    return 8 * bundles / (bundles - height - 2)


def sample_size(gamma: float, eta: float, max_delay: int, max_duration: int, max_concurrency: int = 1) -> int:
    """Return n (28): scenarios after which all estimates are within gamma with probability 1 - eta.

    For the job's own concurrency; give ``max_concurrency`` for a table over all of them. Proven
    for scenarios drawn afresh at each submission; gamma in (0, 1), eta in (0, 1).

    Examples
    --------
    >>> sample_size(0.01, 0.01, max_delay=20, max_duration=4)
    48402
    """
    if not (0 < gamma < 1 and 0 < eta < 1):
        raise InvalidParameterError(f"gamma = {gamma!r}, eta = {eta!r}: expected both in (0, 1)")
    pairs = max_delay * max_duration * max_concurrency
    return math.ceil(math.log(2 * pairs / eta) / (2 * gamma**2))


def nominal_ratio(alpha: float, epsilon: float) -> float:
    """Return alpha/(1 - 2.4 eps), what Theorem 4.1 promises when (19) holds; 0 < eps <= 0.4."""
    return alpha / (1 - 2.4 * epsilon) if 0 < epsilon <= 0.4 else math.inf


def _welfare_factor(
    alpha: float,
    max_concurrency: int,
    max_value: float,
    max_delay: int,
    epsilon: float,
    *,
    rho: float,
    delta: float,
    eta: float,
) -> float:
    """Return what is left of 1/alpha in the proof of Theorem 4.1, steps (a)-(d), with its actual numbers.

    E[welfare] >= factor * OPT/alpha with factor = (1 - delta) ((1 - S rho/delta - eta)(1 - eps) - 8 alpha S^2 c_max
    V_max rho/delta); at least 1 - 2.4 eps under (19). Revealed durations only. Not above 0: no promise.
    """
    tail = rho / delta
    loss = 8 * alpha * max_delay**2 * max_concurrency * max_value * tail
    return (1 - delta) * ((1 - max_delay * tail - eta) * (1 - epsilon) - loss)


@dataclass(frozen=True, slots=True)
class Guarantees:
    """Every constant for one set of parameters; `guarantees` has the derivation of each.

    Examples
    --------
    >>> found = guarantees(max_concurrency=2, max_duration=4, max_value=10, max_delay=20, epsilon=0.2)
    >>> found.capacity, found.supply, found.window
    (1904, 1523.2, 20)
    """

    revealed: bool  # durations revealed; False: only part of this is proven, see the module
    capacity: int  # C, nodes
    supply: float  # C' = (1 - eps) C, nodes
    window: int  # Sbar (2), rounds
    delta: float  # failure level
    gamma: float  # oracle error
    eta: float  # probability of a larger oracle error
    theta: float  # zeroing threshold (13)
    mu: float  # expected error of the zeroed estimates (14)
    truthfulness: float  # most gained by a misreport (Theorem T), credits: 2 mu V_max; infinite if hidden
    hidden_truthfulness: float  # the same by (8), whose condition is on the market, credits
    floor: float  # price of an empty round, credits per node
    ceiling: float  # price of a round filled to C' - c_max
    alpha: float  # ratio of the relaxed algorithm (21)
    smallest_supply: float  # C' that Theorem 5.1 needs, nodes
    rho: float  # (16)
    rho_simple: float  # simple form of (16)
    admissible_rho: float  # largest rho of (19)
    failure_tail: float  # (17)
    block_failure_tail: float  # (18)
    sufficient_capacity: int  # C of (19), closed form
    smallest_capacity: int  # smallest C with exact rho in (19) and C' >= smallest_supply
    admissible: bool  # capacity >= smallest_capacity, and the ends of the price curve hold for all legal values
    nominal_ratio: float  # alpha/(1 - 2.4 eps); infinite unless eps <= 0.4 and durations revealed
    ratio: float  # proven for this capacity and these errors; infinite: nothing is
    samples: int | None  # (28) for one concurrency; None for an exact oracle
    samples_all: int | None  # (28) for all concurrencies


@legal
def guarantees(
    *,
    capacity: int | None = None,
    max_concurrency: Count,
    max_duration: Count,
    max_value: Annotated[float, Finite("[1, inf)")],
    max_delay: Count,
    epsilon: float,
    oracle: Oracle = "monte-carlo",
    revealed: bool = True,
    kappa: float = 1.0,
    floor: float | None = None,
    ceiling: float | None = None,
    delta: float | None = None,
    gamma: float | None = None,
    eta: float | None = None,
) -> Guarantees:
    """Compute every constant of Theorems T, 4.1 and 5.1 for given parameters.

    Parameters
    ----------
    capacity : int, optional
        C, nodes, > c_max. None: the smallest that (19) admits.
    max_concurrency, max_duration, max_delay : int
        c_max nodes, D_max rounds, S rounds; each >= 1.
    max_value : float
        V_max >= 1, credits; values lie in {0} u [1, V_max].
    epsilon : float
        Slack in (0, 1): the relaxed supply is (1 - eps) C. Theorem 4.1 needs at most 0.4.
    oracle : "monte-carlo" or "exact"
        Chooses the defaults of the three levels (19).
    revealed : bool
        Durations are known from the signal at arrival. If not, less is proven (module).
    kappa, floor, ceiling : float, optional
        Form and ends of the price curve, see `price_ends`. With a floor above, or a ceiling below, those of (20) some
        legal value is outside of the curve: nothing is proven of all markets then. Of the values in one market
        `ExponentialScheduler.promised_ratio` knows whether it holds there.
    delta, gamma, eta : float, optional
        Failure level in (0, 1), oracle error in [0, 1), its probability in [0, 1); defaults (19).

    Raises
    ------
    InvalidParameterError
        If a number is out of range; an overbooked market (eps <= 0) has no guarantee.

    Examples
    --------
    >>> g = guarantees(max_concurrency=2, max_duration=4, max_value=10, max_delay=20, epsilon=0.2)
    >>> round(g.alpha, 3), g.sufficient_capacity, g.smallest_capacity
    (23.073, 8723, 1904)
    """
    if not 0 < epsilon < 1:
        raise InvalidParameterError(
            place="epsilon", value=epsilon, legal="a number in (0, 1), the slack of the theorems"
        )
    defaults = _default_errors(epsilon, max_value, oracle)
    delta, gamma, eta = (d if x is None else x for x, d in zip((delta, gamma, eta), defaults, strict=True))
    if not (0 < delta < 1 and 0 <= gamma < 1 and 0 <= eta < 1):
        raise InvalidParameterError(
            f"delta = {delta!r}, gamma = {gamma!r}, eta = {eta!r}: expected delta in (0, 1), the others in [0, 1)"
        )
    low, high = price_ends(max_concurrency, max_duration, max_value, kappa=kappa, floor=floor, ceiling=ceiling)
    alpha, needed = relaxed_ratio(low, high), smallest_supply(max_concurrency, low, high)
    market = (max_concurrency, max_value, max_delay, epsilon)
    smallest = max(smallest_capacity(alpha, *market), math.ceil(needed / (1 - epsilon)))
    chosen = smallest if capacity is None else Whole(max_concurrency + 1).check("capacity", capacity)
    supply = (1 - epsilon) * chosen
    if supply <= max_concurrency:
        raise InvalidParameterError(
            f"(1 - epsilon) capacity = {supply:g}: expected more than max_concurrency = {max_concurrency}"
        )
    rho = overload_probability(chosen, max_concurrency, epsilon)
    window = _window(max_delay, max_duration, revealed)
    mu = delta + 2 * gamma + eta
    factor = _welfare_factor(alpha, *market, rho=rho, delta=delta, eta=eta)
    wide = price_ends(max_concurrency, max_duration, max_value, kappa=kappa)
    all_values = low <= wide[0] * (1 + 1e-12) and high >= wide[1] * (1 - 1e-12)  # no legal value is outside
    provable = revealed and factor > 0 and supply >= needed * (1 - 1e-12) and all_values
    sampled = gamma > 0 and eta > 0
    return Guarantees(
        revealed=revealed,
        capacity=chosen,
        supply=supply,
        window=window,
        delta=delta,
        gamma=gamma,
        eta=eta,
        theta=delta + gamma,
        mu=mu,
        truthfulness=2 * mu * max_value if revealed else math.inf,
        hidden_truthfulness=_hidden_truthfulness_gain(delta, max_value),
        floor=low,
        ceiling=high,
        alpha=alpha,
        smallest_supply=needed,
        rho=rho,
        rho_simple=_simple_overload_probability(chosen, max_concurrency, epsilon),
        admissible_rho=_admissible_overload(alpha, *market),
        failure_tail=failure_tail(rho, window, delta),
        block_failure_tail=_block_failure_tail(rho, max_delay, max_duration, delta, revealed=revealed),
        sufficient_capacity=_sufficient_capacity(alpha, *market),
        smallest_capacity=smallest,
        admissible=chosen >= smallest and all_values,
        nominal_ratio=nominal_ratio(alpha, epsilon) if revealed else math.inf,
        ratio=alpha / factor if provable else math.inf,
        samples=sample_size(gamma, eta, max_delay, max_duration) if sampled else None,
        samples_all=sample_size(gamma, eta, max_delay, max_duration, max_concurrency) if sampled else None,
    )
