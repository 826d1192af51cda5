"""The market of a log: a window of its runs, their announcements and their values."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.mechanisms.randomness import Rng, generator_of
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.recurring import recurring_jobs_of
from marketsched.worlds.logs.rule import DENSITY, SLACK, LogRule
from marketsched.worlds.prediction import IntegerLaw, PredictionRule, duration_law
from marketsched.worlds.workload import Workload, require

DAY_S = 86_400.0
EARLIER_RUNS = 20_000  # so many runs before the window may teach a law of the past
LARGEST_ROUND = 10**9
LOOKED_AT = 5  # times `history` runs of a kind are looked at, for some that have ended


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
    """

    days: float | None = None
    first_day: float | None = None
    most_jobs: int = 10_000
    max_concurrency: int | None = None
    capacity: int | None = None
    load: float | None = None
    stretch: float = 1.0


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
        One job per run, born when it was submitted. Tags: ``class`` (0 patient to 2 urgent), ``queue``,
        ``requested`` (rounds; 0: not known), ``run_s`` and ``submit_s`` (from the window's beginning). ``notes`` says
        what was drawn, chosen, cut and left out.

    Raises
    ------
    InvalidParameterError
        If no run is in the window, or the rule needs data that the log does not have.
    """
    widest = window.capacity if window.max_concurrency is None else window.max_concurrency
    known, counted = log.table, dict(log.counted)
    if widest is not None:
        wide = known["processors"] > widest
        counted[f"runs left out: wider than {widest} nodes"] = int(wide.sum())
        known = known[~wide]
    first, last, origin, cut = _bounds(known, window)
    require(last > first, f"no run is in the window: the log has {len(known):,} usable runs")
    counted[f"runs of the window beyond most_jobs = {window.most_jobs}"] = cut
    if window.stretch != 1:
        known, origin = _stretched(known, window.stretch), origin * window.stretch
    runs = known.iloc[first:last]
    length, law = rule.length_for(runs), "revealed" if rule.durations == "revealed" else rule.law_for(runs)
    notes: dict[str, str | int | float] = {"source": log.source, "rule": rule.said(), "round, seconds": length}
    if law == "recurring":
        jobs, unknown, without = recurring_jobs_of(
            known.iloc[max(0, first - EARLIER_RUNS) : last],
            origin,
            PredictionRule(round_seconds=length, max_duration=rule.max_duration),
            generator_of(rng),
        )
        counted["runs left out: user or executable unknown, not one recurring job"] = unknown
        counted["runs left out: too few earlier ones to predict them"] = without
        require(bool(jobs), "no run of the window can be predicted: law: past or requested makes a job of every run")
    else:
        jobs, more = _jobs(known, first, last, origin, length, law, rule, generator_of(rng))
        notes |= more
    notes["what owners announce"] = _ANNOUNCED[law]
    notes |= {what: n for what, n in counted.items() if n}
    if window.stretch != 1:
        notes["gaps between submissions, times"] = round(window.stretch, 4)
    return _workload(name, jobs, window, log.nodes, length, rule.max_duration, notes)


_ANNOUNCED = {
    "revealed": "the duration, as it was: durations are revealed",
    "requested": "the wall time they requested, for certain; runs really take what they took",
    "past": "what earlier runs of the same user and executable, or width, took; runs really take what they took",
    "recurring": "a prediction of each run from earlier ones of its user's executable",
}


def _bounds(known: pd.DataFrame, window: Window) -> tuple[int, int, float, int]:
    """Return first and last run of the window (places), when it begins (s), and how many of its runs are cut off."""
    submits = known["submit_s"].to_numpy()
    if submits.size == 0:
        return 0, 0, 0.0, 0
    if window.first_day is None:
        end = math.inf
        begin = -math.inf if window.days is None else float(submits[-1]) - window.days * DAY_S
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
        return first, last, begin, 0
    return first, last, float(submits[first]) if cut or begin == -math.inf else begin, cut


def _stretched(known: pd.DataFrame, factor: float) -> pd.DataFrame:
    """Return runs whose submissions are so many times as far apart; deadlines move with them."""
    submits = known["submit_s"]
    return known.assign(submit_s=factor * submits, deadline_s=known["deadline_s"] + (factor - 1) * submits)


class _Announced(NamedTuple):
    """Laws of durations, one for each run, and notes on them."""

    laws: list[IntegerLaw]
    notes: dict[str, int]


def _jobs(
    known: pd.DataFrame,
    first: int,
    last: int,
    origin: float,
    length: float,
    law: str,
    rule: LogRule,
    rng: np.random.Generator,
) -> tuple[list[Job], dict[str, str | int | float]]:
    """Return a job for every run of the window, and notes on them."""
    runs = known.iloc[first:last]
    class_rng, density_rng, slack_rng = rng.spawn(3)
    classes, of_what = rule.classes_for(runs, class_rng)
    z, u = density_rng.standard_normal(len(runs)), slack_rng.uniform(0.5, 1.5, len(runs))
    densities = rule.scale * np.array(DENSITY)[classes] * np.exp(rule.spread * z)
    slacks = rule.slack * np.array(SLACK)[classes] * u
    rounds = _rounds(known["run_s"], length, rule)
    asked = _rounds(known["requested_s"].fillna(0.0), length, rule) * known["requested_s"].notna().to_numpy()
    announced = _laws(known, first, last, length, law, rounds, asked, rule)
    births = ((runs["submit_s"].to_numpy() - origin) // length).astype(np.int64) + 1
    values, deadlines = runs["value"].to_numpy(), _deadlines(runs["deadline_s"].to_numpy(), origin, length)
    users, queues = runs["user"].tolist(), runs["queue"].tolist()
    submits, seconds = (runs["submit_s"] - origin).tolist(), runs["run_s"].tolist()
    jobs, alike = [], dict[tuple[int, int], StatementOfWork]()  # the first statement of equal law and nodes
    for i, (birth, nodes) in enumerate(zip(births.tolist(), runs["processors"].tolist(), strict=True)):
        told, density = announced.laws[i], float(densities[i])
        longest = int(told.values[-1])
        deadline = birth + longest + math.ceil(float(slacks[i]) * longest) + 2
        if deadlines[i] > 0:
            deadline = max(int(deadlines[i]), birth + 1)
        worth = DeadlineValue(density * nodes * told.mean if math.isnan(values[i]) else float(values[i]), deadline)
        first_alike = alike.get((nodes, id(told)))
        if first_alike is None:
            truth = alike[nodes, id(told)] = StatementOfWork.from_arrays(
                birth, nodes, worth, np.full(told.values.size, birth), told.values, told.probabilities,
                revealed=law == "revealed",
            )  # fmt: skip
        else:
            truth = first_alike.moved(birth, worth)
        real = int(rounds[first + i])
        tags = {
            "class": int(classes[i]),
            "queue": queues[i],
            "requested": int(asked[first + i]),
            "submit_s": submits[i],
            "run_s": seconds[i],
        }
        named = f"run-{first + i}"
        jobs.append(Job(named, users[i] or named, truth, birth, real, real if law == "revealed" else None, tags))
    beyond = int((rounds[first:last] > [int(each.values[-1]) for each in announced.laws]).sum())
    cut = int((runs["run_s"].to_numpy() > rule.max_duration * length).sum())
    said: dict[str, str | int | float] = {
        "classes": f"{of_what}; patient, middle, urgent: {', '.join(map(str, np.bincount(classes, minlength=3)))} jobs",
        **_own_words(np.isfinite(values), "values"),
        **_own_words(deadlines > 0, "deadlines"),
        **{what: n for what, n in announced.notes.items() if n},
        **({"runs longer than announced": beyond} if beyond else {}),
        **({f"runs cut to max_duration = {rule.max_duration} rounds": cut} if cut else {}),
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


def _rounds(seconds: pd.Series[float], length: float, rule: LogRule) -> NDArray[np.int64]:
    whole = np.ceil(seconds.to_numpy(dtype=np.float64) / length)
    return np.asarray(np.clip(whole, 1, rule.max_duration), dtype=np.int64)


def _laws(
    known: pd.DataFrame,
    first: int,
    last: int,
    length: float,
    law: str,
    rounds: NDArray[np.int64],
    asked: NDArray[np.int64],
    rule: LogRule,
) -> _Announced:
    """Return what the owner of each run announces of its duration."""
    if law == "revealed":
        return _Announced([_point(int(d)) for d in rounds[first:last]], {})
    past = _Past(known, max(0, first - EARLIER_RUNS), rounds, rule)
    filling = PredictionRule(round_seconds=length, max_duration=rule.max_duration, filling=0.0)
    found: list[IntegerLaw] = []
    made: dict[tuple[int, ...], IntegerLaw] = {}  # by past durations, in their order: sums are rounded alike
    distinct: dict[tuple[bytes, bytes], IntegerLaw] = {}
    notes = {"runs without a requested time, announced by the past": 0, "runs without earlier runs of their kind": 0}
    for i in range(first, last):
        if law == "requested" and asked[i] > 0:
            found.append(_point(int(asked[i])))
            continue
        notes["runs without a requested time, announced by the past"] += law == "requested"
        durations = past.before(i)
        notes["runs without earlier runs of their kind"] += not durations
        law_of_past = made.get(tuple(durations))
        if law_of_past is None:
            new = duration_law(durations, filling) if durations else _point(rule.max_duration)
            law_of_past = distinct.setdefault((new.values.tobytes(), new.probabilities.tobytes()), new)
            made[tuple(durations)] = law_of_past
        found.append(law_of_past)
    return _Announced(found, notes)


@lru_cache(maxsize=1024)
def _point(d: int) -> IntegerLaw:
    return IntegerLaw(np.array([d]), np.array([1.0]))


class _Past:
    """What the last runs of a kind took that had ended by some submission; runs are asked for in order."""

    def __init__(self, known: pd.DataFrame, first: int, rounds: NDArray[np.int64], rule: LogRule) -> None:
        self._submits = known["submit_s"].tolist()
        self._ends = (known["submit_s"] + known["run_s"]).tolist()  # that waits were 0 is all that is certain
        self._rounds, self._most = rounds.tolist(), rule.history
        self._kinds = list(
            zip(known["user"].tolist(), known["executable"].tolist(), known["processors"].tolist(), strict=True)
        )
        self._by_kind: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        self._next = first

    def before(self, run: int) -> list[int]:
        """Return durations, rounds, of the last runs of its kind that had ended when ``run`` was submitted."""
        while self._next < run:
            for kind in _kinds(*self._kinds[self._next]):
                self._by_kind[kind].append(self._next)
            self._next += 1
        now = self._submits[run]
        for kind in _kinds(*self._kinds[run]):
            own = self._by_kind.get(kind, [])[-LOOKED_AT * self._most :]
            ended = [self._rounds[i] for i in reversed(own) if self._ends[i] <= now][: self._most]
            if ended:
                return ended
        return []


def _kinds(user: str, executable: str, width: int) -> list[tuple[object, ...]]:
    """Return the kinds a run belongs to, the narrowest first; a job without a user is no recurring one."""
    named = [("program", user, executable)] if user and executable else []
    return [*named, *([("user", user, width)] if user else []), ("width", width), ("all",)]


def _workload(
    name: str,
    jobs: list[Job],
    window: Window,
    machine: int | None,
    length: float,
    max_duration: int,
    notes: dict[str, str | int | float],
) -> Workload:
    """Return the workload of these jobs, in order of birth."""
    widest = max(job.truth.concurrency for job in jobs)
    birth_rounds = max(job.truth.birth for job in jobs)
    work = sum(job.truth.concurrency * job.duration for job in jobs)
    capacity, why = window.capacity, "as configured"
    if capacity is None and window.load is None and machine is not None:
        capacity, why = machine, "the machine of the log"
    elif capacity is None:
        load = 1.2 if window.load is None else window.load
        capacity, why = round(work / birth_rounds / load), f"made for a load of {load:g}"
    if why == "the machine of the log":
        capacity, why = (capacity, why) if capacity >= widest else (widest, f"{why}, as wide as its widest job")
    elif window.capacity is None and 2 * capacity < 3 * widest:
        # Posted prices explode on fewer: one wide job then takes all that their curve is about.
        capacity, why = 2 * widest, f"twice the widest job ({why}: {capacity})"
    last = max(job.truth.value.last for job in jobs)
    longest = max(max(int(job.truth.durations.max()), job.duration) for job in jobs)
    return Workload(
        name,
        tuple(sorted(jobs, key=lambda job: job.truth.birth)),
        capacity=capacity,
        birth_rounds=birth_rounds,
        horizon=last + longest,
        max_concurrency=widest,
        max_duration=min(longest, max_duration),
        max_value=max(job.truth.value.highest for job in jobs),
        max_delay=1 + max(job.truth.value.last - job.truth.birth for job in jobs),
        round_seconds=length,
        notes={
            "statements": len(jobs),
            "nodes": f"{capacity}, {why}; the load is {work / (capacity * birth_rounds):.2f}",
            **notes,
        },
    )
