"""Kueue's admission fair sharing: the cases of its own tests by name, at commit ff69552e79, and what an owner meets.

Not covered, as there is nothing of the kind here: deleted and missing queues and errors of the client
("admits workload when another LQ is deleted", "admits workload even if its localqueue was deleted", "missing
LocalQueue", "other error"); admission without fair sharing ("without AFS: ..."); `TestUpdate`,
`TestEntryPenaltyHelpersDoNotMutateSharedMaps`, `TestPushPenaltySeedsLastUpdateOnlyWhenCreating` and the file
`scheduler_afs_secondpass_test.go`, which are about concurrent writers, restarts and second passes.
"""

import math

import pytest

from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.registry import get_mechanism
from marketsched.mechanisms.schedulers.kueue import Ledger, decayed, entry_penalty, forgotten, weighted_usage
from refusals import refused

WEEK_S, SAMPLE_S = 168 * 3600.0, 300.0


USAGES = {  # TestCalculateUsageWithDRA: consumed, penalty, weight of the queue, weights of resources, usage
    "DRA resource with default weight": ({"gpu-logical": 2}, {}, 1, {}, 2),
    "DRA resource with explicit weight": ({"gpu-logical": 2}, {}, 1, {"gpu-logical": 3.0}, 6),
    "mixed CPU and DRA resources": ({"cpu": 4, "gpu-logical": 2}, {}, 1, {"cpu": 1.0, "gpu-logical": 5.0}, 14),
    "DRA resource with weight zero contributes nothing": ({"gpu-logical": 10}, {}, 1, {"gpu-logical": 0}, 0),
    "DRA resource in penalty only": ({}, {"gpu-logical": 3}, 1, {}, 3),
    "DRA resource in both consumed and penalty": ({"gpu-logical": 2}, {"gpu-logical": 1}, 2, {"gpu-logical": 4.0}, 6),
    # TestCalculateUsageWithNonPositiveWeight
    "zero weight, idle queue (no usage)": ({}, {}, 0, {}, math.inf),
    "zero weight, active queue": ({"cpu": 4}, {}, 0, {}, math.inf),
    "negative weight": ({"cpu": 4}, {}, -1, {}, math.inf),
}


@pytest.mark.parametrize("name", USAGES)
def test_calculate_usage(name):
    *given, expected = USAGES[name]
    assert weighted_usage(*given) == expected


def test_calculate_entry_penalty_with_dra_resources_and_with_long_half_life():
    found = entry_penalty({"cpu": 4, "gpu-logical": 2}, SAMPLE_S, 600.0)
    assert found == {"cpu": pytest.approx(4 * (1 - 0.5**0.5)), "gpu-logical": pytest.approx(2 * (1 - 0.5**0.5))}
    assert all(amount > 0 for amount in entry_penalty({"cpu": 2, "nvidia.com/gpu": 1}, SAMPLE_S, WEEK_S).values())
    assert entry_penalty({"cpu": 2}, SAMPLE_S, 0.0) == {"cpu": 0.0}


def test_calculate_decayed_consumed():
    """...ConvergesToUsage, ...AccumulatesSubMilli, ...KeepsLargeQuantitiesPositive."""
    used, alpha, after = {}, forgotten(SAMPLE_S, WEEK_S), []
    for sample in range(3 * 2016):  # three half-lives
        before, used = used.get("cpu", 0.0), decayed(used, {"cpu": 2}, alpha)
        assert before < used["cpu"] < 2
        if sample % 2016 == 2015:
            after.append(used["cpu"])
    assert after == pytest.approx([1, 1.5, 1.75], abs=1e-9)  # theirs: to .001
    for size in (16 * 2**30, 2**40, 64 * 2**40):
        assert decayed({}, {"memory": size}, alpha)["memory"] > 0


PUSHES = {  # TestPenaltyBookkeepingIsIdempotentAndExact: (workload, amounts or None: dropped), pending
    "pushes for distinct workloads accumulate": ([(1, {"cpu": 2}), (2, {"cpu": 3})], {"cpu": 5}),
    "re-pushing the same workload replaces instead of stacking": ([(1, {"cpu": 2}), (1, {"cpu": 2})], {"cpu": 2}),
    "re-pushing with a different amount keeps the latest": ([(1, {"cpu": 2}), (1, {"cpu": 3})], {"cpu": 3}),
    "rollback after replacement subtracts the replacement amount": (
        [(1, {"cpu": 2}), (1, {"cpu": 3}), (1, None)],
        {},
    ),
    "subtracting a workload removes exactly its record": ([(1, {"cpu": 2}), (2, {"cpu": 3}), (1, None)], {"cpu": 3}),
    "subtracting the only workload leaves nothing pending": ([(1, {"cpu": 2}), (1, None)], {}),
    "subtracting twice is a no-op the second time": (
        [(1, {"cpu": 2}), (2, {"cpu": 3}), (1, None), (1, None)],
        {"cpu": 3},
    ),
    "subtracting a workload that never pushed leaves no negative residue": ([(1, None)], {}),
    "a workload's subtraction cannot drain another workload's resources": (
        [(1, {"cpu": 2}), (2, {"memory": 4 * 2**30}), (1, None)],
        {"memory": 4 * 2**30},
    ),
    # TestEntryPenaltyAggregateMatchesRecords
    "wl1 replaced to 4, wl2 removed": ([(1, {"cpu": 2}), (2, {"cpu": 3}), (1, {"cpu": 4}), (2, None)], {"cpu": 4}),
}


