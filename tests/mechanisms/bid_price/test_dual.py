"""The dual's kernel and its tasks against loops that say what they should do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.bid_price.dual import dual_prices
from marketsched.mechanisms.bid_price.forecast import FromHistory, with_waiting
from marketsched.mechanisms.bid_price.tasks import TaskStore


def descend(prices, supply, capacity, rows, places, weights, tasks, steps, step):
    """Make the steps one task and one start at a time; return the mean and the last iterate."""
    p, n, iterates = prices.copy(), prices.size, []
    for i in range(steps):
        demand = np.zeros(n)
        for j, place, weight in zip(rows, places, weights, strict=True):
            best, chosen, d, width = 0.0, None, tasks.durations[j], tasks.widths[j]
            for x, value in enumerate(tasks.values[tasks.offsets[j] : tasks.offsets[j + 1]]):
                s = place + x
                if 0 <= s <= n - d:
                    surplus = value - width * p[s : s + d].sum()
                    if surplus > best + 1e-7:  # the earliest among equals
                        best, chosen = surplus, s
            if chosen is not None:
                demand[chosen : chosen + d] += width * weight
        p = np.maximum(0.0, p - step / np.sqrt(i + 1) * (supply - demand) / capacity)
        iterates.append(p)
    return np.mean(iterates[steps // 2 :], axis=0), p


def random_store(rng, n_tasks, longest=8):
    store = TaskStore()
    for arrival in np.sort(rng.integers(1, 12, n_tasks)):
        values = np.sort(rng.integers(0, 20, rng.integers(0, 12)))[::-1].astype(float)
        if rng.random() < 0.5 and values.size:
            values[:] = values[0]
        store.add(int(arrival), int(rng.integers(1, longest)), int(rng.integers(1, 4)), values)
    return store


@pytest.mark.parametrize("seed", range(40))
def test_steps_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    store, n, m = random_store(rng, int(rng.integers(1, 25))), int(rng.integers(1, 30)), 30
    rows, places = rng.integers(0, store.n, m), rng.integers(-4, n, m)
    weights, start, supply = rng.choice([0.25, 1.0], m), rng.random(n), rng.random(n) * 5
    wanted, last = descend(start, supply, 5, rows, places, weights, store.columns, 7, 0.7)
    prices = start.copy()
    assert dual_prices(
        prices, supply, 5, rows, places, weights, store.columns, steps=7, step=0.7
    ) == pytest.approx(wanted, abs=1e-7)  # fmt: skip
    assert prices == pytest.approx(last, abs=1e-7)


def test_shapes_are_checked():
    store = random_store(np.random.default_rng(0), 3)
    rows, ones = np.zeros(2, np.int64), np.ones(2)
    with pytest.raises(InvalidParameterError, match="equal shapes"):
        dual_prices(np.zeros(3), np.zeros(2), 1, rows, rows, ones, store.columns, steps=1, step=1.0)
    with pytest.raises(InvalidParameterError, match="steps = 0"):
        dual_prices(np.zeros(2), np.zeros(2), 1, rows, rows, ones, store.columns, steps=0, step=1.0)


@settings(max_examples=60)
@given(
    rounds=st.lists(st.integers(-5, 9), max_size=12), now=st.integers(2, 10), ahead=st.integers(0, 25),
    lag=st.integers(1, 12), earliest=st.integers(-3, 3), day=st.integers(0, 9),
)  # fmt: skip
def test_the_past_comes_again(rounds, now, ahead, lag, earliest, day):
    store = TaskStore()
    for arrival in sorted(r for r in rounds if earliest <= r < now):
        store.add(arrival, 1, 1, np.ones(1))
    wanted = []
    for q in range(now, now + ahead + 1):
        source = q - lag
        while source >= now:
            source -= lag
        if source < 1 and day:
            source = q - day
            while source >= now:
                source -= day
        if source >= earliest:
            wanted += [(j, q) for j, a in enumerate(store.arrivals) if a == source]
    rows, again = store.recurring(now, now + ahead, lag, earliest, day)
    assert list(zip(rows.tolist(), again.tolist(), strict=True)) == wanted


def test_what_waits_joins_scenarios_of_another_store():
    past, other = random_store(np.random.default_rng(1), 6), random_store(np.random.default_rng(2), 4)
    history = FromHistory([3]).expected(9, 14, past)
    of_laws = history._replace(rows=np.arange(4), rounds=np.full(4, 9), weights=np.ones(4), tasks=other.columns)
    waiting, since = np.array([1, 4]), np.array([5, 7])
    found = with_waiting(of_laws, past, waiting, since)
    assert found.rounds.tolist() == [9, 9, 9, 9, 5, 7] and found.weights.tolist() == [1.0] * 6
    for row, j in zip(found.rows[4:], waiting, strict=True):
        own, same = (t.values[t.offsets[i] : t.offsets[i + 1]] for t, i in ((found.tasks, row), (past.columns, j)))
        assert own.tolist() == same.tolist()
        assert found.tasks.durations[row] == past.columns.durations[j]
