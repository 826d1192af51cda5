"""The dual bound (29): valid for any prices, above LP and exact optimum, close to the LP, and quick."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse

from marketsched.mechanisms import DeadlineValue, InvalidParameterError, LinearValue, StatementOfWork, TableValue
from marketsched.mechanisms.auctions.flat_price import best_first_come
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.relaxed_lp import duality, realised_bound
from marketsched.relaxed_lp.duality import (
    dual_bound,
    dual_value,
    report_bound,
)


def market(n_jobs, horizon, load, seed, widest=4, longest=24):
    """Jobs of three classes: cheap ones that can wait, dear ones that cannot; demand is load * capacity."""
    rng = np.random.default_rng(seed)
    triples = []
    for _ in range(n_jobs):
        density, slack = [(1.5, 48), (6.0, 6), (36.0, 1)][rng.choice(3, p=[0.4, 0.3, 0.3])]
        density = np.clip(density * np.exp(0.5 * rng.standard_normal()), 1, 40)
        d = int(np.clip(np.ceil(2 * np.exp(1.3 * rng.standard_normal())), 1, longest))
        c = int(rng.integers(1, widest + 1))
        b = int(rng.integers(1, horizon - 4))
        full, last = density * c * d, b + d + slack
        curve = DeadlineValue(full, last) if slack < 48 else LinearValue(full, b + d + 5, full / 2 / slack, last)
        triples.append((StatementOfWork(b, c, curve, [(b, d, 1.0)]), b, d))
    jobs = RealisedJobs.build(triples, horizon=horizon, max_delay=148)
    work = int((jobs.concurrency * jobs.durations).sum())
    return jobs, max(widest, int(work / horizon / load))


def program(jobs, capacity):
    """The relaxed program (11) of realised jobs: constraint matrix, right side, values."""
    job = np.repeat(np.arange(jobs.n_jobs), np.diff(jobs.offsets))
    start = jobs.arrivals[job] + np.arange(job.size) - jobs.offsets[job]
    d = jobs.durations[job]
    busy = np.repeat(start - 1, d) + np.arange(d.sum()) - np.repeat(np.cumsum(d) - d, d)
    column = np.repeat(np.arange(job.size), d)
    width = jobs.concurrency[job].astype(float)
    usage = sparse.coo_array((width[column], (busy, column)), shape=(jobs.horizon, job.size))
    once = sparse.coo_array((np.ones(job.size), (job, np.arange(job.size))), shape=(jobs.n_jobs, job.size))
    right = np.concatenate((np.full(jobs.horizon, float(capacity)), np.ones(jobs.n_jobs)))
    return sparse.vstack([usage, once]).tocsr(), right, jobs.values


def exact_optimum(jobs, capacity):
    matrix, right, values = program(jobs, capacity)
    if not values.size:
        return 0.0
    result = optimize.milp(
        -values,
        constraints=optimize.LinearConstraint(matrix, ub=right),
        integrality=np.ones(values.size),
        bounds=optimize.Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    assert result.status == 0, result.message
    return -result.fun


@st.composite
def small_markets(draw):
    horizon = draw(st.integers(2, 6))
    triples = []
    for _ in range(draw(st.integers(0, 4))):
        b, d = draw(st.integers(1, horizon)), draw(st.integers(1, 3))
        values = sorted(draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)), reverse=True)
        curve = TableValue({b + d + i: float(v) for i, v in enumerate(values)})
        triples.append((StatementOfWork(b, draw(st.integers(1, 3)), curve, [(b, d, 1.0)]), b, d))
    return RealisedJobs.build(triples, horizon=horizon, max_delay=20), draw(st.integers(1, 3))


# -- validity ----------------------------------------------------------------------------------------------


@given(small_markets(), st.data())
def test_any_prices_give_a_valid_bound(drawn, data):
    jobs, capacity = drawn
    prices = data.draw(st.lists(st.floats(0, 20), min_size=jobs.horizon, max_size=jobs.horizon))
    best = exact_optimum(jobs, capacity)
    assert dual_value(jobs, capacity, jobs.horizon, prices) >= best - 1e-9
    for steps in (1, 7, 100):
        assert dual_bound(jobs, capacity, jobs.horizon, start_prices=prices, steps=steps).value >= best - 1e-9


@given(small_markets())
def test_value_is_what_the_prices_prove(drawn):
    jobs, capacity = drawn
    bound = dual_bound(jobs, capacity, jobs.horizon)
    assert bound.value == dual_value(jobs, capacity, jobs.horizon, bound.prices)
    assert bound.value == pytest.approx(bound.history[-1], abs=1e-9)
    assert (bound.prices >= 0).all() and bound.history.shape == (bound.steps,)
    assert (np.diff(bound.history) <= 0).all()


def test_a_bound_for_a_smaller_cluster_is_broken():
    """Negative control: the comparison above notices a bound that is too low."""
    jobs, capacity = market(60, 30, 1.5, seed=1, widest=2, longest=6)
    assert dual_bound(jobs, capacity - 1, 30).value < exact_optimum(jobs, capacity)


@pytest.mark.long_after(2)
@pytest.mark.parametrize(
    ("n_jobs", "horizon", "load", "seed"),
    [
        (40, 24, 1.0, 0),
        (50, 24, 1.6, 1),
        pytest.param(100, 60, 0.8, 2, marks=pytest.mark.slow),
        (50, 20, 3.0, 3),
        pytest.param(80, 40, 1.6, 4, marks=pytest.mark.slow),
        pytest.param(150, 40, 3.0, 5, marks=pytest.mark.slow),
    ],
)
def test_above_the_exact_optimum_and_within_a_percent_of_the_relaxed_one(n_jobs, horizon, load, seed):
    jobs, capacity = market(n_jobs, horizon, load, seed, longest=6)
    relaxed, exact = realised_bound(jobs, capacity, horizon).value, exact_optimum(jobs, capacity)
    bound = dual_bound(jobs, capacity, horizon)
    assert exact <= relaxed * (1 + 1e-9) <= bound.value * (1 + 2e-9)
    assert bound.value <= 1.01 * relaxed


@pytest.mark.compiled
def test_scale_of_the_values_does_not_matter():
    jobs, capacity = market(200, 60, 1.5, seed=5)
    scaled = replace(jobs, step_values=jobs.step_values * 2.0**20)
    assert dual_bound(scaled, capacity, 60).value == dual_bound(jobs, capacity, 60).value * 2.0**20


# -- ends --------------------------------------------------------------------------------------------------


def test_idle_cluster_is_recognised_as_optimal_at_once():
    jobs, _ = market(50, 40, 1.0, seed=6)
    bound = dual_bound(jobs, 10_000, 40)
    assert bound.steps == 1
    first = jobs.values[jobs.offsets[:-1]]  # every job at its arrival
    assert bound.value == pytest.approx(first.sum())


def test_wide_jobs_are_left_out():
    curve = DeadlineValue(5.0, 9)
    rows = [(StatementOfWork(1, c, curve, [(1, 2, 1.0)]), 1, 2) for c in (1, 3)]
    jobs = RealisedJobs.build(rows, horizon=9, max_delay=9)
    assert dual_bound(jobs, 2, 9).value == pytest.approx(5.0)


def test_no_jobs_no_welfare():
    jobs = RealisedJobs.build([], horizon=4, max_delay=4)
    assert dual_bound(jobs, 2, 4).value == 0.0


@pytest.mark.compiled
def test_a_good_start_is_kept():
    jobs, capacity = market(300, 80, 1.5, seed=7)
    good = dual_bound(jobs, capacity, 80)
    again = dual_bound(jobs, capacity, 80, start_prices=good.prices, steps=1)
    assert again.value <= good.value
    assert good.value < dual_bound(jobs, capacity, 80, steps=1).value


def test_start_prices_are_not_changed():
    jobs, capacity = market(30, 20, 1.5, seed=8)
    start = np.ones(20)
    bound = dual_bound(jobs, capacity, 20, start_prices=start)
    assert (start == 1).all() and not np.shares_memory(bound.prices, start)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 5}, "horizon = 5: expected 4"),
        ({"start_prices": [1.0] * 3}, r"start_prices has shape \(3,\): expected \(4,\)"),
        ({"start_prices": [1.0, -1.0, 0.0, 0.0]}, r"start_prices\[1\] = -1\.0"),
        ({"start_prices": [1.0, 1.0, np.nan, 0.0]}, r"start_prices\[2\] = nan"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    jobs = RealisedJobs.build([], horizon=4, max_delay=4)
    with pytest.raises(InvalidParameterError, match=message):
        dual_bound(jobs, **{"capacity": 2, "horizon": 4, **arguments})


# -- from reports ------------------------------------------------------------------------------------------


@st.composite
def report_markets(draw):
    horizon = draw(st.integers(3, 5))
    sows = []
    for _ in range(draw(st.integers(1, 3))):
        b = draw(st.integers(1, 2))
        cases = draw(st.lists(st.tuples(st.integers(b, 3), st.integers(1, 2)), min_size=1, max_size=2, unique=True))
        share = draw(st.sampled_from([0.25, 0.5]))
        values = sorted(draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)), reverse=True)
        curve = TableValue({b + 1 + i: float(v) for i, v in enumerate(values)})
        sows.append(StatementOfWork(b, draw(st.integers(1, 2)), curve, [(a, d, share) for a, d in cases]))
    return sows, horizon, draw(st.integers(1, 3))


@given(report_markets(), st.data())
def test_report_bound_covers_the_expected_optimum_in_hindsight(drawn, data):
    sows, horizon, capacity = drawn
    prices = data.draw(st.lists(st.floats(0, 10), min_size=horizon, max_size=horizon))
    expected = 0.0
    for outcome in itertools.product(*([*sow.requirements, None] for sow in sows)):
        chances = [1 - sow.mass if r is None else r.probability for sow, r in zip(sows, outcome, strict=True)]
        rows = [
            (sow, None if r is None else r.arrival, 1 if r is None else r.duration)
            for sow, r in zip(sows, outcome, strict=True)
        ]
        jobs = RealisedJobs.build(rows, horizon=horizon, max_delay=9)
        expected += float(np.prod(chances)) * exact_optimum(jobs, capacity)
    bound = report_bound(sows, capacity, horizon, prices, base_price=0.0, max_delay=9)
    assert bound >= expected - 1e-9


def test_report_bound_of_certain_jobs_is_the_dual_value():
    jobs, capacity = market(60, 40, 1.5, seed=10)
    rng = np.random.default_rng(10)
    prices = 1.0 + rng.exponential(2.0, 40)
    sows = []
    for j in range(jobs.n_jobs):
        a, d = int(jobs.arrivals[j]), int(jobs.durations[j])
        values = jobs.values[jobs.offsets[j] : jobs.offsets[j + 1]]
        curve = TableValue({a + d + k: v for k, v in enumerate(values.tolist())} or {a + d: 0.0})
        sows.append(StatementOfWork(a, int(jobs.concurrency[j]), curve, [(a, d, 1.0)]))
    found = report_bound(sows, capacity, 40, prices, base_price=1.0, max_delay=148, scales=[1.0])
    assert found == pytest.approx(dual_value(jobs, capacity, 40, prices - 1.0), rel=1e-12)


def test_a_table_with_a_gap_is_worth_nothing_in_it():
    sow = StatementOfWork(1, 2, TableValue({2: 8.0, 4: 5.0}), [(1, 1, 0.5)])  # a completion at 3 is worth nothing
    for prices, expected in (
        ([9.0, 0.0, 1.0, 0.0], 5.0 - 2.0),
        ([0.0, 0.0, 0.0, 0.0], 8.0),
        ([9.0, 0.0, 9.0, 0.0], 0.0),
    ):
        found = report_bound([sow, sow], 3, 4, prices, base_price=0.0, max_delay=9, scales=[1.0])
        assert found == pytest.approx(3 * sum(prices) + 2 * 0.5 * expected)


def test_report_bound_refuses_bad_scales_and_base_price():
    with pytest.raises(InvalidParameterError, match="scales"):
        report_bound([], 1, 2, [0.0, 0.0], base_price=0.0, max_delay=2, scales=[-1.0])
    with pytest.raises(InvalidParameterError, match="base_price = nan"):
        report_bound([], 1, 2, [0.0, 0.0], base_price=np.nan, max_delay=2)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(6))
def test_prices_by_segment_lose_little_over_long_horizons(seed, monkeypatch):
    """More than 4,096 rounds begin with prices by segment: still what its prices prove, and as close as by rounds."""
    n_jobs, horizon = 150 + 50 * seed, 5_000 + 4_000 * seed
    jobs, capacity = market(n_jobs, horizon, 1.5, seed, longest=horizon // 20)
    found = dual_bound(jobs, capacity, horizon)
    monkeypatch.setattr(duality, "SEGMENTS", horizon)
    by_round = dual_bound(jobs, capacity, horizon)
    assert found.value == pytest.approx(dual_value(jobs, capacity, horizon, found.prices), rel=1e-12)
    assert best_first_come(jobs, capacity, horizon).welfare <= found.value * (1 + 1e-12) <= 1.01 * by_round.value
