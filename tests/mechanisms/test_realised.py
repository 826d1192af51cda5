"""Realised jobs as arrays: every useful start, its value, nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.mechanisms import DeadlineValue, InvalidParameterError, LinearValue, StatementOfWork, TableValue
from marketsched.mechanisms.realised import NEVER, RealisedJobs

curves = st.one_of(
    st.builds(DeadlineValue, st.integers(0, 5), st.integers(0, 14)),
    st.builds(
        LinearValue, st.integers(0, 5), st.integers(0, 8), st.sampled_from([0.0, 0.3, 1.0, 2.0]), st.integers(0, 14)
    ),
    st.dictionaries(st.integers(0, 14), st.integers(0, 5), min_size=1).map(
        lambda table: TableValue(dict(zip(sorted(table), sorted(table.values(), reverse=True), strict=True)))
    ),
)


def sow(birth, concurrency, value):
    return StatementOfWork(birth, concurrency, value, [(birth, 1, 1.0)])


def values_of(jobs, j):
    return jobs.values[jobs.offsets[j] : jobs.offsets[j + 1]].tolist()


def test_worthless_jobs_keep_their_place():
    good, flat = DeadlineValue(3.0, 9), DeadlineValue(0.0, 9)
    rows = [(sow(1, 1, good), None, 2), (sow(1, 1, flat), 1, 2), (sow(2, 1, good), 8, 2), (sow(2, 1, good), 7, 2)]
    jobs = RealisedJobs.build(rows, horizon=20, max_delay=12)
    assert jobs.useful.tolist() == [False, False, False, True]
    assert jobs.arrivals[0] == NEVER


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5), st.integers(1, 4), curves), max_size=6), st.data())
def test_agrees_with_the_definition(rows, data):
    horizon, delay = data.draw(st.integers(6, 14)), data.draw(st.integers(1, 14))
    triples = [(sow(b, 1, curve), b + wait, d) for b, wait, d, curve in rows]
    jobs = RealisedJobs.build(triples, horizon=horizon, max_delay=delay)
    assert jobs.offsets.tolist() == [0, *np.cumsum(np.diff(jobs.offsets)).tolist()]
    for j, (truth, arrival, d) in enumerate(triples):
        listed = dict(enumerate(values_of(jobs, j), start=arrival))
        for s in range(arrival, horizon + 30):
            worth = 0.0 if s + d >= truth.birth + delay or s + d > horizon + 1 else truth.value(s + d)
            assert listed.get(s, 0.0) == worth


def test_arrays_are_read_only():
    jobs = RealisedJobs.build([(sow(1, 1, DeadlineValue(3.0, 9)), 1, 2)], horizon=20, max_delay=12)
    for array in (jobs.births, jobs.arrivals, jobs.durations, jobs.concurrency, jobs.offsets, jobs.values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((2, 1, 1), r"jobs\[1\] arrival = 1: expected a whole number >= 2"),
        ((2, 2, 0), r"jobs\[1\] duration = 0: expected a whole number >= 1"),
        ((2, 2.5, 1), r"jobs\[1\] arrival = 2\.5"),
    ],
)
def test_faults_name_the_job(row, message):
    birth, arrival, duration = row
    good = (sow(1, 1, DeadlineValue(3.0, 9)), 1, 2)
    with pytest.raises(InvalidParameterError, match=message):
        RealisedJobs.build([good, (sow(birth, 1, DeadlineValue(3.0, 9)), arrival, duration)], horizon=9, max_delay=9)
