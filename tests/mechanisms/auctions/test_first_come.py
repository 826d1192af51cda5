"""First-come-first-served: the rule by hand, the mechanism against the compiled rule, hidden durations."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.agents import Job
from marketsched.agents.job_table import ListedJobs
from marketsched.mechanisms import (
    DeadlineValue,
    EventError,
    EventKind,
    InvalidParameterError,
    InvalidReportError,
    LinearValue,
    StatementOfWork,
    TableValue,
)
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.auctions.flat_price import (
    best_first_come,
    best_first_come_served,
    first_come_served,
    first_come_welfare,
)
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.realised import RealisedJobs
from refusals import refused

LIMITS = {"max_concurrency": 2, "max_duration": 4, "max_value": 50.0, "max_delay": 12}
HORIZON = 16


def open_market(capacity=2, price=0.0, horizon=HORIZON, **limits):
    return FirstCome(capacity, horizon, price, **{**LIMITS, "max_concurrency": min(2, capacity), **limits})


def job(birth, arrival, duration, value, concurrency=1, hidden=False):
    """One certain job as (statement, arrival, duration, signal)."""
    point = (arrival, duration, 1.0, None) if hidden else (arrival, duration, 1.0)
    return StatementOfWork(birth, concurrency, value, [point]), arrival, duration, None if hidden else duration


def play(market, jobs):
    """Run (statement, arrival or None, duration, signal) jobs; return starts, payments, events, peak load."""
    starts, payments, events, ends, peak = {}, {}, [], {}, 0
    for now in range(1, market.horizon + 1):
        for j, (sow, *_) in enumerate(jobs):
            if sow.birth == now:
                market.submit(j, sow)
        for j in reversed(range(len(jobs))):  # the order of arrival events inside a round is nothing to go by
            if jobs[j][1] == now:
                market.arrive(j, jobs[j][3])
        for event in market.advance():
            events.append((event.round, event.kind, event.job))
            if event.kind is EventKind.START:
                starts[event.job] = now
                ends.setdefault(now + jobs[event.job][2] - 1, []).append(event.job)
            elif event.kind is EventKind.EVICT:
                ends = {end: [j for j in who if j != event.job] for end, who in ends.items()}
        peak = max(peak, market.load)
        for j in ends.pop(now, ()):
            payments[j] = market.complete(j).payment
    return starts, payments, events, peak


# -- the rule by hand --------------------------------------------------------------------------------------


def test_arrival_and_duration_may_be_ones_the_report_excludes():
    sow = StatementOfWork(1, 1, DeadlineValue(9.0, 12), [(2, 1, 0.5), (3, 2, 0.5)])
    starts, payments, _, _ = play(open_market(price=1.0), [(sow, 5, 3, 3)])
    assert starts == {0: 5} and payments == {0: 3.0}
    assert play(open_market(), [(sow, 5, 5, 5)])[0] == {}  # above max_duration: known to break the contract


# -- the mechanism and the compiled rule -------------------------------------------------------------------

curves = st.one_of(
    st.builds(DeadlineValue, st.integers(0, 9), st.integers(2, 14)),
    st.builds(LinearValue, st.integers(1, 9), st.integers(2, 8), st.sampled_from([0.0, 0.7, 2.0]), st.integers(2, 14)),
    st.dictionaries(st.integers(2, 14), st.integers(0, 9), min_size=1).map(
        lambda table: TableValue(dict(zip(sorted(table), sorted(table.values(), reverse=True), strict=True)))
    ),
)


@st.composite
def certain_jobs(draw):
    jobs = []
    for _ in range(draw(st.integers(0, 12))):
        birth = draw(st.integers(1, 8))
        sow, arrival, duration, signal = job(
            birth, birth + draw(st.integers(0, 3)), draw(st.integers(1, 5)), draw(curves), draw(st.integers(1, 2))
        )
        law = [(arrival, min(duration, 4), 1.0)]  # reports stay inside the limits, what happens may not
        jobs.append((StatementOfWork(birth, sow.concurrency, sow.value, law), arrival, duration, signal))
    return jobs


def realised(jobs):
    return RealisedJobs.build([row[:3] for row in jobs], horizon=HORIZON, max_delay=12, max_duration=4)


def by_hand(jobs, capacity, price):
    """Serve the jobs one by one, trying every start in turn."""
    free, starts = dict.fromkeys(range(1, HORIZON + 1), capacity), {}
    for j in sorted(range(len(jobs)), key=lambda j: (jobs[j][1], jobs[j][0].birth, j)):
        sow, arrival, d, _ = jobs[j]
        for s in range(arrival, HORIZON + 2 - d if d <= 4 else 0):
            worth = sow.value(s + d) if s + d < sow.birth + 12 else 0.0
            if worth > price * sow.concurrency * d and all(free[t] >= sow.concurrency for t in range(s, s + d)):
                starts[j] = s
                for t in range(s, s + d):
                    free[t] -= sow.concurrency
                break
    return starts


@given(certain_jobs(), st.integers(2, 3), st.sampled_from([0.0, 0.25, 0.3, 1.0]))
def test_mechanism_compiled_rule_and_plain_search_agree(jobs, capacity, price):
    starts, payments, events, peak = play(open_market(capacity, price), jobs)
    outcome = first_come_welfare(realised(jobs), capacity, HORIZON, price)
    assert starts == by_hand(jobs, capacity, price)
    assert starts == {j: s for j, s in enumerate(outcome.starts.tolist()) if s}
    welfare = sum(jobs[j][0].value(s + jobs[j][2]) for j, s in starts.items())
    assert outcome.welfare == pytest.approx(welfare)
    assert outcome.revenue == pytest.approx(sum(payments.values()))
    assert payments.keys() == starts.keys()
    assert peak <= capacity
    assert {kind for _, kind, _ in events} <= {EventKind.START, EventKind.DROP}  # nobody is ever evicted


# -- the price ---------------------------------------------------------------------------------------------


def test_a_price_keeps_cheap_long_jobs_out():
    """One node: a cheap long job arrives just before a dear one that cannot wait."""
    jobs = realised([job(1, 1, 4, DeadlineValue(8.0, 5)), job(1, 2, 1, DeadlineValue(30.0, 3))])
    assert first_come_welfare(jobs, 1, HORIZON, 0.0).welfare == 8.0
    best = best_first_come(jobs, 1, HORIZON)
    assert best.welfare == 30.0
    assert 2.0 <= best.price < 30.0
    assert best.revenue == pytest.approx(best.price)


@given(certain_jobs(), st.floats(0, 10))
def test_best_price_is_never_worse_than_none(jobs, price):
    table = realised(jobs)
    best = best_first_come(table, 2, HORIZON)
    assert best.welfare >= first_come_welfare(table, 2, HORIZON, 0.0).welfare
    again = first_come_welfare(table, 2, HORIZON, best.price)
    assert (again.welfare, again.revenue) == (best.welfare, best.revenue)
    assert best.welfare >= best.revenue


COARSE = {"grid": 16, "rounds": 0, "within": 1.02}  # as bounds of large markets look for it


@pytest.mark.parametrize("search", [{}, COARSE])
def test_best_price_beats_a_fine_grid_of_prices(search):
    rng = np.random.default_rng(5)
    jobs = []
    for birth in np.sort(rng.integers(1, 12, 60)).tolist():
        d = int(rng.integers(1, 5))
        value = float(np.clip(d * rng.exponential(4.0), 1, 50))
        jobs.append(job(birth, birth, d, DeadlineValue(value, birth + d + int(rng.integers(0, 3)))))
    table = realised(jobs)
    grid = max(first_come_welfare(table, 3, HORIZON, p).welfare for p in np.linspace(0, 20, 400).tolist())
    assert best_first_come(table, 3, HORIZON, **search).welfare >= 0.99 * grid


@pytest.mark.parametrize("within", [1.0, math.nan, -2.0])
def test_a_ratio_that_leaves_nothing_to_find_is_refused(within):
    with pytest.raises(InvalidParameterError, match="within"):
        best_first_come(realised([]), 2, HORIZON, within=within)


# -- durations hidden --------------------------------------------------------------------------------------


def test_hidden_jobs_wait_for_nodes_that_become_free():
    jobs = [
        job(1, 1, 3, DeadlineValue(9.0, 12), hidden=True),
        job(1, 1, 1, DeadlineValue(9.0, 12), concurrency=2, hidden=True),  # does not fit beside job 0
        job(1, 2, 2, DeadlineValue(9.0, 12), hidden=True),  # overtakes it
    ]
    starts, payments, events, peak = play(open_market(price=0.5), jobs)
    assert starts == {0: 1, 2: 2, 1: 4}  # nobody knew that rounds 2 and 3 would do for job 2
    assert payments == {0: 1.5, 2: 1.0, 1: 1.0}
    assert peak == 2 and all(kind is EventKind.START for _, kind, _ in events)


def test_hidden_jobs_decide_by_expected_value_given_arrival():
    value = DeadlineValue(6.0, 3)
    law = [(1, 1, 0.1, None), (1, 4, 0.3, None), (2, 1, 0.6, None)]
    sow = StatementOfWork(1, 1, value, law)
    # Arrival in 1: the value comes with probability 1/4 (1.5), 3.25 rounds are expected.
    assert play(open_market(price=0.46, stop_at_deadline=False), [(sow, 1, 1, None)])[0] == {0: 1}
    assert play(open_market(price=0.47, stop_at_deadline=False), [(sow, 1, 1, None)])[0] == {}
    # Arrival in 2: one round for certain.
    assert play(open_market(price=5.9, stop_at_deadline=False), [(sow, 2, 1, None)])[0] == {0: 2}
    # An arrival the report excludes: durations at large, 1 with probability 0.7.
    wide = StatementOfWork(1, 1, DeadlineValue(6.0, 4), law)
    assert play(open_market(price=2.2, stop_at_deadline=False), [(wide, 3, 1, None)])[0] == {
        0: 3
    }  # 4.2 against 1.9 rounds
    assert play(open_market(price=2.3, stop_at_deadline=False), [(wide, 3, 1, None)])[0] == {}


def test_a_waiting_job_gives_up_when_nothing_is_left_to_gain():
    blocker = job(1, 1, 4, DeadlineValue(9.0, 12), concurrency=2, hidden=True)
    waiting = job(1, 1, 1, DeadlineValue(9.0, 4), hidden=True)
    starts, _, events, _ = play(open_market(), [blocker, waiting])
    assert starts == {0: 1}
    assert (4, EventKind.DROP, 1) in events  # a start in 3 would still have done


def test_hidden_jobs_never_run_into_a_booking():
    first = job(1, 1, 1, DeadlineValue(9.0, 2))
    booked = job(1, 1, 2, DeadlineValue(9.0, 12), concurrency=2)  # rounds 2 and 3
    hidden = job(1, 1, 1, DeadlineValue(9.0, 12), hidden=True)  # one round would fit; it might take four
    starts, _, events, peak = play(open_market(), [first, booked, hidden])
    assert starts == {0: 1, 1: 2, 2: 4}
    assert peak == 2 and all(kind is EventKind.START for _, kind, _ in events)


@st.composite
def mixed_jobs(draw):
    """Jobs some of which hide durations, that may be longer than any the report names."""
    mixed = []
    for sow, arrival, duration, signal in draw(certain_jobs()):
        if draw(st.booleans()):
            law = [(arrival, min(duration, 4), 0.5, None), (arrival, 1, 0.5, None)]
            mixed.append((StatementOfWork(sow.birth, sow.concurrency, sow.value, law), arrival, duration, None))
        else:
            mixed.append((sow, arrival, duration, signal))
    return mixed


def served(jobs, capacity=2):
    """Return arguments of `first_come_served`."""
    listed = ListedJobs([Job(str(j), str(j), *each) for j, each in enumerate(jobs)])
    limits = MarketLimits(capacity, HORIZON, **{**LIMITS, "max_concurrency": min(2, capacity)})
    return listed.columns(limits.max_delay), limits


@given(mixed_jobs(), st.integers(2, 3), st.sampled_from([0.0, 0.37, 1.1]))
def test_the_compiled_rule_meets_durations_as_the_mechanism_does(jobs, capacity, price):
    starts, payments, _, _ = play(open_market(capacity, price), jobs)
    welfare = 0.0
    for j in payments:
        sow, _, d, _ = jobs[j]
        welfare += sow.value(starts[j] + d) if starts[j] + d < sow.birth + 12 else 0.0
    found = first_come_served(*served(jobs, capacity), price)
    assert found.welfare == pytest.approx(welfare)
    assert found.revenue == pytest.approx(sum(payments.values()))
    assert np.count_nonzero(found.starts) == len(payments)


def test_the_best_price_where_durations_are_hidden_is_found_without_knowing_them():
    """One node: a long job of value 8 and a short one of value 5 come in turn; their reports say the same."""
    law = [(1, 1, 0.5, None), (1, 4, 0.5, None)]
    long_ = (StatementOfWork(1, 1, DeadlineValue(8.0, 12), law), 1, 4, None)
    short = (StatementOfWork(1, 1, DeadlineValue(5.0, 3), [(2, 1, 1.0, None)]), 2, 1, None)
    best = best_first_come_served(*served([long_, short], 1))
    assert (best.welfare, best.price) == (8.0, 0.0)  # 3.2 a round would keep the long one out: 5
    assert best_first_come(realised([long_, short]), 1, HORIZON).welfare == 8.0
    dear = (StatementOfWork(1, 1, DeadlineValue(9.0, 3), [(2, 1, 1.0, None)]), 2, 1, None)
    best = best_first_come_served(*served([long_, dear], 1))
    assert best.welfare == 9.0 and 3.2 <= best.price < 9.0
    assert best_first_come(realised([long_, dear]), 1, HORIZON).price < 3.2  # known to take four: 2 a round keep it out


@given(mixed_jobs(), st.sampled_from([0.0, 0.3]))
def test_capacity_holds_and_only_the_contract_evicts(mixed, price):
    starts, payments, events, peak = play(open_market(2, price), mixed)
    assert peak <= 2
    evicted = {j: t for t, kind, j in events if kind is EventKind.EVICT}
    latest = {j: min(mixed[j][0].value.last, mixed[j][0].birth + 11, HORIZON + 1) for j in starts}
    stops = {j: max(s + 1, min(s + 4, latest[j])) for j, s in starts.items()}  # the contract, or worth nothing any more
    too_long = {j for j, s in starts.items() if s + mixed[j][2] > stops[j] and stops[j] <= HORIZON}
    assert evicted.keys() == too_long
    assert all(t == stops[j] for j, t in evicted.items())
    ended = {j for j, s in starts.items() if s + mixed[j][2] - 1 <= HORIZON and j not in too_long}
    assert payments == {j: pytest.approx(price * mixed[j][0].concurrency * mixed[j][2]) for j in ended}


# -- contract ----------------------------------------------------------------------------------------------


def test_an_early_end_is_charged_for_the_rounds_used_and_frees_the_rest():
    market = open_market(capacity=1, price=1.0)
    market.submit("A", StatementOfWork(1, 1, DeadlineValue(9.0, 12), [(1, 4, 1.0)]))
    market.submit("B", StatementOfWork(1, 1, DeadlineValue(9.0, 12), [(2, 1, 1.0)]))
    market.arrive("A", 4)
    market.advance()
    event = market.complete("A")
    assert (event.round, event.completion, event.payment) == (1, 2, 1.0)
    market.arrive("B", 1)
    assert [(event.kind, event.job) for event in market.advance()] == [(EventKind.START, "B")]


def test_close_removes_what_is_left_newest_first():
    market = open_market(horizon=2)
    for name in "ABC":
        market.submit(name, StatementOfWork(1, 1, DeadlineValue(9.0, 12), [(1, 2, 0.5, None), (3, 2, 0.5, None)]))
    market.arrive("A", None)
    refused(lambda: market.close(), "close in round 1", error=EventError)
    market.advance()
    market.advance()
    closing = [(event.round, event.kind, event.job) for event in market.close()]
    assert closing == [(2, EventKind.CANCEL, "C"), (2, EventKind.CANCEL, "B"), (2, EventKind.EVICT, "A")]
    assert market.close() == []
    refused(lambda: market.complete("A"), "did not run", error=EventError)


def test_events_out_of_order_are_refused_and_change_nothing():
    market = open_market()
    sow = StatementOfWork(1, 1, DeadlineValue(9.0, 12), [(1, 2, 1.0)])
    market.submit("A", sow)
    late = StatementOfWork(2, 1, DeadlineValue(9.0, 12), [(2, 1, 1.0)])
    before = pickle.dumps(market)
    for act, message in [
        (lambda: market.submit("A", sow), "submitted before"),
        (lambda: market.submit("B", late), "birth = 2: expected the current round 1"),
        (lambda: market.arrive("B", 2), "expected a job submitted before"),
        (lambda: market.complete("A"), "did not run"),
    ]:
        with pytest.raises(EventError, match=message):
            act()
    assert pickle.dumps(market) == before
    market.arrive("A", 2)
    before = pickle.dumps(market)
    for act, message in [
        (lambda: market.arrive("A", 2), "arrived before"),
        (lambda: market.submit("B", sow), "after an arrival of round 1"),
        (lambda: market.complete("A"), "did not run"),
    ]:
        with pytest.raises(EventError, match=message):
            act()
    assert pickle.dumps(market) == before
    assert [event.kind for event in market.advance()] == [EventKind.START]


def test_nothing_happens_after_the_horizon():
    market = open_market(horizon=1)
    market.advance()
    sow = StatementOfWork(2, 1, DeadlineValue(9.0, 12), [(2, 2, 1.0)])
    for act in (market.advance, lambda: market.submit("A", sow), lambda: market.arrive("A")):
        with pytest.raises(EventError, match="in round 2: expected at most the horizon 1"):
            act()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"concurrency": 3}, r"concurrency = 3: expected a whole number in \[1, 2\]"),
        ({"requirements": [(1, 5, 1.0)]}, r"duration = 5: expected a whole number in \[1, 4\]"),
        ({"value": DeadlineValue(51.0, 9)}, r"value = 51\.0: expected values in \[0, 50\.0\]"),
    ],
)
def test_reports_outside_the_limits_are_refused(wrong, message):
    good = {"birth": 1, "concurrency": 1, "value": DeadlineValue(9.0, 12), "requirements": [(1, 2, 1.0)]}
    with pytest.raises(InvalidReportError, match=message):
        open_market().submit("A", StatementOfWork(**{**good, **wrong}))


def test_horizon_of_the_jobs_and_of_the_call_must_agree():
    with pytest.raises(InvalidParameterError, match="horizon = 9: expected 16"):
        first_come_welfare(realised([]), 2, 9, 0.0)
    assert best_first_come(realised([]), 2, HORIZON).welfare == 0.0
