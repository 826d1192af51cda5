"""The table of a sweep: means with intervals, differences seed by seed, and what cases are called."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from marketsched.results.sweep_kind import MOST_GROUPS, _failures_table, labels_of, sweep_table


def case(number, **labels):
    return {"case": number, "labels": labels, "scenario": {"name": "market"}}


def cells(shown):
    table = shown[0].shown()
    return {title: [row[i] for row in table.rows] for i, title in enumerate(table.columns)}


def test_means_of_a_sweep_have_t_intervals_and_paired_differences():
    cases, rng = [case(i, epsilon=x) for i, x in enumerate((0.0, 0.1))], np.random.default_rng(5)
    noise = rng.normal(0.0, 100.0, 6)
    welfare = [(1000 + noise).tolist(), (1010 + noise + rng.normal(0.0, 1.0, 6)).tolist()]
    rows = [
        {"case": i, "seed": seed, "status": "done", "error": None, "welfare": x}
        for i, figures in enumerate(welfare) for seed, x in enumerate(figures)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    found = cells(sweep_table(table, labels_of({"cases": cases})))
    assert list(found) == ["case", "runs", "welfare", "Δ welfare"]
    low, high = stats.ttest_1samp(welfare[0], 0.0).confidence_interval(0.95)
    half = float(found["welfare"][0].split(" ± ")[1])
    assert half == pytest.approx((high - low) / 2, rel=0.05)
    low, high = stats.ttest_rel(welfare[1], welfare[0]).confidence_interval(0.95)
    told = [float(x.replace(",", "")) for x in found["Δ welfare"][1].split(" ± ")]
    assert told == pytest.approx([(low + high) / 2, (high - low) / 2], rel=0.05)
    assert found["Δ welfare"][0] == "" and told[1] < 5 < half  # pairs take out what seeds share
    shown = sweep_table(table[:1], labels_of({"cases": cases[:1]}))  # one seed: no interval, nothing to compare
    alone = cells(shown)
    assert list(alone) == ["case", "runs", "welfare"] and "±" not in alone["welfare"][0] and "Δ" not in shown[1]


def test_failed_runs_that_are_not_shown_are_counted():
    failed = pd.DataFrame({"case": 0, "seed": range(MOST_GROUPS + 1), "status": "failed", "error": "no memory"})
    for n, notes in (
        (MOST_GROUPS, []),
        (MOST_GROUPS + 1, [f"the first {MOST_GROUPS} of {MOST_GROUPS + 1} failed runs are shown"]),
    ):
        table, found = _failures_table(failed[:n], {0: "small"})
        assert len(table.rows) == MOST_GROUPS and table.rows[0] == ("small", "0", "no memory") and found == notes


def test_cases_are_called_by_what_differs():
    grid = [case(i, **{"mechanism.name": m, "workload.capacity": c, "seeds": 2})
            for i, (m, c) in enumerate([("vcg", 70), ("vcg", 90), ("pay-your-bid", 70)])]  # fmt: skip
    assert labels_of({"cases": grid})[1] == "mechanism = vcg, capacity = 90"
    parts = [{"name": "vcg", "epsilon": 0}, {"name": "first-come", "epsilon": 0, "parameters": {"price": 1}}]
    named = labels_of({"cases": [case(i, mechanism=part) for i, part in enumerate(parts)]})
    assert named == {0: "mechanism = vcg", 1: "mechanism = first-come:price=1"}
    alike = [case(0, **{"a.size": 1, "b.size": 1}), case(1, **{"a.size": 2, "b.size": 2})]
    assert labels_of({"cases": alike})[0] == "a.size = 1, b.size = 1"  # one word for two keys would say nothing
