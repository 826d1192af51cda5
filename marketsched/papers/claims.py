"""A paper's claim about one figure, the measurement, and the verdict: one rule for every claim.

A claim is a number, or only a side of a neutral value ("performs best", "increases", "at most"). A measurement has an
interval over seeds. The verdict follows from the two (docs/reproduce.md has the rule), and from nothing else: neither
the claim's name nor the paper's. A number of no effect is 1 for a ratio, and 0 for a difference or a level.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.results.paired_statistics import ratio_of_means, spread

ClaimKind = Literal["number", "above", "below", "at most", "at least"]
Verdict = Literal["reproduced", "same direction", "direction only", "not decided", "not reproduced"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

CONFIDENCE = 0.95
SIZE = 2.0  # an effect up to so many times the paper's, or so small a part of it, is of its size


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper."""

    quantity: str  # the measured quantity, in words
    source: str  # where the paper says so
    kind: ClaimKind  # ``number``, or the side of ``value`` that the paper claims
    value: float  # the paper's number; of a side or a bound, its end
    neutral: float  # no effect: 1 of a ratio, 0 of a difference, NaN of a level. Of a side it is not looked at
    rounding: float = 0.0  # half a unit of the last digit printed; 0: exact
    why: str = ""  # why it may come out otherwise here, as far as known
    # why its verdict is not counted, in words: it was measured at another setting than the paper's, is counted with
    # another row, or is a control that the paper says nothing about. Empty: counted, at the paper's setting as far as
    # it states one
    setting: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurement: estimate, ends of its 95 % interval, and range and number of single seeds."""

    value: float
    low: float
    high: float
    least: float
    most: float
    seeds: int


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """One claim with its measurement."""

    claim: Claim
    measured: Measured

    @property
    def verdict(self) -> Verdict:
        """By the rule of the module."""
        claim, found = self.claim, self.measured
        return verdict(claim.kind, claim.value, found.low, found.high, neutral=claim.neutral, rounding=claim.rounding)

    @property
    def reason(self) -> str:
        """Why the verdict is not *reproduced*: first from the interval, then a known reason. Else empty."""
        if self.verdict == "reproduced":
            return ""
        found = _seen(self.claim, self.measured, self.verdict)
        return f"{found}; {self.claim.why}" if self.claim.why else found

    def to_dict(self) -> dict[str, Any]:
        """Return one row of the table, as plain data."""
        claim = self.claim
        about = {"quantity": claim.quantity, "source": claim.source, "claim": claim.kind, "paper": claim.value}
        rule = {"neutral": claim.neutral, "rounding": claim.rounding}
        found = {"verdict": self.verdict, "reason": self.reason, "why": claim.why, "setting": claim.setting}
        return {**about, **asdict(self.measured), **rule, **found}


def verdict(
    kind: ClaimKind, paper: float, low: float, high: float, *, neutral: float = 1.0, rounding: float = 0.0
) -> Verdict:
    """Return the verdict on one claim.

    ``paper`` is the number (``kind`` "number"), or the end of the side or bound; ``low`` and ``high`` are the interval
    of the measurement, NaN: there is none. Only a number needs ``neutral``, no effect (NaN: the number is a level), and
    ``rounding``, the tolerance around it.
    """
    if math.isnan(low) or math.isnan(high):
        return "not decided"
    if kind == "number":
        return _verdict_on_number(paper, low, high, neutral, rounding)
    holds = {"above": low > paper, "below": high < paper, "at least": low >= paper, "at most": high <= paper}
    fails = {"above": high <= paper, "below": low >= paper, "at least": high < paper, "at most": low > paper}
    return "reproduced" if holds[kind] else "not reproduced" if fails[kind] else "not decided"


def _verdict_on_number(paper: float, low: float, high: float, neutral: float, rounding: float) -> Verdict:
    nothing = 0.0 if math.isnan(neutral) else neutral
    if low <= paper + rounding and paper - rounding <= high:
        says_nothing = abs(paper - nothing) > rounding and low <= nothing <= high
        return "not decided" if says_nothing else "reproduced"
    same = (paper > neutral and low > neutral) or (paper < neutral and high < neutral)
    if not same:
        return "not reproduced"
    ends = abs(low - neutral), abs(high - neutral)
    sized = abs(paper - neutral) / SIZE <= min(ends) and max(ends) <= SIZE * abs(paper - neutral)
    return "same direction" if sized else "direction only"


def _seen(claim: Claim, found: Measured, decided: Verdict) -> str:
    if math.isnan(found.low) or math.isnan(found.high):
        return "no interval: too few seeds, or totals that are not positive"
    if claim.kind != "number":
        return "the seeds do not decide" if decided == "not decided" else "the opposite, in the mean over seeds"
    if decided == "not decided":
        return "the seeds do not decide: the interval holds the paper's number, and no effect, too"
    single = "within" if found.least <= claim.value <= found.most else "outside"
    single = f"the paper's number is {single} the range of single seeds"
    if math.isnan(claim.neutral):
        return f"{'higher' if found.value > claim.value else 'lower'} here; {single}"
    if found.low <= claim.neutral <= found.high:
        return "no effect is seen beyond the spread over seeds"
    if (claim.value - claim.neutral) * (found.value - claim.neutral) < 0:
        return "the opposite, in the mean over seeds"
    size = "larger" if abs(found.value - claim.neutral) > abs(claim.value - claim.neutral) else "smaller"
    return f"the effect is {size} here; {single}"


def ratio_row(claim: Claim, above: ArrayLike, below: ArrayLike) -> CheckedClaim:
    """Return the row of a claim about mean(above) / mean(below) over paired seeds; no interval if one below is <= 0."""
    a, b = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    found = ratio_of_means(a, b, confidence=CONFIDENCE)
    if not (b > 0).all():  # resamples might have no ratio
        return CheckedClaim(claim, Measured(found.value, math.nan, math.nan, math.nan, math.nan, b.size))
    single = a / b
    return CheckedClaim(claim, Measured(*found, float(single.min()), float(single.max()), b.size))


def mean_row(claim: Claim, values: ArrayLike) -> CheckedClaim:
    """Return the row of a mean over seeds, with Student's interval."""
    x = np.asarray(values, dtype=np.float64)
    if not np.isfinite(x).all():
        raise InvalidParameterError(f"{claim.quantity}: {x.tolist()}: expected finite numbers")
    found = spread(x, CONFIDENCE)
    return CheckedClaim(claim, Measured(found.mean, found.low, found.high, found.least, found.most, x.size))


