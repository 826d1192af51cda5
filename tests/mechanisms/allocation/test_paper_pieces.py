"""Pieces of the cores' papers beside their nice cases: joint gains and weights, several jobs at ESDP, "< B" of OPM, and
Algorithm 1 of OgaSched as printed. References are computed here, from the papers alone."""

from itertools import product

import numpy as np
import pytest

from marketsched import Scenario
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import (
    BipartiteCluster,
    OgaSched,
    Opm,
    PowerUtility,
    WeightedCluster,
    WeightedOga,
    printed_projection,
    small_integer_instance,
)
from marketsched.mechanisms.allocation.esdp.channel_instances import published_channels
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.mechanisms.allocation.esdp.probability import all_ports_bound
from marketsched.mechanisms.allocation.port_copies import PortCopies
from marketsched.play.running import run

F = {  # OgaSched (27)
    "linear": (lambda y, a: a * y, lambda y, a: a),
    "log": (lambda y, a: a * np.log(y + 1), lambda y, a: a / (y + 1)),
    "reciprocal": (lambda y, a: 1 / a - 1 / (y + a), lambda y, a: 1 / (y + a) ** 2),
    "poly": (lambda y, a: a * np.sqrt(y + 1) - a, lambda y, a: a / (2 * np.sqrt(y + 1))),
}


def drawn(seed, joint):
    """Return the parts of a cluster of 3 ports, 4 instances, 2 types, as plain arrays."""
    rng = np.random.default_rng(seed)
    channels = rng.random((3, 4)) < 0.7
    channels[:, 0] = True
    names = rng.choice(list(F), (1 if joint else 4, 2))
    gain = np.broadcast_to(names, (4, 2))
    alpha = np.broadcast_to(rng.uniform(1, 1.5, (len(names), 2)), (4, 2))
    parts = (rng.uniform(0.5, 3, (3, 2)), rng.uniform(1, 4, (4, 2)), channels, gain, alpha, rng.uniform(0.1, 0.5, 2))
    return parts, rng.uniform(0.5, 2, (3, 2)), rng


def reward(parts, weights, joint, x, y):
    """OgaSched (5) with weights, port by port, term by term."""
    _, _, _, gain, alpha, beta = parts
    total = 0.0
    for port, k in product(range(3), range(2)):
        if joint:
            total += x[port] * weights[port, k] * F[gain[0][k]][0](y[port, :, k].sum(), alpha[0][k])
        else:
            own = [F[gain[r][k]][0](y[port, r, k], alpha[r][k]) for r in range(4)]
            total += x[port] * weights[port, k] * sum(own)
    return total - sum(x[port] * max(beta * y[port].sum(axis=0)) for port in range(3))


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_joint_gains_and_weights_against_the_paper_s_formula_and_finite_differences(seed, joint):
    parts, weights, rng = drawn(seed, joint)
    cluster = WeightedCluster(*parts, weights=weights, joint=joint)
    y = cluster.project(rng.uniform(0, 2, (3, 4, 2)))
    x = np.array([1, 0, 1])
    assert cluster.reward(x, y) == pytest.approx(reward(parts, weights, joint, x, y), rel=1e-12)
    gradient, h = cluster.gradient(x, y), 1e-6
    for place in np.argwhere(np.broadcast_to(parts[2][:, :, None], y.shape)):
        up, down = y.copy(), y.copy()
        up[tuple(place)] += h
        down[tuple(place)] -= h
        slope = (reward(parts, weights, joint, x, up) - reward(parts, weights, joint, x, down)) / (2 * h)
        assert gradient[tuple(place)] == pytest.approx(slope, abs=1e-5)
    assert np.linalg.norm(cluster.gradient([1, 1, 1], y)) <= cluster.gradient_bound()


def test_without_weights_and_joint_gains_it_is_ogasched():
    plain = small_integer_instance(np.random.default_rng(3), n_ports=4, n_instances=5, n_types=2, density=0.7)
    parts = (plain.requirements, plain.capacities, plain.channels, plain.gain, plain.alpha, plain.overhead)
    same = WeightedCluster(*parts)
    one, other = OgaSched(plain, 30), WeightedOga(same, 30)
    rng = np.random.default_rng(5)
    for _ in range(30):
        x = rng.integers(0, 2, 4)
        assert same.reward(x, one.allocate()) == pytest.approx(plain.reward(x, one.allocate()))
        np.testing.assert_allclose(other.allocate(), one.allocate(), atol=1e-9)
        one.update(x)
        other.update(x)
    assert same.gradient_bound() == pytest.approx(plain.gradient_bound())


