"""Prices of pools and resources: what is larger costs no less, and short ways to favourites move no price by a bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bid_price_markets import keeping
from cluster_markets import entries
from draws import many
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.bid_price.forecast import FromHistory
from marketsched.mechanisms.resources import dual
from marketsched.mechanisms.resources.bid_price import ClusterBidPrice
from marketsched.mechanisms.resources.known import Known
from marketsched.mechanisms.resources.menus import quoted
from marketsched.mechanisms.resources.prices import window_of
from marketsched.mechanisms.resources.shapes import Options
from marketsched.mechanisms.resources.tasks import OptionColumns, OptionStore

SEEDS = st.integers(0, 2**32 - 1)


def random_prices(rng, n_pools=2, n_resources=3, n=12):
    """Return prices, often 0, and of sizes that rounding notices."""
    prices = rng.exponential(10.0 ** rng.integers(-6, 4, (n_pools, n_resources, 1)), (n_pools, n_resources, n))
    return prices * (rng.random(prices.shape) < 0.7)


@settings(max_examples=many(200), deadline=None)
@given(SEEDS)
def test_what_is_larger_costs_no_less(seed):
    """(M2): less of a resource, fewer tasks, or rounds inside those of a booking never cost more, exactly."""
    rng = np.random.default_rng(seed)
    prefix = dual.added_up(random_prices(rng), int(rng.integers(0, 4)))
    for _ in range(10):
        pool, start, length = int(rng.integers(2)), int(rng.integers(0, 14)), int(rng.integers(1, 8))
        demand, tasks = rng.integers(0, 10 ** rng.integers(1, 6), 3), int(rng.integers(1, 9))
        less = rng.integers(0, demand + 1) * int(rng.integers(1, tasks + 1))
        later = int(rng.integers(0, length))
        shorter = int(rng.integers(1, length - later + 1))
        costs = quoted(prefix, pool, tasks * demand, start, length)
        assert (np.diff(costs) >= 0).all() and costs[0] == 0
        assert quoted(prefix, pool, less, start + later, shorter)[-1] <= costs[-1]


def random_known(rng, n_options=3):
    shape = np.arange(n_options)
    demand, tasks = rng.integers(0, 9, (n_options, 3)), rng.integers(1, 4, n_options)
    durations = rng.integers(1, 6, (n_options, 2))
    options = Options(shape, rng.integers(0, 2, n_options), tasks, tasks, demand, durations, rng.uniform(0.5, 1, 3))
    values = np.sort(rng.uniform(0, 900, int(rng.integers(3, 12))))[::-1]
    return Known(options, durations, np.array([0.25, 0.75]), values)


@pytest.mark.slow
@settings(max_examples=many(100), deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.3, 1.0]))
def test_menus_hold_every_entry_at_its_expected_worth(seed, phi):
    """Every option, start and booked length, by the definition."""
    rng = np.random.default_rng(seed)
    prefix, known = dual.added_up(random_prices(rng), 2), random_known(rng)
    found = entries(known, prefix, 10, phi)
    assert (np.diff(found.surplus) <= 0).all()
    menu = {}
    for o in range(3):
        for length in {int(d) for d in known.lengths[o]}:
            for s in range(known.values.size):
                if s + length > 10 or s + known.lengths[o].min() >= known.values.size:
                    continue
                costs, surplus = quoted(prefix, int(known.options.pool[o]), known.options.total[o], s, length), 0.0
                for chance, d in zip(known.chances, known.lengths[o], strict=True):
                    used = min(int(d), length)
                    done = d <= length and s + used < known.values.size
                    value = known.options.worth[o] * known.values[s + used] if done else 0.0
                    surplus += chance * (value - costs[used] - phi * (costs[-1] - costs[used]))
                if surplus > 1e-12:
                    menu[o, s, length] = surplus
    listed = zip(found.option.tolist(), found.start.tolist(), found.length.tolist(), strict=True)
    assert dict(zip(listed, found.surplus, strict=True)) == pytest.approx(menu, rel=1e-9, abs=1e-9)


def random_tasks(rng, n_tasks, n_pools, n_resources):
    """Return tasks of one to three options whose values stay or fall, many of them alike, so that there are ties."""
    n_options = rng.integers(0, 4, n_tasks)
    begins = np.concatenate([[0], np.cumsum(n_options)])
    m = int(begins[-1])
    durations, shortest, values = rng.choice([1, 1, 2, 3, 9, 11, 17], m), np.ones(n_tasks, np.int64), []
    for j in range(n_tasks):
        own = durations[begins[j] : begins[j + 1]]
        shortest[j] = own.min(initial=99) if own.size else 1
        n, top = int(rng.integers(1, 40)), float(rng.choice([0.0, 10.0, 100.0, 1000.0]))
        values.append(np.full(n, top) if rng.random() < 0.5 else np.linspace(top, 0.0, n))
    offsets = np.concatenate([[0], np.cumsum([each.size for each in values])])
    totals = rng.choice([0.0, 0.0, 1.0, 2.0, 1000.0], (m, n_resources))
    pools, worths = rng.integers(0, n_pools, m), rng.choice([1.0, 1.0, 0.7], m)
    return OptionColumns(begins, offsets, shortest, pools, durations, totals, worths, np.concatenate(values))


def by_definition(prices, supply, size, rows, places, weights, tasks, steps, step, tail):
    """Return the mean of the last half of the iterates: all options and starts are tried, in order."""
    (n_pools, n_resources, n), mean, counted = prices.shape, np.zeros_like(prices), 0
    for i in range(steps):
        prefix = np.zeros((n_pools, n_resources, n + tail + 1))
        np.cumsum(prices, axis=2, out=prefix[:, :, 1 : n + 1])
        for t in range(n, n + tail):
            level = (prefix[:, :, n] - prefix[:, :, n - min(n, dual.TAIL_OF)]) / min(n, dual.TAIL_OF)
            prefix[:, :, t + 1] = prefix[:, :, t] + level
        change = np.zeros((n_pools, n_resources, n + 1))
        for j, place, weight in zip(rows, places, weights, strict=True):
            best, favourite = 0.0, None
            values = tasks.values[tasks.offsets[j] : tasks.offsets[j + 1]]
            for o in range(tasks.begins[j], tasks.begins[j + 1]):
                d, g = int(tasks.durations[o]), int(tasks.pools[o])
                for s in range(place, min(n, n + tail - d + 1)):
                    if d - tasks.shortest[j] + s - place >= values.size:
                        break
                    cost = 0.0
                    for k in range(n_resources):
                        cost += tasks.totals[o, k] * (prefix[g, k, s + d] - prefix[g, k, s])
                    surplus = tasks.worths[o] * values[d - tasks.shortest[j] + s - place] - cost
                    if surplus > best:
                        best, favourite = surplus, (g, s, min(n, s + d), o)
            if favourite is not None:
                g, s, e, o = favourite
                change[g, :, s] += tasks.totals[o] * weight
                change[g, :, e] -= tasks.totals[o] * weight
        before = prefix[:, :, n].max()
        for g, k in np.argwhere(size > 0):
            demand = np.cumsum(change[g, k, :n])
            length = step[k] / np.sqrt(1.0 + i)
            prices[g, k] = np.maximum(0.0, prices[g, k] - length * (supply[g, k] - demand) / size[g, k])
        if prices[size > 0].max(initial=0.0) == 0.0 and before == 0.0:
            counted += max(1, steps - max(i, steps // 2))
            break
        if i >= steps // 2:
            counted, mean = counted + 1, mean + prices
    return mean / counted


@pytest.mark.parametrize(("n_resources", "per_table"), [(1, 0), (3, 0), (6, 0), (3, 10**9)])
@pytest.mark.parametrize("tail", [0, 20])
def test_descent_takes_the_favourite_of_all(n_resources, per_table, tail, monkeypatch):
    """With tables, without them, and with more resources than one instruction reads: the same bits."""
    monkeypatch.setattr(dual, "ROWS_PER_TABLE", per_table)
    priced = 0
    for seed in range(many(8, least=2)):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(3, 60)), 60
        tasks = random_tasks(rng, 20, 2, n_resources)
        rows, places = rng.integers(0, 20, m), rng.integers(0, n, m)
        weights, size = np.full(m, 0.25), rng.choice([0.0, 20.0, 200.0], (2, n_resources))
        supply = np.repeat(size[:, :, None], n, axis=2) * rng.uniform(-0.2, 1, (2, n_resources, n))
        step, first = rng.uniform(0.1, 9, n_resources), random_prices(rng, 2, n_resources, n) * 1e-2
        given = (supply, size, rows, places, weights, tasks)
        found = dual.joint_dual_prices(first.copy(), *given, steps=4, step=step, tail=tail)
        assert (found == by_definition(first.copy(), *given, 4, step, tail)).all()
        priced += int((found > 0).sum())
    assert priced > 20  # there was something to be decided


def test_what_no_scenario_reaches_is_forgotten():
    """The same rows in the same rounds as with all of the past, from a store that stays small."""
    rng, history = np.random.default_rng(3), FromHistory((5, 8), 4)
    all_of_it, kept = OptionStore(3), OptionStore(3)
    for now in range(-3, 400):
        kept.forget(now - history.reach)
        if now > 0:
            found = []
            for store in (all_of_it, kept):
                rows, rounds, _ = history.recurring(now, now + 9, store)
                columns = store.columns
                parts = [(columns.begins, columns.pools), (columns.begins, columns.totals.sum(1))]
                parts += [(columns.begins, columns.durations), (columns.offsets, columns.values)]
                found.append([[column[at[j] : at[j + 1]].tolist() for at, column in parts] for j in rows])
                found.append([rounds.tolist(), columns.shortest[rows].tolist()])
            assert found[:2] == found[2:]
        for _ in range(int(rng.integers(0, 4))):
            known = random_known(rng)
            all_of_it.add(now, known)
            kept.add(now, known)
    assert all_of_it.n > 400 and kept.n < 100 and kept.columns.values.size < 3000


def test_windows_grow_with_patience():
    assert [window_of(s) for s in (1, 192, 193, 577)] == [144, 144, 168, 456]
    sizes = {"max_concurrency": 1, "max_duration": 4, "max_value": 20.0}
    market = keeping(ClusterBidPrice(1, 900, **sizes, max_delay=577))
    market.submit("a", StatementOfWork(1, 1, DeadlineValue(1.0, 9), [(1, 1, 1.0)]))
    market.arrive("a", 1)
    market.advance()
    assert market.menu_at_arrival("a").prefix.shape[2] == 1 + 1 + 456
