"""Gang scheduling: the reward of section 3.5, the all-or-nothing rule and its repair, the relaxed problem."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from gangs import counted_tasks, naive_reward, random_allocation, random_gang, repaired_of, reward_of, violations
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import GangCluster
from marketsched.mechanisms.allocation.oga.fixed_allocation import best_fixed_allocation

SEEDS = st.integers(0, 2**32)
SHARES = st.sampled_from([0.0, 0.25, 1.0])


def line(tasks, minimum, capacity, share=0.0):
    """Return a gang cluster of one instance and one type, linear gain 1, overhead 1/4."""
    ports = [np.reshape(np.array(port, float), (-1, 1)) for port in tasks]
    return GangCluster(
        ports, [[capacity]], np.ones((len(tasks), 1), bool), minimum, "linear", 1.0, 0.25, task_share=share
    )


def column(*amounts):
    return np.reshape(np.array(amounts, float), (-1, 1, 1))


def amounts(y):
    return y[:, 0, 0].tolist()


# -- what an allocation is worth ---------------------------------------------------------------------------


@settings(deadline=None, max_examples=many(60))
@given(SEEDS, SEEDS)
def test_the_reward_is_the_formulas(seed, other):
    gang = random_gang(seed)
    y = random_allocation(gang, other)
    counts = np.random.default_rng(other).integers(0, 2, gang.n_ports)
    expected = naive_reward(gang, counts, y)
    assert reward_of(gang, counts, y) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(deadline=None, max_examples=many(60))
@given(SEEDS, SEEDS)
def test_tasks_merge_into_ports_and_ports_split_into_tasks(seed, other):
    gang = random_gang(seed)
    tasks, ports = gang.relaxed.layout, gang.merged.layout
    y = random_allocation(gang, other)
    together = np.zeros((gang.n_ports, *y.shape[1:]))
    np.add.at(together, gang.task_ports, y)
    merged = gang.merge(tasks.to_channels(y))
    assert np.allclose(ports.to_dense(merged), together, rtol=1e-15)
    gang.merged.check_allocation(together)  # legal for the relaxed problem
    back = gang.split(merged)
    gang.relaxed.check_channel_array(back)
    assert np.allclose(gang.merge(back), merged, rtol=1e-12, atol=1e-12)
    marks = np.arange(float(gang.n_ports))
    spread = gang.spread(ports.to_channels(np.broadcast_to(marks[:, None, None], together.shape)))
    assert np.array_equal(
        spread[tasks.places], np.repeat(marks[gang.task_ports[tasks.ports]][:, None], tasks.n_types, 1)
    )


# -- all or nothing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "minimum", "capacity", "share", "before", "after"),
    [
        ([[2, 2]], [2], 4, 0.0, [2, 0], [2, 2]),  # the missing task is topped up
        ([[2, 2]], [2], 3, 0.0, [2, 0], [2, 1]),  # ... with what is left; the paper counts anything
        ([[2, 2]], [2], 3, 1.0, [2, 0], [0, 0]),  # ... which is too little if tasks must be whole
        ([[2, 2]], [1], 3, 1.0, [2, 1], [2, 0]),  # one is enough; the other gives its part back
        ([[2, 2]], [2], 2, 0.0, [2, 0], [0, 0]),  # nothing is left: all or nothing
        ([[2, 2]], [2], 4, 0.0, [0, 0], [0, 0]),  # nobody is launched who was given nothing
        ([[2, 2], [2]], [2, 1], 3, 1.0, [1.5, 0.5, 1.0], [0, 0, 2]),  # port 1 lacks least and goes first
        ([[2, 2, 2], [1, 1]], [3, 2], 5, 1.0, [2, 1, 1, 1, 0], [0, 0, 0, 1, 1]),  # then too little is left for port 0
    ],
)
def test_repairs_by_hand(tasks, minimum, capacity, share, before, after):
    gang = line(tasks, minimum, capacity, share)
    assert amounts(repaired_of(gang, column(*before))) == after


@settings(deadline=None, max_examples=many(300))
@given(SEEDS, SEEDS, SHARES, st.booleans())
def test_repaired_allocations_keep_the_rule(seed, other, share, whole):
    gang = random_gang(seed, share=share, whole=whole)
    y = random_allocation(gang, other)
    before = y.copy()
    repaired = repaired_of(gang, y)
    assert np.array_equal(y, before)
    assert violations(gang, repaired) == []
    flat = gang.relaxed.layout.to_channels
    gang.check_gangs(flat(repaired))
    counted = np.array(counted_tasks(gang, repaired))
    assert np.array_equal(gang.scheduled(flat(repaired)), counted)
    number = np.bincount(gang.task_ports[counted], minlength=gang.n_ports)
    assert np.array_equal(gang.launched(flat(repaired)), number >= gang.minimum_tasks)
    assert np.isin(number >= gang.minimum_tasks, number > 0).all()
    # what was in order stays, what had nothing gets nothing, and a second repair changes nothing
    fine = np.array(counted_tasks(gang, y)) & gang.launched(flat(y))[gang.task_ports]
    assert np.array_equal(repaired[fine], y[fine])
    idle = np.array([not y[gang.task_ports == port].any() for port in range(gang.n_ports)])
    assert not repaired[idle[gang.task_ports]].any()
    assert np.array_equal(repaired_of(gang, repaired), repaired)


@settings(deadline=None, max_examples=many(100))
@given(SEEDS, SEEDS, SHARES)
def test_rewards_are_never_above_the_relaxation(seed, other, share):
    gang = random_gang(seed, share=share)
    y = repaired_of(gang, random_allocation(gang, other))
    counts = np.random.default_rng(other).integers(0, 2, gang.n_ports)
    bound = best_fixed_allocation(gang.merged, counts).upper
    assert reward_of(gang, counts, y) <= bound + 1e-9 * (1.0 + abs(bound))


# -- what is refused ---------------------------------------------------------------------------------------


def build(**changes):
    arguments = {
        "tasks": [[[1.0], [2.0]], [[1.0]]],
        "capacities": [[3.0]],
        "channels": [[True], [True]],
        "minimum_tasks": [1, 1],
        "gain": "log",
        "alpha": 1.0,
        "overhead": 0.5,
    }
    return GangCluster(**(arguments | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": []}, "tasks is empty"),
        ({"tasks": [[[1.0]], np.zeros((0, 1))]}, r"tasks\[1\] has shape \(0, 1\)"),
        ({"tasks": [[[1.0]], [[1.0, 2.0]]]}, r"tasks\[1\] has shape \(1, 2\)"),
        ({"tasks": [[[1.0]], [[-1.0]]]}, r"tasks\[1\]\[0, 0\] = -1.0"),
        ({"tasks": [[[1.0]], [[np.nan]]]}, r"tasks\[1\]\[0, 0\] = nan"),
        ({"minimum_tasks": [3, 1]}, r"minimum_tasks\[0\] = 3: .*\[1, 2\]"),
        ({"minimum_tasks": [0, 1]}, r"minimum_tasks\[0\] = 0"),
        ({"minimum_tasks": [1.5, 1]}, r"minimum_tasks\[0\] = 1.5"),
        ({"minimum_tasks": [1]}, "minimum_tasks has shape"),
        ({"channels": [[True], [False]]}, "port 1 has no channel"),
        ({"channels": [[True]]}, "channels has shape"),
        ({"capacities": [[-3.0]]}, r"capacities\[0, 0\] = -3.0"),
        ({"gain": "square"}, "square"),
        ({"overhead": 1.5}, "overhead"),
    ],
)
def test_bad_clusters_are_named(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        build(**changes)
