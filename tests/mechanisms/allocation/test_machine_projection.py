"""P4 and P5: projections of shares against their own optimality conditions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from machine_shares import project_machines
from marketsched.mechanisms.allocation.opm.general_opm import roundable_rules
from marketsched.mechanisms.allocation.opm.projections import project_general
from marketsched.mechanisms.errors import InvalidParameterError, SolverError
from refusals import refused

WHOLE = st.integers(-3, 3).map(float)  # ties are common
REAL = st.floats(-5.0, 5.0, allow_subnormal=False)


def certify_machine(y, z):
    """Check the optimality conditions of one machine: z = max(y - tau, 0), tau = 0 unless the sum is 1."""
    assert z.min(initial=0.0) >= 0.0 and z.sum() <= 1.0 + 1e-12
    running = z > 0.0
    tau = (y - z)[running].mean() if running.any() else 0.0
    assert tau >= -1e-12
    assert np.abs((y - z)[running] - tau).max(initial=0.0) <= 1e-10
    if running.any():
        assert y[~running].max(initial=-np.inf) <= tau + 1e-10
    else:
        assert y.max(initial=-np.inf) <= 0.0
    if tau > 1e-10:
        assert z.sum() == pytest.approx(1.0, abs=1e-12)


@given(arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 20)), elements=st.one_of(WHOLE, REAL)))
def test_p4_satisfies_its_optimality_conditions(y):
    z = project_machines(y)
    for i in range(y.shape[1]):
        certify_machine(y[:, i], z[:, i])


def general_instance(seed, n_jobs, n_machines, top):
    rng = np.random.default_rng(seed)
    y = rng.normal(0.5, 0.7, (n_jobs, n_machines))
    ends = (rng.random(y.shape) < 0.8).astype(float) if top else np.ones_like(y)
    return y, rng.uniform(0.2, 1.0, n_jobs), rng.uniform(0.3, 3.0, n_machines), rng.integers(1, 4, n_jobs), ends


@pytest.mark.parametrize("seed", range(8))
def test_p5_is_feasible_and_certified_by_a_dual_bound_computed_here(seed):
    y, demands, room, limits, ends = general_instance(100 + seed, 9, 12, True)
    found = project_general(y, demands, room, limits, top=ends)
    z, rho, sigma = found.shares, found.machine_prices, found.job_prices
    assert (demands @ z <= room + 1e-12).all() and (z.sum(axis=1) <= limits + 1e-12).all()
    assert (z >= 0.0).all() and (z <= ends).all() and (rho >= 0.0).all() and (sigma >= 0.0).all()
    best = np.clip(y - np.outer(demands, rho) - sigma[:, None], 0.0, ends)
    dual = 0.5 * ((best - y) ** 2).sum() + rho @ (demands @ best - room) + sigma @ (best.sum(axis=1) - limits)
    primal = 0.5 * ((z - y) ** 2).sum()
    assert found.gap < 1e-12 and dual <= primal + 1e-12 and primal - dual == pytest.approx(found.gap, abs=1e-10)


def test_p5_that_may_not_sweep_enough_says_so():
    y, demands, room, limits, _ = general_instance(11, 20, 30, False)
    refused(lambda: project_general(y + 1.0, demands, room, limits, max_sweeps=1), "after 1 sweeps", error=SolverError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"demands": [1.0, 0.0]}, "demands"),
        ({"capacities": [1.0]}, "capacities"),
        ({"limits": [1.0, -1.0]}, "limits"),
        ({"points": [[np.inf, 0.0], [0.0, 0.0]]}, "points"),
    ],
)
def test_p5_refuses_bad_input(change, message):
    legal = {"points": np.zeros((2, 2)), "demands": [1.0, 1.0], "capacities": [1.0, 1.0], "limits": [1.0, 1.0]}
    with pytest.raises(InvalidParameterError, match=message):
        project_general(**{**legal, **change})


def test_roundable_rules_by_hand():
    weights, room, top = roundable_rules(np.array([1.0, 0.25]), np.array([0.2, 0.7, 1.0, 4.0]))
    np.testing.assert_array_equal(top, [[0, 0, 1, 1], [0, 1, 1, 1]])
    np.testing.assert_array_equal(room, [0, 2, 1, 3])  # nothing fits; two small tasks; one task; a load of 4 - 1
    np.testing.assert_array_equal(weights[:, 1:], [[1, 1, 1], [1, 1, 0.25]])
