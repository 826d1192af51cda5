"""Queues in front of a cluster: orders, reservations, and that nothing is held twice."""

from collections import defaultdict

import numpy as np
import pytest

from marketsched.mechanisms import DeadlineValue, EventKind, LinearValue, StatementOfWork
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.shapes import Shape
from marketsched.mechanisms.schedulers.cluster_queue import ClusterQueue

RESOURCES = (Resource("cpu"), Resource("gpu", parts=1000, device=True))


def two_kinds(fast=1, slow=2):
    groups = [NodeGroup("f", "fast", fast, {"cpu": 8, "gpu": 2}), NodeGroup("s", "slow", slow, {"cpu": 4, "gpu": 1})]
    return Cluster(RESOURCES, groups)


def queue(cluster, **rules):
    return ClusterQueue(
        cluster.nodes, 60, cluster=cluster, max_concurrency=4, max_duration=20, max_value=1e3, max_delay=50, **rules
    )


def job(birth, value, shapes, deadline=50):
    return StatementOfWork.of_shapes(birth, DeadlineValue(value, deadline), birth, shapes)


def played(market, jobs, check=None):
    """Play jobs (name, owner, statement) to the end; return starts and completions by name."""
    born, ends, starts, done = defaultdict(list), defaultdict(list), {}, {}
    for name, owner, sow in jobs:
        born[sow.birth].append((name, owner, sow))
    for now in range(1, market.horizon + 1):
        for name, owner, sow in born[now]:
            market.submit(name, sow, owner=owner)
        for name, _, sow in born[now]:
            market.arrive(name, sow.requirements[0].signal)
        for event in market.advance():
            if event.kind is EventKind.START:
                starts[event.job] = now
                ends[now + market.booking(event.job).length].append(event.job)
        if check is not None:
            check(market)
        for name in ends.pop(now + 1, ()):
            done[name] = market.complete(name).completion
    return starts, done


def never_twice(market):
    free, devices = market.calendars.state(market.round, 20)
    assert free.min() >= 0 and devices.min() >= 0
    layout = market.cluster.layout
    begin = layout.pool_begin
    for g in range(begin.size - 1):
        assert (free[begin[g] : begin[g + 1]].sum(0) == market.calendars.pool_free(market.round, 20)[g]).all()


def test_a_job_starts_where_it_is_worth_most():
    shape = Shape({"gpu": 1}, {"slow": 6, "fast": 3})
    soft = StatementOfWork.of_shapes(1, LinearValue(10.0, 4, 1.0, 12), 1, [shape])
    starts, done = played(queue(two_kinds()), [(name, None, soft) for name in "abcd"])
    assert starts == dict.fromkeys("abcd", 1)
    assert [done[name] for name in "abcd"] == [4, 4, 7, 7]  # the two GPUs of the fast node first


def test_fifo_starts_behind_a_job_that_waits_and_a_reservation_keeps_its_place():
    whole = [Shape({"gpu": 2}, {"fast": 4})]
    half = [Shape({"gpu": 1}, {"fast": 5})]
    jobs = [("first", None, job(1, 9.0, half)), ("wide", None, job(2, 9.0, whole)), ("late", None, job(3, 9.0, half))]
    starts, _ = played(queue(two_kinds()), jobs)
    assert starts == {"first": 1, "late": 3, "wide": 8}  # "late" takes the free half before it
    starts, _ = played(queue(two_kinds(), reserve=True), jobs)
    assert starts == {"first": 1, "wide": 6, "late": 10}
    short = [*jobs[:2], ("late", None, job(3, 9.0, [Shape({"gpu": 1}, {"fast": 3})]))]
    starts, _ = played(queue(two_kinds(), reserve=True), short)
    assert starts == {"first": 1, "late": 3, "wide": 6}  # gone by the round that is held


def test_density_counts_the_largest_share_of_the_cluster():
    wide = job(1, 10.0, [Shape({"gpu": 2, "cpu": 1}, {"fast": 4})])  # half of all GPUs
    narrow = job(1, 6.0, [Shape({"gpu": 1, "cpu": 1}, {"fast": 4})])
    starts, _ = played(queue(two_kinds(), order="density"), [("wide", None, wide), ("narrow", None, narrow)])
    assert starts == {"narrow": 1, "wide": 5}
    starts, _ = played(queue(two_kinds(), order="fifo"), [("wide", None, wide), ("narrow", None, narrow)])
    assert starts == {"wide": 1, "narrow": 5}


