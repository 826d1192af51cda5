"""Rounding: constraints hold in every draw, expectations are the shares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms.allocation.opm.dependent_rounding import round_kernel
from marketsched.mechanisms.allocation.opm.general_opm import roundable_rules
from marketsched.mechanisms.allocation.opm.projections import project_general


def bound(n_cells, alpha=1e-6):
    """Return how many standard errors the worst of ``n_cells`` means may be off, with probability 1 - alpha."""
    from scipy.stats import norm

    return norm.isf(alpha / (2 * n_cells))


def check_means(counts, shares, n):
    """Check ``counts / n`` against ``shares``, entry by entry, with a bound on the worst of all."""
    error = np.sqrt(np.maximum(shares * (1.0 - shares), 0.0) / n)
    allowed = bound(shares.size) * error + 3.0 * bound(shares.size) ** 2 / n  # Bernstein's term for rare events
    sure = (shares <= 1e-9) | (shares >= 1.0 - 1e-9)
    np.testing.assert_array_equal(counts[sure], np.round(shares[sure]) * n)
    assert (np.abs(counts / n - shares) <= allowed).all()


CASES = {
    "equal demands": (np.full(5, 0.5), np.array([1.0, 0.7, 2.0, 1.6]), np.array([1, 2, 3, 1, 4])),
    "different demands": (
        np.array([1.0, 0.3, 0.6, 0.2, 0.5]),
        np.array([2.0, 1.2, 0.9, 3.0]),
        np.array([1, 2, 3, 1, 4]),
    ),
    "wide and small": (np.array([0.9, 0.1, 0.1, 0.1, 0.1]), np.array([1.0, 1.8, 0.2, 0.9]), np.array([4, 1, 1, 2, 2])),
}


def rounded(shares, demands, rng):
    """Return one draw; tasks of large demand come first."""
    return round_kernel(shares, np.argsort(-demands, kind="stable"), rng)


def roundable_shares(rng, demands, capacities, limits):
    weights, room, top = roundable_rules(demands, capacities)
    points = rng.normal(0.6, 0.5, (demands.size, capacities.size))
    return project_general(points, weights, room, limits, top=top).shares


@pytest.mark.slow_after(1)
@pytest.mark.compiled
@pytest.mark.parametrize("case", CASES)
def test_dependent_rounding_never_violates_102_and_103_and_has_the_shares_as_mean(case):
    demands, capacities, limits = CASES[case]
    rng = np.random.default_rng(7)
    shares = roundable_shares(rng, demands, capacities, limits)
    assert ((shares > 0.01) & (shares < 0.99)).sum() >= 3  # there is something to round
    n, order = many(100_000), np.argsort(-demands, kind="stable")
    drawn = np.array([round_kernel(shares, order, rng) for _ in range(n)])
    assert (np.einsum("j,nji->ni", demands, drawn) <= capacities * (1 + 1e-12)).all()
    assert (drawn.sum(axis=2) <= limits).all()
    check_means(drawn.sum(axis=0), shares, n)


@settings(max_examples=many(60))
@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 7), st.booleans())
def test_dependent_rounding_on_many_small_clusters(seed, n_jobs, n_machines, equal):
    rng = np.random.default_rng(seed)
    demands = np.full(n_jobs, 0.5) if equal else rng.integers(1, 9, n_jobs) / 8.0
    capacities, limits = rng.integers(0, 20, n_machines) / 8.0, rng.integers(1, n_machines + 1, n_jobs)
    shares = roundable_shares(rng, demands, capacities, limits)
    for _ in range(5):
        drawn = rounded(shares, demands, rng)
        assert (demands @ drawn <= capacities * (1 + 1e-12)).all() and (drawn.sum(axis=1) <= limits).all()
        assert not drawn[shares == 0.0].any() and drawn[shares == 1.0].all()
        # Every job runs the floor or the ceiling of its shares' sum.
        assert (np.abs(drawn.sum(axis=1) - shares.sum(axis=1)) < 1.0 + 1e-9).all()
