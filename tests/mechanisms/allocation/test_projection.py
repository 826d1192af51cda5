"""The projection: certified by the KKT conditions, against cvxpy, brute force over pieces, and known answers."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation.oga.projection import project_columns
from naive_allocation import naive_projection


def kkt_violation(points, bounds, capacities, columns, found):
    """Largest violation of (3), (4) and (12) of the paper; beyond numbers of 100, relative to them."""
    worst = 0.0
    for j, capacity in enumerate(capacities):
        part = slice(columns[j], columns[j + 1])
        z, a, y = points[part], bounds[part], found.points[part]
        level = found.duals[j] / 2.0
        scale = max(1.0, capacity / 100.0, np.abs(z).max(initial=0.0) / 100.0)
        assert (y >= 0.0).all() and (y <= a).all() and level >= 0.0
        slack = capacity - y.sum()
        pull = z - y - level  # mu - lambda of (12): zero inside, >= 0 where full, <= 0 where empty
        faults = [
            max(0.0, -slack),
            min(level, 1.0) * abs(slack),  # a price only where capacity is used up
            *np.where(y < a, np.maximum(pull, 0.0), 0.0),  # also where a port takes all the capacity, and wants more
            *np.where(y > 1e-16 * capacity, np.maximum(-pull, 0.0), 0.0),  # less is rounding
        ]
        worst = max(worst, max(faults) / scale)
    return worst


def random_columns(rng, n_columns, kind):
    """Columns of one kind: their points, bounds, capacities and starts."""
    sizes = np.ones(n_columns, int) if kind == "one port" else rng.integers(0, 40, n_columns)
    columns = np.concatenate(([0], np.cumsum(sizes)))
    n = columns[-1]
    points, bounds = rng.normal(2.0, 6.0, n), rng.uniform(0.0, 8.0, n)
    capacities = rng.uniform(0.0, 20.0, n_columns)
    if kind in ("integers", "ties"):
        points, bounds, capacities = np.round(points), np.ceil(bounds), np.ceil(capacities)
    if kind == "ties":
        points, bounds = np.round(points / 4.0) * 4.0, np.full(n, 2.0)
    if kind == "no capacity":
        capacities[:] = 0.0
    if kind == "no request":
        bounds[rng.random(n) < 0.5] = 0.0
    if kind == "slack":
        capacities += np.add.reduceat(np.append(bounds, 0.0), np.minimum(columns[:-1], n)) * (sizes > 0)
    if kind == "far":
        points *= 1e6
    if kind == "wide range":
        points, bounds = points * 10.0 ** rng.uniform(-6, 6, n), bounds * 10.0 ** rng.uniform(-6, 6, n)
    return points, bounds, capacities, columns


KINDS = ["plain", "integers", "ties", "no capacity", "no request", "one port", "slack", "far", "wide range"]


@pytest.mark.slow_after(6)
@pytest.mark.compiled
@pytest.mark.parametrize("kind", KINDS)
def test_every_column_satisfies_the_conditions_of_the_optimum(kind):
    points, bounds, capacities, columns = random_columns(np.random.default_rng(1), 2500, kind)
    found = project_columns(points, bounds, capacities, columns)
    assert kkt_violation(points, bounds, capacities, columns, found) < 1e-10


@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.floats(0, 1e6)),
        min_size=1,
        max_size=9,
    ),
    st.floats(0, 1e6),
)
@example([(1.0, 1.0), (1.0, 1.0)], 8.74299335759734e-190)  # halving would take hundreds of steps
@example([(1.0, 1.0), (1.0, 1.0)], 1e-310)
def test_any_numbers_agree_with_brute_force(ports, capacity):
    points, bounds = np.array(ports, float).T
    found = project_columns(points, bounds, [capacity], [0, points.size]).points
    scale = max(1.0, np.abs(points).max())
    assert found == pytest.approx(naive_projection(points, bounds, capacity), abs=1e-12 * scale)
    assert found.sum() <= capacity * (1 + 1e-13)


def test_levels_between_plateaus_are_found():
    # No port is strictly inside its bounds until the level is nearly right: a Newton step has nothing to go by.
    found = project_columns([5.0, 5.0, 5.0, 100.0, -3.0], [1.0, 1.0, 1.0, 2.0, 4.0], [4.0], [0, 5])
    assert found.points == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2.0, 0.0], abs=1e-13)
    assert found.duals[0] / 2 == pytest.approx(5 - 2 / 3, abs=1e-12)


@pytest.mark.parametrize(
    ("points", "bounds", "capacities", "columns", "named"),
    [
        ([np.nan], [1.0], [1.0], [0, 1], "points"),
        ([1.0], [-1.0], [1.0], [0, 1], "bounds"),
        ([1.0], [1.0, 1.0], [1.0], [0, 1], "bounds"),
        ([1.0], [1.0], [-1.0], [0, 1], "capacities"),
        ([1.0], [1.0], [np.inf], [0, 1], "capacities"),
        ([1.0], [1.0], [1.0, 1.0], [0, 1], "capacities"),
        ([1.0], [1.0], [1.0], [0, 2], "columns"),
        ([1.0, 1.0], [1.0, 1.0], [1.0, 1.0, 1.0], [0, 2, 1, 2], "columns"),
    ],
)
def test_malformed_columns_are_refused_by_name(points, bounds, capacities, columns, named):
    with pytest.raises(InvalidParameterError, match=named):
        project_columns(points, bounds, capacities, columns)