@pytest.mark.parametrize("name", PUSHES)
def test_penalty_bookkeeping(name):
    pushes, expected = PUSHES[name]
    ledger = Ledger()
    for workload, amounts in pushes:
        if amounts is None:
            ledger.drop(workload)
        else:
            ledger.push(workload, amounts)
    assert ledger.pending() == expected
    assert Ledger().drop("absent") == {}


QUEUES = {  # TestScheduleForAFS: usage by queue, workloads (queue, processors) in order, those admitted
    "admits workload from less active localqueue": ({"a": 8, "b": 2}, [("a", 8), ("b", 8)], [1]),
    "does not prioritize a zero-weight localqueue": ({"a": 0, "zero": 0}, [("zero", 8), ("a", 8)], [1]),
    "admits one workload from each localqueue when quota is limited": (
        {"a": 4, "b": 4},
        [("a", 4), ("a", 4), ("b", 4), ("b", 4)],
        [0, 2],
    ),
    "schedules normally when queues have equal usage": (
        {"a": 2, "b": 2, "c": 2},
        [("a", 4), ("b", 3), ("c", 1)],
        [0, 1, 2],
    ),
    "admits workload from lq-b with uninitialized cache": ({"a": 8}, [("a", 8), ("b", 8)], [1]),
}
LIMITS = {"max_concurrency": 8, "max_duration": 20, "max_value": 10.0, "max_delay": 40}


def market(capacity=8, horizon=40, **parameters):
    rules = {"half_life_hours": 10 / 3600, "sampling_minutes": 1 / 60, "weights": {"zero": 0}} | parameters
    return get_mechanism("kueue", capacity=capacity, horizon=horizon, **LIMITS, **rules)


def started(found, jobs):
    """Submit and bring jobs, (owner, nodes), in a round; return which of them start in it."""
    names = [f"{found.round}-{i}" for i in range(len(jobs))]
    for name, (owner, nodes) in zip(names, jobs, strict=True):
        sow = StatementOfWork(found.round, nodes, DeadlineValue(5.0, 40), [(found.round, 3, 1.0)])
        found.submit(name, sow, owner=owner)
    for name in names:
        found.arrive(name, 3)
    return [names.index(event.job) for event in found.advance() if event.kind.value == "start"]


@pytest.mark.parametrize("name", QUEUES)
def test_schedule_for_afs(name):
    usage, jobs, admitted = QUEUES[name]
    found = market(round_seconds=1e-9)
    found.ledgers = {owner: Ledger({"nodes": float(used)}) for owner, used in usage.items()}
    assert started(found, jobs) == admitted


def test_without_the_entry_penalty_one_queue_would_enter_all_its_workloads():
    """The negative control of "admits one workload from each localqueue when quota is limited"."""
    found = market(round_seconds=1e-9, half_life_hours=0.0)
    found.ledgers = {owner: Ledger({"nodes": 4.0}) for owner in "ab"}
    assert started(found, [("a", 4), ("a", 4), ("b", 4), ("b", 4)]) == [0, 1]


def test_strict_and_best_effort():
    jobs = [("a", 5), ("a", 4), ("a", 3)]
    assert started(market(), jobs) == [0, 2]
    assert started(market(strict=True), jobs) == [0]


def test_usage_follows_what_runs():
    """Ann runs 4 nodes for three rounds of a half-life each: the entry penalty, three samples, then it is forgotten."""
    found = market(half_life_hours=1.0, sampling_minutes=60.0, round_seconds=3600.0)
    assert started(found, [("ann", 4)]) == [0]
    assert found.usage_of("ann") == 2.0  # half of 4 nodes
    for used in (0.5 * 2 + 0.5 * 4, 0.5 * 3 + 0.5 * 4):
        found.advance()
        assert found.usage_of("ann") == used
    found.complete("1-0")
    for used in (0.5 * 3.5 + 0.5 * 4, 0.5 * 3.75):
        found.advance()
        assert found.usage_of("ann") == used


def test_bad_input():
    refused(lambda: market(weights={"ann": -1}), place="weights: ann", seen=-1)
    refused(lambda: market(sampling_minutes=0), place="sampling_minutes", seen=0)
