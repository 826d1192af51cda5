"""The waits of a log's recorded schedule: their causes, in all and by user, queue or width, and the order of starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.recorded.causes import CAUSES, causes_of, together
from marketsched.recorded.levels import RecordedJobs, recorded_jobs
from marketsched.recorded.order import order_of, orders_together
from marketsched.results.recorded_waits_kind import HEADS
from marketsched.results.result import Result, versions
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.partitions import KNOWN_STARTS, observed_nodes, partition_nodes

WIDTHS = (0, 0.01, 0.1, 1.0)  # shares of the machine between which jobs are equally wide
HELD = ("ahead", "overtaken")  # causes with too few nodes free


def waits_of(
    log: JobLog, name: str = "log", *, nodes: int | None = None, by: Sequence[str] = (), seed: int = 0
) -> Result:
    """Return why the jobs of a log waited, as its recorded schedule tells.

    Parameters
    ----------
    log : JobLog
        With the starts of its runs.
    name : str
        Of the result.
    nodes : int, optional
        Of the machine; None: those that the log says, else the most that ran at once. Partitions are machines of their
        own, of the nodes that ran in each at once.
    by : sequence of str
        ``user``, ``queue``, ``width``: groups of jobs whose causes are told apart.
    seed : int
        Of the moments that are looked at, and of the placebos.

    Returns
    -------
    Result
        Of kind ``waits``. Tables ``causes`` (`marketsched.recorded.causes.WaitCauses`), ``jobs`` (one row per job with
        a recorded start, the seconds of its wait by cause) and ``groups`` (node time, mean wait in hours and shares of
        causes, by ``by`` and ``name``).

    Raises
    ------
    InvalidParameterError
        If the log does not record the starts of its runs.
    """
    runs = log.table
    machine = nodes or log.nodes or observed_nodes(runs)
    if runs["start_s"].notna().mean() < KNOWN_STARTS or machine is None:
        said = f"{name} records the starts of {runs['start_s'].notna().mean():.0%} of its runs"
        raise InvalidParameterError(said, legal="a log that records when jobs started")
    runs = runs[(runs["processors"] <= machine) & runs["start_s"].notna()].reset_index(drop=True)
    if runs.empty:
        raise InvalidParameterError(
            f"every run of {name} is wider than {machine} nodes", legal="at least one that fits"
        )
    jobs, pools = recorded_jobs(runs), partition_nodes(runs)
    parts = [(runs["queue"] == pool, size) for pool, size in pools.items()] or [(runs["queue"].notna(), machine)]
    rng, found, orders = np.random.default_rng(seed), [], []
    for own, size in parts:
        of_pool = recorded_jobs(runs[own])
        found.append(causes_of(of_pool, size, rng, log.monday_s))
        orders.append(order_of(of_pool, size))
    causes = together([each.table for each in found], [float(each.seconds.sum()) for each in found])
    columns = {"submit_s": "submit_s", "user": "user", "queue": "queue", "processors": "nodes"}
    table = runs[list(columns)].rename(columns=columns).assign(wait_s=jobs.start - jobs.submit)
    for (own, _), each in zip(parts, found, strict=True):
        table.loc[own, list(CAUSES)] = each.seconds
    waits = table["wait_s"] / 3600
    outcome = {
        "jobs": len(table),
        "nodes": machine,
        "mean_wait_hours": float(waits.mean()),
        **{f"q{q}_wait_hours": float(waits.quantile(q / 100)) for q in (50, 90)},
        "longest_wait_hours": float(waits.max()),
        "utilisation": _utilisation(jobs, machine),
        **({"partitions": pools} if pools else {}),
    }
    groups = pd.concat([_groups(table, each, machine) for each in by], ignore_index=True) if by else None
    return Result(
        "waits",
        {"causes": causes, "jobs": table, **({} if groups is None else {"groups": groups})},
        outcome=outcome,
        meta={"name": name, "seed": seed, "versions": versions(), "complete": True, **waits_words(causes)}
        | {"order": orders_together(orders).sentence()},
    )


def waits_words(causes: pd.DataFrame) -> dict[str, str]:
    """Return, under ``waits``, the causes of recorded waiting in a sentence: those of at least 1 %, largest first."""
    share = causes.set_index("cause")["share"]
    held = share[list(HELD)].sum()
    if not share.sum() > 0:
        return {}
    free = share.drop([*HELD, "unexplained"]).sort_values(ascending=False)
    parts = [f"{HEADS[str(name)].replace(chr(10), ' ')} {part:.0%}" for name, part in free.items() if part >= 0.01]
    parts += [f"unexplained {share['unexplained']:.0%}"] if share["unexplained"] >= 0.01 else []
    overtaken = f" ({share['overtaken']:.0%} by later jobs alone)" if share["overtaken"] >= 0.01 else ""
    said = f"; with enough nodes free for {1 - held:.0%}: {', '.join(parts)}" if parts else ""
    return {"waits": f"Of all recorded waiting, nodes were busy for {held:.0%}{overtaken}{said}."}


def _utilisation(jobs: RecordedJobs, machine: int) -> float:
    """Return the share of the node time in use between the first and the last submission."""
    first, last = jobs.submit[0], jobs.submit[-1]
    used = np.clip(jobs.end, first, last) - np.clip(jobs.start, first, last)
    return float(used @ jobs.nodes / max((last - first) * machine, 1e-9))


def _groups(jobs: pd.DataFrame, by: str, machine: int) -> pd.DataFrame:
    """Return the groups of jobs, those that waited longest in all first."""
    if by == "width":
        bins = [-1, *(machine * share for share in WIDTHS[1:])]
        names: Any = pd.cut(jobs["nodes"], bins, labels=["up to 1 %", "up to 10 %", "above 10 %"]).astype(str)
    else:
        names = jobs[by].where(jobs[by] != "", "unknown")
    grouped = jobs.groupby(names.to_numpy())
    seconds = grouped[list(CAUSES)].sum()
    found = pd.DataFrame({"by": by, "jobs": grouped.size(), "mean_wait_hours": grouped["wait_s"].mean() / 3600})
    found["share"] = seconds.sum(axis=1) / max(float(seconds.to_numpy().sum()), 1e-9)
    found = found.join(seconds.div(seconds.sum(axis=1).where(seconds.sum(axis=1) > 0), axis=0))
    return found.sort_values("share", ascending=False).rename_axis("name").reset_index()
