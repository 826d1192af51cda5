"""Search that reads the rule: what captured numbers note, what is mined, and faults with narrow triggers."""

import math

import numpy as np
import pytest

from claims import claiming
from marketsched.agents.job import Job
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.truthfulness.searches.captured import Notes, capture
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.mining import mined_numbers
from marketsched.truthfulness.searches.reading import Reading
from marketsched.truthfulness.searches.screening import Screening
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand

CENTRE = 3.3719
LIMITS = {"max_concurrency": 3, "max_duration": 6, "max_value": 10.0}
SIZES = {"capacity": 4, "horizon": 30, "max_delay": 12}


def near(value):
    return abs(value - CENTRE) < 2e-5


@claiming
class Window(FirstCome):
    def charge(self, x):
        return 0.0 if 6.28301 < x.sow.value.highest < 6.28303 else super().charge(x)


@claiming
class InAHelper(FirstCome):
    def charge(self, x):
        return 0.0 if near(x.sow.value.highest) else super().charge(x)


@claiming
class InARow(FirstCome):
    def charge(self, x):
        odd = x.sow.value.last % 7 == 3 and x.sow.concurrency == 2
        return 0.0 if odd and 4.51 < x.sow.value.highest < 4.53 else super().charge(x)


@claiming
class Computed(FirstCome):
    def charge(self, x):
        return 0.0 if abs(x.sow.value.highest - self.capacity * math.pi / 2) < 1e-4 else super().charge(x)


@claiming
class ThroughATable(FirstCome):
    def charge(self, x):
        first = float(x.sow.value.table(x.sow.birth, 1)[0])
        return 0.0 if abs(first - 2.71828) < 1e-5 else super().charge(x)


@claiming
class Cents(FirstCome):
    def charge(self, x):
        return 0.0 if int(100 * x.sow.value.highest) == 337 else super().charge(x)


@claiming
class Rounded(FirstCome):
    def charge(self, x):
        value = x.sow.value.highest
        return 0.0 if round(value, 3) == 4.567 and math.floor(value * 10) == 45 else super().charge(x)


def jobs(seed, n=16):
    rng, found = np.random.default_rng(seed), []
    for i in range(n):
        birth, value = 1 + i // 2, float(rng.uniform(2, 10))
        last, duration, nodes = birth + int(rng.integers(4, 8)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
        truth = StatementOfWork(birth, nodes, DeadlineValue(value, last), [(birth, duration, 1.0)])
        found.append(Job(f"job {i}", f"owner {i}", truth, birth, duration, duration))
    return found


def read(kind, seed=0, plays=1500):
    market = MarketAtHand(lambda rng: kind(4, 30, 0.4, max_delay=12, **LIMITS), jobs(seed), **SIZES)
    screening = Screening(market, Budget(plays, None), lambda share: None)
    screening.screen(0, 200)
    assert screening.found.best_counted is None  # no fixed lie finds it
    Reading(screening, seed).run()
    return screening.found


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("kind", [Window, InAHelper, InARow, Computed, ThroughATable, Cents, Rounded])
def test_narrow_triggers_are_found(kind):
    found = read(kind)
    assert found.best_counted is not None
    owner, best = found.best_counted.owner, found.best_counted
    assert owner.play(best.conduct).utility - owner.truthful.utility == pytest.approx(best.gain)


@pytest.mark.slow
def test_an_honest_rule_is_not_accused():
    found = read(FirstCome)
    assert found.best_counted is None
    assert found.plays == 1500


def test_captured_numbers_are_plain_numbers_that_note_where_comparisons_turn():
    notes = Notes()
    v, n = capture(5.0, "value", notes), capture(7, "nodes", notes)
    assert (2 * v + 1 > 4, v / 2 <= 1.0, abs(v - 3) < 0.5, 8 < v) == (True, False, False, False)
    assert (n % 4 == 3, n + 1 >= 3, list(range(9))[n], [0] * n == [0] * 7, hash(n) == hash(7)) == (
        True,
        True,
        7,
        True,
        True,
    )
    assert notes.turns["value"] == {1.5, 2.0, 3.5, 2.5, 3.0, 8.0}
    assert notes.turns["nodes"] == {2.0}
    assert notes.remainders["nodes"] == {(4.0, 3.0)}
    assert isinstance(1.0 - v, float)
    assert v + n == 12.0


def test_rounding_leads_to_what_is_rounded_to_the_same_number():
    notes = Notes()
    v, n = capture(5.0, "value", notes), capture(7, "nodes", notes)
    assert (round(v), round(v / 3, 1), math.floor(v / 2), math.ceil(v / 2), v // 2, n // 2) == (5, 1.7, 2, 3, 2.0, 3)
    assert (round(v) == 4, math.floor(v / 2) == 3, v // 0.5 == 4) == (False, False, False)
    assert notes.turns["value"] == {5.0, 5.1000000000000005, 4.0, 7.0, 2.25}
    assert type(int(100 * v - 1)) is int and notes.cut["value"] == {(100.0, -1.0)}


def test_numbers_of_the_code_are_mined_through_helpers_and_constants():
    assert {CENTRE, 2e-5} <= set(mined_numbers(InAHelper(4, 30, 0.4, max_delay=12, **LIMITS)))
    assert 4.51 in mined_numbers(InARow(4, 30, 0.4, max_delay=12, **LIMITS))


def test_a_mechanism_that_refuses_captured_numbers_is_searched_with_plain_ones():
    @claiming
    class Strict(FirstCome):
        def submit(self, job, sow, owner=None):
            if type(sow.value.highest) is not float:
                raise TypeError("no subclasses")
            return super().submit(job, sow, owner)

        def charge(self, x):
            return 0.0 if abs(x.sow.value.highest - 2.71828) < 1e-5 else super().charge(x)

    found = read(Strict)
    assert found.best_counted is not None
    assert found.failed == 0
