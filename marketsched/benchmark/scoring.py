"""The score of a contestant: the lower end of the interval of its welfare, and beside it what lying to it gains.

Welfare is a share of the dual bound (29) on the best schedule of the same jobs at the same load, which knows durations.
A run of the benchmark is one seed in every task, at every load: the mean of these shares is one number, and Student's
interval is over runs. A contestant that refuses a market, or fails in it, has earned nothing there, and the reason is
kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from marketsched.agents.market_run import MarketRun
from marketsched.benchmark.lying import Lying, largest_gain
from marketsched.benchmark.tasks import PUBLIC, Task, log_tasks, own_tasks
from marketsched.config.named_mechanisms import named_mechanisms
from marketsched.mechanisms.errors import MarketschedError
from marketsched.mechanisms.from_file import own_files
from marketsched.mechanisms.legal import Count, Whole, legal
from marketsched.mechanisms.registry import mechanism_names
from marketsched.play.hindsight import realised
from marketsched.play.kept_results import KeptResults, canonical, kept_for
from marketsched.play.parallel import run_many
from marketsched.play.running import Progress
from marketsched.relaxed_lp.duality import dual_bound
from marketsched.results.output import file_name
from marketsched.results.paired_statistics import spread
from marketsched.results.result import Result, versions
from marketsched.worlds.workload import Workload

DIGITS = 6  # of every figure: sums differ in their last digits from machine to machine
ON_CLUSTERS = "cluster-"  # names of mechanisms for jobs with shapes
LEFT_OUT = ("exponential", "stochastic")  # other names of posted-price with other rules

World = tuple[Task, float, int, Workload, float]  # load, seed, jobs at that load, dual bound


def contestants() -> tuple[str, ...]:
    """Return who takes part where none is named: every mechanism that has a name, plug-ins among them.

    Examples
    --------
    >>> {"bid-price", "first-come"} <= set(contestants())
    True
    """
    return tuple(name for name in mechanism_names() if name not in LEFT_OUT and not name.startswith(ON_CLUSTERS))


@legal
def benchmark(
    mechanisms: Sequence[str] | None = None,
    *,
    logs: Sequence[str | PathLike[str]] = (),
    runs: Count = 4,
    owners: Count = 12,
    data: str | PathLike[str] | None = None,
    workers: Count = 1,
    keep: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Score mechanisms on the tasks of the benchmark.

    Parameters
    ----------
    mechanisms : sequence of str, optional
        As for `marketsched.compare`; None: `contestants`.
    logs : sequence of paths
        Logs that are tasks, too, by the names of their files.
    runs : int
        Seeds of each task, at least 2; lies are chosen on the first half and measured on the rest.
    owners : int
        Jobs in each market whose owners lie.
    data : path, optional
        Folder of recorded traces.
    workers : int
        Processes, which share the contestants; your script then needs ``if __name__ == "__main__":``. Scores do not
        depend on it.
    keep : path, optional
        Folder that keeps each finished contestant until all are: the same benchmark, interrupted or killed, goes on
        from there. None: nothing is kept.
    progress : function of (int, int, str), optional
        Called before each step with how many are done, how many there are, and what comes now; with several
        processes, after each contestant.

    Returns
    -------
    Result
        Of kind ``benchmark``. ``cells``: one row per contestant, task, load and seed; the summary: one row per
        contestant, the best lower end first; texts: ``<contestant>.json`` for each, and the table, ``table.md``. None
        holds a time: equal versions write equal bytes.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If a number or the name of a mechanism is at fault.
    MissingDataError, TraceError
        If a log cannot be read.

    Examples
    --------
    >>> found = benchmark(["first-come", "easy-backfill"], runs=2, owners=2)  # doctest: +SKIP
    >>> found.summary["contestant"].tolist()  # doctest: +SKIP
    ['first-come', 'easy-backfill']
    """
    labels = list(contestants() if mechanisms is None else mechanisms)
    plan = Plan((*own_tasks(), *log_tasks(logs)), runs, owners, None if data is None else str(data))
    return scored(labels, plan, workers=workers, keep=keep, progress=progress)


@dataclass(frozen=True)
class Plan:
    """What every contestant plays: tasks, seeds of each, owners whose lies are tried, and the folder of traces."""

    tasks: tuple[Task, ...]
    runs: int
    owners: int
    data: str | None = None

    def question(self) -> dict[str, Any]:
        """Return all that scores depend on beside the contestant, as plain data."""
        tasks = [[task.name, list(task.loads), task.is_log, task.scenario.to_yaml()] for task in self.tasks]
        return {"public": PUBLIC, "tasks": tasks, "runs": self.runs, "owners": self.owners, "data": self.data}


