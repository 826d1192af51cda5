"""Bid prices: decisions of an independent reference, no report that pays, menus bit for bit, hidden durations."""

import numpy as np
import pytest

from marketsched.mechanisms import (
    DeadlineValue,
    EventError,
    EventKind,
    InvalidParameterError,
    LinearValue,
    StatementOfWork,
    TableValue,
)
from marketsched.mechanisms.bid_price.bid_price import BidPrice
from naive_bid_prices import NaiveBidPrices

SIZES = {"max_concurrency": 3, "max_duration": 5, "max_value": 60.0, "max_delay": 14}
RULES = {"lags": (3, 5), "ahead": 9, "steps": 6, "step": 0.3, "slack": 0.1}


def random_curve(rng, first):
    worth, deadline = int(rng.integers(1, 60)), first + int(rng.integers(1, 10))
    kind = rng.integers(3)
    if kind == 0:
        return DeadlineValue(float(worth), deadline)
    if kind == 1:
        return LinearValue(float(worth), first + 1, float(rng.integers(1, 6)), deadline)
    steps = np.sort(rng.integers(0, worth + 1, 4))[::-1]
    return TableValue({deadline - 3 + i: float(v) for i, v in enumerate(steps) if deadline - 3 + i > 0})


def random_market(rng, horizon=24, per_round=2.0, hidden=False):
    """List jobs (name, truth, arrival, duration); all submitted in the round before they arrive, or in it."""
    jobs = []
    for birth in range(1, horizon - 3):
        for _ in range(rng.poisson(per_round)):
            arrival, durations = birth + int(rng.integers(0, 2)), sorted({*rng.integers(1, 6, 2).tolist()})
            rows = [(arrival, d, 1 / len(durations), *([None] if hidden else [])) for d in durations]
            truth = StatementOfWork(birth, int(rng.integers(1, 4)), random_curve(rng, arrival), rows)
            jobs.append((len(jobs), truth, arrival, int(rng.choice(durations))))
    return jobs


def play(market, jobs, reports=None, hidden=False):
    """Play all rounds; return starts, payments and every event. A report replaces the truth of its job."""
    reports = reports or {}
    starts, payments, events, ending = {}, {}, [], {}
    for now in range(1, market.horizon + 1):
        for name, truth, _, _ in jobs:
            if truth.birth == now:
                market.submit(name, reports.get(name, truth))
        for name, _, arrival, duration in jobs:
            if arrival == now:
                market.arrive(name, None if hidden else duration)
        for event in market.advance():
            events.append(event)
            if event.kind is EventKind.START:
                starts[event.job] = now
                _, truth, _, duration = jobs[event.job]
                if reports.get(event.job, truth).concurrency >= truth.concurrency:  # else it never ends
                    ending.setdefault(now + duration - 1, []).append(event.job)
        for name in sorted(ending.pop(now, ())):
            payments[name] = market.complete(name).payment
    return starts, payments, events


def utility(job, starts, payments):
    name, truth, _, duration = job
    return truth.value(starts[name] + duration) - payments[name] if name in payments else 0.0


@pytest.mark.parametrize("seed", range(30))
def test_decisions_are_those_of_the_rules(seed):
    rng = np.random.default_rng(seed)
    jobs, capacity = random_market(rng), int(rng.integers(3, 6))
    market = BidPrice(capacity, 24, **SIZES, **RULES, slack_gain=0.02, slack_ramp=4)
    starts, payments, events = play(market, jobs)
    rules = NaiveBidPrices(
        capacity, 24, SIZES["max_delay"], SIZES["max_duration"],
        lags=RULES["lags"], ahead=9, steps=6, step=0.3, slack=0.1, gain=0.02, ramp=4,
    )  # fmt: skip
    entries = {}
    for now in range(1, 25):
        entries |= rules.serve(now, [(name, truth, d) for name, truth, a, d in jobs if a == now])
    assert starts == {name: entry[0] for name, entry in entries.items() if entry}
    for name, paid in payments.items():
        assert paid == pytest.approx(entries[name][1], rel=1e-9, abs=1e-9)
    assert {e.kind for e in events} <= {EventKind.START, EventKind.DROP}  # nobody is ever evicted
    assert market.statistics()["slack"] == pytest.approx(rules.slack)


