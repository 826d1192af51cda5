"""Causes of waits: against a count round by round, and in the tables of a comparison."""

import numpy as np
import pandas as pd
import pytest

from draws import many
from marketsched import compare
from marketsched.results.kinds import kind_of
from marketsched.results.overtaking import KEEPS, Causes, Waits, waits_figures

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


def round_by_round(waits):
    """Return rounds by cause and job, and node-rounds by cause, job and the job that held them."""
    arrivals, left, nodes, runs, capacity = waits.arrivals, waits.left, waits.nodes, waits.runs.tolist(), waits.capacity
    found, held = np.zeros((6, arrivals.size), int), np.zeros((3, arrivals.size, arrivals.size), int)

    def waiting(i, now):
        return arrivals[i] <= now < left[i] and not any(job == i and begin <= now < end for job, begin, end in runs)

    for i, arrival in enumerate(arrivals):
        for now in range(arrival, left[i]):
            if not waiting(i, now):
                found[5, i] += 1
                continue
            sets = np.zeros((3, arrivals.size), int)
            for job, begin, end in runs:
                if begin <= now < end:
                    earlier = (arrivals[job], job) < (arrival, i)
                    sets[0 if begin < arrival else 1 if earlier else 2, job] += nodes[job]
            room = np.flatnonzero(np.cumsum(sets.sum(axis=1)) + nodes[i] > capacity)
            if room.size:
                found[room[0], i] += 1
                held[room[0], i] += sets[room[0]]
                continue
            wider = any(waiting(j, now) and nodes[j] > capacity - sets.sum() for j in range(arrivals.size))
            later = [
                sum(nodes[j] for j, begin, end in runs if begin <= then < end and (arrivals[j], j) < (arrival, i))
                for then in range(now, now + waits.durations[i])
            ]
            kept = {"nothing": False, "waiting": wider, "booked": max(later) + nodes[i] > capacity}[waits.keeps]
            found[3 if kept else 4, i] += 1
    return found, held


def waits_of(seed, keeps):
    arrivals, left, nodes, runs, capacity = drawn(seed)
    durations = np.random.default_rng(seed).integers(1, 5, arrivals.size)
    return Waits(arrivals, left, nodes, durations, runs, capacity, keeps)


@pytest.mark.parametrize("keeps", KEEPS)
@pytest.mark.parametrize("seed", range(many(30)))
def test_every_round_of_a_wait_has_its_cause_and_its_holders(seed, keeps):
    waits = waits_of(seed, keeps)
    found, held = round_by_round(waits)
    assert np.array_equal(np.array(waits.causes), found)
    assert np.array_equal(found.sum(axis=0), waits.left - waits.arrivals)
    for job in range(waits.arrivals.size):
        for cause, (jobs, node_rounds) in enumerate(waits.holders(job)):
            expected = held[cause, job]
            assert sorted(jobs.tolist()) == np.flatnonzero(expected).tolist()
            assert np.array_equal(expected[jobs], node_rounds) and (np.diff(node_rounds) <= 0).all()


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
        "wait_with_nodes_free": 7 / 16, "longest_wait_job": "late", "overtaken_job": "wide", "wide_share": 0.25,
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
    causes = found.causes[found.causes["by"] == "all"].set_index("mechanism")
    assert causes["passed"].tolist()[0] == 0 < causes["passed"].iloc[1] and causes["kept"].iloc[0] > 0
    sums = found.causes.groupby(["mechanism", "by"])[list(Causes._fields)].sum().groupby("mechanism")
    assert np.allclose(sums.max(), sums.min()) and "causes" in kind_of("mechanisms").figures(found)
    assert named.startswith("- easy-backfill:reserve=none: later jobs kept job ")