def scored(
    labels: Sequence[str],
    plan: Plan,
    *,
    workers: int = 1,
    keep: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Score mechanisms on these tasks; parameters, result and errors as of `benchmark`."""
    tasks, runs, owners = plan.tasks, plan.runs, plan.owners
    Whole(2).check("runs", runs)
    named_mechanisms(tasks[0].scenario, labels)  # names are checked before anything is played
    kept = kept_for(keep, {"benchmark": plan.question(), "contestants": labels})
    records = _records(labels, plan, workers, kept, progress)
    records.sort(key=lambda each: (-each["welfare"]["low"], each["contestant"]))
    cells = pd.DataFrame([{"contestant": each["contestant"], **cell} for each in records for cell in each["cells"]])
    about = {"benchmark": PUBLIC, "tasks": [task.name for task in tasks], "runs": runs, "owners": owners}
    texts = {}
    for each in records:
        name = file_name(each["contestant"])
        while f"{name}.json" in texts:  # of a/mine.py and a-mine.py
            name += "-2"
        texts[f"{name}.json"] = _json({**about, **each})
    texts["table.md"] = table_of(records, about)
    meta = {**about, "versions": versions(), "complete": True}
    return Result("benchmark", {"cells": cells}, summary_of(records), meta, texts, kept=() if kept is None else (kept,))


def _records(
    labels: Sequence[str], plan: Plan, workers: int, kept: KeptResults | None, progress: Progress | None
) -> list[dict[str, Any]]:
    """Return the record of each contestant as it is finished: in this process step by step, or in several."""
    here = min(workers, len(labels)) == 1
    each = len(plan.tasks) * plan.runs + 1  # steps of a contestant; the markets are made in as many, less one
    done, steps = 0, len(labels) * each + (each - 1 if here else 0)

    def tell(what: str) -> None:
        nonlocal done
        if progress is not None:
            progress(min(done, steps), steps, what)
        done += 1

    def record_here(label: str) -> dict[str, Any]:
        return _record(label, _markets(plan, tell), plan.owners, plan.data, tell)

    found = []
    for label, record in run_many(record_here if here else partial(_record_there, plan), labels, workers, kept=kept):
        found.append(record)
        if not here and progress is not None:
            progress(len(found) * each, steps, f"{label} is finished")
    return found


def _record_there(plan: Plan, label: str) -> dict[str, Any]:
    """Return the record of a contestant in a process of its own."""
    return _record(label, _markets(plan, _nobody_hears), plan.owners, plan.data, _nobody_hears)


def _nobody_hears(what: str) -> None:
    """Take the place of a step's progress, in a process that shows none."""


_made: dict[str, list[World]] = {}  # the markets of the last plan, for the contestants that this process plays


def _markets(plan: Plan, tell: Callable[[str], None]) -> list[World]:
    """Return the markets of a plan, made once in each process."""
    question = canonical(plan.question())
    if question not in _made:
        _made.clear()
        worlds = [_worlds(task, number, plan.data, tell) for task in plan.tasks for number in range(plan.runs)]
        _made[question] = [world for of_one_seed in worlds for world in of_one_seed]
    return _made[question]


def _worlds(task: Task, number: int, data: str | None, tell: Callable[[str], None]) -> Iterator[World]:
    """Yield the jobs of a run of a task, at each load, with the bound on what they are worth."""
    seed = task.seed(number)
    tell(f"jobs of {task.name}, seed {seed}")
    once = task.scenario.workload_of(seed, data)
    for load in task.loads:
        workload, scenario = once, task.scenario
        if task.is_log:
            stretch = task.scenario.workload.stretch * once.load_at(once.capacity) / load
            scenario = scenario.with_changes(f"workload.stretch={stretch!r}")
            workload = scenario.workload_of(seed, data)
        capacity = workload.capacity if task.is_log else workload.capacity_at(load)
        setup = scenario.with_mechanism("first-come").with_capacity(capacity)
        jobs = realised(setup.setup(_rng(seed), data=data, workload=workload))
        yield task, load, seed, workload, float(dual_bound(jobs, capacity, jobs.horizon).value)


def _record(
    label: str,
    worlds: Sequence[World],
    owners: int,
    data: str | PathLike[str] | None,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Return all that is known of a contestant, as plain data."""
    files = own_files(canonical([label]))  # before anything is played: one that was edited since is run anew
    cells, refused, lying = [], "", Lying(reason="it fails in a market")
    for task, load, seed, workload, bound in worlds:
        if load == task.loads[0]:
            tell(f"{label}: {task.name}, seed {seed}")
        try:
            share = _welfare(label, task, load, seed, workload, data) / bound if bound > 0 else 1.0
        except Exception as error:  # a contestant's own code: whatever it raises is a line of its record
            share, refused = 0.0, refused or f"{task.name}, load {load:g}, seed {seed}: {_reason(error)}"
        cells.append({"task": task.name, "load": load, "seed": seed, "share": round(share, DIGITS)})
    if not refused:
        tell(f"{label}: lies")
        try:
            lying = largest_gain(label, _at_the_highest_load(worlds), owners, data, lambda what: None)
        except Exception as error:  # as above
            lying = Lying(reason=_reason(error))
    table = pd.DataFrame(cells)
    number = table.groupby(["task", "load"]).cumcount()
    over = spread(table.groupby(number)["share"].mean().to_numpy())
    welfare = {"mean": over.mean, "low": over.low, "high": over.high}
    return {
        "contestant": label,
        "marketsched": versions()["marketsched"],
        "files": files,
        "welfare": _rounded(welfare),
        "lying": _rounded(asdict(lying)),
        "refused": refused,
        "cells": cells,
    }


def _welfare(
    label: str, task: Task, load: float, seed: int, workload: Workload, data: str | PathLike[str] | None
) -> float:
    scenario = named_mechanisms(task.scenario, [label])[0].scenario
    if not task.is_log:
        scenario = scenario.with_capacity(workload.capacity_at(load))
    setup = scenario.setup(_rng(seed), data=data, workload=workload)
    return float(MarketRun(setup, lookahead=0).run().outcome["welfare"])


def _at_the_highest_load(worlds: Sequence[World]) -> list[tuple[Task, float, list[tuple[int, Workload]]]]:
    found: dict[str, tuple[Task, float, list[tuple[int, Workload]]]] = {}
    for task, load, seed, workload, _ in worlds:
        if load == max(task.loads):
            found.setdefault(task.name, (task, load, []))[2].append((seed, workload))
    return list(found.values())


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed))


def _reason(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    return lines[0] if isinstance(error, MarketschedError) else f"{type(error).__name__}: {lines[0]}"


def _rounded(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: round(x, DIGITS) if isinstance(x, float) else x for name, x in figures.items()}


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=1, sort_keys=True, allow_nan=False) + "\n"


def summary_of(records: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return one row per contestant: welfare with its interval, the largest gain from lying with its own."""
    rows = []
    for each in records:
        lying = each["lying"]
        row = {"contestant": each["contestant"], **{f"welfare_{k}": x for k, x in each["welfare"].items()}}
        row |= {"lying_gain": lying["gain"], "lying_low": lying["low"], "lying_high": lying["high"]}
        lie = each["refused"] or lying["reason"] or lying["conduct"]
        rows.append(row | {"lie": lie, "lie_in": lying["task"], "refused": each["refused"]})
    return pd.DataFrame(rows)


def table_of(records: Sequence[dict[str, Any]], about: dict[str, Any]) -> str:
    """Return the page of the benchmark, in Markdown."""
    lines = [
        f"# {about['benchmark']}",
        "",
        f"Tasks: {', '.join(about['tasks'])}; {about['runs']} runs of each, at every load, {about['owners']} owners.",
        "Welfare: % of the dual bound on the best schedule, mean over runs, with Student's 95 % interval; the score is",
        "its lower end. Lying: what one lie, chosen on the first half of the runs, gains on the second, in % of the",
        "highest value of the owner's job, with a 95 % interval over owners; confirmed, and in bold, where all of it",
        "is above 0.",
        "",
        "| contestant | score | welfare | largest gain from lying | by |",
        "|---|---|---|---|---|",
    ]
    for each in records:
        welfare, lying = each["welfare"], each["lying"]
        interval = f"{100 * lying['low']:.1f} to {100 * lying['high']:.1f}"
        gain = f"{100 * lying['gain']:.1f} ({interval})" if lying["conduct"] else "none found"
        gain = f"**{gain}**" if lying["low"] > 0 else "not measured" if lying["reason"] else gain
        by = f"{lying['conduct']}, in {lying['task']}" if lying["conduct"] else each["refused"] or lying["reason"]
        shown = f"{100 * welfare['mean']:.1f} ({100 * welfare['low']:.1f} to {100 * welfare['high']:.1f})"
        lines.append(f"| `{each['contestant']}` | {100 * welfare['low']:.1f} | {shown} | {gain} | {by} |")
    return "\n".join(lines) + "\n"
