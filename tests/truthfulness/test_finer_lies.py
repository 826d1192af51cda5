"""Lies about digits, a second step, another owner's law, a shape of no worth: what they say, and what they find."""

from dataclasses import replace

import numpy as np
import pytest

from claims import claiming
from marketsched.agents.job import Job
from marketsched.agents.lies import (
    CopyLaw,
    PublicInformation,
)
from marketsched.mechanisms import DeadlineValue, LinearValue, StatementOfWork
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.looking import look_at_hand
from marketsched.truthfulness.searches.screening import Screening
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand

PUBLIC = PublicInformation(4, 30, 12, max_concurrency=3, max_duration=6, max_value=10.0)
TRUTH = StatementOfWork(3, 1, DeadlineValue(6.37, 9), [(3, 2, 1.0)])


def test_the_law_of_another_owner_is_moved_to_the_own_birth():
    other = StatementOfWork(1, 2, DeadlineValue(3.0, 5), [(2, 4, 0.5), (1, 1, 0.5)])
    report = CopyLaw(0).report(TRUTH, replace(PUBLIC, others=(other,)))
    assert sorted((r.arrival, r.duration, r.probability) for r in report.requirements) == [(3, 1, 0.5), (4, 4, 0.5)]
    assert (report.birth, report.concurrency, report.value) == (3, 1, TRUTH.value)
    with pytest.raises(InvalidReportError, match="place = 1: expected one of 1 others"):
        CopyLaw(1).report(TRUTH, replace(PUBLIC, others=(other,)))


# --- rules with these triggers, none of which compares the number itself ------------------------------------


@claiming
class FreeAtPrices(FirstCome):
    """Free for values that end in .99."""

    def charge(self, x):
        return 0.0 if f"{x.sow.value.highest:.2f}".endswith(".99") else super().charge(x)


@claiming
class FreeByDigit(FirstCome):
    """Free for values whose first decimal is a 7, as they are written."""

    def charge(self, x):
        return 0.0 if f"{x.sow.value.highest:.1f}"[-1] == "7" else super().charge(x)


@claiming
class FreeForStairs(FirstCome):
    """Free for curves that are worth something, and less, in their second half."""

    def charge(self, x):
        curve, birth = x.sow.value, x.sow.birth
        values = np.asarray(curve.table(birth + 1, max(1, curve.last - birth)))
        stairs = len(set(values[values > 0].tolist())) == 2 and values[-1] < 0.7 * values[0]
        return 0.0 if stairs else super().charge(x)


@claiming
class FreeForTheirLaw(FirstCome):
    """Free for a law that was announced before."""

    def __init__(self, *sizes, **limits):
        super().__init__(*sizes, **limits)
        self.seen, self.free = set(), set()

    def submit(self, job, sow, owner=None):
        law = tuple((r.arrival - sow.birth, r.duration, r.probability) for r in sow.requirements)
        self.free |= {job} if law in self.seen else set()
        self.seen.add(law)
        return super().submit(job, sow, owner)

    def charge(self, x):
        return 0.0 if x.job in self.free else super().charge(x)


@claiming
class CheapUnlessItRestarts(FirstCome):
    """A twentieth off for work that cannot start again."""

    def charge(self, x):
        return super().charge(x) * (1.0 if x.sow.restarts else 0.95)


@claiming
class CheapForFlatLines(FirstCome):
    """A tenth off for lines of slope 0."""

    def charge(self, x):
        line = isinstance(x.sow.value, LinearValue) and x.sow.value.slope == 0
        return super().charge(x) * (0.9 if line else 1.0)


@claiming
class DearForThree(FirstCome):
    """A fifth more for three durations, which one job of the market has."""

    def charge(self, x):
        return super().charge(x) * (1.2 if np.unique(x.sow.law.durations).size >= 3 else 1.0)


@claiming
class CheapForThree(FirstCome):
    """A tenth off for three durations."""

    def charge(self, x):
        return super().charge(x) * (0.9 if np.unique(x.sow.law.durations).size >= 3 else 1.0)


def jobs(seed=0, n=16):
    rng, found = np.random.default_rng(seed), []
    for i in range(n):
        birth, value = 1 + i // 2, float(rng.uniform(2, 9))
        last, nodes = birth + int(rng.integers(4, 8)), int(rng.integers(1, 3))
        points = [(birth, 1 + i % 3, 0.25 + i / 64), (birth, 4, 0.75 - i / 64)]
        points += [(birth, 5, 0.1)] if i == 6 else []
        points = [(a, d, p / (1.1 if i == 6 else 1.0)) for a, d, p in points]
        truth = StatementOfWork(birth, nodes, DeadlineValue(value, last), points)
        found.append(Job(f"job {i}", f"owner {i}", truth, birth, 1 + i % 3, 1 + i % 3))
    return found


FAULTS = [FreeAtPrices, FreeByDigit, FreeForStairs, FreeForTheirLaw]
FAULTS += [CheapUnlessItRestarts, CheapForFlatLines, DearForThree, CheapForThree]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", [*FAULTS, FirstCome])
def test_rules_that_such_lies_exploit_are_found_at_the_default(kind):
    limits = {"max_concurrency": 3, "max_duration": 6, "max_value": 10.0, "max_delay": 12}
    market = MarketAtHand(lambda rng: kind(4, 30, 0.4, **limits), jobs(), capacity=4, horizon=30, max_delay=12)
    screening = Screening(market, Budget(2000, None), lambda share: None)
    look_at_hand(screening, 0)
    best = screening.found.best_counted
    assert (best is None) == (kind is FirstCome)
    if best is None:
        return
    assert best.owner.play(best.conduct).utility > best.owner.truthful.utility
