"""The best fixed allocation: other solvers, certificates, degenerate instances, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from draws import many
from marketsched.mechanisms import InvalidParameterError, SolverError
from marketsched.mechanisms.allocation import (
    BipartiteCluster,
    best_fixed_allocation,
    published_instance,
    small_integer_instance,
)
from marketsched.mechanisms.allocation.oga.gains import GAIN_NAMES

FAMILIES = [*GAIN_NAMES, "mixed"]


def small_cluster(seed, gain, *, whole=False):
    """Return a cluster of at most 4 ports, 4 instances and 3 types, and arrival counts, with zeros among all."""
    rng = np.random.default_rng([seed, 77])
    n_ports, n_instances, n_types = rng.integers(1, 5), rng.integers(1, 5), rng.integers(1, 4)
    shape = (n_instances, n_types)
    channels = rng.random((n_ports, n_instances)) < 0.7
    channels[:, 0] = True
    requirements = rng.uniform(0.0, 8.0, (n_ports, n_types)) * (rng.random((n_ports, n_types)) < 0.85)
    capacities = rng.uniform(0.0, 12.0, shape) * (rng.random(shape) < 0.85)
    alpha, overhead = rng.uniform(1.0, 1.5, shape), rng.uniform(0.2, 1.0, n_types)
    if whole:
        requirements, capacities, alpha, overhead = requirements.round(), capacities.round(), 1.0, 0.5
    gains = rng.choice(GAIN_NAMES, shape) if gain == "mixed" else gain
    counts = rng.integers(0, 60, n_ports)
    return BipartiteCluster(requirements, capacities, channels, gains, alpha, overhead), counts


def feasible(rng, cluster, share):
    """Return some allocation: random up to a share of the requirements, columns scaled down to fit."""
    wanted = cluster.channels[:, :, None] * cluster.requirements[:, None, :]
    wanted = share * wanted * rng.random(wanted.shape)
    used = wanted.sum(axis=0)
    return wanted * np.divide(cluster.capacities, used, out=np.ones_like(used), where=used > cluster.capacities)


def solve_linear(cluster, counts):
    """Return the optimum for linear gains from HiGHS: the overhead of each port is a variable above each type's."""
    layout, n_types = cluster.layout, cluster.n_types
    n = layout.n_channels * n_types
    cost = np.concatenate([-(counts[layout.ports][:, None] * cluster.alpha[layout.instances]).ravel(), counts])
    rows, right = [], []
    for k in range(n_types):
        for r in range(cluster.n_instances):
            row = np.zeros(n + cluster.n_ports)
            row[:n].reshape(-1, n_types)[layout.instances == r, k] = 1.0
            rows.append(row), right.append(cluster.capacities[r, k])
        for port in range(cluster.n_ports):
            row = np.zeros(n + cluster.n_ports)
            row[:n].reshape(-1, n_types)[layout.ports == port, k] = cluster.overhead[k]
            row[n + port] = -1.0
            rows.append(row), right.append(0.0)
    limits = [(0.0, a) for a in cluster.requirements[layout.ports].ravel()] + [(0.0, None)] * cluster.n_ports
    found = linprog(cost, A_ub=np.array(rows), b_ub=right, bounds=limits, method="highs")
    assert found.status == 0
    return -found.fun


def solve_with_cvxpy(cluster, counts):
    """Return the optimum from an interior point method."""
    import cvxpy as cp

    terms, limits = [], []
    amounts = [cp.Variable((cluster.n_instances, cluster.n_types), nonneg=True) for _ in range(cluster.n_ports)]
    for port, y in enumerate(amounts):
        open_to = cluster.channels[port].astype(float)[:, None]
        limits.append(y <= open_to * cluster.requirements[port])
        alpha, gains = cluster.alpha, []
        forms = [
            lambda y, a=alpha: cp.multiply(a, y),
            lambda y, a=alpha: cp.multiply(a, cp.log1p(y)),
            lambda y, a=alpha: 1.0 / a - cp.inv_pos(y + a),
            lambda y, a=alpha: cp.multiply(a, cp.sqrt(y + 1.0)) - a,
        ]
        for code, form in enumerate(forms):
            mask = (cluster.gain == code).astype(float)
            if mask.any():
                gains.append(cp.sum(cp.multiply(mask, form(y))))
        overhead = cp.max(cp.multiply(cluster.overhead, cp.sum(y, axis=0)))
        terms.append(float(counts[port]) * (sum(gains) - overhead))
    limits.append(sum(amounts) <= cluster.capacities)
    problem = cp.Problem(cp.Maximize(sum(terms)), limits)
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == cp.OPTIMAL
    return problem.value


# -- against other solvers ---------------------------------------------------------------------------------


