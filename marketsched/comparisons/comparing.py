"""Compare mechanisms on the same jobs, or policies in the same clusters, over many seeds.

One instance says little: ratios differ by tens of per cent from seed to seed. Runs are paired: every seed draws its
own world, all contestants play in it, and the results are compared with the best possible in that seed. Seeds share
nothing, so they may be played in several processes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any

import pandas as pd

from marketsched.comparisons.contest import Contest, Found
from marketsched.comparisons.loads import LoadContest
from marketsched.comparisons.mechanisms import MechanismContest
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import WHOLE_LOG, is_log, read_scenario, with_whole_log
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Count, Seed, legal
from marketsched.mechanisms.randomness import checked_seed
from marketsched.mechanisms.registry import get
from marketsched.mechanisms.signatures import renamed
from marketsched.play.kept_results import KeptResults, kept_for
from marketsched.play.parallel import TimeLeft, Where, run_many
from marketsched.play.running import Progress
from marketsched.results.paired_statistics import CONFIDENCE
from marketsched.results.result import Result, versions
from marketsched.worlds.logs.market import WINDOW_JOBS

DEFAULT = ("exponential", "first-come")  # mechanisms, where none are named
LOG_RIVAL = "easy-backfill"  # the baseline on a log: the queue that most clusters run
LOG_DEFAULT = (
    "two-offers",
    "credits",
    LOG_RIVAL,
    "easy-backfill:order=class",
    "easy-backfill:order=request",
    "conservative-backfill",
    "fair-share",
    "fair-turns",
    "first-come",
    "largest-value-first",
)  # of a log
CLUSTER_DEFAULT = (
    "cluster-bid-price",
    "cluster-first-come",
    "cluster-easy-backfill",
    "cluster-dominant-share",
    "cluster-queue:order=density",
    "cluster-queue",
)  # of jobs with shapes
OPTIMUM_SECONDS = 10.0
MOST_WINDOWS = 8  # of a log, by default
RESAMPLED_RUNS = 4  # of a window whose users are drawn again in half of them


Task = tuple[int, int]  # a seed, and the number of its part
Comparison = Result  # what `compare` returns


@renamed(jobs="workers")
@legal
def compare(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    mechanisms: Sequence[str | Callable[..., Any]] | None = None,
    runs: Count = 20,
    seed: Seed = 0,
    *,
    against: str | None = None,
    loads: Sequence[float] | None = None,
    windows: Count | None = None,
    resample: str | None = None,
    data: str | PathLike[str] | None = None,
    optimum_seconds: Amount | None = None,
    growth: bool = True,
    workers: Count = 1,
    executor: Where | None = None,
    keep: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> Result:
    """Run every mechanism on the jobs, or every policy on the clusters, of the same seeds.

    Parameters
    ----------
    scenario : Scenario, name, path or mapping
        A market (jobs, limits and rules), or a cluster (instance, arrivals and slots). Of a log in a file all jobs
        are played, up to a million, where the file of a scenario does not say ``most_jobs``.
    mechanisms : sequence of str or class, optional
        Classes of one's own, of which nothing is kept, or names of mechanisms (`mechanism_names`), each with parameters
        if needed, as in ``"posted-price:eviction=running:epsilon=0.1"``; ``"scenario"`` is the scenario's own
        mechanism. Of a cluster: policies, as in ``"ogasched:step=25"``; totals of the first are divided by the others'.
        None: ``exponential`` and ``first-come``; of a log `LOG_DEFAULT`; of jobs with shapes `CLUSTER_DEFAULT`; of an
        allocation core the scenario's policies.
    runs : int
        Seeds ``seed .. seed + runs - 1``; of a log with several windows so many for each of them.
    seed : int
        The first one.
    against : str, optional
        Of a market: the mechanism that all others are compared with, by welfare and owner by owner (who waits longer);
        it joins the others. None: of two mechanisms the second; of a log's default `LOG_RIVAL`; else first come.
    loads : sequence of float, optional
        Of a market: compare at each of these loads. The number of nodes sets the load; for a log, whose nodes are
        fixed, the time between arrivals does (`marketsched.comparisons.loads`). None: the scenario as it is.
    windows : int, optional
        Of a log: compare on so many windows, spread over the whole log, which are then the unit of every interval.
        None: one for each thousand jobs, at most 8; 1 where the scenario says ``days``, ``first_day``, ``most_jobs`` or
        ``windows``.
    resample : {"users"}, optional
        Of a log: draw the users of a window again, week by week, in every other run (`Window.resample_users`), so that
        intervals cover who submits, too; with several windows ``runs`` is then at least 4, and even.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    optimum_seconds : float, optional
        Time limit for the exact optimum of one seed. 0: only the dual bound (29) is computed, and no reference of a
        cluster. None: 10, but 0 with ``loads`` and for a log.
    growth : bool
        Of a cluster: whether to measure regret at shorter horizons, too, and so its growth; needs
        ``optimum_seconds`` above 0, and a core for which regret is defined.
    workers : int
        Processes that share the seeds, and the loads of each; your script then needs
        ``if __name__ == "__main__":``. The results do not depend on it.
    executor : str or concurrent.futures.Executor, optional
        In place of processes here: the address of a Dask scheduler (``"tcp://10.0.0.1:8786"``), or an executor.
    keep : path, optional
        Folder that keeps each finished seed (with ``loads``, each load of a seed) until all are done: the same
        comparison, if interrupted or killed, continues from there. None: nothing is kept.
    progress : function of (int, int, str), optional
        Called before each step with the number of steps done, their total, and the name of the next step; with
        several processes, after each seed and load.
    keep_interrupted : bool
        On Ctrl-C return the finished seeds instead of raising ``KeyboardInterrupt``.

    Returns
    -------
    Result
        Of kind ``mechanisms``, ``loads``, or ``policies`` of a cluster. ``runs``: one row per seed and mechanism
        (and load) or policy; ``summary``: one row for each. Of a cluster ``curves``, per seed and policy the reward
        so far at up to 400 slots; ``regrets``, the regret at every horizon, with ``growth``; and ``jobs``,
        one row per seed, policy and job, for OPM. Of a log ``waits``, the waits per seed and mechanism
        (`marketsched.results.waits`), and, without ``loads``, ``schedules``, the schedule of the first seed. Of jobs
        with shapes ``pools``: per seed, mechanism, pool and resource the share in use, in fragments, and the price
        until the last birth, and the pool's income. ``meta``
        has everything needed to repeat the comparison. An interrupted comparison holds the seeds that all
        mechanisms finished.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If a number, a mechanism, a policy or the scenario is not legal, or every load has fewer nodes than the
        widest job needs.
    MissingDataError, TraceError, SolverError
        If a trace that the scenario needs is missing or damaged, or a solver fails.

    Examples
    --------
    >>> job = {"birth": 1, "concurrency": 1, "value": {"kind": "deadline", "value": 4, "deadline": 2},
    ...     "requirements": [{"arrival": 1, "duration": 1, "probability": 1}]}
    >>> market = {"name": "six for five", "workload": {"kind": "jobs", "capacity": 5, "horizon": 6,
    ...     "max_concurrency": 1, "max_duration": 2, "max_value": 4, "max_delay": 6,
    ...     "jobs": [{"name": str(i), **job} for i in range(6)]}}
    >>> found = compare(market, ["exponential", "first-come"], runs=1).summary
    >>> found[["mechanism", "welfare", "ratio_low", "ratio_high"]].values.tolist()
    [['exponential', 16.0, 1.25, 1.25], ['first-come', 20.0, 1.0, 1.0]]
    """
    if isinstance(scenario, (str, PathLike)):
        content, source = read_scenario(scenario)
        base = Scenario.from_dict(with_whole_log(content), source=source)
    else:
        base = Scenario.of(scenario)
    first = checked_seed(seed, runs)
    windows = windows_for(base, windows, first, data)
    if resample is not None:
        _check_resample(base, resample, runs, windows)
    runs *= windows
    log = windows, resample is not None
    contest = _contest(base, mechanisms, against, loads, log, data, optimum_seconds, growth, first)
    began = time.perf_counter()
    question: dict[str, Any] = {"scenario": base.to_yaml(), contest.compared: contest.labels, "first": first}
    question |= {
        "growth": growth,
        "windows": windows,
        "resample": resample,
        "loads": None if loads is None else [float(load) for load in loads],
    }
    question |= {"data": None if data is None else str(data), "optimum_seconds": optimum_seconds}
    kept = kept_for(keep if all(isinstance(each, str) for each in mechanisms or ()) else None, {"compare": question})
    tasks = [(seed, part) for seed in range(first, first + runs) for part in range(len(contest.parts))]
    stream = _plays(contest, tasks, workers, executor, kept, progress)
    found, complete = _played(stream, len(contest.parts), keep_interrupted)
    tables = {name: _below_each_other(parts) for name, parts in found.items()}
    alike = contest.kind == "mechanisms" and windows == 1 and _all_alike(tables["runs"])
    if alike:
        tables = {name: _first_seed(table, first) for name, table in tables.items()}
    meta = {
        "scenario": base.name,
        "core": base.kind,
        contest.compared: contest.labels,
        "seed": first,
        "runs": int(tables["runs"]["seed"].nunique()) if windows == 1 else windows,
        "runs_asked_for": 1 if alike else runs if windows == 1 else windows,
        "confidence": CONFIDENCE,
        **contest.about(found),
        "versions": versions(),
        "seconds": round(time.perf_counter() - began, 3),
    }
    meta |= {"complete": complete} | ({"alike": runs} if alike else {})
    shown = {name: table for name, table in tables.items() if not table.empty and name not in contest.summed_only}
    return Result(
        contest.kind,
        shown,
        contest.summary(tables),
        meta,
        {"scenario.yaml": base.to_yaml()},
        kept=() if kept is None else (kept,),
    )


def _all_alike(runs: pd.DataFrame) -> bool:
    """Tell whether several seeds gave the same: nothing is drawn then."""
    figures = runs.drop(columns=["seed", "seconds"]).groupby("mechanism").nunique(dropna=False)
    return bool(runs["seed"].nunique() > 1 and (figures == 1).all(axis=None))


def _first_seed(table: pd.DataFrame, first: int) -> pd.DataFrame:
    return table[table["seed"] == first].reset_index(drop=True) if "seed" in table else table


def _contest(
    base: Scenario,
    names: Sequence[str | Callable[..., Any]] | None,
    against: str | None,
    loads: Sequence[float] | None,
    of_log: tuple[int, bool],
    data: str | PathLike[str] | None,
    seconds: float | None,
    growth: bool,
    first: int,
) -> Contest:
    if base.kind != "market":
        if loads is not None:
            raise InvalidParameterError("loads", legal="a market: a cluster has no load that its nodes make")
        if against is not None:
            raise InvalidParameterError("against", legal="a market: totals of policies are divided by the first's")
        contest: Contest = get("contest", base.section)(base, names, data, optimum=seconds != 0, growth=growth)
        return contest
    log = is_log({"workload": {"kind": base.workload.kind}})
    if names is None:
        against = LOG_RIVAL if against is None and log and not base.workload.on_cluster else against
        names = CLUSTER_DEFAULT if base.workload.on_cluster else LOG_DEFAULT if log else DEFAULT
    seconds = 0.0 if log and seconds is None else seconds
    if loads is not None:
        return LoadContest(base, names, loads, data, seconds or 0.0, against, *of_log)
    return MechanismContest(base, names, data, OPTIMUM_SECONDS if seconds is None else seconds, first, against, *of_log)


def _check_resample(base: Scenario, asked: str, runs: int, windows: int) -> None:
    if asked != "users":
        raise InvalidParameterError(place="resample", value=asked, legal="users")
    if base.kind != "market" or not is_log({"workload": {"kind": base.workload.kind}}) or base.workload.on_cluster:
        raise InvalidParameterError("resample", legal="a log: other jobs have no users to draw again")
    if windows > 1 and (runs < RESAMPLED_RUNS or runs % 2):
        raise InvalidParameterError(
            place="runs", value=runs, legal=f"{RESAMPLED_RUNS}, 6, 8, ... of each window, to draw users in half of them"
        )


def windows_for(base: Scenario, asked: int | None, seed: int, data: str | PathLike[str] | None) -> int:
    """Return on how many windows a scenario is compared, as `compare` says; ``asked`` None: by default.

    Raises
    ------
    InvalidParameterError
        If it is no log, and ``asked`` is not 1.
    """
    if base.kind != "market" or not is_log({"workload": {"kind": base.workload.kind}}) or base.workload.on_cluster:
        if asked not in (None, 1):
            raise InvalidParameterError(place="windows", value=asked, legal="1: only a log has several")
        return 1
    if asked is not None:
        return asked
    said = base.workload
    if said.days is not None or said.first_day is not None or said.windows > 1 or said.most_jobs != WHOLE_LOG:
        return 1
    return max(1, min(MOST_WINDOWS, len(base.workload_of(seed, data).jobs) // WINDOW_JOBS))


def _played(stream: Iterator[tuple[Task, Found]], n_parts: int, keep_interrupted: bool) -> tuple[Found, bool]:
    """Return what all finished seeds have left, in their order, and whether all were played."""
    by_task: dict[Task, Found] = {}
    complete = True
    try:
        for task, found in stream:
            by_task[task] = found
    except KeyboardInterrupt:
        complete = False
        finished = Counter(seed for seed, _ in by_task)
        by_task = {task: found for task, found in by_task.items() if finished[task[0]] == n_parts}
        if not keep_interrupted or not by_task:
            raise
    together: Found = {}
    for task in sorted(by_task):
        for name, tables in by_task[task].items():
            together.setdefault(name, []).extend(tables)
    return together, complete


def _plays(
    contest: Contest,
    tasks: Sequence[Task],
    workers: int,
    executor: Where | None,
    kept: KeptResults | None,
    progress: Progress | None,
) -> Iterator[tuple[Task, Found]]:
    """Yield each part of a seed that is finished with what it has left."""
    here = executor is None and min(workers, len(tasks)) == 1
    tell = progress if progress is not None else (lambda done, steps, what: None)
    steps, finished = len(tasks) * contest.steps, 0

    def play_here(task: Task) -> Found:
        played = 0

        def step(what: str) -> None:
            nonlocal played
            tell(finished * contest.steps + played, steps, what)
            played += 1

        return contest.play(*task, step)

    play = play_here if here else partial(_play_elsewhere, contest)
    left = TimeLeft()
    for (seed, part), found in run_many(play, tasks, workers, executor, kept):
        finished += 1
        yield (seed, part), found
        if not here:
            name = ", ".join(filter(None, (f"seed {seed}", contest.parts[part])))
            tell(finished * contest.steps, steps, f"{name} is finished, {left.words(finished, len(tasks))}")


def _play_elsewhere(contest: Contest, task: Task) -> Found:
    """Play one part of a seed in a process of its own."""
    return contest.play(*task, lambda what: None)


def _below_each_other(parts: list[Any]) -> pd.DataFrame:
    """Return one table of many rows, or of many tables."""
    tables = parts and isinstance(parts[0], pd.DataFrame)
    return pd.concat(parts, ignore_index=True) if tables else pd.DataFrame(parts)