def exact_row(claim: Claim, value: float, cases: int = 1) -> CheckedClaim:
    """Return the row of a figure that is known without sampling: its interval is a point."""
    return CheckedClaim(claim, Measured(value, value, value, value, value, cases))


def interval_row(claim: Claim, value: float, low: float, high: float, cases: int) -> CheckedClaim:
    """Return the row of a figure whose interval was found otherwise."""
    return CheckedClaim(claim, Measured(value, low, high, math.nan, math.nan, cases))


def ratio(
    text: str, source: str, kind: ClaimKind, paper: float, above: ArrayLike, below: ArrayLike, **more: Any
) -> CheckedClaim:
    """Return the row of a ratio, of no effect at 1; ``more`` as of `Claim`."""
    return ratio_row(Claim(text, source, kind, paper, 1.0, **more), above, below)


def mean(text: str, source: str, kind: ClaimKind, paper: float, values: ArrayLike, **more: Any) -> CheckedClaim:
    """Return the row of a mean, of no effect at 0; ``more`` as of `Claim`."""
    return mean_row(Claim(text, source, kind, paper, more.pop("neutral", 0.0), **more), values)


def printed_ratio(above: float, below: float) -> tuple[float, float]:
    """Return the ratio of two printed numbers, and how much two digits behind the point leave open."""
    return above / below, above / below * 0.005 * (1 / above + 1 / below)