@settings(max_examples=many(60))
@given(seed=st.integers(0, 2**32), whole=st.booleans())
def test_linear_gains_against_a_linear_program(seed, whole):
    cluster, counts = small_cluster(seed, "linear", whole=whole)
    best = best_fixed_allocation(cluster, counts, tolerance=1e-6)
    optimum = solve_linear(cluster, counts)
    rounding = 1e-8 * (1.0 + optimum)  # of HiGHS, 1e-7 per constraint at worst, here far from it
    assert best.value - rounding <= optimum <= best.upper + rounding


@pytest.mark.parametrize("gain", FAMILIES)
@pytest.mark.parametrize("seed", range(4))
def test_against_an_interior_point_method(gain, seed):
    cluster, counts = small_cluster(seed, gain)
    best = best_fixed_allocation(cluster, counts, tolerance=1e-6)
    optimum = solve_with_cvxpy(cluster, counts)
    inexact = 1e-6 * (1.0 + abs(optimum))  # of the interior point method
    assert best.value - inexact <= optimum <= best.upper + inexact


# -- certificates ------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=many(40))
@given(seed=st.integers(0, 2**32), gain=st.sampled_from(FAMILIES), whole=st.booleans())
def test_what_is_returned_is_what_it_says(seed, gain, whole):
    cluster, counts = small_cluster(seed, gain, whole=whole)
    best = best_fixed_allocation(cluster, counts)
    cluster.check_allocation(best.allocation)
    worth = 1e-9 * (1.0 + best.value)
    assert best.value == pytest.approx(cluster.reward(counts, best.allocation), abs=worth)
    everything = cluster.channels[:, :, None] * cluster.requirements[:, None, :]
    gross = cluster.gain_and_overhead(counts, everything)[0].sum()  # more than any legal allocation gains
    assert 0.0 <= best.gap <= 1e-3 * max(best.value, 1e-6 * gross)
    rng = np.random.default_rng(seed)
    for share in (0.01, 0.1, 1.0):
        other = feasible(rng, cluster, share)
        assert cluster.reward(counts, other) <= best.upper + worth
        mixed = 0.9 * best.allocation + 0.1 * other  # close to the optimum, where a wrong bound would show
        assert cluster.reward(counts, mixed) <= best.upper + worth


@pytest.mark.compiled
@pytest.mark.parametrize("gain", FAMILIES)
@pytest.mark.parametrize("overhead", [(0.3, 0.5), (0.01, 0.015), (0.8, 1.0)])
def test_default_size(gain, overhead):
    rng = np.random.default_rng(2)
    cluster = published_instance(rng, gain=gain, overhead=overhead)
    counts = rng.binomial(2000, 0.7, cluster.n_ports)
    best = best_fixed_allocation(cluster, counts)
    cluster.check_allocation(best.allocation)
    assert best.gap <= 1e-3 * best.value
    assert best.value == pytest.approx(cluster.reward(counts, best.allocation), rel=1e-12)


# -- degenerate instances ----------------------------------------------------------------------------------


def test_ports_that_never_come_get_nothing_to_speak_of_and_cost_nothing():
    rng = np.random.default_rng(0)
    cluster = small_integer_instance(rng, gain="mixed")
    counts = np.zeros(cluster.n_ports)
    best = best_fixed_allocation(cluster, counts)
    assert (best.value, best.gap, best.iterations) == (0.0, 0.0, 0)
    counts[0] = 3.0
    best = best_fixed_allocation(cluster, counts)
    assert best.value > 0.0 and not best.allocation[1:].any()


def test_counts_of_very_different_size():
    cluster, _ = small_cluster(3, "mixed")
    counts = 10.0 ** np.arange(0, 2 * cluster.n_ports, 2)
    best = best_fixed_allocation(cluster, counts, tolerance=1e-6)
    assert best.gap <= 1e-6 * best.value


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"arrival_counts": [1.0]}, "arrival_counts has shape (1,): expected (2,)"),
        ({"arrival_counts": [1.0, -1.0]}, "arrival_counts[1] = -1.0: expected a finite number >= 0"),
        ({"arrival_counts": [math.nan, 1.0]}, "arrival_counts[0] = nan"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    cluster = BipartiteCluster([[2.0], [3.0]], [[4.0]], [[True], [True]], "linear", 1.0, 0.25)
    with pytest.raises(InvalidParameterError) as caught:
        best_fixed_allocation(cluster, **{"arrival_counts": [1.0, 2.0], **arguments})
    assert message in str(caught.value)


def test_a_gap_that_is_not_reached_is_an_error():
    cluster, counts = small_cluster(3, "mixed")
    with pytest.raises(SolverError, match="after 3 iterations: expected at most 1e-12"):
        best_fixed_allocation(cluster, counts, tolerance=1e-12, max_iterations=3)
