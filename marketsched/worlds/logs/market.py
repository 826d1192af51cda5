"""The market of a log: a window of its runs, their announcements and their values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.job_table import JobTable, ListedJobs
from marketsched.mechanisms.columns import JobColumns
from marketsched.mechanisms.limits import LAST_ROUND
from marketsched.mechanisms.randomness import Rng, generator_of
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.log_runs import LogRuns
from marketsched.worlds.logs.partitions import partition_words
from marketsched.worlds.logs.past import Announced, announced_by_past, certain_durations, past_durations
from marketsched.worlds.logs.recurring import recurring_jobs_of
from marketsched.worlds.logs.round_length import added_share, carried
from marketsched.worlds.logs.rule import DENSITY, HALF_H, HOUR_S, SLACK, SPARE_S, LogRule
from marketsched.worlds.prediction import PredictionRule
from marketsched.worlds.runs import RunColumns
from marketsched.worlds.workload import Workload, require

DAY_S = 86_400.0
WEEK_S, WINDOW_JOBS = 7 * DAY_S, 1_000  # the length of one of several windows, whichever is longer
EARLIER_RUNS = 20_000  # so many runs before the window may teach a law of the past
LARGEST_ROUND = 10**9
MOST_UNSAID = 0.01  # share of runs left out as too wide, or of node time cut off, with no more than a note


@dataclass(frozen=True)
class Window:
    """Which runs of a log are jobs of the market, and on how many nodes.

    Parameters
    ----------
    days : float, optional
        Its length; None: from the first of the last ``most_jobs`` runs on.
    first_day : float, optional
        Days from the first submission to its beginning; None: it ends with the last submission.
    most_jobs : int
        Of more runs only the last so many are jobs (with ``first_day``: the first).
    max_concurrency : int, optional
        Runs that are wider are left out and counted.
    capacity : int, optional
        C, nodes; runs that are wider are left out and counted. None: those of ``load``.
    load : float, optional
        Work over the nodes' capacity. None, and no ``capacity``: the machine of the log, where it says one; else 1.2.
    stretch : float
        Factor on the time between submissions: below 1 the same work comes in less time.
    partition : str
        Only the runs of this queue, on its nodes; empty: all.
    windows, window : int
        Of the runs in order of submission, in so many parts of equal number, the beginning of part ``window``, from 0:
        a week, or a thousand runs where they take longer, and at most ``most_jobs``. Where the log records starts, what
        ran and what waited as the window began are jobs of the market, too; no wait of theirs is counted. 1: none of
        this.
    resample_users : bool
        Of the window, draw as many pairs of a user and a week as there are, with replacement: a user's jobs of a week
        stay together, at their times; who is drawn again is another user.
    """

    days: float | None = None
    first_day: float | None = None
    most_jobs: int = 10_000
    max_concurrency: int | None = None
    capacity: int | None = None
    load: float | None = None
    stretch: float = 1.0
    windows: int = 1
    window: int = 0
    partition: str = ""
    resample_users: bool = False


def market_of(log: JobLog, window: Window, rule: LogRule, *, rng: Rng, name: str = "log") -> Workload:
    """Return the market of a window of a log.

    Parameters
    ----------
    log : JobLog
        The runs.
    window : Window
        Which of them are jobs.
    rule : LogRule
        The rule for drawn and announced values. With law ``recurring`` owners announce runs ahead of time.
    rng : Generator or int
        One stream each is spawned for classes, densities and slacks.
    name : str
        The name of the workload.

    Returns
    -------
    Workload
        One job per run, born when it was submitted. Tags: ``class`` (0 patient to 2 urgent), ``queue``, ``requested``,
        ``account`` and ``log_id`` (the job's number there) where known, of a log with starts ``recorded_start``
        (rounds; 0: not known) and ``start_s``, and ``run_s`` and ``submit_s`` (from the window's beginning; below 0:
        what ran or waited then). ``notes`` says what was drawn, chosen, cut and left out.

    Raises
    ------
    InvalidParameterError
        If no run is in the window, or the rule needs data that the log does not have.
    """
    widest = window.capacity if window.max_concurrency is None else window.max_concurrency
    log = log.of_partition(window.partition)
    known, counted = log.table, dict(log.counted)
    wide = known["processors"] > (np.inf if widest is None else widest)
    too_wide, known = known.loc[wide, "submit_s"], known[~wide]
    first, last, origin, cut, (since, until) = _bounds(known, window)
    require(last > first, f"no run is in the window: the log has {len(known):,} usable runs")
    n_wide = int(((too_wide >= since) & (too_wide < until)).sum())
    counted[f"runs left out: wider than {widest} nodes"] = n_wide
    counted[f"runs of the window beyond most_jobs = {window.most_jobs}"] = cut
    of_rounds = known if window.windows > 1 else known.iloc[first:last]  # windows have one length
    known, there = _with_state(known.assign(before_s=0.0), first, origin) if window.windows > 1 else (known, 0)
    first -= there
    if window.stretch != 1:
        known, origin = _stretched(known, window.stretch), origin * window.stretch
    if window.resample_users:
        known, last = _with_users_again(known, first, first + there, last, generator_of(rng).spawn(1)[0])
    runs = known.iloc[first:last]
    length, law = rule.length_for(of_rounds), "revealed" if rule.durations == "revealed" else rule.law_for(runs)
    most = rule.longest_for(runs, length)
    notes: dict[str, str | int | float] = {
        "round": _round_words(runs, length, chosen=rule.round_seconds is None),
        "source": log.source,
        "rule": rule.in_one_line(),
    }
    if law == "recurring":
        recurring, unknown, without = recurring_jobs_of(
            known.iloc[max(0, first - EARLIER_RUNS) : last],
            origin,
            PredictionRule(round_seconds=length, max_duration=most),
            generator_of(rng),
        )
        counted["runs left out: user or executable unknown, not one recurring job"] = unknown
        counted["runs left out: too few earlier ones to predict them"] = without
        require(
            bool(recurring), "no run of the window can be predicted: law: past or requested makes a job of every run"
        )
        jobs: JobTable = ListedJobs(tuple(sorted(recurring, key=lambda job: job.truth.birth)))
    else:
        jobs, more = _jobs(known, first, last, origin, length, most, law, rule, generator_of(rng))
        notes |= more
    notes["what owners announce"] = _ANNOUNCED[law]
    notes |= {what: n for what, n in counted.items() if n}
    observed = log.observed if window.stretch == 1 else None
    machine = observed if log.nodes is None and window.load is None else log.nodes
    warnings = [*log.warnings, *_warnings(runs, window, machine)]
    if log.partitions:
        warnings.append(partition_words(log.partitions))
    if n_wide > MOST_UNSAID * (n_wide + len(runs)):
        warnings.append(f"{n_wide:,} of {n_wide + len(runs):,} runs are wider than {widest} nodes, and are left out")
    cut_off = _share_beyond(runs, most * length)
    if cut_off > MOST_UNSAID:
        warnings.append(f"runs are cut to {most * length / 3600:g} h: {cut_off:.1%} of the node time is left out")
    if warnings:
        notes["warnings"] = "\n".join(warnings)
    if window.windows > 1:
        notes["window"] = f"{window.window + 1} of {window.windows}"
        notes["window's beginning"] = f"{there:,} jobs ran or waited, by the record; their waits do not count"
    if window.stretch != 1:
        notes["gaps between submissions, times"] = round(window.stretch, 4)
    return _workload(name, jobs, window, machine, length, most, notes, observed)


def _round_words(runs: pd.DataFrame, length: float, *, chosen: bool) -> str:
    """Say how long a round is, why, and how much node time whole rounds add."""
    said = f"{length:g} s" if length < 60 or length % 60 else f"{length / 60:g} min"
    why = ", the coarsest that is fine enough for these runs" if chosen else ", as configured"
    return f"{said}{why}: whole rounds add {max(0.0, added_share(runs, length)):.1%} of the node time"


def _share_beyond(runs: pd.DataFrame, longest_s: float) -> float:
    """Return the share of the node time after so many seconds of a run."""
    seconds, nodes = runs["run_s"].to_numpy(np.float64), runs["processors"].to_numpy(np.float64)
    return float(np.maximum(seconds - longest_s, 0.0) @ nodes) / max(float(seconds @ nodes), 1e-9)


def _warnings(runs: pd.DataFrame, window: Window, machine: int | None) -> list[str]:
    """Say where the size of the machine, or the load, has no ground in the log."""
    found = []
    if window.capacity is None and machine is None:
        load = f"load = {window.load:g}" if window.load is not None else "a load of 1.2"
        found.append(f"the log does not say how many nodes there were: their number is made up for {load} (--nodes N)")
    span, typical = float(runs["submit_s"].iloc[-1] - runs["submit_s"].iloc[0]), float(runs["run_s"].median())
    if len(runs) > 1 and span < typical:
        found.append(
            f"all jobs come within {span:,.0f} s, less than a typical run ({typical:,.0f} s): no load to speak of"
        )
    unvalued = int(runs["value"].isna().sum())
    if 0 < unvalued < len(runs):
        found.append(
            f"{unvalued:,} of {len(runs):,} runs have no value in the log: theirs are drawn, in units of their own "
            "(--set workload.rule.scale=X multiplies them)"
        )
    return found


_ANNOUNCED = {
    "revealed": "the duration, as it was: durations are revealed",
    "requested": "the wall time they requested, for certain; runs really take what they took",
    "past": "what earlier runs of the same user and executable, or width, took; runs really take what they took",
    "recurring": "a prediction of each run from earlier ones of its user's executable",
}


def _bounds(known: pd.DataFrame, window: Window) -> tuple[int, int, float, int, tuple[float, float]]:
    """Return first and last run of the window (places), when it begins (s), how many of its runs are cut off.

    Last the times between which a run is of the window, the second not included, s.
    """
    submits = known["submit_s"].to_numpy()
    if submits.size == 0:
        return 0, 0, 0.0, 0, (0.0, 0.0)
    if window.windows > 1:
        first, after = (int(k * submits.size // window.windows) for k in (window.window, window.window + 1))
        week = int(np.searchsorted(submits, submits[first] + WEEK_S))
        last = min(after, first + window.most_jobs, max(week, first + WINDOW_JOBS))
        return first, last, float(submits[first]), 0, (float(submits[first]), float(submits[last - 1]) + 1)
    if window.first_day is None:
        end = math.inf
        begin = -math.inf if window.days is None else float(submits[-1]) - window.days * DAY_S
        if begin < submits[0]:  # a log of fewer days begins with its first submission, not with empty rounds
            begin = -math.inf
    else:
        begin = float(submits[0]) + window.first_day * DAY_S
        end = math.inf if window.days is None else begin + window.days * DAY_S
    first, last = (int(np.searchsorted(submits, each)) for each in (begin, end))
    cut = max(0, last - first - window.most_jobs)
    if window.first_day is None:
        first += cut
    else:
        last -= cut
    if first == last:
        return first, last, begin, 0, (begin, end)
    since = float(submits[first]) if cut and window.first_day is None else begin
    until = float(submits[last]) if cut and window.first_day is not None else end
    return first, last, float(submits[first]) if cut or begin == -math.inf else begin, cut, (since, until)


def _with_state(known: pd.DataFrame, first: int, begin: float) -> tuple[pd.DataFrame, int]:
    """Put what ran and what waited as a window began before its first run; also return how many these are.

    A run that went on comes as the window begins, and lasts as long as it went on; those that waited come behind.
    """
    earlier = known.iloc[:first]
    ends = earlier["start_s"] + earlier["run_s"]
    there = earlier[ends > begin]
    start = there["start_s"].clip(lower=begin)
    gone = start - there["start_s"]  # of a run, and of its request
    there = there.assign(before_s=begin - there["submit_s"], submit_s=begin, start_s=start, run_s=there["run_s"] - gone)
    there["requested_s"] = np.maximum(there["requested_s"] - gone, 1.0)
    there = there.iloc[np.argsort(start.to_numpy() > begin, kind="stable")]
    parts = [earlier.drop(index=there.index), there, known.iloc[first:]]
    return pd.concat(parts, ignore_index=True), len(there)


def _with_users_again(
    known: pd.DataFrame, first: int, begin: int, last: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, int]:
    """Draw the users of runs ``begin .. last - 1`` again, week by week; also return the new ``last``.

    Those of ``first .. begin - 1``, who were there before, stay. Runs of unknown users are drawn one by one.
    """
    own = known.iloc[begin:last]
    weeks = ((own["submit_s"] - own["submit_s"].iloc[0]) // WEEK_S).astype(int).astype(str)
    alone = pd.Series(np.arange(len(own)).astype(str), index=own.index)
    names = (own["user"] + "/" + weeks).where(own["user"] != "", alone)
    groups = list(own.groupby(names.to_numpy(), sort=False).indices.values())
    times = np.bincount(rng.integers(0, len(groups), len(groups)), minlength=len(groups))
    parts = []
    for again in range(int(times.max())):
        rows = np.concatenate([groups[i] for i in np.flatnonzero(times > again)])
        part = own.iloc[rows]
        named = part["user"].where(part["user"] == "", part["user"] + f" ({again + 1})")
        parts.append(part.assign(owner=named) if again else part)  # whose past is that of the user
    drawn = pd.concat(parts).sort_values("submit_s", kind="stable")
    found = pd.concat([known.iloc[:begin], drawn, known.iloc[last:]], ignore_index=True)
    found.loc[first : begin + len(drawn) - 1, "start_s"] = np.nan  # nothing ran like that
    owner = found["owner"].fillna(found["user"]) if "owner" in found else found["user"]
    return found.assign(owner=owner), begin + len(drawn)


def _stretched(known: pd.DataFrame, factor: float) -> pd.DataFrame:
    """Return runs whose submissions are so many times as far apart; deadlines move with them."""
    submits = known["submit_s"]
    moved = {"submit_s": factor * submits, "deadline_s": known["deadline_s"] + (factor - 1) * submits}
    return known.assign(**moved, start_s=np.nan)  # nothing ran like that


def _jobs(
    known: pd.DataFrame,
    first: int,
    last: int,
    origin: float,
    length: float,
    most: int,
    law: str,
    rule: LogRule,
    rng: np.random.Generator,
) -> tuple[LogRuns, dict[str, str | int | float]]:
    """Return a job for every run of the window, and notes on them."""
    runs = known.iloc[first:last]
    class_rng, density_rng, slack_rng = rng.spawn(3)
    classes, of_what = rule.classes_for(runs, class_rng)
    z, u = density_rng.standard_normal(len(runs)), slack_rng.uniform(0.5, 1.5, len(runs))
    densities = rule.scale * np.array(DENSITY)[classes] * np.exp(rule.spread * z)
    slacks = rule.slack * np.array(SLACK)[classes] * u
    waits = rule.slack * np.array(HALF_H)[classes] * u * HOUR_S / length  # rounds
    rounds = carried(known["run_s"].to_numpy(np.float64), known["processors"].to_numpy(np.int64), length).clip(max=most)
    asked = np.ceil(known["requested_s"].fillna(0.0).to_numpy(np.float64) / length).clip(1, most).astype(np.int64)
    asked *= known["requested_s"].notna().to_numpy()
    announced, notes = _laws(known, first, last, law, rounds, asked, most, rule)
    longest = np.array([int(each.values[-1]) for each in announced.laws])[announced.of]
    births = ((runs["submit_s"].to_numpy() - origin) // length).astype(np.int64) + 1
    starts = np.floor((runs["start_s"].to_numpy() - origin) / length) + 1
    recorded = np.maximum(np.nan_to_num(starts).astype(np.int64), np.where(np.isnan(starts), 0, births))
    given, deadlines = runs["value"].to_numpy(), _deadlines(runs["deadline_s"].to_numpy(), origin, length)
    nodes, means = runs["processors"].to_numpy(), np.array([each.mean for each in announced.laws])[announced.of]
    falls = rule.deadlines == "none"
    columns = RunColumns(
        births=births,
        arrivals=births,
        durations=rounds[first:last],
        widths=nodes,
        values=np.where(np.isnan(given), densities * nodes * means, given),
        deadlines=np.where(
            deadlines > 0,
            np.maximum(deadlines, births + 1),
            LAST_ROUND if falls else births + longest + np.ceil(slacks * longest + SPARE_S / length).astype(np.int64),
        ),
        law_of=announced.of,
        falls=births + np.ceil(means).astype(np.int64) if falls else None,
        halves=np.where(deadlines > 0, 0.0, np.maximum(waits + slacks * means, 1.0)) if falls else None,
    )
    run_s = runs["run_s"].to_numpy()
    shown: dict[str, list[str] | NDArray[Any]] = {
        "class": classes,
        "queue": runs["queue"].tolist(),
        **{name: runs[name].tolist() for name in ("account", "log_id") if runs[name].any()},
        "requested": asked[first:last],
        **({"recorded_start": recorded, "start_s": (runs["start_s"] - origin).to_numpy()} if recorded.any() else {}),
        "submit_s": (runs["submit_s"] - runs.get("before_s", 0.0) - origin).to_numpy(),
        "run_s": run_s,
    }
    users = runs["owner" if "owner" in runs else "user"].tolist()
    laws = [(np.zeros(each.values.size, np.int64), *each) for each in announced.laws]
    jobs = LogRuns(
        columns,
        laws,
        revealed=law == "revealed",
        first=first,
        users=users,
        shown=shown,
        checkpoint=rule.checkpoint_every,
    )
    beyond, cut = int((columns.durations > longest).sum()), int((run_s > most * length).sum())
    said: dict[str, str | int | float] = {
        "classes": f"{of_what}; patient, middle, urgent: {', '.join(map(str, np.bincount(classes, minlength=3)))} jobs",
        **_own_words(np.isfinite(given), "values"),
        **_own_words(deadlines > 0, "deadlines"),
        **{what: n for what, n in notes.items() if n},
        **({"runs longer than announced": beyond} if beyond else {}),
        **({f"runs cut to {most * length / 3600:g} h": cut} if cut else {}),
        **({"jobs of an unknown user, each an owner of its own": users.count("")} if "" in users else {}),
    }
    return jobs, said


def _deadlines(seconds: NDArray[np.float64], origin: float, length: float) -> NDArray[np.int64]:
    """Return the last time s + d, in rounds, that lies no later than each deadline; 0: not known."""
    known = np.isfinite(seconds)
    rounds = np.floor((np.where(known, seconds, origin) - origin) / length) + 1
    return np.where(known, np.clip(rounds, 1, LARGEST_ROUND), 0).astype(np.int64)


def _own_words(known: NDArray[np.bool_], what: str) -> dict[str, str]:
    """Say of how many jobs the log says what is drawn for others."""
    own = int(known.sum())
    return {what: f"the log's own, of {own:,} of {known.size:,} jobs"} if own else {}


def _laws(
    known: pd.DataFrame,
    first: int,
    last: int,
    law: str,
    rounds: NDArray[np.int64],
    asked: NDArray[np.int64],
    most: int,
    rule: LogRule,
) -> tuple[Announced, dict[str, int]]:
    """Return what the owner of each run announces of its duration, and notes on it."""
    if law == "revealed":
        return certain_durations(rounds[first:last]), {}
    past = past_durations(known.iloc[:last], max(0, first - EARLIER_RUNS), first, rounds, rule.history)
    asks = (asked[first:last] > 0) & (law == "requested")
    past[asks] = 0
    by_past = announced_by_past(past[~asks], most)
    by_request = certain_durations(asked[first:last][asks])
    of = np.empty(last - first, np.int64)
    of[~asks], of[asks] = by_past.of, by_request.of + len(by_past.laws)
    return Announced([*by_past.laws, *by_request.laws], of), {
        "runs without a requested time, announced by the past": int((~asks).sum()) if law == "requested" else 0,
        "runs without earlier runs of their kind": int((past[~asks, 0] == 0).sum()),
    }


def _workload(
    name: str,
    jobs: JobTable,
    window: Window,
    machine: int | None,
    length: float,
    max_duration: int,
    notes: dict[str, str | int | float],
    observed: int | None,
) -> Workload:
    """Return the workload of these jobs, in order of birth."""
    columns = jobs.columns(1)
    assert columns is not None  # jobs of a log have no shapes
    (widest, announced, highest), last = columns.largest, columns.ends
    birth_rounds, work = jobs.last_birth, jobs.work
    capacity, why = window.capacity, "as configured"
    if capacity is None and window.load is None and machine is not None:
        capacity, why = machine, "the machine of the log"
        if observed is not None:
            most = "the most that ran at once in the log, but for .1 % of its time"
            why = most if observed == machine else f"{why}; at most {observed:,} ran at once, but for .1 % of its time"
    elif capacity is None:
        load = 1.2 if window.load is None else window.load
        capacity, why = round(work / birth_rounds / load), f"made for a load of {load:g}"
    if capacity == machine and window.capacity is None and window.load is None:
        if capacity < widest:
            said = (
                f"the log says that there are {capacity:,} nodes, and a job has {widest:,}: there are as many here "
                f"(--set workload.max_concurrency={capacity} leaves wider jobs out)"
            )
            notes = {**notes, "warnings": "\n".join([*str(notes.get("warnings", "")).splitlines(), said])}
            capacity, why = widest, f"{why}, as wide as its widest job"
    elif window.capacity is None and 2 * capacity < 3 * widest:
        # Posted prices explode on fewer: one wide job then takes all that their curve is about.
        capacity, why = 2 * widest, f"twice the widest job ({why}: {capacity})"
    longest = max(announced, int(jobs.durations.max()))
    ends = last < LAST_ROUND
    recorded = int(jobs.tag("recorded_start", slice(None)).max()) if "recorded_start" in jobs.tags else 0
    horizon = longest + max(recorded, int(last[ends].max(initial=0)), 0 if ends.all() else _drained(columns, capacity))
    return Workload(
        name,
        jobs,
        capacity=capacity,
        birth_rounds=birth_rounds,
        horizon=horizon,
        max_concurrency=widest,
        max_duration=min(longest, max_duration),
        max_value=highest,
        max_delay=1 + int((np.minimum(last, horizon + 1) - columns.births).max()),
        round_seconds=length,
        notes={
            "statements": len(jobs),
            "nodes": f"{capacity}, {why}",
            "load": f"{work / (capacity * birth_rounds):.2f}",
            **notes,
        },
    )


def _drained(columns: JobColumns, capacity: int) -> int:
    """Return a round by which a rule that leaves few nodes idle has run all jobs.

    Work that cannot have been done before the last arrival is done at half of the nodes; a quarter of the time of
    arrivals and three of the longest runs are added.
    """
    births, work = columns.births, np.cumsum(columns.durations * columns.widths)
    ahead = np.concatenate([[0], work[:-1]]) - capacity * births  # work before a job less what could have been done
    backlog = float(work[-1] - capacity * births[-1] - ahead.min())
    last = int(births[-1])
    return last + math.ceil(2 * max(backlog, 0.0) / capacity + last / 4) + 3 * int(columns.durations.max())