def test_joint_gains_and_weights_in_a_scenario():
    small = ["cluster.slots=30", "cluster.instance.instances=8", "cluster.instance.gain=log"]
    found = {
        changes: run(Scenario.load("cluster-default").with_changes(*small, *changes), optimum=False).summary["gain"]
        for changes in ((), ("cluster.instance.joint=true",), ("cluster.instance.weights=[2,2]",))
    }
    assert (found["cluster.instance.joint=true",] < found[()]).all()  # the logarithm of sums, not the sum of logarithms
    np.testing.assert_allclose(found["cluster.instance.weights=[2,2]",][1:], 2 * found[()][1:])  # who does not learn
    with pytest.raises(InvalidParameterError, match="gangs"):
        run(Scenario.load("cluster-gang").with_changes("cluster.slots=5", "cluster.instance.joint=true"))


def test_algorithm_1_as_printed_is_not_the_projection():
    column = BipartiteCluster(np.ones((3, 1)), [[2.0]], np.ones((3, 1), dtype=bool), "linear", 1.0, 0.0)
    full = np.array([1.5, 0.9, 0.4])
    assert printed_projection(full, [3, 3, 3], 2.0) == pytest.approx(
        [37 / 30, 19 / 30, 4 / 30]
    )  # it is, where this fits
    first = printed_projection([1.6, 0.9, 0.2], [1, 1, 1], 2.0)  # the first port is held to its requirement: it is, too
    assert first == pytest.approx(column.project(np.reshape([1.6, 0.9, 0.2], (3, 1, 1))).ravel())
    second = printed_projection([1.6, 1.5, -1.0], [1, 1, 1], 2.5)  # the second is not
    assert second == pytest.approx([1.0, 1.5, 0.0]) and second[1] > 1
    room = printed_projection([0.5, 0.5, 0.5], [1, 1, 1], 3.0)  # where there is room it fills it
    assert room == pytest.approx([1.0, 1.0, 1.0])


def test_capacities_between_one_and_two():
    for seed in range(20):
        channels = published_channels(seed, capacity=(1, 2)).channels
        assert set(channels.capacities) <= {1, 2} and (channels.requests <= channels.capacities).all()
        assert channels.requests.min() >= 1
    assert {tuple(published_channels(s, capacity=(1, 2)).channels.capacities) for s in range(20)} > {(1, 2, 1)}
    with pytest.raises(InvalidParameterError, match="capacity"):
        published_channels(0, capacity=(2, 1))


def test_several_jobs_at_a_port_are_ports_of_their_own():
    """Against brute force over the copied channels: the oracle's value of a slot with two jobs at the first port."""
    channels = Channels([[1], [2], [1]], [3], [0, 0, 1])
    copied, originals = PortCopies([2, 1]).channels(channels)
    assert originals.tolist() == [0, 1, 0, 1, 2] and copied.ports.tolist() == [0, 0, 1, 1, 2]
    found = run(
        Scenario.load("esdp-default").with_changes(
            "cluster.slots=60", "cluster.arrivals.at_most=2", "cluster.arrivals.probability=0.6"
        ),
        4,
        policies=["esdp", "cucb"],
    )
    one = run(Scenario.load("esdp-default").with_changes("cluster.slots=60"), 4, policies=["esdp", "cucb"])
    assert found.meta["ports"] == 16 and found.meta["channels"] == 2 * one.meta["channels"]
    world = (
        Scenario.load("esdp-default").with_changes("cluster.slots=20", "cluster.arrivals.at_most=2").cluster.world(4)
    )
    source = world._utilities
    for _ in range(20):
        drawn = source.draw()
        n = drawn.size // 2
        assert (
            all(
                np.array_equal(drawn[world.channels.ports == 2 * port], drawn[world.channels.ports == 2 * port + 1])
                for port in range(8)
            )
            and n == one.meta["channels"]
        )


def test_the_probability_of_esdp_s_theorem_1():
    """ESDP (35) as printed, beside the product: a bound at Table 3's setting, none for ten ports of one half."""
    assert all_ports_bound([0.9] * 8) == pytest.approx(np.exp(-(0.8**2) / 3))
    assert np.prod([0.9] * 8) <= all_ports_bound([0.9] * 8)
    assert np.prod([0.5] * 10) > all_ports_bound([0.5] * 10)


def test_spending_stays_below_the_budget():
    """Line 8 of OPM's Algorithm 1 has "< B": a budget of three machine slots pays for two."""
    for budget, slots in ((3.0, 2), (3.5, 3)):
        opm = Opm([1.0], 10, primal_step=1.0, dual_step=0.0, gamma=1.0, rng=0)
        opm.add_job(0, 10, budget, PowerUtility(1.0, 0.5))
        used = 0
        for _ in range(10):
            decision = opm.allocate()
            used += int((decision >= 0).sum())
            opm.update(np.where(decision >= 0, 1.0, 0.0))
        assert used == slots
