"""Causes of waits: against a count round by round, and in the tables of a comparison."""

import numpy as np
import pandas as pd
import pytest

from draws import many
from marketsched import compare
from marketsched.results.kinds import kind_of
from marketsched.results.overtaking import causes_of_waits, waits_figures

LAST = 40


def drawn(seed):
    """Return arrivals, ends of waits, nodes, runs and capacity: some runs were taken back, some jobs never start."""
    rng = np.random.default_rng(seed)
    n, capacity = 12, 6
    arrivals, nodes, runs, left = rng.integers(1, 15, n), rng.integers(1, 5, n), [], []
    free = np.full(LAST + 10, capacity)
    for i in range(n):
        at = int(arrivals[i])
        for _ in range(int(rng.integers(0, 4))):
            begin, end = at + int(rng.integers(0, 6)), 0
            end = begin + int(rng.integers(1, 6))
            if (free[begin:end] >= nodes[i]).all():
                free[begin:end] -= nodes[i]
                runs.append((i, begin, end))
                at = end
        own = [begin for job, begin, _ in runs if job == i]
        left.append(own[-1] if own and rng.random() < 0.7 else at + int(rng.integers(0, 9)))
    runs = [runs[k] for k in rng.permutation(len(runs))]
    return arrivals, np.array(left), nodes, np.array(runs).reshape(-1, 3), capacity


def round_by_round(arrivals, left, nodes, runs, capacity):
    found = np.zeros((3, arrivals.size), int)
    for i, arrival in enumerate(arrivals):
        for now in range(arrival, left[i]):
            running = {job for job, begin, end in runs.tolist() if begin <= now < end}
            if i in running:
                continue
            earlier = sum(nodes[job] for job in running if (arrivals[job], job) < (arrival, i))
            cause = 0 if earlier + nodes[i] > capacity else 1 if sum(nodes[list(running)]) + nodes[i] > capacity else 2
            found[cause, i] += 1
    return found


@pytest.mark.parametrize("seed", range(many(60)))
def test_every_round_of_a_wait_has_its_cause(seed):
    market = drawn(seed)
    assert np.array_equal(np.array(causes_of_waits(*market)), round_by_round(*market))


def test_the_drawn_waits_have_all_causes():
    assert (sum(np.array(causes_of_waits(*drawn(seed))).sum(axis=1) for seed in range(60)) > 50).all()


def test_figures_by_hand():
    """Rounds of half an hour. Wide waits from 1 to 5 as Later runs, and gets half; Late leaves unserved after 12."""
    jobs = pd.DataFrame(
        {
            "name": ["wide", "later", "late", "never"],
            "arrival": [1, 1, 1, None], "start": [5, 1, None, None], "completion": [6, 5, None, None],
            "removed": [None, None, 13, None], "concurrency": [2, 1, 2, 1], "declared_concurrency": [2, 1, 2, None],
            "value": [5.0, 1.0, 0.0, 0.0],
        }
    )  # fmt: skip
    figures = waits_figures(jobs, np.zeros((0, 3), int), np.array([10.0, 1.0, 10.0, 3.0]), 2, 20, 1800.0)
    assert figures == {
        "median_wait_hours": 2.0, "q90_wait_hours": 5.2, "longest_wait_hours": 6.0, "longest_overtaken_hours": 2.0,
        "wait_with_nodes_free": 7 / 16, "overtaken_job": "wide", "wide_share": 0.25,
    }  # fmt: skip


def test_a_comparison_names_the_job_that_others_pass(tmp_path):
    """A job of all nodes among narrow ones: it is passed without a reservation, and in a strict queue nobody is."""
    rows = ["couch,60,3600,4,100,90000", *(f"u{i % 9},{300 * i},1800,1,10,90000" for i in range(90))]
    path = tmp_path / "sand.csv"
    path.write_text("\n".join(["user,submit_s,run_s,processors,value,deadline", *rows]))
    rules = ["easy-backfill:reserve=strict", "easy-backfill:reserve=none", "largest-value-first:most_preemptions=1"]
    found = compare({"name": "sand", "workload": {"kind": "csv", "path": str(path), "capacity": 4}}, rules, runs=1)
    strict, none, _ = found.runs.to_dict("records")
    assert strict["longest_overtaken_hours"] == 0 and none["longest_overtaken_hours"] > 5
    told = [str(part) for part in kind_of("mechanisms").view(found).renderables]
    (named,) = [part for part in told if "later jobs kept" in part]
    assert named.startswith("- easy-backfill:reserve=none: later jobs kept job ")
