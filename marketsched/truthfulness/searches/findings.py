"""The results of a search for profitable lies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import stdtrit

from marketsched.agents.lies import Misreport
from marketsched.truthfulness.searches.evaluation import Failure

SEEMS = 0.95  # of all findings together: what seems to pay, and is printed as no more than that
FEW = 8  # worlds: of fewer nothing seems


def seems_positive(mean: float, error: float, n: int, among: int) -> bool:
    """Tell whether a mean seems to be positive, by Student's one-sided test, shared by ``among`` findings.

    Parameters
    ----------
    mean, error : float
        Of ``n`` values, and its standard error, > 0.
    n, among : int
        Values, and findings.
    """
    return bool(mean > error * stdtrit(n - 1, 1 - (1 - SEEMS) / among))


@dataclass(frozen=True)
class Deviation:
    """A lie, and its expected gain over the truth, credits.

    Attributes
    ----------
    misreport : Misreport
        The lie.
    words : str
        The same in words.
    family : str
        Where it comes from.
    size : float
        Distance from the truth, see :mod:`marketsched.agents.lies`.
    gain_mean, gain_low, gain_high : float
        Mean over ``n_fresh`` worlds the search has not seen, and the interval. If there are none (the search was
        interrupted): the search's own estimate, which is biased upwards, and the range of possible gains.
    confidence : float
        Of all ``shared`` intervals of the search together.
    shared : int
        Number of intervals among which the error probability is divided.
    seed : int
        Root of the worlds.
    exact : bool
        True: all worlds were gone through, and the three figures are the expectation itself.
    n_fresh : int
        Worlds behind the figures.
    largest_payment : float
        The interval assumes that no payment under the lie is larger: the highest value it reports, or V_max if a
        larger payment was seen.
    inside_model : bool
        False: no theorem covers this conduct.
    tolerance : float
        Gains up to it do not count, credits.
    confirmed : bool
        ``gain_low > tolerance``.
    plays, seconds : int, float
        Of the whole search.
    error : float
        Standard error of ``gain_mean``; NaN: fewer than two fresh worlds, or none needed.

    Examples
    --------
    >>> from marketsched.agents.lies import ScaleValue
    >>> from marketsched.truthfulness import Situation, score
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork, get_mechanism
    >>> limits = dict(max_concurrency=1, max_duration=1, max_value=9.0, max_delay=4)
    >>> market = lambda rng: get_mechanism("pay-as-bid", capacity=1, horizon=4, **limits)
    >>> truth, rival = (StatementOfWork(1, 1, DeadlineValue(value, 2), [(1, 1, 1.0)]) for value in (8.0, 3.0))
    >>> situation = Situation(market, truth, [rival], capacity=1, horizon=4, max_delay=4)
    >>> lie = score(situation, ScaleValue(0.5))
    >>> lie.words, lie.gain_mean, lie.confirmed
    ('reports 0.5 of its value', 4.0, True)
    """

    misreport: Misreport
    words: str
    family: str
    size: float
    gain_mean: float
    gain_low: float
    gain_high: float
    confidence: float
    shared: int
    seed: int
    exact: bool
    n_fresh: int
    largest_payment: float
    inside_model: bool
    tolerance: float
    confirmed: bool
    plays: int
    seconds: float
    error: float = math.nan

    @property
    def seems(self) -> bool:
        """Whether it seems to pay and is not confirmed: by Student's test, sure to `SEEMS` among all that share it."""
        if self.confirmed or self.n_fresh < FEW or math.isnan(self.error):
            return False  # the same gain in all worlds has no error, and seems to pay all the more
        return seems_positive(self.gain_mean - self.tolerance, self.error, self.n_fresh, self.shared)


@dataclass(frozen=True)
class Tried:
    """A candidate of the search and its estimated gain: a point of a picture, no finding."""

    words: str
    family: str
    misreport: Misreport
    size: float
    gain: float
    n_worlds: int
    inside_model: bool


class Deviations(list[Deviation]):
    """The results of a search, best first.

    Attributes
    ----------
    tried : list of Tried
        All candidates that were played.
    failures : list of Failure
        Lies without a comparison, because mechanism or strategy failed, with the reason.
    illegal : int
        Members of families that are not legal here.
    untried : int
        Candidates the budget was too small for.
    plays, seconds : int, float
        Spent.
    max_plays, budget_seconds : int, float or None
        The budget.
    exact : bool
        True: all worlds were gone through.
    interrupted : bool
        Stopped by Ctrl-C.
    truthful : float or None
        Mean utility of the truth over the worlds of the search, credits; None: never played.
    truth_fails : str
        Why the mechanism fails under the truth, so that nothing can be compared; empty: it does not.

    Examples
    --------
    >>> found = Deviations(max_plays=20)
    >>> found.best(inside_model=True) is None, found.tried, found.max_plays
    (True, [], 20)
    """

    def __init__(self, *, max_plays: int | None = None, budget_seconds: float | None = None) -> None:
        super().__init__()
        self.tried: list[Tried] = []
        self.failures: list[Failure] = []
        self.illegal = self.untried = self.plays = 0
        self.seconds = 0.0
        self.max_plays, self.budget_seconds = max_plays, budget_seconds
        self.exact = self.interrupted = False
        self.truthful: float | None = None
        self.truth_fails = ""

    def best(self, *, inside_model: bool) -> Deviation | None:
        """Return the confirmed lie inside (or outside) the model with the largest sure gain; None: there is none."""
        found = [d for d in self if d.confirmed and d.inside_model is inside_model]
        return max(found, key=lambda d: (d.gain_low, -d.size), default=None)
