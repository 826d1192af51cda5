"""The budgeted dynamic program against brute force, and against itself in other words."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from marketsched.mechanisms import InvalidParameterError, MarketschedError, TooLargeError
from marketsched.mechanisms.allocation.esdp.budgeted import BudgetedProblem, choose_budget
from refusals import refused


class Solution(NamedTuple):
    """By budget: the most unseen channels, the sum of other variances, and a selection that attains both."""

    unseen: np.ndarray
    finite: np.ndarray
    selections: np.ndarray


def solve_budgeted(value, variance, requests, capacities, s_max, memory_limit=2**30):
    problem = BudgetedProblem(requests, capacities, memory_limit=memory_limit)
    variance = np.asarray(variance, dtype=float)
    unseen = np.isinf(variance)
    table = problem.solve(np.asarray(value), np.where(unseen, 0.0, variance), s_max, unseen=unseen)
    selections = [table.selection(s) for s in range(s_max + 1)]
    return Solution(table.unseen, table.finite, np.array(selections))


def draw_instance(rng, most_channels, *, unseen=False, whole=True):
    """Return value, variance, requests, capacities, s_max of a small instance with many ties."""
    n, k = rng.integers(1, most_channels + 1), rng.integers(1, 4)
    requests, capacities = rng.integers(0, 5, (n, k)), rng.integers(0, 8, k)
    value = rng.integers(0, 7, n)
    variance = rng.integers(0, 12, n) if whole else rng.random(n)
    if unseen:
        variance = np.where(rng.random(n) < 0.3, np.inf, variance)
    return value, variance, requests, capacities, int(rng.integers(0, 40))


def brute_force(value, variance, requests, capacities, s_max):
    """Return, for every s, the lexicographically largest (unseen, finite sum) over all 2^E selections."""
    selections = np.array(list(itertools.product((0, 1), repeat=len(value))))
    selections = selections[(selections @ requests <= capacities).all(axis=1)]
    hidden = np.isinf(variance)
    values, unseen = selections @ value, selections @ hidden.astype(int)
    finite = selections @ np.where(hidden, 0, variance)
    best = []
    for s in range(s_max + 1):
        enough = values >= s
        if not enough.any():
            best.append((-1, -np.inf))
        else:
            most = unseen[enough].max()
            best.append((most, finite[enough & (unseen == most)].max()))
    return best


def check_selections(solution, value, variance, requests, capacities):
    """Every selection is within the capacities, reaches its s, and attains what is claimed for it."""
    hidden = np.isinf(variance)
    for s, x in enumerate(solution.selections):
        if solution.finite[s] == -np.inf:
            assert not x.any()
            assert solution.unseen[s] == -1
            continue
        assert (requests[x].sum(axis=0) <= capacities).all()
        assert value[x].sum() >= s
        assert hidden[x].sum() == solution.unseen[s]
        assert variance[x & ~hidden].sum() == pytest.approx(solution.finite[s], rel=1e-12)


def check_against_brute_force(instance, exact=True):
    solution = solve_budgeted(*instance)
    expected = brute_force(*instance)
    assert solution.unseen.tolist() == [count for count, _ in expected]
    finite = [total for _, total in expected]
    assert solution.finite.tolist() == (finite if exact else pytest.approx(finite, rel=1e-12))
    check_selections(solution, *instance[:-1])


@pytest.mark.slow_after(1)
@pytest.mark.compiled
@pytest.mark.parametrize("unseen", [False, True])
def test_every_budget_equals_brute_force_on_hundreds_of_instances_of_up_to_14_channels(unseen):
    rng = np.random.default_rng(2)
    for _ in range(150):
        check_against_brute_force(draw_instance(rng, 14, unseen=unseen))


def test_float_variances_equal_brute_force():
    rng = np.random.default_rng(3)
    for i in range(60):
        check_against_brute_force(draw_instance(rng, 7, unseen=i % 2 == 1, whole=False), exact=False)


def test_units_of_resources_do_not_matter():
    rng = np.random.default_rng(5)
    value, variance, requests, capacities, s_max = draw_instance(rng, 8)
    small = solve_budgeted(value, variance, requests, capacities, s_max)
    large = solve_budgeted(value, variance, requests * 10**6, capacities * 10**6 + 999_999, s_max)
    assert np.array_equal(small.finite, large.finite)
    assert np.array_equal(small.selections, large.selections)


def test_whole_variances_are_exact_where_float32_is_not():
    big = 2**50
    solution = solve_budgeted([0, 0, 0], [big, 1, 1], [[1]] * 3, [3], 0)
    assert solution.finite[0] == big + 2


def test_among_some_channels_equals_an_instance_of_those():
    rng = np.random.default_rng(7)
    for _ in range(30):
        value, variance, requests, capacities, s_max = draw_instance(rng, 8)
        among = rng.random(len(value)) < 0.6
        table = BudgetedProblem(requests, capacities).solve(value, variance.astype(float), s_max, among=among)
        part = solve_budgeted(value[among], variance[among], requests[among], capacities, s_max)
        assert table.finite.tolist() == part.finite.tolist()
        found = np.array([table.selection(s) for s in range(len(table.finite))])
        assert np.array_equal(found[:, among], part.selections) and not found[:, ~among].any()


def test_the_budget_chosen_has_the_most_unseen_channels_then_the_largest_index():
    unseen = np.array([2, 2, 2, 1, -1])
    # 0 + 3, 1 + 3, 2 + 1 among those with two unseen; 3 + 10 has only one.
    assert choose_budget(np.array([9.0, 9.0, 1.0, 100.0, -np.inf]), unseen) == 1


BAD = [
    ("requests", [[1], [-1]], r"requests\[1, 0\] = -1"),
    ("requests", [[1.5], [1]], r"requests\[0, 0\] = 1.5"),
    ("requests", [[1], [1, 2]], "requests is not an array"),
    ("requests", [1, 1], "shape"),
    ("requests", [[], []], "column"),
    ("capacities", [-1], r"capacities\[0\] = -1"),
    ("capacities", [np.inf], r"capacities\[0\] = inf"),
    ("capacities", [1, 1], "shape"),
    ("capacities", [True], "type"),
    ("memory_limit", 0, "memory_limit = 0"),
]


@pytest.mark.parametrize(("name", "wrong", "said"), BAD)
def test_bad_input_is_named(name, wrong, said):
    good = {"requests": [[1], [1]], "capacities": [1]}
    with pytest.raises(InvalidParameterError, match=said):
        BudgetedProblem(**{**good, name: wrong})


def test_tables_too_large_are_refused_before_memory_is_taken():
    requests = np.arange(1, 301).reshape(100, 3) % 97 + 1
    with pytest.raises(
        TooLargeError, match=r"capacity vectors .* takes .* TiB, the limit is 1 GiB.*coarser units"
    ) as seen:
        solve_budgeted(np.ones(100, int), np.ones(100, int), requests, [10**4] * 3, 10)
    assert isinstance(seen.value, MarketschedError)
    assert isinstance(seen.value, MemoryError)
    one = np.ones(1, dtype=np.int64), np.ones(1)
    with pytest.raises(TooLargeError, match="over 9001 sums"):
        solve_budgeted([3000] * 3, [1] * 3, [[1, 2], [2, 1], [1, 1]], [4, 4], 9000, memory_limit=10**6)
    refused(lambda: BudgetedProblem([[1]], [1]).solve(*one, 10**15), "limit", error=TooLargeError)
