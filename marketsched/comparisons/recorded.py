"""The schedule that a log records, on the jobs of its market: what happened, beside what would have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.results.recorded_view import RECORDED as RECORDED
from marketsched.results.waits import counted
from marketsched.results.windows import window_of
from marketsched.worlds.logs.partitions import nodes_in_use
from marketsched.worlds.workload import Workload

KNOWN = 0.99  # share of the jobs whose starts have to be recorded
NOTHING_TAKEN_BACK = np.zeros((0, 3), np.int64)
PARTS = 8  # of the jobs in order of arrival, whose mean waits are compared
NEAR_S, SHORTEST_S = 900.0, 60.0  # a start is near the recorded one; mean waits below a minute count as one


def recorded_jobs(workload: Workload, jobs: pd.DataFrame) -> pd.DataFrame | None:
    """Return the table ``jobs`` of a market as the log records it; None where it records too few starts.

    Parameters
    ----------
    workload : Workload
        Of a log.
    jobs : DataFrame
        The table ``jobs`` of the same market under any mechanism.

    Returns
    -------
    DataFrame or None
        The same columns. A job whose start is not recorded has none; nobody pays.
    """
    if "recorded_start" not in jobs or jobs["recorded_start"].gt(0).mean() < KNOWN:
        return None
    start = jobs["recorded_start"].to_numpy(np.int64)
    ran = start > 0
    end = np.where(ran, start + jobs["duration"].to_numpy(np.int64), 0)
    value = np.where(ran, _values_at(workload, end), 0.0)
    none = pd.Series(pd.NA, index=jobs.index, dtype="Int64")
    return jobs.assign(
        start=pd.Series(start, index=jobs.index, dtype="Int64").where(ran),
        completion=pd.Series(end, index=jobs.index, dtype="Int64").where(ran),
        removed=none,
        declared_concurrency=jobs["concurrency"],
        runs=ran.astype(np.int64),
        lost_node_rounds=0,
        outcome=np.where(ran, "completed", "unfinished"),
        value=value,
        payment=0.0,
        utility=value,
    )


def recorded_figures(jobs: pd.DataFrame, capacity: int, rounds: int) -> dict[str, Any]:
    """Return what `MechanismContest` counts of a market, for the recorded schedule.

    Parameters
    ----------
    jobs : DataFrame
        As of `recorded_jobs`.
    capacity, rounds : int
        Of the market.

    Returns
    -------
    dict
        Among others ``beyond``: the share of the node time, in whole rounds, that ran on more nodes than there are, and
        ``beyond_in_seconds``, the same as it ran.
    """
    ran = jobs[jobs["start"].notna()]
    start, end = ran["start"].to_numpy(np.int64), ran["completion"].to_numpy(np.int64)
    change = np.zeros(max(rounds, int(end.max(initial=1))) + 2)
    np.add.at(change, start, ran["concurrency"])
    np.subtract.at(change, end, ran["concurrency"])
    load, last = np.cumsum(change)[1:], int(jobs["birth"].max())
    began, took = ran["start_s"].to_numpy(), ran["run_s"].to_numpy()
    times, busy = nodes_in_use(began, began + took, ran["concurrency"].to_numpy(np.int64))
    above = np.diff(times) @ np.maximum(busy[:-1] - capacity, 0.0)
    welfare = float(jobs["value"].sum())
    return {
        "welfare": welfare,
        "revenue": 0.0,
        "owners_utility": welfare,
        "jobs": len(jobs),
        "completed": len(ran),
        **dict.fromkeys(("dropped", "cancelled", "evicted", "requeues", "lost_node_rounds"), 0),
        "utilisation": float(load[:rounds].sum() / (capacity * rounds)),
        "utilisation_open": float(load[:last].sum() / (capacity * last)),
        "beyond": float(np.maximum(load - capacity, 0.0).sum() / load.sum()),
        "beyond_in_seconds": float(above / max(took @ ran["concurrency"], 1e-9)),
    }


def fidelity(recorded: pd.DataFrame, simulated: pd.DataFrame, round_seconds: float) -> dict[str, float]:
    """Return how near the waits of a simulated schedule are to the recorded ones, by jobs that start in both.

    Parameters
    ----------
    recorded, simulated : DataFrame
        Tables ``jobs`` of one market, in the same order.
    round_seconds : float
        Length of a round.

    Returns
    -------
    dict
        ``fidelity_ratio``, of the mean waits, simulated over recorded; ``fidelity_factor``, the typical factor between
        the mean waits of eight parts of the jobs, exp(mean abs log), at least 1; ``fidelity_near``, the share of jobs
        that start within 15 minutes of the recorded start; ``fidelity_ranks``, the rank correlation of waits.
    """
    own = counted(recorded)
    recorded, simulated = recorded[own], simulated[own]
    arrival = recorded["arrival"].to_numpy(np.float64, na_value=np.nan)
    starts = (each["start"].to_numpy(np.float64, na_value=np.nan) for each in (recorded, simulated))
    waits = np.stack([round_seconds * (start - arrival) for start in starts])
    waits = waits[:, np.isfinite(waits).all(axis=0)]
    if not waits.size:
        return dict.fromkeys((f"fidelity_{name}" for name in ("ratio", "factor", "near", "ranks")), np.nan)
    first, second = waits.mean(axis=1)
    parts = np.array([part.mean(axis=1) for part in np.array_split(waits, PARTS, axis=1) if part.size])
    factors = np.log(np.maximum(parts[:, 1], SHORTEST_S) / np.maximum(parts[:, 0], SHORTEST_S))
    ranks = pd.DataFrame(waits.T).corr(method="spearman").to_numpy()[0, 1] if np.ptp(waits, axis=1).all() else np.nan
    return {
        "fidelity_ratio": float(second / first) if first > 0 else np.nan,
        "fidelity_factor": float(np.exp(np.abs(factors).mean())),
        "fidelity_near": float((np.abs(waits[1] - waits[0]) <= NEAR_S).mean()),
        "fidelity_ranks": float(ranks),
    }


def fidelity_between(waits: pd.DataFrame, windows: int, round_seconds: float) -> dict[str, pd.Series[float]]:
    """Return the ratio of mean waits, and the typical factor between those of the windows, by mechanism.

    Parameters
    ----------
    waits : DataFrame
        As of `marketsched.results.waits.waits_table`, with columns ``seed`` and ``mechanism``.
    windows : int
        Of which the seeds are in turn.
    round_seconds : float
        Length of a round.
    """
    seeds = waits.loc[waits["mechanism"] == RECORDED, "seed"]
    waits = waits[(waits["by"] == "all") & waits["seed"].isin(seeds)]
    table = waits.assign(window=window_of(waits["seed"], windows)).pivot_table("wait_rounds", "mechanism", "window")
    seconds = table * round_seconds
    own, others = seconds.loc[RECORDED], seconds.drop(index=RECORDED)
    factors = np.abs(np.log((others + SHORTEST_S) / (own + SHORTEST_S)))
    ratio = others.mean(axis=1) / own.mean()
    return {"fidelity_ratio": ratio, "fidelity_factor": np.exp(factors.mean(axis=1))}


def _values_at(workload: Workload, ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the value of each job's completion, credits."""
    columns = workload.table.columns(workload.max_delay)
    assert columns is not None  # jobs of a log have no shapes
    begins, sizes = columns.begins[:-1], np.diff(columns.begins)
    passed = np.add.reduceat(columns.lasts < np.repeat(ends, sizes), begins)
    useful = (passed < sizes) & (ends <= columns.useful(workload.max_delay, workload.horizon))
    return np.where(useful, columns.values[np.minimum(begins + passed, columns.values.size - 1)], 0.0)
