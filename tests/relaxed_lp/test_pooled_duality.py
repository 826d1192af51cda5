"""The dual bound (29) with pools: equal to the linear program, and above every placement on nodes."""

import numpy as np
import pytest
from scipy import optimize, sparse

from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.shapes import Shape
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import TableValue
from marketsched.relaxed_lp.pooled_duality import (
    PooledJobs,
    pooled_bound,
    pooled_value,
)
from marketsched.relaxed_lp.pooled_jobs import pooled_jobs
from node_program import Choice, Node, Option, best_on_nodes


def pooled(choices, n_resources):
    """The flat arrays of these jobs; devices are the last resource, in thousandths."""
    options = [option for job in choices for option in job.options]
    demands = [
        [option.tasks * a for a in option.each] + [option.tasks * (1000 * option.whole + option.share)]
        for option in options
    ]
    return PooledJobs(
        arrivals=np.array([job.arrival for job in choices], dtype=np.int64),
        value_offsets=np.cumsum([0, *(len(job.values) for job in choices)]),
        values=np.array([v for job in choices for v in job.values], dtype=float),
        option_offsets=np.cumsum([0, *(len(job.options) for job in choices)]),
        pools=np.array([option.pool for option in options], dtype=np.int64),
        durations=np.array([option.duration for option in options], dtype=np.int64),
        worths=np.array([option.worth for option in options], dtype=float),
        demands=np.array(demands, dtype=float).reshape(len(options), n_resources),
    )


def capacities(nodes, n_pools):
    have = np.zeros((n_pools, len(nodes[0].has) + 1))
    for node in nodes:
        have[node.pool] += [*node.has, 1000 * node.devices]
    return have


