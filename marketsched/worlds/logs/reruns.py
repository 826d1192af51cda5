"""Rows of one job put together: its runs after a requeue or a preemption, and the parts of a heterogeneous job.

``sacct -D`` prints a row for each run, and sacct one for each part (``106+0``, ``106+1``); PBS has a record for each
run. The last run is the job's, the time of earlier ones is lost; a job's nodes are those of all its parts.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

STEPS = "rows left out: steps of jobs"
WAITING = "rows left out: jobs that had not ended"
RUNS_LOST = "earlier runs of the same jobs, requeued or preempted: lost time of these jobs, no jobs of their own"
PARTS = "parts of heterogeneous jobs: one job with the nodes of all parts"
RESTARTED = ("REQUEUED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL")  # states after which Slurm and PBS run a job again
_STEP = r"\d\.(?:\d+|batch|extern|interactive|TBD)"
_PART = r"\+\d+$"


def job_ids(by_name: Mapping[str, str]) -> str | None:
    """Return the column with the numbers of jobs: JobID, which names the parts of a job, before JobIDRaw."""
    return next((by_name[name] for name in ("jobid", "jobidraw") if name in by_name), None)


def are_steps(ids: pd.Series[str]) -> pd.Series[bool]:
    """Tell which rows are steps of jobs (``10.batch``, ``10.0``), not jobs (``10``, PBS's ``10.server``)."""
    return ids.str.contains(_STEP, regex=True)


def one_row_a_job(
    table: pd.DataFrame, ids: pd.Series[str], states: pd.Series[str], width: str
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return a table with one row for each job, and the rows that were put into others.

    Parameters
    ----------
    table : DataFrame
        ``submit_s``, ``run_s``, perhaps ``start_s``, and other columns.
    ids, states : Series of str
        Numbers of jobs (empty: a job of its own), and states in capitals, for each row and perhaps more.
    width : str
        The column with the nodes of a row.

    Returns
    -------
    DataFrame
        With ``lost_s`` (float64, seconds of earlier runs).
    dict of str to int
        Rows that are no job of their own, by the reason.
    """
    ids = ids.reindex(table.index).str.strip()
    whole = ids.str.replace(_PART, "", regex=True)
    table = table.assign(lost_s=0.0)
    several = ids.ne("") & whole.duplicated(keep=False)
    if not several.any():
        return table, {}
    start = table["start_s"].fillna(table["submit_s"]) if "start_s" in table else table["submit_s"]
    order = pd.DataFrame({"id": ids, "submit": table["submit_s"], "start": start})[several].sort_values(
        ["id", "submit", "start"], kind="stable"
    )
    again = order["id"].eq(order["id"].shift()) & states.reindex(order.index).shift().isin(RESTARTED)
    runs = table.loc[order.index].groupby((~again).cumsum().to_numpy(), sort=False)
    last = runs.tail(1).index
    jobs = table.loc[last].assign(lost_s=runs["run_s"].sum().to_numpy())
    jobs["lost_s"] -= jobs["run_s"].fillna(0.0)
    for name in {"submit_s", "eligible_s"} & set(table.columns):
        jobs[name] = runs[name].min().to_numpy()
    n_lost = len(order) - len(jobs)
    part = jobs[ids[last].str.contains(_PART, regex=True)]
    parts = part.groupby([whole[part.index], "submit_s"], sort=False)
    merged = parts.head(1).copy()
    merged[width] = parts[width].sum().to_numpy()
    for name in {"run_s", "lost_s", "cpu", "memory", "gpu"} & set(part.columns):
        merged[name] = parts[name].max().to_numpy()
    found = pd.concat([table[~several], jobs.drop(part.index), merged]).sort_index(kind="stable")
    return found.astype(table.dtypes.to_dict()), {RUNS_LOST: n_lost, PARTS: len(part) - len(merged)}
