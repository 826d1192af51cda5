"""Payments over the allocation cores: what the duals say, what is displaced, nothing where capacity is slack."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms.allocation import BipartiteCluster, OgaSched, small_integer_instance
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.mechanisms.allocation.payments import (
    CapacityPrices,
    displaced_utilities,
    displaced_work,
)
from marketsched.mechanisms.errors import InvalidParameterError
from refusals import refused


def one_instance(requirements, capacity, gain="linear", alpha=1.0, overhead=0.25):
    return BipartiteCluster(
        [[a] for a in requirements], [[capacity]], [[True]] * len(requirements), gain, alpha, overhead
    )


def test_the_price_is_the_marginal_value_of_a_device():
    """Port 1 may hold 1/4 only: port 0 holds the rest, and its slope 1 / (1 + 3/4) is what one more is worth."""
    cluster = one_instance([1.0, 0.25], 1.0, "log", overhead=0.0)
    market, held = CapacityPrices(cluster), np.array([0.75, 0.25])
    market.settle(held, [1, 1], step=1e-6)
    assert market.prices[0, 0] == pytest.approx(1 / 1.75, rel=1e-5)
    assert market.charge(held) == pytest.approx([0.75 / 1.75, 0.25 / 1.75], rel=1e-5)


@settings(deadline=None, max_examples=many(40))
@given(st.integers(0, 2**32 - 1))
def test_prices_are_those_of_the_policys_own_projection(seed):
    """KKT at the policy's next allocation; payments sum to prices times capacities."""
    rng = np.random.default_rng(seed)
    cluster = small_integer_instance(rng)
    policy, market, layout = OgaSched(cluster, 50), CapacityPrices(cluster), cluster.layout
    for _ in range(4):
        before, arrivals = policy.allocate_channels().copy(), rng.integers(0, 2, cluster.n_ports)
        policy.update(arrivals)
        after, eta = policy.allocate_channels(), policy.last_step
        market.settle(before, arrivals, eta)
        paid = market.charge(after)
        full = cluster.used(after) >= cluster.capacities - 1e-9
        assert not market.prices[~full].any()
        assert paid.sum() == pytest.approx((market.prices * cluster.capacities).sum(), abs=1e-9)
        if eta > 0.0 and not tied(cluster, before):
            rise = cluster.gradient(arrivals, layout.to_dense(before)) - layout.to_dense(after - before) / eta
            surplus = rise - market.prices  # of a device more, at its price
            held, most = layout.to_dense(after), np.minimum(layout.to_dense(cluster.bounds), cluster.capacities)
            assert np.abs(surplus[(held > 1e-9) & (held < most - 1e-9)]).max(initial=0.0) < 1e-9
            assert surplus[cluster.channels[:, :, None] & (held <= 1e-9) & (most > 1e-9)].max(initial=0.0) < 1e-9


def tied(cluster, flat):
    """Return whether a port's overhead is dominated by two types, up to rounding."""
    ranked = np.sort(cluster.overhead * cluster.layout.to_dense(flat).sum(axis=1), axis=1)
    return bool((ranked[:, -1] - ranked[:, -2] < 1e-9).any())


@settings(deadline=None, max_examples=many(40))
@given(st.integers(0, 2**32 - 1))
def test_displaced_utility_is_what_brute_force_says(seed):
    rng = np.random.default_rng(seed)
    n, capacities = 6, rng.integers(1, 5, 2)
    requests, ports = np.minimum(rng.integers(0, 3, (n, 2)), capacities), rng.integers(0, 3, n)
    channels = Channels(requests, capacities, ports, n_ports=3)
    means, came = rng.random(n), rng.random(3) < 0.8
    selected = np.zeros(n, dtype=bool)
    for e in rng.permutation(n):  # some selection that fits
        selected[e] = came[ports[e]] and (requests[selected].sum(axis=0) + requests[e] <= capacities).all()

    def best(port, room):
        others = np.flatnonzero((ports != port) & came[ports])
        picks = (others[list(map(bool, bits))] for bits in product((0, 1), repeat=others.size))
        return max(means[p].sum() for p in picks if (requests[p].sum(axis=0) <= room).all())

    expected = [
        best(port, capacities) - best(port, capacities - requests[selected & (ports == port)].sum(axis=0))
        for port in range(3)
    ]
    assert displaced_utilities(channels, means, selected, came) == pytest.approx(expected, abs=1e-12)


def test_displaced_work_has_diminishing_returns():
    """Two machines for job 1 would have taken it from 0 to 1 and from 1 to 2: sqrt(2) together, not 2."""
    charges = displaced_work([0, 0], [1.0, 1.0], [4.0, 0.0], [1.0, 1.0], [0.5, 0.5], [True, True])
    assert charges == pytest.approx([2**0.5, 0.0])


def test_displaced_work_counts_what_the_other_got_in_the_slot():
    charges = displaced_work([0, 1], [1.0, 1.0], [4.0, 0.0], [1.0, 1.0], [0.5, 0.5], [True, True])
    assert charges == pytest.approx([2**0.5 - 1.0, 6**0.5 - 5**0.5])


@pytest.mark.parametrize(
    ("decision", "waiting"), [([0, -1], [True, True]), ([0, 0], [True, False]), ([0, 0], [False, False])]
)
def test_no_charge_with_an_idle_machine_or_without_a_rival(decision, waiting):
    assert not displaced_work(decision, [1.0, 0.5], [1.0, 1.0], [1.0, 1.0], [0.5, 0.5], waiting).any()


@pytest.mark.parametrize(
    "call",
    [
        lambda: displaced_utilities(Channels([[1], [1]], [1], [0, 1]), [1.0, 1.0], [True, True], [True, True]),
        lambda: displaced_utilities(Channels([[1]], [1], [0]), [np.nan], [True], [True]),
        lambda: displaced_work([2], [1.0], [1.0], [1.0], [0.5], [True]),
        lambda: displaced_work([0.5], [1.0], [1.0], [1.0], [0.5], [True]),
    ],
)
def test_bad_arguments_are_named(call):
    refused(call, "expected", error=InvalidParameterError)