def loads(jobs, starts, horizon):
    busy = np.zeros(horizon + 2, int)
    for name, start in starts.items():
        _, truth, _, duration = jobs[name]
        busy[start : start + duration] += truth.concurrency
    return busy


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_no_round_is_oversold_and_nobody_pays_more_than_it_gains(seed, hidden):
    rng = np.random.default_rng(100 + seed)
    jobs = random_market(rng, 60, 3.0, hidden)
    market = BidPrice(4, 60, **SIZES, **RULES)
    starts, payments, events = play(market, jobs, hidden=hidden)
    assert loads(jobs, starts, 60).max() <= 4
    assert not any(e.kind in (EventKind.EVICT, EventKind.CANCEL) for e in events)
    if not hidden:
        assert all(utility(job, starts, payments) >= 0 for job in jobs)
    assert any(p > 0 for p in payments.values())


def lies(truth, arrival):
    """Other reports of the same job: values, deadlines, widths, laws that leave out what happens."""
    rows = [(r.arrival, r.duration, r.probability) for r in truth.requirements]
    for factor in (0.0, 0.3, 0.7, 1.3, 2.0):
        times = range(arrival, truth.value.last + 1)
        worth = np.maximum.accumulate([0.0, *(min(60.0, factor * truth.value(t)) for t in reversed(times))])[:0:-1]
        table = dict(zip(times, worth, strict=True))
        yield StatementOfWork(truth.birth, truth.concurrency, TableValue(table or {1: 0.0}), rows)
    for shift in (-2, -1, 1, 3):
        times = range(arrival, max(arrival, truth.value.last + shift) + 1)
        worth = np.maximum.accumulate([truth.value(max(0, t - shift)) for t in reversed(times)])[::-1]
        yield StatementOfWork(truth.birth, truth.concurrency, TableValue(dict(zip(times, worth, strict=True))), rows)
    for width in (1, 2, 3):
        yield StatementOfWork(truth.birth, width, truth.value, rows)
    yield StatementOfWork(truth.birth, truth.concurrency, DeadlineValue(60.0, arrival + 12), [(arrival, 1, 0.5)])


@pytest.mark.parametrize("seed", range(12))
def test_no_report_pays_and_none_moves_the_menu(seed):
    """Every lie of every owner, played in full: gain at most 0, exactly, and the same menu bit for bit."""
    rng = np.random.default_rng(200 + seed)
    jobs, capacity = random_market(rng, 16, 1.2), int(rng.integers(3, 5))

    def market():
        return BidPrice(capacity, 16, **SIZES, **RULES, keep_menus=True)

    honest = market()
    truth = play(honest, jobs)[:2]
    tried = 0
    for job in jobs:
        name, sow, arrival, duration = job
        for report in lies(sow, arrival):
            liar = market()
            assert utility(job, *play(liar, jobs, {name: report})[:2]) <= utility(job, *truth)
            assert liar.menu_at_arrival(name) == honest.menu_at_arrival(name)
            tried += 1
        menu = honest.menu_at_arrival(name)
        prices = menu.prices(sow.concurrency, duration, 17 - arrival)
        worth = sow.value.table(arrival + duration, prices.size)
        assert max(0.0, *(worth - prices)) - utility(job, *truth) <= 1e-12
    assert tried > 50


def test_a_market_whose_prices_hear_the_current_round_is_caught():
    """The negative control of the menu's comparison: arrivals of a round teach before they are served."""

    class Eager(BidPrice):
        def _make_prices(self, waiting):
            self._learn(self._hear)
            super()._make_prices(waiting)

        def serve(self, waiting):
            self._hear = [x for x in waiting if x.arrival == self.round]
            return super().serve(waiting)

    rng = np.random.default_rng(3)
    jobs = random_market(rng, 16, 2.5)
    moved = 0
    for name, sow, arrival, _ in jobs[-12:]:
        honest, liar = (Eager(3, 16, **SIZES, **RULES, keep_menus=True) for _ in range(2))
        play(honest, jobs)
        play(liar, jobs, {name: StatementOfWork(sow.birth, 3, DeadlineValue(60.0, arrival + 12), [(arrival, 5, 1.0)])})
        moved += liar.menu_at_arrival(name) != honest.menu_at_arrival(name)
    assert moved > 0


