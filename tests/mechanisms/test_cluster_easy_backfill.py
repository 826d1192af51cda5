"""EASY backfilling on nodes: what starts where is what a naive rule says, and nobody delays the head of the queue."""

import numpy as np
import pytest

from draws import many
from marketsched.mechanisms import DeadlineValue, StatementOfWork, get_mechanism
from marketsched.mechanisms.errors import EventError, InvalidParameterError, InvalidReportError
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.shapes import Shape, options_of
from marketsched.mechanisms.schedulers.easy_backfill import EasyBackfill
from naive_nodes import CLUSTER, HORIZON, SIZES, compared, drawn_jobs
from small_clusters import small_cluster

ROUNDS = 80


def market_of(**rules):
    return get_mechanism("cluster-easy-backfill", capacity=CLUSTER.nodes, horizon=HORIZON, **SIZES, **rules)


def by_definition(place=lambda job: 0):
    """Return the rule in words of the naive nodes, and a list of the jobs that passed a head."""
    passed = []

    def rule(naive, waiting, now):
        started, held = {}, None
        before = dict(naive.runs)
        for job in sorted(waiting, key=place):
            found = naive.best(job, now, held)
            if found is not None:
                started[job.name] = naive.runs[job.name] = found
                passed.extend([job.name] * (held is not None))
            elif held is None:
                held = naive.first(job, now)
        naive.runs = before
        return started

    return rule, passed


def wall_of(job):
    return min(max(durations) for durations in job.truth.shapes[0].on.values())


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("seed", range(many(8)))
def test_what_starts_where_is_what_the_naive_rule_says(seed):
    jobs = drawn_jobs(seed)
    known = {job.name: int(seed + i) % 3 for i, job in enumerate(jobs)}
    starts = {}
    for order, rules, place in (
        ("arrival", {}, lambda job: 0),
        ("request", {"order": "request"}, wall_of),
        ("class", {"order": "class", "classes": known}, lambda job: -known[job.name]),
    ):
        rule, passed = by_definition(place)
        starts[order] = compared(market_of(**rules), jobs, rule)
        assert len(passed) > 2
    assert starts["arrival"] != starts["request"] != starts["class"]


def gangs(rng, cluster, n=60):
    """Return jobs of up to four tasks, with shares of devices, memory and laws of two durations."""
    jobs = []
    while len(jobs) < n:
        birth = int(rng.integers(1, 30))
        each = {
            "cpu": int(rng.integers(0, 4)),
            "memory": int(rng.integers(1, 4)),
            "gpu": rng.choice([0, 0.3, 0.5, 1, 2]),
        }
        durations = (int(rng.integers(1, 4)), int(rng.integers(4, 12)))
        shape = Shape(each, {"ab"[int(rng.integers(2))]: durations}, tasks=int(rng.integers(1, 5)))
        value = DeadlineValue(float(rng.lognormal()), birth + int(rng.integers(20, 50)))
        truth = StatementOfWork.of_shapes(birth, value, birth, [shape], (0.6, 0.4), revealed=False)
        try:
            options_of([shape], cluster)
        except InvalidReportError:
            continue  # it fits no pool
        jobs.append((birth, f"j{len(jobs)}", truth, durations[int(rng.integers(2))]))
    return sorted(jobs, key=lambda job: job[:1])


def on_cluster(cluster):
    sizes = {"max_concurrency": 4, "max_duration": 12, "max_value": 1e6, "max_delay": 60, "cluster": cluster}
    return EasyBackfill(cluster.nodes, ROUNDS, **sizes)


def delays(seed):
    """Play a drawn market; return how often a head was held a place, and how often it was delayed."""
    rng = np.random.default_rng(seed)
    cluster = small_cluster(rng)
    market, jobs, promised, ends, held, delayed = on_cluster(cluster), gangs(rng, cluster), {}, {}, 0, 0
    for now in range(1, ROUNDS):
        new = [(name, truth, duration) for birth, name, truth, duration in jobs if birth == now]
        for name, truth, _ in new:
            market.submit(name, truth)
        for name, _, _ in new:
            market.arrive(name)
        left = dict((name, duration) for _, name, _, duration in jobs)
        for event in market.advance():
            if event.kind.value == "start":
                ends[event.job] = now + min(left[event.job], market.booking(event.job).length)
                delayed += now > promised.get(event.job, now)
            elif event.kind.value == "evict":
                ends.pop(event.job, None)
        for name, then in market.reserved.items():
            held += 1
            delayed += then > promised.setdefault(name, then)
            promised[name] = min(promised[name], then)
        check_room(market, ends)
        for name, end in list(ends.items()):
            if end == now + 1 and left[name] <= market.booking(name).length:
                market.complete(name)
                del ends[name]
    return held, delayed


def check_room(market, names):
    layout = market.cluster.layout
    taken, devices = np.zeros_like(layout.size), np.zeros(layout.device_begin[-1, -1], np.int64)
    for name in names:
        booking = market.booking(name)
        np.add.at(taken, booking.placed.nodes, booking.placed.tasks[:, None] * booking.wanted.demand)
        np.add.at(devices, booking.placed.devices, booking.placed.parts)
    assert (taken <= layout.size).all() and (devices <= layout.device_parts[2]).all()


@pytest.mark.slow
def test_nobody_delays_the_head_of_the_queue_and_no_node_is_overfull():
    found = np.array([delays(seed) for seed in range(many(12))])
    assert found[:, 0].sum() > 5 * len(found) and not found[:, 1].any()


def test_a_run_behind_the_head_leaves_its_devices_alone():
    """The head wants a whole device in round 5; of two jobs that share, one may take the half beside it."""
    gpu = Resource("gpu", parts=2, device=True)
    cluster = Cluster((gpu,), [NodeGroup("a", "a", 1, {"gpu": 2})])
    market = EasyBackfill(1, 40, max_concurrency=1, max_duration=9, max_value=9.0, max_delay=40, cluster=cluster)
    for name, parts, rounds in ("A", 1, 4), ("B", 0.5, 6), ("head", 1, 3), ("long", 0.5, 6), ("more", 0.5, 6):
        shape = Shape({"gpu": parts}, {"a": rounds})
        market.submit(name, StatementOfWork.of_shapes(1, DeadlineValue(5.0, 30), 1, [shape], revealed=False))
    for name in ("A", "B", "head", "long", "more"):
        market.arrive(name)
    assert [event.job for event in market.advance()] == ["A", "B", "long"]
    assert market.reserved == {"head": 5}


def test_there_are_no_shares_and_classes_are_whole_numbers():
    with pytest.raises(EventError, match="do not change"):
        market_of().set_share("ann", 1.0)
    with pytest.raises(InvalidParameterError, match=r"classes: a = -1: expected a whole number >= 0"):
        market_of(order="class", classes={"a": -1})