def test_the_owner_with_the_smallest_dominant_share_is_next():
    gpu, cpu = [Shape({"gpu": 1}, {"slow": 5, "fast": 5})], [Shape({"cpu": 2}, {"slow": 5, "fast": 5})]
    jobs = [(f"g{i}", "ann", job(1, 5.0, gpu)) for i in range(4)] + [
        (f"b{i}", "bob", job(1, 5.0, gpu)) for i in range(4)
    ]
    starts, _ = played(queue(two_kinds(), order="dominant-share"), jobs)
    assert sorted(name for name, start in starts.items() if start == 1) == ["b0", "b1", "g0", "g1"]
    mixed = [(f"g{i}", "ann", job(1, 5.0, gpu)) for i in range(6)] + [
        (f"c{i}", "eve", job(1, 5.0, cpu)) for i in range(6)
    ]
    starts, _ = played(queue(two_kinds(), order="dominant-share"), mixed)
    first = [name for name, start in starts.items() if start == 1]
    assert sum(name[0] == "c" for name in first) == 6  # 2 of 16 cores are half of what a GPU of four is


def test_hopeless_jobs_are_dropped_and_gangs_need_all_their_tasks():
    gang = job(1, 5.0, [Shape({"gpu": 1}, {"slow": 4}, tasks=2, per_node=1)], deadline=5)
    starts, done = played(queue(two_kinds()), [("a", None, gang), ("b", None, gang)])
    assert starts == {"a": 1} and done == {"a": 5}


@pytest.mark.parametrize("order", ["fifo", "density", "dominant-share"])
@pytest.mark.parametrize("reserve", [False, True])
def test_nothing_is_held_twice(order, reserve):
    rng = np.random.default_rng(11)
    jobs = []
    for i in range(120):
        birth = int(rng.integers(1, 30))
        kinds = {"fast": int(rng.integers(1, 5)), "slow": int(rng.integers(1, 9))}
        share = float(rng.choice([0.3, 0.5, 1.0]))
        shapes = [Shape({"gpu": share, "cpu": int(rng.integers(1, 4))}, kinds, tasks=int(rng.integers(1, 3)))]
        if rng.random() < 0.5:
            shapes.append(Shape({"cpu": int(rng.integers(1, 4))}, {"slow": 10}, worth=0.5))
        jobs.append((i, f"owner{i % 3}", job(birth, float(rng.lognormal()), shapes, birth + 20)))
    market = queue(two_kinds(2, 3), order=order, reserve=reserve)
    starts, done = played(market, jobs, never_twice)
    assert set(starts) == set(done) and len(done) > 60
    free, devices = market.calendars.state(60, 1)
    assert (free[:, :, 0] == market.cluster.layout.size).all() and (devices == 1000).all()  # all is given back


def test_a_hidden_duration_counts_by_its_law_and_a_run_ends_with_its_value():
    def hidden(value, cases, chances, deadline=10):
        shape = Shape({"gpu": 2}, {"fast": cases})
        return StatementOfWork.of_shapes(1, DeadlineValue(value, deadline), 1, [shape], chances, revealed=False)

    market = queue(two_kinds())
    market.submit("hopeful", hidden(9.0, (2, 20), (0.5, 0.5)))  # at its longest it would be worth nothing
    market.submit("hopeless", hidden(9.0, (10, 20), (0.5, 0.5)))
    for name in ("hopeful", "hopeless"):
        market.arrive(name)
    seen = [(now, event.kind.value, event.job) for now in range(1, 14) for event in market.advance()]
    assert [each for each in seen if each[2] == "hopeful"] == [(1, "start", "hopeful"), (10, "evict", "hopeful")]
    assert ("drop", "hopeless") in {each[1:] for each in seen}

    market = queue(two_kinds(), order="density")  # 8 * .5 over 6 rounds are less than 5 over 4
    market.submit("long", hidden(8.0, (2, 10), (0.5, 0.5)))
    market.submit("short", hidden(5.0, (4,), (1.0,)))
    for name in ("long", "short"):
        market.arrive(name)
    assert [event.job for event in market.advance() if event.kind is EventKind.START] == ["short"]
