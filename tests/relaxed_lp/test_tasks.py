"""Tasks: every case of every job, with every start that is worth something, and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms import (
    DeadlineValue,
    InvalidParameterError,
    LinearValue,
    StatementLaw,
    StatementOfWork,
)
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.relaxed_lp import Tasks, tasks_of_jobs, tasks_of_laws, tasks_of_plans, tasks_of_reports
from naive_programs import random_jobs, random_statement, starts_of_plans, starts_of_reports, worth
from refusals import refused


def rows_of(tasks):
    """Every start as (job, arrival, duration, width, weight, start, value)."""
    i = tasks.start_task
    columns = (tasks.jobs, tasks.arrivals, tasks.durations, tasks.widths, tasks.weights)
    return sorted(zip(*(c[i].tolist() for c in columns), tasks.starts.tolist(), tasks.values.tolist(), strict=True))


def expected_rows(sows, horizon, max_delay=None, shares=None, jobs=None):
    found = []
    for v in starts_of_reports(sows, horizon, max_delay, shares):
        j, point = v.task
        r = sows[j].requirements[point]
        job = j if jobs is None else jobs[j]
        found.append((job, r.arrival, r.duration, float(sows[j].concurrency), v.weight, v.start, v.value))
    return sorted(found)


def check_shape(tasks):
    assert tasks.offsets.shape == (tasks.n_tasks + 1,) and tasks.offsets[-1] == tasks.n_starts == tasks.values.size
    assert (np.diff(tasks.offsets) > 0).all() and (tasks.values > 0).all()
    for part in np.split(tasks.starts, tasks.offsets[1:-1]) if tasks.n_tasks else []:
        assert (np.diff(part) > 0).all()


@pytest.mark.parametrize("seed", range(many(40)))
def test_tasks_of_reports_are_those_of_the_definition(seed):
    rng = np.random.default_rng([1, seed])
    horizon, max_delay = int(rng.integers(2, 9)), None if rng.random() < 0.5 else int(rng.integers(1, 7))
    sows = [random_statement(rng, horizon) for _ in range(rng.integers(0, 6))]
    tasks = tasks_of_reports(sows, horizon, max_delay)
    check_shape(tasks)
    assert rows_of(tasks) == expected_rows(sows, horizon, max_delay)


@pytest.mark.parametrize("seed", range(many(40)))
def test_tasks_of_laws_weigh_each_statement_once_more(seed):
    rng = np.random.default_rng([2, seed])
    horizon, laws, sows, shares, jobs = 7, [], [], [], []
    for j in range(int(rng.integers(1, 4))):
        birth, cases = int(rng.integers(1, 5)), []
        for p in rng.dirichlet(np.ones(3)):
            sow = random_statement(rng, horizon)
            later = [(birth + r.arrival - sow.birth, r.duration, r.probability) for r in sow.requirements]
            cases.append((StatementOfWork(birth, sow.concurrency, sow.value, later), float(p)))
            sows.append(cases[-1][0])
            shares.append(float(p))
            jobs.append(j)
        if rng.random() < 0.5:
            cases[-1] = (None, cases[-1][1])
            shares[-1] = 0.0
        laws.append(StatementLaw(cases))
    tasks = tasks_of_laws(laws, horizon)
    check_shape(tasks)
    found, expected = rows_of(tasks), expected_rows(sows, horizon, shares=shares, jobs=jobs)
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-15)


def test_a_law_that_hides_durations_is_refused_by_place():
    curve = DeadlineValue(1.0, 9)
    hidden = StatementOfWork(1, 1, curve, [(1, 1, 0.5, None), (1, 2, 0.5, None)])
    shown = StatementOfWork(1, 1, curve, [(1, 1, 1.0)])
    with pytest.raises(InvalidParameterError, match=r"laws\[1\], case 1: durations hidden"):
        tasks_of_laws([shown, [(shown, 0.5), (hidden, 0.5)]], 9)
    assert tasks_of_laws([[(shown, 1.0), (hidden, 0.0)]], 9).n_tasks == 1  # it never comes


@pytest.mark.parametrize("seed", range(many(60)))
def test_tasks_of_plans_are_those_of_the_definition(seed):
    rng = np.random.default_rng([3, seed])
    horizon, max_delay = int(rng.integers(2, 9)), None if rng.random() < 0.5 else int(rng.integers(1, 7))
    sows = [random_statement(rng, horizon, revealed=rng.random() < 0.3, most_points=6) for _ in range(4)]
    tasks = tasks_of_plans(sows, horizon, max_delay)
    check_shape(tasks)
    naive = starts_of_plans(sows, horizon, max_delay)
    i = tasks.start_task
    found = sorted(zip(tasks.jobs[i], tasks.arrivals[i], tasks.weights[i], tasks.starts, tasks.values, strict=True))
    expected = sorted((v.task[0], v.task[1], v.weight, v.start, v.value) for v in naive)
    assert np.array(found).reshape(-1, 5) == pytest.approx(np.array(expected).reshape(-1, 5), rel=1e-12)


@pytest.mark.parametrize("seed", range(many(20)))
def test_plans_that_see_the_duration_are_the_cases_of_the_report(seed):
    rng = np.random.default_rng([4, seed])
    sows = [random_statement(rng, 9) for _ in range(5)]
    plans, reports = tasks_of_plans(sows, 9), tasks_of_reports(sows, 9)
    assert plans.survival is None
    for name in ("arrivals", "durations", "widths", "weights", "jobs", "offsets", "starts", "values"):
        assert np.array_equal(getattr(plans, name), getattr(reports, name)), name


def test_survival_is_the_chance_to_be_running():
    sow = StatementOfWork(1, 1, DeadlineValue(1.0, 9), [(2, 1, 0.1, None), (2, 3, 0.3, None), (3, 2, 0.6, None)])
    tasks = tasks_of_plans([sow], 12)
    assert tasks.weights.tolist() == pytest.approx([0.4, 0.6])
    assert tasks.survival.tolist() == pytest.approx([1.0, 0.75, 0.75, 1.0, 1.0])
    assert tasks.values[:8].tolist() == pytest.approx([1.0] * 5 + [0.25] * 2 + [1.0])


@pytest.mark.parametrize("seed", range(many(20)))
def test_tasks_of_jobs_are_what_happened(seed):
    rng = np.random.default_rng([5, seed])
    triples = random_jobs(rng, 6, 8)
    tasks = tasks_of_jobs(RealisedJobs.build(triples, horizon=8, max_delay=6))
    check_shape(tasks)
    expected = [
        (j, a, d, float(sow.concurrency), 1.0, s, worth(sow, s + d, 8, 6))
        for j, (sow, a, d) in enumerate(triples)
        if a is not None
        for s in range(a, 9)
        if worth(sow, s + d, 8, 6) > 0
    ]
    assert rows_of(tasks) == sorted(expected)


def test_fitting_keeps_what_is_narrow_enough():
    sows = [StatementOfWork(1, c, DeadlineValue(5.0, 4), [(1, 2, 1.0)]) for c in (3, 1, 2)]
    assert tasks_of_reports(sows, 9).fitting(2).jobs.tolist() == [1, 2]
    hidden = [StatementOfWork(1, c, DeadlineValue(5.0, 4), [(1, 2, 0.5, None), (1, c, 0.5, None)]) for c in (3, 1, 4)]
    left = tasks_of_plans(hidden, 9).fitting(3)
    assert left.jobs.tolist() == [0, 1] and left.survival.tolist() == [1.0, 1.0, 0.5, 1.0, 0.5]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(1, 9))
def test_thinned_keeps_evenly_spread_starts(sizes, k):
    sows = [StatementOfWork(3, 1, LinearValue(50.0, 4, 1.0, 3 + n), [(3, 1, 1.0)]) for n in sizes]
    tasks = tasks_of_reports(sows, 60)
    thin = tasks.thinned(k)
    check_shape(thin)
    for i, n in enumerate(sizes):
        kept = thin.starts[thin.offsets[i] : thin.offsets[i + 1]] - 3
        assert kept.size == min(n, k)
        if n <= k:
            assert kept.tolist() == list(range(n))
            continue
        assert kept[0] == 0 and (k == 1 or kept[-1] == n - 1)
        if k > 1:
            assert np.abs(kept - np.arange(k) * (n - 1) / (k - 1)).max() <= 0.5
    assert set(rows_of(thin)) <= set(rows_of(tasks))


def test_thinned_by_request_of_a_law():
    sow = StatementOfWork(1, 1, LinearValue(9.0, 2, 1.0, 9), [(1, 1, 1.0)])
    assert tasks_of_laws([sow], 20, starts_per_task=3).starts.tolist() == [1, 5, 8]  # of 1 .. 8; 4.5 is rounded up


def test_nothing_useful_leaves_nothing():
    late = StatementOfWork(5, 1, DeadlineValue(1.0, 5), [(5, 1, 1.0)])
    for tasks in (
        tasks_of_reports([late], 9),
        tasks_of_reports([], 9),
        tasks_of_plans([], 9),
        tasks_of_laws([late], 9),
    ):
        check_shape(tasks)
        assert tasks.n_tasks == tasks.n_starts == 0
        assert tasks.thinned(2).n_tasks == tasks.fitting(1).n_tasks == 0


def test_arrays_are_read_only():
    tasks = tasks_of_reports([StatementOfWork(1, 1, DeadlineValue(1.0, 5), [(1, 1, 1.0)])], 9)
    assert isinstance(tasks, Tasks)
    with pytest.raises(ValueError, match="read-only"):
        tasks.values[0] = 2.0


class Endless:
    """A curve of the user's own, with a value that is no number."""

    highest, last = 1.0, 9

    def __call__(self, completion):
        return np.inf

    def table(self, first, count):
        return np.full(count, np.inf)


def test_bad_input_is_named():
    sow = StatementOfWork(1, 1, DeadlineValue(1.0, 5), [(1, 1, 1.0)])
    for build in (tasks_of_reports, tasks_of_plans, tasks_of_laws):
        with pytest.raises(InvalidParameterError, match="horizon = 0"):
            build([sow], 0)
        with pytest.raises(InvalidParameterError, match="max_delay = 0"):
            build([sow], 5, 0)
        with pytest.raises(InvalidParameterError, match="worth inf"):
            build([StatementOfWork(1, 1, Endless(), [(1, 1, 1.0)])], 5)
    refused(lambda: tasks_of_reports([sow, "job"], 5), place="sows[1]", seen="job", error=InvalidParameterError)
    refused(lambda: tasks_of_laws([sow], 5, starts_per_task=0), "starts_per_task = 0", error=InvalidParameterError)
