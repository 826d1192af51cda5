"""Armada's market-driven rounds: its own cases, worked examples, and the two lies that its rule invites."""

from collections import Counter

import pytest

from marketsched.mechanisms import DeadlineValue, EventKind, InvalidParameterError, StatementOfWork
from marketsched.mechanisms.auctions.armada import Armada, PoolJob, pool_round
from refusals import refused

A, B, C, D = 1.0, 2.0, 3.0, 4.0  # price bands


def queued(**queues):
    """Return jobs of one node: queue=(bid, how many)."""
    return [PoolJob(bid, 1, name) for name, (bid, count) in queues.items() for _ in range(count)]


def by_queue(jobs, chosen):
    return dict(Counter(job.queue for job, yes in zip(jobs, chosen, strict=True) if yes))


CASES = {  # name: (jobs, capacity), scheduled, spot price, billed, price override by queue
    "spot price - single queue, round 1": ((queued(A=(B, 10)), 32), {"A": 10}, 0.0, {}, {}),
    "spot price - single queue, round 2": (
        ([PoolJob(B, 1, "A", since=1)] * 10 + queued(A=(B, 30)), 32),
        {"A": 32},
        2.0,
        {"A": 29},
        {"A": 0.0},
    ),
    "spot price - multiple queues": (
        (queued(A=(A, 10), B=(B, 10), C=(C, 20)), 32),
        {"A": 2, "B": 10, "C": 20},
        2.0,
        {"B": 9, "C": 20},
        {"B": 1.0},
    ),
    # The job of queue A that is scheduled away and preempted again is left out: there is one kind of node.
    "preempted away jobs do not contribute to billable resource": (
        (queued(B=(A, 8)), 8),
        {"B": 8},
        1.0,
        {"B": 8},
        {"B": 0.0},
    ),
    "jobs on cordoned clusters are not billable and do not contribute to spot price, round 1": (
        (queued(A=(A, 32), B=(D, 3168)), 3200),
        {"A": 32, "B": 3168},
        4.0,
        {"B": 2881},
        {"B": 1.0},
    ),
    # The cordoned cluster is left out: what is left are the 32 running jobs of A, and their 32 processors.
    "jobs on cordoned clusters are not billable and do not contribute to spot price, round 2": (
        ([PoolJob(A, 1, "A", since=1)] * 32, 32),
        {"A": 32},
        1.0,
        {"A": 29},
        {"A": 0.0},
    ),
    "second price - price setter gets override from different queue": (
        (queued(A=(A, 10), B=(B, 10), C=(C, 20)), 32),
        {"A": 2, "B": 10, "C": 20},
        2.0,
        {"B": 9, "C": 20},
        {"B": 1.0},
    ),
    "second price - single queue in market gets no override": (
        (queued(A=(B, 32)), 32),
        {"A": 32},
        2.0,
        {"A": 29},
        {"A": 0.0},
    ),
    "second price - multiple queues at same price": (
        (queued(A=(A, 21), B=(A, 21), C=(A, 21)), 32),
        {"A": 11, "B": 11, "C": 10},
        1.0,
        {"A": 10, "B": 10, "C": 9},
        {"B": 1.0},  # exactly one override, of 1: which queue is not said there
    ),
    "three users, highest price jobs from single queue get on": (
        (queued(A=(100.0, 32), B=(101.0, 32), C=(99.0, 32)), 32),
        {"B": 32},
        101.0,
        {"B": 29},
        {"B": 100.0},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_its_own_cases(name):
    (jobs, capacity), scheduled, price, billed, override = CASES[name]
    found = pool_round(jobs, capacity)
    assert by_queue(jobs, found.scheduled) == scheduled
    assert found.spot_price == price
    assert by_queue(jobs, found.billed) == billed
    assert ({} if found.second_price is None else {found.setter: found.second_price}) == override


def test_equal_bids_take_turns_between_queues_and_running_jobs_come_first():
    jobs = queued(A=(5.0, 4), B=(5.0, 4))
    assert by_queue(jobs, pool_round(jobs, 4).scheduled) == {"A": 2, "B": 2}
    held = [*jobs, PoolJob(5.0, 2, "C", since=3)]
    assert by_queue(held, pool_round(held, 4).scheduled) == {"A": 1, "B": 1, "C": 1}
    assert pool_round(held, 4, cutoff=0.4).setter == "C"


def test_what_does_not_fit_is_skipped():
    jobs = [PoolJob(5.0, 2, "A"), PoolJob(4.0, 2, "B"), PoolJob(3.0, 1, "C")]
    found = pool_round(jobs, 3)
    assert found.scheduled.tolist() == [True, False, True]
    assert (found.spot_price, found.setter, found.second_price) == (3.0, "C", 0.0)


def first_round(version, bids, cutoff=0.9, nodes=3):
    """Return what each owner pays for a round."""
    limits = {"max_concurrency": 1, "max_duration": 2, "max_value": 10.0, "max_delay": 9}
    market = Armada(nodes, 5, version=version, cutoff=cutoff, **limits)
    for name, bid in bids.items():
        market.submit(name, StatementOfWork(1, 1, DeadlineValue(bid, 2), [(1, 1, 1.0)]))
    for name in bids:
        market.arrive(name, 1)
    started = [event.job for event in market.advance() if event.kind is EventKind.START]
    return {name: market.complete(name).payment for name in started}


def test_the_two_lies():
    truth = {"A": 10.0, "B": 7.0, "C": 4.0, "D": 2.0}
    assert first_round(2026, truth) == {"A": 4.0, "B": 4.0, "C": 2.0}
    assert first_round(2024, truth) == {"A": 4.0, "B": 4.0, "C": 4.0}
    assert first_round(2026, {**truth, "A": 3.0}) == {"B": 3.0, "C": 3.0, "A": 2.0}  # sets the price, pays the next
    assert first_round(2024, {**truth, "A": 2.5})["A"] == 2.5
    low = first_round(2026, {**truth, "A": 3.0}, cutoff=0.6)  # scheduled after the price is set: for nothing
    assert low == {"B": 4.0, "C": 3.0, "A": 0.0}


def test_a_job_is_billed_for_each_of_its_rounds_at_that_rounds_price():
    limits = {"max_concurrency": 1, "max_duration": 3, "max_value": 30.0, "max_delay": 9}
    market = Armada(1, 9, version=2024, cutoff=0.5, **limits)
    market.submit("long", StatementOfWork(1, 1, DeadlineValue(12.0, 4), [(1, 3, 1.0)]))  # bids 4 a round
    market.arrive("long", 3)
    for _ in range(3):
        market.advance()
    assert market.complete("long").payment == 12.0
    assert market.slot_prices(4, 2).tolist() == [4.0, 4.0]


def test_bad_input():
    limits = {"max_concurrency": 1, "max_duration": 2, "max_value": 10.0, "max_delay": 9}
    with pytest.raises(InvalidParameterError, match="version = 2025: expected 2024 or 2026"):
        Armada(3, 5, version=2025, **limits)
    refused(lambda: Armada(3, 5, cutoff=2, **limits), place="cutoff", seen=2, error=InvalidParameterError)
    with pytest.raises(InvalidParameterError, match="running jobs need 2 nodes: expected at most 1"):
        pool_round([PoolJob(1.0, 2, "A", since=1)], 1)
