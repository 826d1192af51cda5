"""Whole markets: `Mechanism.play` makes of a market what the protocol makes of it round by round, to the byte."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched import Scenario
from marketsched.agents import Job
from marketsched.agents.market_run import MarketRun
from marketsched.agents.referee import compare_plays
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import (
    ArrivalMarket,
    DeadlineValue,
    EventError,
    FallingValue,
    FirstCome,
    LinearValue,
    StatementOfWork,
    TableValue,
)
from marketsched.mechanisms.registry import get_mechanism
from marketsched.truthfulness import check_mechanism
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.market import Window, market_of
from marketsched.worlds.logs.rule import LogRule

CAPACITY, HORIZON, MAX_DELAY = 4, 24, 12
LIMITS = {"capacity": CAPACITY, "horizon": HORIZON, "max_concurrency": 3, "max_duration": 5, "max_value": 20.0}
POSTED = {"epsilon": -1.0, "pricing": {"kind": "posted", "prices": [0.3]}, "seed": 3}  # overbooked: some are removed
SAMPLED = {"kind": "monte-carlo", "samples": 40, "refresh": 0.5, "probe_every": 3}
QUALITY = {"qos": {"owner 1": {"priority": 3}, "job 2": {"priority": 5, "usage_factor": 0.5}}, "weight_qos": 1000.0}
WHOLE = {  # by name: parameters, each set of which is played
    "first-come": [{}, {"price": 0.7}, {"stop_at_deadline": False}],
    "easy-backfill": [
        {},
        {"kill": False, "most_overtaken": 0.2},
        {"drop_hopeless": False, "stop_at_deadline": False},
        {"order": "request", "reserve": "strict"},
        {"order": "class", "kill": False, "reserve": 2},
        {"order": "class", "classes": {"job 1": 0, "job 3": 4, "job 4": 2, "job 6": 2}},
    ],
    "conservative-backfill": [{}, {"grace": 0}],
    "bid-price": [{}, {"ahead": 6, "tail": True}, {"slack": 0.0, "lags": [3, 5]}, {"buckets": 2, "lags": [2]}],
    "fair-share": [
        {},
        {"rule": "fair-tree", "by_reservation": True},
        {"shares": {"owner 0": 3}, "kill": False},
        QUALITY,
    ],
    "credits": [{"owners": ["owner 0", "owner 2"]}, {"shares": {"owner 0": 3, "owner 1": 1}, "carry_rounds": 2.0}],
    "fair-turns": [{"owners": ["owner 0", "owner 2"]}, {"shares": {"owner 0": 3, "owner 1": 1}, "kill": True}],
    "largest-value-first": [
        {},
        {"preempt": False},
        {"ratio": 1.0, "kill": True},
        {"ratio": 0.5, "most_preemptions": 2},
    ],
    "pay-as-bid": [{}],
    "spot": [{}],
    "vcg": [{}],
    "armada": [{}],
    "of a user": [{}],
    "two-offers": [{}, {"requeue": False}, {"spare": False}, {"counts_saved": True}],
    "posted-price": [
        POSTED | {"oracle": SAMPLED},
        POSTED | {"pricing": {"kind": "exponential"}, "epsilon": 0.1, "threshold": 0.1, "oracle": SAMPLED},
        POSTED | {"oracle": SAMPLED | {"samples": 130, "refresh": "submission", "probe_every": 1}, "threshold": 0.3},
        POSTED | {"oracle": SAMPLED | {"refresh": "round"}, "threshold": 1.0},
    ],
}
HIDDEN = tuple(name for name in WHOLE if name != "two-offers")  # play markets whole in which some durations show
ALL_HIDDEN = ("two-offers",)  # play markets whole in which no duration shows, and no value rises


@st.composite
def curves(draw, birth, kinds=("deadline", "deadline", "linear", "falling", "table")):
    worth, last = draw(st.integers(0, 20)) / 1.0, birth + draw(st.integers(0, 13))
    kind = draw(st.sampled_from(kinds))
    if kind == "deadline":
        return DeadlineValue(worth, last)
    if kind == "falling":
        return FallingValue(worth, birth + draw(st.integers(0, 4)), draw(st.floats(0.5, 20.0)), last)
    if kind == "linear":
        return LinearValue(worth, birth + 2, draw(st.sampled_from([0.0, 0.7, 3.0])), last)
    falls = sorted(draw(st.lists(st.integers(0, 20), min_size=1, max_size=6)), reverse=True)
    return TableValue({birth + 2 + k: float(v) for k, v in enumerate(falls)})  # before it nothing


@st.composite
def markets(draw, revealed, some_show=True, **kinds):
    """Jobs in order of birth; some never arrive, some take what their law excludes, some come after the end."""
    jobs = []
    for i, birth in enumerate(sorted(draw(st.lists(st.integers(1, HORIZON + 1), max_size=14)))):
        waits, lengths = (draw(st.lists(st.integers(a, 5), min_size=1, max_size=2)) for a in (0, 1))
        points = [(birth + w, d, 1 / (len(waits) * len(lengths))) for w in waits for d in lengths]
        seen = revealed or (
            some_show and draw(st.integers(0, 3)) == 0
        )  # where durations are hidden, some show all the same
        if not seen:
            points = [(*point, None) for point in points]
        patience = draw(st.sampled_from([None, None, 0, 3]))
        more = {"patience": patience, "checkpoint": draw(st.sampled_from([None, 1, 2]))}
        truth = StatementOfWork(birth, draw(st.integers(1, 3)), draw(curves(birth, **kinds)), points, **more)
        duration = draw(st.sampled_from([*lengths, 1, 4, 7]))
        arrival = draw(st.sampled_from([birth + waits[0], birth + waits[-1], birth + 1, None]))
        jobs.append(Job(f"job {i}", f"owner {i % 3}", truth, arrival, duration, duration if seen else None))
    return tuple(jobs)


class OfAUser(ArrivalMarket):
    """Reads all that a rule can read, keeps an account of its own, and stops the run of a narrower job for a wider."""

    debts = 0.0

    def foresee(self, x, signal):
        x.limit = int(x.sow.durations.max()) if signal is None else signal
        x.agreed = x.sow.value.highest, f"{x.owner} {x.job}"

    def serve(self, waiting):
        free, starts = self.capacity - self.load, {}
        for x in sorted(waiting, key=lambda x: (-x.agreed[0], x.agreed[1])):
            narrower = [each for each in self._running.values() if each.width < x.width]
            if x.width > free and narrower:
                free += narrower[0].width
                self.stop(narrower[0])
            fits = x.width <= free
            starts[x.job] = self.round if fits else 0 if self.round < x.sow.birth + 4 else None
            free -= x.width * fits
        return [starts[x.job] for x in waiting]

    def charge(self, x):
        self.debts += len(self._jobs) / 8  # those that have not arrived, too
        return self.debts if x.sow.value.last > self.round else 0.0

    def charge_stopped(self, x, used):
        return used / 4

    def slot_prices(self, first, count):
        return np.full(count, self.debts + len(self._jobs))

    def committed(self, first, count):
        return np.full(count, float(self.load))

    def statistics(self):
        return {"debts": self.debts}


def setup_of(name, parameters, jobs, **more):
    make = OfAUser if name == "of a user" else partial(get_mechanism, name)
    mechanism = make(**LIMITS, max_delay=MAX_DELAY, **parameters)
    sizes = {"capacity": CAPACITY, "horizon": HORIZON, "max_delay": MAX_DELAY}
    return MarketSetup("drawn", jobs, mechanism, **(sizes | more))


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
@given(st.data())
def test_drawn_markets_are_the_same_whole_and_round_by_round(name, data):
    parameters = data.draw(st.sampled_from(WHOLE[name]))
    jobs = data.draw(markets(revealed=True))
    horizon = data.draw(st.sampled_from([HORIZON, HORIZON - 5]))
    found = compare_plays(lambda: setup_of(name, parameters, jobs, horizon=horizon))
    assert found.whole and found.difference == ""


@pytest.mark.parametrize("name", HIDDEN)
@given(st.data())
def test_drawn_markets_of_hidden_durations_are_the_same(name, data):
    parameters, jobs = data.draw(st.sampled_from(WHOLE[name])), data.draw(markets(revealed=False))
    horizon = data.draw(st.sampled_from([HORIZON, HORIZON - 5, HORIZON - 12]))
    found = compare_plays(lambda: setup_of(name, parameters, jobs, horizon=horizon))
    assert found.whole and found.difference == ""


@pytest.mark.parametrize("name", ALL_HIDDEN)
@given(st.data())
def test_drawn_markets_in_which_no_duration_shows_are_the_same(name, data):
    jobs = data.draw(markets(revealed=False, some_show=False, kinds=("deadline", "linear", "falling")))
    parameters, horizon = data.draw(st.sampled_from(WHOLE[name])), data.draw(st.sampled_from([HORIZON, HORIZON - 5]))
    found = compare_plays(lambda: setup_of(name, parameters, jobs, horizon=horizon))
    assert found.whole and found.difference == ""


def test_jobs_that_are_worth_nothing_have_no_curve_to_rise():
    law = [(1, 1, 1.0, None)]
    nothing, late = LinearValue(0.0, 3, 0.0, 1), DeadlineValue(0.0, 1)  # no step, and one
    for curves in ((nothing, late), (nothing, nothing, DeadlineValue(3.0, 9))):
        sows = [StatementOfWork(1, 1, curve, law) for curve in curves]
        jobs = [Job(f"job {i}", f"owner {i}", sow, 1, 1, None) for i, sow in enumerate(sows)]
        found = compare_plays(lambda jobs=jobs: setup_of("two-offers", {}, jobs))
        assert found.whole and found.difference == ""


@pytest.mark.slow
@pytest.mark.long_after(3)
@pytest.mark.compiled  # as plain Python the descent takes minutes
@pytest.mark.parametrize(
    "text",
    [
        "first-come:price=3",
        "easy-backfill",
        "easy-backfill:order=request",
        "conservative-backfill",
        "bid-price",
        "posted-price",
    ],
)
def test_scenarios_are_the_same(text):
    scenario = Scenario.load("synthetic-pipelines").with_mechanism(text)
    found = compare_plays(lambda: scenario.setup(np.random.default_rng(8)))
    assert found.whole and found.events > 10_000 and found.difference == ""


class SecondFirst(FirstCome):
    """First come, first served, but for two jobs that arrive together: the second goes first."""

    def serve(self, waiting):
        return super().serve(waiting[::-1])[::-1]


class Constants(FirstCome):
    """Nothing but a constant of its own."""

    truthful = "none"


class Forgets(FirstCome):
    """A negative control: played whole it serves a job the less."""

    def play(self, jobs, outcomes, until):
        first = self.round
        if not FirstCome(self.capacity, self.horizon, self.price, **self._sizes()).play(jobs, outcomes, until):
            return False
        self._round = until + 1
        if first == 1:
            outcomes.endings[outcomes.starts > 0] = 1
        return True

    def _sizes(self):
        return {name: getattr(self, name) for name in ("max_concurrency", "max_duration", "max_value", "max_delay")}


class Counts(FirstCome):
    """Another negative control: played whole it says that it was."""

    whole = 0.0

    def play(self, jobs, outcomes, until):
        own = {name: getattr(self, name) for name in ("max_concurrency", "max_duration", "max_value", "max_delay")}
        plays = FirstCome(self.capacity, self.horizon, self.price, **own).play(jobs, outcomes, until)
        self._round, self.whole = until + 1, 1.0
        return plays

    def statistics(self):
        return {"whole": self.whole}


def test_the_referee_names_a_figure_that_differs_alone():
    found = compare_plays(lambda: replace(setup_of("first-come", {}, (job("a", 1),)), mechanism=counts()))
    assert found.whole and found.difference == "mechanism: {'whole': 1.0}, not {'whole': 0.0}"


def counts():
    own = {name: each for name, each in LIMITS.items() if name not in ("capacity", "horizon")}
    return Counts(CAPACITY, HORIZON, max_delay=MAX_DELAY, **own)


class HalfAsMuch(FirstCome):
    """A completion costs half: a call of the protocol of its own."""

    def complete(self, job):
        event = super().complete(job)
        return replace(event, payment=event.payment / 2)


def test_a_subclass_with_a_call_of_the_protocol_of_its_own_is_played_by_rounds():
    jobs = (job("a", 1), job("b", 1))
    for kind, whole in ((FirstCome, True), (Constants, True), (SecondFirst, True), (HalfAsMuch, False)):
        sizes = {name: each for name, each in LIMITS.items() if name not in ("capacity", "horizon")}

        def make(kind=kind, sizes=sizes):
            mechanism = kind(CAPACITY, HORIZON, 0.1, max_delay=MAX_DELAY, **sizes)
            return MarketSetup("two", jobs, mechanism, CAPACITY, HORIZON, MAX_DELAY)

        found = compare_plays(make)
        assert found.whole == whole and found.difference == ""


def test_the_referee_finds_a_play_that_differs():
    report = check_mechanism(Forgets, n_markets=3)
    assert "plays whole markets as round by round" in [each.name for each in report.failed]
    passed = check_mechanism("first-come", n_markets=3)["plays whole markets as round by round"]
    assert passed.outcome == "passed"


def job(name, birth, width=3, **changes):
    truth = StatementOfWork(birth, width, DeadlineValue(9.0, birth + 8), [(birth, 2, 1.0)])
    return replace(Job(name, name, truth, birth, 2, 2), **changes)


@pytest.mark.parametrize(("signal", "whole"), [("long", True), (2.0, True), (3, False)])
@pytest.mark.parametrize("signals", ["durations", "labels"])
def test_other_signals(signal, whole, signals):
    """A number that is not the duration does not fit into a row: such a market is played by rounds."""
    jobs = (job("a", 1, signal=signal), job("b", 2, signal=None))
    found = compare_plays(lambda: setup_of("first-come", {"signals": signals}, jobs))
    assert found.whole == whole and found.difference == ""


@pytest.mark.compiled
@pytest.mark.parametrize("text", ["first-come", "first-come:price=2", "easy-backfill"])
def test_a_log_of_hidden_durations_is_the_same(text):
    """Three hundred runs of an overloaded machine, with laws of the past; some runs outlast them."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"submit_s": rng.integers(0, 40_000, 300), "run_s": rng.lognormal(7, 1, 300)})
    table["processors"], table["user"] = rng.integers(1, 9, 300), rng.integers(1, 9, 300)
    workload = market_of(JobLog.of(table), Window(load=1.5), LogRule(), rng=3)
    name, _, price = text.partition(":price=")
    sizes = ("capacity", "horizon", "max_concurrency", "max_duration", "max_value", "max_delay")
    own = {size: getattr(workload, size) for size in sizes} | ({"price": float(price)} if price else {})

    def setup():
        mechanism = get_mechanism(name, **own)
        return MarketSetup("log", workload.jobs, mechanism, *(own[x] for x in ("capacity", "horizon", "max_delay")))

    found = compare_plays(setup)
    assert found.whole and found.events > 900 and found.difference == ""


