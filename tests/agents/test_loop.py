"""The loop by itself: its order is the Mesa market's, and what happens follows from the protocol alone."""

import pytest

from marketsched.agents.job import Job
from marketsched.agents.loop import NEVER, Fate, MarketLoop
from marketsched.agents.market import Market
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import DeadlineValue, Event, EventKind, StatementOfWork
from marketsched.mechanisms.errors import MechanismFault
from strict_mechanism import StrictMechanism


def job(name, birth, arrival, duration, nodes=1):
    truth = StatementOfWork(birth, nodes, DeadlineValue(10.0, 30), [(arrival or birth, duration, 1.0)])
    return Job(name, "ann", truth, arrival, duration, duration)


JOBS = [job("late", 3, 3, 1), job("first", 1, 2, 2), job("second", 1, 1, 3), job("never", 1, None, 1)]


def test_the_loop_and_the_mesa_market_make_the_same_calls():
    model = Market(MarketSetup("test", JOBS, StrictMechanism(4, 6), 4, 6, 20))
    result = model.run()
    market = MarketLoop(StrictMechanism(4, 6))
    events = play(market, TruthfulOwners(JOBS), 6)
    assert market.mechanism.calls == model.mechanism.calls
    told = result.events[~result.events["event"].isin(["submit", "arrive", "close"])]
    assert [(e.round, str(e.kind), e.job) for e in events] == list(
        zip(told["round"], told["event"], told["job"], strict=True)
    )


def test_work_with_too_few_nodes_runs_on_and_load_is_that_of_the_round_cleared():
    market = MarketLoop(StrictMechanism(4, 9))
    sow = job("a", 1, 1, 2).truth
    market.submit("a", sow, Fate(1, 2, 2), 2)  # the report has one node, the work needs two
    market.submit("b", sow, Fate(1, 2, 2), 1)
    loads = []
    for _ in range(4):
        market.clear()
        loads.append(market.load)
    assert loads == [2, 2, 1, 1] and list(market.entries) == ["a"]


def test_the_future_can_be_said_late_and_said_anew():
    market = MarketLoop(StrictMechanism(4, 9))
    market.submit("a", job("a", 1, 3, 1).truth, NEVER, 1)
    market.clear()
    market.ready("a", Fate(1, 1, 1))  # ready before: it arrives now
    market.ready("nobody", Fate(1, 1, 1))  # who is not there is passed over
    market.foretell({"a": Fate(3, 2, 1)})
    assert not market.arrivals()
    assert market.advance() == [] and market.now == 3
    assert [entry.name for entry in market.arrivals()] == ["a"]


@pytest.mark.parametrize(
    ("answer", "duration", "expected"),
    [
        (None, 3, None),  # the mechanism does not say
        ((4, 2.5), 3, (7, 2.5)),
        ((0, 0.0), 3, (3, 0.0)),  # round 0 and a price of 0 are answers
        ((4, None), 3, (None, 0.0)),  # it never runs
        ((4, 2.5), None, (None, 0.0)),  # it never ends
    ],
)
def test_what_is_booked_is_the_start_and_the_rounds_of_the_work(answer, duration, expected):
    class Books(StrictMechanism):
        def booked(self, name, rounds):
            assert (name, rounds) == ("a", duration)
            return answer

    market = MarketLoop(Books(4, 9))
    assert market.booked("a") is None  # it is not there
    market.submit("a", job("a", 1, 2, 1).truth, Fate(2, duration, 1), 1)
    assert market.booked("a") is None  # nor has it arrived
    market.clear()
    market.arrivals()
    assert market.booked("a") == expected


@pytest.mark.parametrize("kind", list(EventKind))
def test_an_event_of_another_round_keeps_all_else(kind):
    """The loop's clock counts; a payment is kept, also that of an eviction or a drop."""

    class Shifted(StrictMechanism):
        def advance(self):
            super().advance()
            before = {EventKind.EVICT: [EventKind.START], EventKind.REQUEUE: [EventKind.START]}.get(kind, [])
            kinds = [*before, kind if kind is not EventKind.COMPLETE else EventKind.START]
            return [Event(99, each, "a", payment=2.5, worth=0.5) for each in kinds]

        def complete(self, name):
            return Event(-7, EventKind.COMPLETE, name, 55, 2.5, worth=0.5)

        def withdraw(self, name, fee=0.0):
            return Event(99, EventKind.WITHDRAW, name, payment=2.5, worth=0.5)

    market = MarketLoop(Shifted(4, 9))
    market.submit("a", job("a", 1, 1, 1).truth, Fate(1, 1, 1), 1)
    told = [market.withdraw("a")] if kind is EventKind.WITHDRAW else market.clear()
    events = [event for event in told if event.kind is kind]
    completion = 2 if kind is EventKind.COMPLETE else None
    assert events == [Event(1, kind, "a", completion, 2.5, 0.5)]


def test_an_event_about_a_job_that_is_not_there_is_an_error():
    class Talks(StrictMechanism):
        def advance(self):
            return [*super().advance(), Event(self.round, EventKind.CANCEL, "nobody")]

    market = MarketLoop(Talks(4, 9))
    market.submit("a", job("a", 1, 1, 2).truth, Fate(1, 2, 2), 1)
    with pytest.raises(MechanismFault, match="cancel of 'nobody': expected a job in the market"):
        market.clear()
