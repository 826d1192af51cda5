"""The base class of mechanisms: its defaults, objects that are no subclass, and what built-in mechanisms state."""

import pickle

import numpy as np
import pytest

from marketsched.agents import Job, MarketSetup
from marketsched.agents.loop import MarketLoop
from marketsched.agents.market_run import MarketRun
from marketsched.mechanisms import (
    DeadlineValue,
    Event,
    EventKind,
    InvalidParameterError,
    LaunchPlan,
    Mechanism,
    StatementOfWork,
    get_mechanism,
    mechanism_names,
    register,
)
from marketsched.mechanisms.forwarding import Forwarding, as_mechanism
from marketsched.mechanisms.registry import get, standing_of
from marketsched.truthfulness import check_mechanism

SIZES = {"capacity": 3, "horizon": 9, "max_concurrency": 1, "max_duration": 3, "max_value": 9.0, "max_delay": 9}


class Bare:
    """One job at a time, for a credit; it has what is needed, and derives from nothing."""

    def __init__(self, capacity=1, horizon=9, **sizes):
        self.round, self.horizon, self.arrived, self.runs = 1, horizon, [], None

    def submit(self, job, sow):
        return LaunchPlan(job, (), 0.0)

    def arrive(self, job, signal=None):
        self.arrived.append(job)

    def advance(self):
        events = []
        for job in self.arrived:
            kind = EventKind.START if self.runs is None else EventKind.DROP
            self.runs = job if self.runs is None else self.runs
            events.append(Event(self.round, kind, job))
        self.arrived, self.round = [], self.round + 1
        return events

    def complete(self, job):
        self.runs = None
        return Event(self.round - 1, EventKind.COMPLETE, job, self.round, 1.0)


class Derived(Bare, Mechanism):
    """The same, derived."""


class WithMore(Bare):
    """The same, with optional members."""

    truthful = "ex post"
    does_not_claim = frozenset({"pickles"})
    owners = ()

    def submit(self, job, sow, owner=None):
        self.owners += (owner,)
        return super().submit(job, sow)

    def slot_prices(self, first, count):
        return np.full(count, 1.0)

    def statistics(self):
        return {"jobs": len(self.owners)}

    def close(self):
        return [Event(self.horizon, EventKind.EVICT, self.runs)] if self.runs else []


def setup(mechanism, duration=2):
    jobs = [
        Job(name, "ann", StatementOfWork(1, 1, DeadlineValue(4.0, 8), [(1, duration, 1.0)]), 1, duration, duration)
        for name in "AB"
    ]
    return MarketSetup("two jobs", jobs, mechanism, capacity=1, horizon=9, max_delay=9)


@pytest.mark.parametrize("kind", [Bare, Derived, WithMore])
def test_a_mechanism_need_not_have_more_than_six_members(kind):
    result = MarketRun(setup(kind())).run()
    assert result.outcome["welfare"] == 4.0 and result.outcome["revenue"] == 1.0
    assert result.jobs["outcome"].tolist() == ["completed", "dropped"]


def test_defaults_say_that_there_is_nothing():
    market = Derived()
    assert market.slot_prices(1, 2) is market.committed(1, 2) is market.menu(1) is market.certificate() is None
    assert market.booked("A", 1) is None and market.close() == [] and not market.statistics()
    assert not market.posts_menus_at_arrival and (market.max_duration, market.max_value) == (None, None)
    assert market.truthful == market.truthful_hidden == "none" and market.reads_reports == "submission"
    sow = StatementOfWork(1, 1, DeadlineValue(4.0, 8), [(1, 1, 1.0)])
    assert market.quote("A", sow).plan == LaunchPlan("A", (), 0.0)


def test_what_an_object_has_is_used_and_the_rest_is_as_by_default():
    market = as_mechanism(WithMore())
    assert isinstance(market, Forwarding) and as_mechanism(market) is market
    assert market.slot_prices(1, 2).tolist() == [1.0, 1.0] and market.committed(1, 2) is None
    assert (
        market.truthful == "ex post" and market.does_not_claim == {"pickles"} and market.reads_reports == "submission"
    )
    loop = MarketLoop(market)
    jobs = setup(WithMore()).jobs
    loop.submit("A", jobs[0].truth, jobs[0], 1, owner="ann")
    assert loop.mechanism.owners == ("ann",) and market.statistics() == {"jobs": 1}
    loop.clear()
    copy = pickle.loads(pickle.dumps(market))
    assert copy.runs == "A" and copy.round == 2
    copy.complete("A")
    assert market.runs == "A"
    result = MarketRun(setup(WithMore(), duration=12)).run()
    assert result.outcome["mechanism"] == {"jobs": 2} and "close" in set(result.events["event"])


@pytest.mark.parametrize("lacking", ["round", "advance"])
def test_an_object_that_lacks_a_member_is_refused_with_the_remedy(lacking):
    class Short(Bare):
        def __getattribute__(self, name):
            if name == lacking:
                raise AttributeError(name)
            return super().__getattribute__(name)

    with pytest.raises(InvalidParameterError, match=rf"lacks {lacking}: expected .*mechanisms\.Mechanism"):
        MarketLoop(Short())


def test_a_registered_class_that_derives_from_nothing_is_played_and_checked():
    register("test: bare")(WithMore)
    assert isinstance(get_mechanism("test: bare", **SIZES), Mechanism)
    report = check_mechanism(WithMore, n_markets=1)
    assert report["pickles"].outcome == "not claimed"


def test_every_built_in_mechanism_states_what_it_promises():
    for name in mechanism_names():
        if get("mechanism", name).__module__.startswith("marketsched."):  # other tests register mechanisms of their own
            standing = standing_of(name)
            assert standing.status in ("proved", "tested", "baseline"), name
            assert standing.promises and standing.needs, name


@pytest.mark.slow
@pytest.mark.long_after(3)
@pytest.mark.parametrize("name", ["posted-price", "bid-price", "first-come", "vcg", "fair-share"])
def test_who_promises_that_later_jobs_change_nothing_keeps_it(name):
    report = check_mechanism(lambda **sizes: get_mechanism(name, **sizes), n_markets=4)
    kept = report["later jobs change nothing"].outcome == "passed"
    assert kept == get_mechanism(name, **SIZES).later_jobs_change_nothing