def fits(option, nodes):
    """Whether some placement of the option alone exists: the count of tasks, node by node."""
    count = 0
    for node in nodes:
        if node.pool == option.pool:
            tasks = [option.per_node, *(h // a for h, a in zip(node.has, option.each, strict=True) if a)]
            if option.whole:
                tasks.append(node.devices // option.whole)
            if option.share:
                tasks.append(node.devices * (1000 // option.share))
            count += min(tasks)
    return count >= option.tasks


def draw_jobs(rng, nodes, n_jobs, horizon, n_pools):
    jobs = []
    for _ in range(n_jobs):
        base, arrival = int(rng.integers(1, 4)), int(rng.integers(1, horizon - 1))
        most, count = float(rng.lognormal(0, 1)) * base, base + int(rng.integers(0, 5))
        values = np.full(count, most) if rng.random() < 0.5 else np.linspace(most, 0.1 * most, count)
        options = []
        for _ in range(int(rng.integers(1, 4))):
            kind = rng.integers(3)
            option = Option(
                int(rng.integers(n_pools)), int(rng.integers(1, 3)), tuple(rng.integers(0, 4, 2).tolist()),
                int(rng.integers(1, 3)) if kind == 1 else 0, int(rng.integers(3, 8)) * 100 if kind == 2 else 0,
                int(rng.integers(1, 3)), max(1, base + int(rng.integers(-1, 2))), float(rng.choice([1.0, 0.8])),
            )  # fmt: skip
            if sum(option.each) + option.whole + option.share and fits(option, nodes):
                options.append(option)
        jobs.append(Choice(arrival, tuple(values.tolist()), tuple(options)))
    return jobs


def small_market(seed, n_jobs, horizon):
    rng = np.random.default_rng(seed)
    n_pools = int(rng.integers(1, 3))
    nodes = [Node(i % n_pools, tuple(rng.integers(3, 8, 2).tolist()), int(rng.integers(0, 3))) for i in range(3)]
    return nodes, draw_jobs(rng, nodes, n_jobs, horizon, n_pools), n_pools


def relaxed_optimum(jobs, have, horizon):
    """The linear program over (option, start), solved by HiGHS."""
    n_resources = have.shape[1]
    gains, rows, columns, entries = [], [], [], []
    for j, arrival in enumerate(jobs.arrivals):
        for o in range(jobs.option_offsets[j], jobs.option_offsets[j + 1]):
            d, first = jobs.durations[o], jobs.value_offsets[j]
            for i in range(d - 1, min(jobs.value_offsets[j + 1] - first, horizon - arrival + 1)):
                begin = arrival - 1 + i - (d - 1)
                rows.append(have.size * horizon + j)
                columns.append(len(gains))
                entries.append(1.0)
                for k in range(n_resources):
                    for t in range(begin, begin + d):
                        rows.append((jobs.pools[o] * n_resources + k) * horizon + t)
                        columns.append(len(gains))
                        entries.append(jobs.demands[o, k])
                gains.append(jobs.worths[o] * jobs.values[first + i])
    if not gains:
        return 0.0
    shape = (have.size * horizon + jobs.arrivals.size, len(gains))
    right = np.concatenate([np.repeat(have.ravel(), horizon), np.ones(jobs.arrivals.size)])
    matrix = sparse.coo_array((entries, (rows, columns)), shape=shape).tocsr()
    result = optimize.linprog(-np.array(gains), A_ub=matrix, b_ub=right, method="highs")
    assert result.status == 0, result.message
    return -result.fun


@pytest.mark.parametrize("seed", range(20))
def test_statements_with_shapes_give_the_same_arrays(seed):
    nodes, choices, n_pools = small_market(seed, n_jobs=12, horizon=10)
    resources = (Resource("cpu"), Resource("memory"), Resource("gpu", parts=1000, device=True))
    groups = [
        NodeGroup(f"node{i}", f"kind{node.pool}", 1, {"cpu": node.has[0], "memory": node.has[1], "gpu": node.devices})
        for i, node in enumerate(nodes)
    ]
    cluster = Cluster(resources, groups)
    statements = []
    for job in choices:
        if job.options:
            shapes = [
                Shape(
                    {"cpu": o.each[0], "memory": o.each[1], "gpu": o.whole + o.share / 1000},
                    {f"kind{o.pool}": o.duration},
                    tasks=o.tasks, per_node=o.per_node, worth=o.worth,
                )
                for o in job.options
            ]  # fmt: skip
            value = TableValue({job.arrival + 1 + i: v for i, v in enumerate(job.values)})
            sow = StatementOfWork.of_shapes(1, value, job.arrival, shapes)
            statements.append((sow, job.arrival, job.options[0].duration))
    found = pooled_jobs([*statements, (statements[0][0], None, 1)], cluster, horizon=10, max_delay=99)
    have = cluster.layout.pool_size
    assert have.tolist() == capacities(nodes, n_pools).tolist()
    expected = pooled([job for job in choices if job.options], 3)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        prices = rng.exponential(0.3, (n_pools, 3, 10)) / np.array([1, 1, 500])[:, None]
        assert pooled_value(found, have, 10, prices) == pytest.approx(pooled_value(expected, have, 10, prices))


@pytest.mark.parametrize("seed", range(50))
def test_equal_to_the_linear_program_over_pools(seed):
    nodes, choices, n_pools = small_market(seed, n_jobs=30, horizon=14)
    jobs, have = pooled(choices, 3), capacities(nodes, n_pools)
    bound, relaxed = pooled_bound(jobs, have, 14).value, relaxed_optimum(jobs, have, 14)
    assert relaxed * (1 - 1e-9) <= bound <= 1.001 * relaxed


@pytest.mark.parametrize("seed", range(100, 120))
def test_never_below_the_best_placement_on_nodes(seed):
    nodes, choices, n_pools = small_market(seed, n_jobs=6, horizon=6)
    jobs, have = pooled(choices, 3), capacities(nodes, n_pools)
    best = best_on_nodes(nodes, choices, 6)
    assert pooled_bound(jobs, have, 6).value >= best * (1 - 1e-9)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        prices = rng.exponential(rng.choice([0.0, 0.1, 1.0]), (n_pools, 3, 6)) / np.array([1, 1, 500])[:, None]
        assert pooled_value(jobs, have, 6, prices) >= best - 1e-9


def test_pools_of_half_the_size_give_a_bound_that_is_broken():
    """Negative control: the comparison with placements on nodes notices a bound that is too low."""
    broken = 0
    for seed in range(100, 110):
        nodes, choices, n_pools = small_market(seed, n_jobs=6, horizon=6)
        bound = pooled_bound(pooled(choices, 3), capacities(nodes, n_pools) / 2, 6).value
        broken += bound < best_on_nodes(nodes, choices, 6) - 1e-6
    assert broken >= 5


def test_what_the_prices_prove_is_the_value():
    nodes, choices, n_pools = small_market(3, n_jobs=30, horizon=14)
    jobs, have = pooled(choices, 3), capacities(nodes, n_pools)
    bound = pooled_bound(jobs, have, 14)
    assert bound.value == pytest.approx(pooled_value(jobs, have, 14, bound.prices), rel=1e-12)
    assert bound.prices.shape == (n_pools, 3, 14) and (np.diff(bound.history) <= 0).all()


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"pools": np.array([2])}, "expected pools 0 to 0"),
        ({"durations": np.array([0])}, "a round or more"),
        ({"arrivals": np.array([0])}, "round 1 or later"),
        ({"values": np.array([np.nan])}, "finite values"),
        ({"worths": np.ones(2)}, "fit each other"),
        ({"values": np.array([1.0, 2.0]), "value_offsets": np.array([0, 2])}, "do not increase"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, where):
    one = PooledJobs(
        np.array([1]), np.array([0, 1]), np.array([2.0]), np.array([0, 1]), np.array([0]), np.array([1]), np.ones(1),
        np.ones((1, 1)),
    )  # fmt: skip
    assert pooled_bound(one, [[1.0]], 3).value == pytest.approx(2.0)
    with pytest.raises(InvalidParameterError, match=where):
        pooled_bound(one._replace(**change), [[1.0]], 3)