@pytest.mark.parametrize("seed", range(6))
def test_hidden_durations_no_report_pays_in_expectation(seed):
    """Worlds enumerated for the liar: its duration is one of its law's, everything else is fixed."""
    rng = np.random.default_rng(300 + seed)
    jobs, horizon = random_market(rng, 14, 1.0, hidden=True), 14

    def expected(job, report=None):
        name, sow, arrival, _ = job
        total = 0.0
        for row in sow.requirements:
            world = [*jobs]
            world[name] = (name, sow, arrival, row.duration)
            found = play(BidPrice(3, horizon, **SIZES, **RULES), world, report and {name: report}, hidden=True)
            total += row.probability * utility(world[name], *found[:2])
        return total

    for job in jobs[:6]:
        _, sow, arrival, _ = job
        honest = expected(job)
        for lie in lies(sow, arrival):
            rows = [(r.arrival, r.duration, r.probability, None) for r in lie.requirements]
            report = StatementOfWork(lie.birth, lie.concurrency, lie.value, rows)
            assert expected(job, report) <= honest + 1e-9


def test_a_job_that_waits_is_charged_the_rate_of_its_arrival():
    market = BidPrice(1, 30, max_concurrency=1, max_duration=4, max_value=50.0, max_delay=30, ahead=6, lags=(2,))
    jobs = []
    for birth in range(1, 12):
        for _ in range(2):
            rows = [(birth, 1, 0.5, None), (birth, 3, 0.5, None)]
            jobs.append((len(jobs), StatementOfWork(birth, 1, DeadlineValue(20.0, birth + 8), rows), birth, 3))
    rates = {}
    serve = market._serve_hidden

    def note(waiting):
        if any(x.arrival == market.round for x in waiting):
            rates[market.round] = float(market.slot_prices(market.round, 24).mean())
        return serve(waiting)

    market._serve_hidden = note
    starts, payments, _ = play(market, jobs, hidden=True)
    late = [name for name, start in starts.items() if start > jobs[name][2] and name in payments]
    assert late
    for name in late:
        assert payments[name] == pytest.approx(3 * rates[jobs[name][2]])


def test_bad_parameters_and_missing_menus():
    for wrong, message in (
        ({"lags": ()}, "lags = .*a list of at least one"),
        ({"lags": (0,)}, r"lags = \(0,\): expected a list, each a whole number >= 1"),
        ({"ahead": 0}, "ahead = 0"),
        ({"slack": 0.4}, "slack = 0.4"),
        ({"step": 0.0}, "step = 0"),
        ({"forecast": "laws", "laws": [1]}, r"laws\[0\]"),
        ({"forecast": "laws"}, "no laws: expected laws, one for each job"),
        ({"laws": []}, "and laws: expected"),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            BidPrice(2, 9, **{**SIZES, "max_concurrency": 2}, **wrong)
    with pytest.raises(EventError, match="keep_menus"):
        BidPrice(3, 9, **SIZES).menu_at_arrival("a")


def test_laws_take_the_place_of_the_past():
    """A wave that laws announce is priced before it comes; the past alone cannot know of it."""
    sows = [StatementOfWork(8, 1, DeadlineValue(30.0, 11), [(8, 2, 1.0)]) for _ in range(12)]
    early = StatementOfWork(6, 1, DeadlineValue(2.0, 14), [(6, 4, 1.0)])
    jobs = [(0, early, 6, 4), *((1 + i, sow, 8, 2) for i, sow in enumerate(sows))]
    for laws, worth in ((None, 1), ([early, *sows], 2)):
        kind = {"forecast": "history" if laws is None else "laws", "laws": laws}
        market = BidPrice(2, 20, **{**SIZES, "max_concurrency": 2}, **kind, ahead=10, rng=1, slack=0.0)
        starts, _, _ = play(market, jobs)
        assert sum(name > 0 for name in starts) == worth
        if laws is not None:
            assert starts.get(0, 20) >= 10  # the cheap job waits until the wave is over
