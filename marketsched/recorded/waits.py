"""The waits of a log's recorded schedule: their causes, in all and by user, queue or width, and the order of starts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from marketsched.mechanisms.errors import InvalidParameterError, placed
from marketsched.recorded.causes import CAUSES, WaitCauses, causes_of, together
from marketsched.recorded.levels import RecordedJobs, recorded_jobs
from marketsched.recorded.order import order_of, orders_together
from marketsched.results.recorded_view import HEADS
from marketsched.results.result import Result, versions
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.partitions import KNOWN_STARTS

WIDTHS = (0, 0.01, 0.1, 1.0)  # shares of the machine between which jobs are equally wide
HELD = ("ahead", "overtaken")  # causes with too few nodes free


class _Pool(NamedTuple):
    """A machine of its own: the whole, or a partition."""

    own: pd.Series[bool]  # the runs of the log that are its own
    nodes: int
    jobs: RecordedJobs
    found: WaitCauses


@lru_cache(maxsize=2)
def _pools(log: JobLog, nodes: int | None, seed: int) -> tuple[list[_Pool], pd.DataFrame, int]:
    """Return the machines of a log with the causes on each, the runs that fit, and the nodes of all."""
    runs = log.table
    machine = nodes or log.nodes or log.observed
    recorded = float(runs["start_s"].notna().mean())
    if recorded < KNOWN_STARTS or machine is None:
        raise InvalidParameterError(
            f"the starts of {recorded:.0%} of the runs are recorded", legal="a log that records when jobs started"
        )
    runs = runs[(runs["processors"] <= machine) & runs["start_s"].notna()].reset_index(drop=True)
    if runs.empty:
        raise InvalidParameterError(f"every run is wider than {machine} nodes", legal="at least one that fits")
    rng, pools = np.random.default_rng(seed), []
    parts = [(runs["queue"] == pool, size) for pool, size in log.partitions.items()]
    for own, size in parts or [(runs["queue"].notna(), machine)]:
        jobs = recorded_jobs(runs[own])
        pools.append(_Pool(own, size, jobs, causes_of(jobs, size, rng, log.monday_s)))
    return pools, runs, machine


def causes_words(log: JobLog, nodes: int | None = None, seed: int = 0) -> str:
    """Return the causes of all waiting that a log records, in a sentence; arguments as of `waits_of`."""
    return _words(_all_causes(_pools(log, nodes, seed)[0]))


def _all_causes(pools: Sequence[_Pool]) -> pd.DataFrame:
    return together([each.found.table for each in pools], [float(each.found.seconds.sum()) for each in pools])


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
    with placed(source=name):
        pools, runs, machine = _pools(log, nodes, seed)
    columns = {"submit_s": "submit_s", "user": "user", "queue": "queue", "processors": "nodes"}
    table = runs[list(columns)].rename(columns=columns).assign(wait_s=runs["start_s"] - runs["submit_s"])
    for each in pools:
        table.loc[each.own, list(CAUSES)] = each.found.seconds
    causes, order = _all_causes(pools), orders_together([order_of(each.jobs, each.nodes) for each in pools])
    waits = table["wait_s"] / 3600
    outcome = {
        "jobs": len(table),
        "nodes": machine,
        "mean_wait_hours": float(waits.mean()),
        **{f"q{q}_wait_hours": float(waits.quantile(q / 100)) for q in (50, 90)},
        "longest_wait_hours": float(waits.max()),
        "utilisation": _utilisation(runs, machine),
        **({"partitions": log.partitions} if log.partitions else {}),
    }
    groups = pd.concat([_groups(table, each, machine) for each in by], ignore_index=True) if by else None
    return Result(
        "waits",
        {"causes": causes, "jobs": table, **({} if groups is None else {"groups": groups})},
        outcome=outcome,
        meta={"name": name, "seed": seed, "versions": versions(), "complete": True}
        | {"waits": _words(causes), "order": order.sentence()},
    )


def _words(causes: pd.DataFrame) -> str:
    """Return the causes of at least 1 % of recorded waiting in a sentence, largest first; empty where nobody waited."""
    share = causes.set_index("cause")["share"]
    held = share[list(HELD)].sum()
    if not share.sum() > 0:
        return ""
    free = share.drop([*HELD, "unexplained"]).sort_values(ascending=False)
    parts = [f"{HEADS[str(name)].replace(chr(10), ' ')} {part:.0%}" for name, part in free.items() if part >= 0.01]
    parts += [f"unexplained {share['unexplained']:.0%}"] if share["unexplained"] >= 0.01 else []
    overtaken = f" ({share['overtaken']:.0%} by later jobs alone)" if share["overtaken"] >= 0.01 else ""
    said = f"; with enough nodes free for {1 - held:.0%}: {', '.join(parts)}" if parts else ""
    return f"Of all recorded waiting, nodes were busy for {held:.0%}{overtaken}{said}."


def _utilisation(runs: pd.DataFrame, machine: int) -> float:
    """Return the share of the node time in use between the first and the last submission."""
    first, last = runs["submit_s"].iloc[0], runs["submit_s"].iloc[-1]
    used = (runs["start_s"] + runs["run_s"]).clip(first, last) - runs["start_s"].clip(first, last)
    return float(used @ runs["processors"] / max((last - first) * machine, 1e-9))


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
