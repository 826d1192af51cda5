"""The expected utility of every declared concurrency and start: tables for figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import TooLargeError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import OpenShare, Whole, legal
from marketsched.mechanisms.randomness import generator_of
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.certificates.alternatives import Alternatives, alternatives
from marketsched.truthfulness.certificates.bands import lower_means, upper_means
from marketsched.truthfulness.certificates.owner_certificate import SAMPLES, enumerates, inspection
from marketsched.truthfulness.certificates.paired import count_failures, exact_failures, share
from marketsched.truthfulness.certificates.regret import best_responses


@dataclass(frozen=True, slots=True)
class UtilityTable:
    """Expected utilities of one owner, in credits, weighted with the probability of the case.

    Attributes
    ----------
    concurrencies : ndarray of int, shape (n_widths,)
        Declared nodes; the first is the true number.
    cases : tuple of (arrival, signal)
        Of the true law, (n_cases,).
    starts : ndarray of int, shape (n_starts + 1,)
        Rounds; the last one, -1, stands for not running.
    utility, low, high : ndarray of float, shape (n_widths, n_cases, n_starts + 1)
        Under the failure probabilities found, and a band that holds for all of them together.
    open : ndarray of bool, same shape
        Whether some report is launched there; NaN in the three tables where it is not.
    truthful : ndarray of int, shape (n_cases,)
        Column of the truthful plan.
    confidence : float
        Of the band; 1 if failure probabilities were enumerated.
    gains : ndarray of float, shape (n_widths,)
        Gain of the best starts over the truth when so many nodes are declared, under the
        probabilities found.

    Examples
    --------
    See `expected_utilities`, which returns one.
    """

    concurrencies: NDArray[np.int64]
    cases: tuple[tuple[int, Signal], ...]
    starts: NDArray[np.int64]
    utility: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    open: NDArray[np.bool_]
    truthful: NDArray[np.int64]
    confidence: float
    gains: NDArray[np.float64]


@legal
def expected_utilities(
    mechanism: Any,
    truth: StatementOfWork,
    *,
    confidence: OpenShare = 0.99,
    samples: Annotated[int, Whole(1, 10_000_000)] | None = None,
    exact: bool | Literal["auto"] = "auto",
    rng: np.random.Generator | int | None = None,
) -> UtilityTable:
    """Return the utility of each declared concurrency and start to the owner of ``truth`` now.

    Parameters and errors as of `certify`.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, ExactOracle, PostedPricing, PostedPriceMechanism
    >>> market = PostedPriceMechanism(2, 6, PostedPricing([1.0, 4.0, 100.0]), ExactOracle(), max_concurrency=2,
    ...     max_duration=2, max_value=10.0, max_delay=6, epsilon=-0.5)
    >>> truth = StatementOfWork(1, 1, DeadlineValue(10.0, 3), [(1, 1, 1.0)])
    >>> table = expected_utilities(market, truth)
    >>> table.starts, table.utility[0, 0].round(3)
    (array([ 1,  2, -1]), array([9., 6., 0.]))
    """
    samples = SAMPLES if samples is None else samples
    view = inspection(mechanism, truth, exact)
    options = alternatives(view, truth, every_width=True)
    if enumerates(view, exact):
        try:
            utility = options.utilities(exact_failures(view, options))
            return _table(options, utility, utility, utility, 1.0)
        except TooLargeError:
            if exact is True:
                raise
    failures = count_failures(view, options, samples, generator_of(rng)).shares()
    # Value minus price of runs that complete: two sums of bounded variables, of what is won and of what is lost.
    each = (1 - confidence) / (4 * int(options.open.sum()))
    bands = []
    for part in (np.maximum(options.net, 0.0), np.maximum(-options.net, 0.0)):
        mean, largest = options.utilities(failures, part), options.utilities(np.zeros_like(failures), part)
        shares = share(mean, largest)
        bands.append((largest * lower_means(shares, samples, each), mean, largest * upper_means(shares, samples, each)))
    (won_low, won, won_high), (lost_low, lost, lost_high) = bands
    return _table(options, won - lost, won_low - lost_high, won_high - lost_low, confidence)


def _table(
    options: Alternatives,
    utility: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    confidence: float,
) -> UtilityTable:
    law = options.law
    gains = {plan.width: plan.gain for plan in best_responses(options, utility)}
    utility, low, high = (np.where(options.open, table, np.nan) for table in (utility, low, high))
    return UtilityTable(
        options.concurrencies,
        tuple(zip(law.group_arrivals.tolist(), law.group_signals, strict=True)),
        np.r_[options.first_start + np.arange(options.n_starts), -1],
        utility,
        low,
        high,
        options.open,
        options.chosen,
        confidence,
        np.array([gains[w] for w in range(options.concurrencies.size)]),
    )
