"""What fits is what some placement holds, exactly; nothing is ever overbooked; placement rules do what they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms.resources.calendars import Calendars, Wanted
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup
from marketsched.mechanisms.resources.placement import RULES, TaskTypes
from small_clusters import CPU, GPU, filled, fits_by_milp, placed_by, random_wanted, small_cluster

REACH = 6
SEEDS = st.integers(0, 2**32 - 1)


def wanted(pool, tasks, demand, per_node=None):
    return Wanted(pool, tasks, tasks if per_node is None else per_node, np.array(demand, dtype=np.int64))


@settings(max_examples=many(120), deadline=None)
@given(SEEDS)
def test_test_is_exact(seed):
    rng = np.random.default_rng(seed)
    cluster = small_cluster(rng)
    calendars, _ = filled(rng, cluster, REACH, 6)
    for _ in range(2):
        ask, start = random_wanted(rng, cluster), int(rng.integers(1, REACH))
        length = int(rng.integers(1, REACH - start + 1))
        assert calendars.fits(ask, start, length) == fits_by_milp(cluster, *calendars.state(start, length), ask)


@settings(max_examples=many(200), deadline=None)
@given(SEEDS)
def test_what_fits_a_larger_demand_fits_a_smaller_one(seed):
    """(M1): fewer resources, tasks or rounds, or more tasks allowed on a node, never take an entry off the menu."""
    rng = np.random.default_rng(seed)
    cluster = small_cluster(rng)
    calendars, _ = filled(rng, cluster, REACH, 8)
    for _ in range(10):
        ask, start = random_wanted(rng, cluster), int(rng.integers(1, REACH))
        length = int(rng.integers(1, REACH - start + 1))
        tasks = int(rng.integers(1, ask.tasks + 1))
        gpu = ask.demand[2]
        smaller = rng.choice([0, *[x for x in (2, 3, 5, 7, 10, 20) if x <= gpu]])
        demand = np.array([rng.integers(0, ask.demand[0] + 1), rng.integers(0, ask.demand[1] + 1), smaller])
        less = Wanted(ask.pool, tasks, int(rng.integers(min(ask.per_node, tasks), tasks + 1)), demand)
        if calendars.fits(ask, start, length):
            later = int(rng.integers(0, length))
            assert calendars.fits(less, start + later, int(rng.integers(1, length - later + 1)))


@settings(max_examples=many(100), deadline=None)
@given(SEEDS)
def test_never_overbooked_and_sums_agree(seed):
    """Random bookings that end early, are given back in any order, and move on with time."""
    rng = np.random.default_rng(seed)
    cluster = small_cluster(rng)
    layout = cluster.layout
    calendars, types, running = Calendars(cluster, REACH), TaskTypes(3), []
    for now in range(1, 30):
        calendars.move_to(now)
        for _ in range(int(rng.integers(0, 4))):
            ask, start = random_wanted(rng, cluster), now + int(rng.integers(0, REACH - 1))
            length = int(rng.integers(1, now + REACH - start + 1))
            types.add(ask.demand)
            if calendars.fits(ask, start, length):
                placed = placed_by(str(rng.choice(RULES)), calendars, ask, start, length, types)
                assert placed.tasks.sum() == ask.tasks and placed.tasks.max() <= ask.per_node
                calendars.book(ask, placed, start, length)
                running.append((ask, placed, start, start + length))
        rng.shuffle(running)
        for ask, placed, start, end in [running.pop() for _ in range(int(rng.integers(0, len(running) + 1)))]:
            calendars.release(ask, placed, max(start, now), end)
        free, devices = calendars.state(now, REACH)
        assert free.min() >= 0 and (free <= layout.size[:, :, None]).all()
        assert devices.size == 0 or (devices.min() >= 0 and devices.max() <= 10)
        sums = np.add.reduceat(free, layout.pool_begin[:-1], axis=0)
        assert (sums == calendars.pool_free(now, REACH)).all()
        for x in range(cluster.nodes):
            own = devices[layout.device_begin[x, 2] : layout.device_begin[x, 3]]
            assert (own.sum(0) == free[x, 2]).all()
    for ask, placed, start, end in running:
        calendars.release(ask, placed, max(start, 29), end)
    assert (calendars.state(29, REACH)[0] == layout.size[:, :, None]).all()


CLUSTER = Cluster(
    (CPU, GPU),
    (
        NodeGroup("wide", "a", 1, {"cpu": 8, "gpu": 4}),
        NodeGroup("thin", "a", 1, {"cpu": 4, "gpu": 1}),
        NodeGroup("same", "a", 1, {"cpu": 4, "gpu": 1}),
    ),
)


@pytest.mark.parametrize(("rule", "node"), [("first", 0), ("best", 1), ("worst", 0), ("fgd", 1)])
def test_rules_choose_as_they_say(rule, node):
    """One device of four whole ones, or the only one: past tasks take four at once, so the wide node is spared."""
    calendars, types = Calendars(CLUSTER, 3), TaskTypes(2)
    types.add(np.array([1, 40]), 3)
    types.add(np.array([1, 10]))
    ask = wanted(0, 1, [1, 10])
    placed = placed_by(rule, calendars, ask, 1, 3, types)
    assert placed.nodes.tolist() == [node] and placed.parts.tolist() == [10]
    assert placed.devices.tolist() == [CLUSTER.layout.device_begin[node, 1]]


def test_gang_spreads_as_far_as_per_node_says():
    calendars, ask = Calendars(CLUSTER, 3), wanted(0, 3, [1, 10], per_node=1)
    placed = placed_by("best", calendars, ask, 1, 2, TaskTypes(2))
    assert placed.nodes.tolist() == [0, 1, 2] and placed.tasks.tolist() == [1, 1, 1]
    packed = placed_by("first", calendars, wanted(0, 3, [1, 10]), 1, 2, TaskTypes(2))
    assert packed.nodes.tolist() == [0] and packed.tasks.tolist() == [3]
