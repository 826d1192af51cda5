"""What a mechanism returns is checked by the loop itself: in a run as in a search."""

import numpy as np
import pytest

from marketsched.agents.job import Job
from marketsched.agents.market_run import MarketRun
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import DeadlineValue, Event, EventKind, FirstCome, LinearValue, StatementOfWork
from marketsched.mechanisms.errors import MechanismFault

SIZES = {"max_concurrency": 1, "max_duration": 4, "max_value": 9.0, "max_delay": 9}


class OwnTime(FirstCome):
    """Says that every job was done in round 1."""

    def complete(self, job):
        event = super().complete(job)
        return Event(3, event.kind, job, 1, np.float64(event.payment))


class WrongEvents(FirstCome):
    """Returns one event that is not legal."""

    wrong = None

    def complete(self, job):
        event = super().complete(job)
        return event if self.wrong is None else self.wrong(event)


def setup(mechanism):
    truth = StatementOfWork(1, 1, LinearValue(9.0, 2, 1.0, 9), [(2, 3, 1.0)])
    return MarketSetup("one job", [Job("A", "ann", truth, 2, 3)], mechanism, capacity=1, horizon=9, max_delay=9)


def test_completion_times_are_the_loops_own():
    found = MarketRun(setup(OwnTime(1, 9, 0.5, **SIZES))).run()
    plain = MarketRun(setup(FirstCome(1, 9, 0.5, **SIZES))).run()
    assert found.outcome["welfare"] == plain.outcome["welfare"] == 6.0  # done in 5, three rounds after 2
    assert found.events.equals(plain.events)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda e: Event(e.round, e.kind, e.job, e.completion, np.nan),
        lambda e: Event(e.round, e.kind, e.job, e.completion, np.inf),
        lambda e: Event(e.round, EventKind.EVICT, e.job),
        lambda e: Event(e.round, e.kind, "B", e.completion, 1.0),
    ],
)
def test_a_completion_that_is_none_is_an_error(wrong):
    mechanism = WrongEvents(1, 9, 0.5, **SIZES)
    mechanism.wrong = wrong
    with pytest.raises(MechanismFault, match="expected a completion with a finite payment, of 'A'"):
        MarketRun(setup(mechanism)).run()


@pytest.mark.parametrize(
    ("kind", "job", "message"),
    [
        (EventKind.START, "A", "which has not arrived"),
        (EventKind.DROP, "ghost", "expected a job in the market"),
        (EventKind.COMPLETE, "A", "by the mechanism itself"),
    ],
)
def test_an_event_that_is_not_legal_is_an_error(kind, job, message):
    class Invents(FirstCome):
        def advance(self):
            return [Event(self.round, kind, job), *super().advance()]

    with pytest.raises(MechanismFault, match=message):
        MarketRun(setup(Invents(1, 9, 0.5, **SIZES))).run()


def test_deadlines_stay_as_they_are():
    truth = StatementOfWork(1, 1, DeadlineValue(9.0, 4), [(2, 3, 1.0)])
    job = Job("A", "ann", truth, 2, 3)
    late = MarketSetup("late", [job], OwnTime(1, 9, 0.0, **SIZES), capacity=1, horizon=9, max_delay=9)
    assert MarketRun(late).run().outcome["welfare"] == 0.0  # done in 5, whatever the mechanism says


class Breaks(FirstCome):
    """Raises where it serves."""

    def serve(self, waiting):
        return {}["nothing"] if waiting else []


def test_an_error_of_ones_own_rule_is_one_line_with_its_place_and_ours_is_not_hidden(monkeypatch):
    with pytest.raises(MechanismFault, match=r"^Breaks in round 2: KeyError: 'nothing' \(test_what.*, in serve\)$"):
        MarketRun(setup(Breaks(1, 9, 0.5, **SIZES))).run()
    monkeypatch.setattr(FirstCome, "serve", staticmethod(int))
    with pytest.raises(TypeError, match=r"int\(\)"):  # ours: all of its traceback is wanted
        MarketRun(setup(WrongEvents(1, 9, 0.5, **SIZES))).run()  # in a round that `FirstCome` serves


class PlaysNothing(FirstCome):
    """Says that it played a market, and did not."""

    def play(self, jobs, outcomes, until):
        return True


def test_a_market_that_was_said_to_be_played_and_was_not_is_refused():
    with pytest.raises(MechanismFault, match="played rounds 1 to 9, and is in round 1: expected round 10"):
        MarketRun(setup(PlaysNothing(1, 9, 0.5, **SIZES))).run()
