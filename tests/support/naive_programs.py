"""The relaxed programs once more, straight from their definitions: loops and dense matrices, for small cases."""

import itertools
from typing import NamedTuple

import numpy as np
from scipy import optimize

from marketsched.mechanisms import DeadlineValue, LinearValue, StatementOfWork, TableValue


class Start(NamedTuple):
    """One variable: a start of one task."""

    task: tuple
    start: int
    weight: float
    value: float
    usage: dict  # round -> nodes


def worth(sow, completion, horizon, max_delay=None):
    """V of the model: nothing after T + 1, nothing at or after birth + S."""
    late = completion > horizon + 1 or (max_delay is not None and completion >= sow.birth + max_delay)
    return 0.0 if late else sow.value(completion)


def starts_of_reports(sows, horizon, max_delay=None, shares=None):
    """The variables of (11); of (23) with ``shares``, the probability of each statement."""
    found = []
    for j, sow in enumerate(sows):
        for i, r in enumerate(sow.requirements):
            weight = r.probability * (1.0 if shares is None else shares[j])
            for s in range(r.arrival, horizon + 1):
                value = worth(sow, s + r.duration, horizon, max_delay)
                if value > 0 and weight > 0:
                    usage = {t: float(sow.concurrency) for t in range(s, s + r.duration)}
                    found.append(Start((j, i), s, weight, value, usage))
    return found


def starts_of_plans(sows, horizon, max_delay=None):
    """The variables of (12)."""
    found = []
    for j, sow in enumerate(sows):
        cases = sorted({(r.arrival, str(r.signal)) for r in sow.requirements})
        for a, o in cases:
            points = [r for r in sow.requirements if (r.arrival, str(r.signal)) == (a, o)]
            mass = sum(r.probability for r in points)
            for s in range(a, horizon + 1):
                if mass == 0:
                    continue
                value = sum(r.probability / mass * worth(sow, s + r.duration, horizon, max_delay) for r in points)
                if value > 0:
                    usage = {}
                    for r in points:
                        for t in range(s, min(s + r.duration, horizon + 1)):
                            usage[t] = usage.get(t, 0.0) + sow.concurrency * r.probability / mass
                    found.append(Start((j, a, o), s, mass, value, usage))
    return found


def optimum(variables, supply, horizon):
    """Solve the program of these variables, densely."""
    if not variables:
        return 0.0
    tasks = {task: row for row, task in enumerate(dict.fromkeys(v.task for v in variables))}
    matrix = np.zeros((horizon + len(tasks), len(variables)))
    right = np.concatenate((np.full(horizon, float(supply)), np.zeros(len(tasks))))
    for column, v in enumerate(variables):
        for t, nodes in v.usage.items():
            matrix[t - 1, column] = nodes
        matrix[horizon + tasks[v.task], column] = 1.0
        right[horizon + tasks[v.task]] = v.weight
    result = optimize.linprog(-np.array([v.value for v in variables]), A_ub=matrix, b_ub=right, method="highs")
    assert result.status == 0, result.message
    return -result.fun


def best_schedule(jobs, capacity, horizon, max_delay=None):
    """The value of the best schedule of (statement, arrival, duration), trying all that fit."""
    options = []
    for sow, arrival, d in jobs:
        starts = [] if arrival is None else range(arrival, horizon + 2 - d)
        values = [(s, d, sow.concurrency, worth(sow, s + d, horizon, max_delay)) for s in starts]
        options.append([option for option in values if option[3] > 0])
    load = [0] * (horizon + 2)

    def best_from(j):
        if j == len(options):
            return 0.0
        best = best_from(j + 1)
        for s, d, c, value in options[j]:
            if all(load[t] + c <= capacity for t in range(s, s + d)):
                for t in range(s, s + d):
                    load[t] += c
                best = max(best, value + best_from(j + 1))
                for t in range(s, s + d):
                    load[t] -= c
        return best

    return best_from(0)


def expected_best_schedule(sows, capacity, horizon, max_delay=None):
    """The expected value of the best schedule in hindsight, by listing everything that can happen."""
    expected = 0.0
    for outcome in itertools.product(*([*sow.requirements, None] for sow in sows)):
        pairs = list(zip(sows, outcome, strict=True))
        chance = np.prod([1 - sow.mass if r is None else r.probability for sow, r in pairs])
        jobs = [(sow, None if r is None else r.arrival, 1 if r is None else r.duration) for sow, r in pairs]
        if chance > 0:
            expected += float(chance) * best_schedule(jobs, capacity, horizon, max_delay)
    return expected


def random_curve(rng, first):
    """A value curve of any kind; a table may have no entry for a time in between."""
    kind = rng.integers(4)
    top = float(rng.integers(1, 10)) if rng.random() < 0.5 else float(rng.uniform(0.1, 9))
    if kind == 0:
        return DeadlineValue(top, int(first + rng.integers(0, 6)))
    if kind == 1:
        return LinearValue(top, int(first + rng.integers(0, 3)), float(rng.uniform(0.2, 3)), int(first + 7))
    times = first + np.sort(rng.choice(8, size=rng.integers(1, 5), replace=False))
    values = np.sort(rng.integers(0, 10, times.size))[::-1]
    return TableValue({int(t): float(v) for t, v in zip(times, values, strict=True)})


def random_statement(rng, horizon, *, widest=3, revealed=True, most_points=3):
    """A statement with a small law, now and then with points of probability 0 and mass below 1."""
    birth = int(rng.integers(1, horizon + 1))
    points = {
        (birth + int(rng.integers(0, 3)), int(rng.integers(1, 5))) for _ in range(rng.integers(1, most_points + 1))
    }
    chances = (
        rng.dirichlet(np.ones(len(points) + 1))[:-1] if rng.random() < 0.7 else np.full(len(points), 1 / len(points))
    )
    chances[rng.random(chances.size) < 0.1] = 0.0
    rows = [(a, d, float(p), *(() if revealed else (None,))) for (a, d), p in zip(sorted(points), chances, strict=True)]
    return StatementOfWork(birth, int(rng.integers(1, widest + 1)), random_curve(rng, birth + 1), rows)


def random_jobs(rng, n_jobs, horizon, widest=3):
    """Realised jobs as (statement, arrival, duration); some never arrive."""
    jobs = []
    for _ in range(n_jobs):
        birth, d = int(rng.integers(1, horizon + 1)), int(rng.integers(1, 5))
        arrival = birth + int(rng.integers(0, 3))
        curve = random_curve(rng, arrival + d - int(rng.integers(0, 2)))
        sow = StatementOfWork(birth, int(rng.integers(1, widest + 1)), curve, [(arrival, d, 1.0)])
        jobs.append((sow, None if rng.random() < 0.1 else arrival, d))
    return jobs
