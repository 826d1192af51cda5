"""A lie and its gain on fresh worlds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from scipy.special import stdtrit

from marketsched.agents.lies import Misreport

SEEMS = 0.95  # confidence of what seems to pay, and is printed as no more than that
FEW = 8  # worlds: of fewer nothing seems


@dataclass(frozen=True)
class Deviation:
    """A lie, and its expected gain over the truth, credits.

    Attributes
    ----------
    misreport : Misreport
        The lie.
    words : str
        The same in words.
    size : float
        Distance from the truth, see :mod:`marketsched.agents.lies`.
    gain_mean, gain_low, gain_high : float
        Mean over ``n_fresh`` worlds the race has not seen, and the interval. If there are none (the plays ended
        before): the race's own estimate, which is biased upwards, and the range of possible gains.
    confidence : float
        Of the interval.
    seed : int
        Root of the worlds.
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
    detectable : float
        The mean gain that would have been confirmed with 90 % chance, as a share of ``worth``; inf: none.
    error : float
        Standard error of ``gain_mean``; NaN: fewer than two fresh worlds.

    Examples
    --------
    See `audit`, whose result lists those of each mechanism as ``lies``.
    """

    job: str
    worth: float
    misreport: Misreport = field(repr=False)
    words: str
    size: float
    gain_mean: float
    gain_low: float
    gain_high: float
    confidence: float
    seed: int
    n_fresh: int
    largest_payment: float
    inside_model: bool
    tolerance: float
    confirmed: bool
    error: float = math.nan
    detectable: float = math.nan

    @property
    def seems(self) -> bool:
        """Whether it seems to pay and is not confirmed: by Student's one-sided test, sure to `SEEMS`."""
        if self.confirmed or self.n_fresh < FEW or math.isnan(self.error):
            return False  # the same gain in all worlds has no error, and seems to pay all the more
        return bool(self.gain_mean - self.tolerance > self.error * stdtrit(self.n_fresh - 1, SEEMS))