def test_a_report_beyond_the_limits_is_refused_as_by_rounds():
    with pytest.raises(ValueError, match=r"concurrency = 4: expected a whole number in \[1, 3\]"):
        MarketRun(setup_of("first-come", {}, (job("a", 1, width=4),))).play()


def test_an_interrupted_market_has_the_tables_of_its_finished_rounds():
    scenario = Scenario.load("synthetic-pipelines").with_mechanism("first-come")

    def stop(played):
        if played >= 128:
            raise KeyboardInterrupt

    market = MarketRun(scenario.setup(np.random.default_rng(8)))
    with pytest.raises(KeyboardInterrupt):
        market.play(stop)
    whole = MarketRun(scenario.setup(np.random.default_rng(8)), by_rounds=True)
    for _ in range(market.round):
        whole.step()
    found, expected = market.result(), whole.result()
    assert found.outcome["complete"] is False and found.rounds.equals(expected.rounds)
    assert found.events.equals(expected.events) and found.jobs.equals(expected.jobs)
    market.play()  # goes on
    assert market.result().outcome["complete"]


def test_rounds_are_played_one_way_or_the_other():
    market = MarketRun(setup_of("first-come", {}, (job("a", 1), job("b", 2))))
    market.step()
    market.play()
    assert not market.played_whole and market.result().outcome["completed"] == 2
    whole = MarketRun(setup_of("first-come", {}, (job("a", 1),)))
    whole.play()
    with pytest.raises(EventError, match="the market is over"):
        whole.step()
