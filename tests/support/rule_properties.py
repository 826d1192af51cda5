"""The table of rules: what a play on drawn markets shows of each, and what its promises of truth are.

    python tests/support/rule_properties.py          # plays every rule, and writes mechanisms/rules.csv

A "no" of an invariance ("values", "durations", "owners") means that no drawn market changes; a "yes" names a change.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners
from marketsched.mechanisms import DeadlineValue
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.registry import get, get_mechanism, mechanism_names, truth_of
from marketsched.mechanisms.signatures import parameters_of
from promise_markets import drawn_world, stated

TABLE = Path(__file__).resolve().parents[2] / "mechanisms/rules.csv"
SIZES = {"horizon": 100, "max_concurrency": 2, "max_duration": 6, "max_value": 900.0, "max_delay": 80}
NODES = {"stochastic": 24}  # its theorem asks for as many; others 4
LATEST = 40  # round by which a wide job starts among narrow ones
REVEALED_ONLY = ("stochastic",)
DRAWS = 8
QUEUES = {"few": {"nominal": 3, "owners": ["owner-0"]}, "many": {"nominal": 1}}
Laws = tuple[tuple[int, float], ...]  # durations and their probabilities


class Play(NamedTuple):
    """Events (round, kind, job) in order, and the sum of payments, credits."""

    events: tuple[tuple[int, str, str], ...]
    paid: float

    @property
    def starts(self) -> dict[str, int]:
        """First start of each job that started."""
        return {job: when for when, kind, job in reversed(self.events) if kind == "start"}


def stated_job(i: int, at: int, width: int, law: Laws, real: int, value: float, wait: int, hidden: bool) -> Job:
    """Return a job of one of six owners."""
    truth = stated(at, width, DeadlineValue(value, at + wait), at, law, hidden)
    return Job(f"job-{i}", f"owner-{i % 6}", truth, at, real, None if hidden else real)


def drawn(seed: int, hidden: bool, nodes: int = 4, form: str = "") -> tuple[Job, ...]:
    """Return more jobs than there is room for.

    ``form``: "equal" (one node, three rounds), "exact" (known durations), "unlucky" (long runs that are announced as
    rare), else two durations of equal probability.
    """
    rng, jobs = np.random.default_rng([seed, hidden, nodes]), []
    for i, at in enumerate(np.sort(rng.integers(1, 25, 8 * nodes)).tolist()):
        days = sorted(rng.choice(np.arange(1, 7), 2, replace=False).tolist())
        days = {"equal": [3], "exact": days[1:], "unlucky": [1, 6]}.get(form, days)
        odds = (0.95, 0.05) if form == "unlucky" else [1 / len(days)] * len(days)
        width = 1 if form == "equal" else int(rng.integers(1, 3))
        value = float(rng.choice([1.0, 4.0, 16.0])) * width * 3
        wait = 60 if form in ("equal", "unlucky") else int(rng.integers(6, 24))
        law = tuple(zip(days, odds, strict=True))
        jobs.append(stated_job(i, at, width, law, int(rng.choice(days)), value, wait, hidden))
    return tuple(jobs)


def stream() -> tuple[Job, ...]:
    """Return a job of two of three nodes, and narrow jobs of three rounds, one of which comes and ends each round."""
    narrow = [stated_job(i, i, 1, ((3, 1.0),), 3, 6.0, 12, True) for i in range(1, 70)]
    return (*narrow[:3], stated_job(0, 4, 2, ((3, 1.0),), 3, 12.0, 76, True), *narrow[3:])


def play(name: str, jobs: Iterable[Job], nodes: int | None = None, known: Iterable[Job] = ()) -> Play:
    """Play a market of identical nodes; ``known``: jobs whose laws are known in advance, if not those played."""
    jobs = tuple(jobs)
    given = {"laws": [job.truth for job in known or jobs]} if name == "stochastic" else {}
    takes = parameters_of(get("mechanism", name))
    given |= {"shares": {f"owner-{i}": 1 for i in range(6)}} if "shares" in takes else {}
    given |= {"queues": QUEUES, "others": "many", "min_run_hours": 0} if "queues" in takes and not nodes else {}
    given |= {"oracle": {"kind": "monte-carlo", "samples": 200}} if "oracle" in takes else {}
    return played(get_mechanism(name, capacity=nodes or NODES.get(name, 4), **SIZES, **given, rng=1), jobs)


def played(market: Any, jobs: tuple[Job, ...]) -> Play:
    """Play these jobs to the horizon."""
    loop, owners, events = MarketLoop(market), TruthfulOwners(jobs), []
    while loop.now <= market.horizon:
        owners.act(loop)
        events += loop.clear()
    events += loop.close()
    return Play(tuple((e.round, e.kind.value, e.job) for e in events), sum(e.payment for e in events))


def markets(name: str, form: str = "", hidden: bool | None = None) -> list[tuple[Job, ...]]:
    """Return drawn markets for a rule; ``hidden`` None: of revealed and of hidden durations."""
    forms = (False,) if name in REVEALED_ONLY else (False, True) if hidden is None else (hidden,)
    return [drawn(seed, unseen, NODES.get(name, 4), form) for seed in range(DRAWS) for unseen in forms]


def changes(name: str, change: Callable[[Job], Job], hidden: bool | None = None) -> bool:
    """Tell whether the path of any job changes in a drawn market with these other reports."""
    some = markets(name, hidden=hidden)
    return any(play(name, jobs).events != play(name, map(change, jobs)).events for jobs in some)


def told(job: Job, *, value: Any = None, law: Laws | None = None) -> Job:
    """Return a job with another statement."""
    old, hidden = job.truth, job.signal is None
    law = law or tuple((case.duration, case.probability) for case in old.requirements)
    return replace(job, truth=stated(old.birth, old.concurrency, value or old.value, job.arrival, law, hidden))


def dearer(owner: str, every: int) -> Callable[[Job], Job]:
    """Return a change: a value nine times as high, of all jobs of an owner, or of every so many."""

    def change(job: Job) -> Job:
        value, mine = job.truth.value, job.owner == owner and int(job.name[4:]) // 6 % every == 0
        return told(job, value=DeadlineValue(9 * value.highest, value.last)) if mine else job

    return change


def other_law(weights: tuple[float, float], longest: int = 0) -> Callable[[Job], Job]:
    """Return a change: other odds of the two durations, or a longer second one where the first is true."""

    def change(job: Job) -> Job:
        first, second = (case.duration for case in job.truth.requirements)
        last = longest if longest and job.duration == first else second
        return told(job, law=((first, weights[0]), (last, weights[1])))

    return change


def word(so: bool) -> str:
    """Return a cell."""
    return "yes" if so else "no"


def values(name: str) -> str:
    """Return which values move jobs."""
    if changes(name, dearer("owner-0", 1)):
        return "all"
    return "own order" if any(changes(name, dearer(f"owner-{i}", 2)) for i in range(3)) else "no"


def durations(name: str) -> str:
    """Return what of an announced law moves jobs whose durations are hidden."""
    if name in REVEALED_ONLY:
        return ""
    if changes(name, other_law((0.98, 0.02)), hidden=True):
        return "laws"
    return "wall times" if changes(name, other_law((0.5, 0.5), 6), hidden=True) else "no"


def preempts(name: str) -> str:
    """Return whether a run is taken back that neither outlasts its booking nor is late."""
    some = [*markets(name, hidden=False), *markets(name, "exact")]
    some += [] if name.startswith("cluster-") else markets(name, "unlucky")
    return word(any(kind in ("requeue", "evict") for jobs in some for _, kind, _ in play(name, jobs).events))


def final(name: str) -> str:
    """Return whether, durations revealed, no job that arrives later changes a start."""
    for jobs in markets(name, hidden=False):
        starts = play(name, jobs).starts
        for last in range(4, 24, 4):
            known = [job for job in jobs if job.arrival <= last]
            some = play(name, known, known=jobs).starts
            if any(starts.get(job.name) != some.get(job.name) for job in known):
                return "no"
    return "yes"


def in_order(name: str) -> str:
    """Return whether equal jobs that start do so in order of arrival."""
    for jobs in markets(name, "equal"):
        starts = play(name, jobs).starts
        came = {job.name: job.arrival for job in jobs if job.name in starts}
        if any(came[a] < came[b] and starts[a] > starts[b] for a in came for b in came):
            return "no"
    return "yes"


def wide(name: str) -> str:
    """Return whether a job of two nodes starts although each round frees one node alone."""
    if name in REVEALED_ONLY:
        return ""
    return word(play(name, stream(), 3).starts.get("job-0", 999) <= LATEST)


def clusters(name: str) -> str:
    """Return whether jobs with shapes run on nodes of several kinds."""
    for seed in range(1, 9):
        world = drawn_world(seed, hidden=False, shapes=2)
        try:
            return word(bool(played(get_mechanism(name, **world.sizes), world.jobs).starts))
        except InvalidReportError:  # some take no values that rise
            continue
        except InvalidParameterError:
            return "no"
    raise AssertionError(f"{name} takes no report of eight worlds")


COLUMNS: dict[str, Callable[[str], str]] = {
    "values": values,
    "durations": durations,
    "owners": lambda name: word(changes(name, lambda job: replace(job, owner="owner-0"))),
    "preempts": preempts,
    "start final": final,
    "in order": in_order,
    "wide starts": wide,
    "money": lambda name: word(any(play(name, jobs).paid > 0 for jobs in markets(name))),
    "clusters": clusters,
}


def row(name: str) -> dict[str, str]:
    """Return the row of a rule."""
    truth = dict(zip(("truth, revealed", "truth, hidden"), truth_of(name), strict=True))
    return {"rule": name} | truth | {column: cell(name) for column, cell in COLUMNS.items()}


if __name__ == "__main__":
    rows = [row(name) for name in mechanism_names()]
    with TABLE.open("w", newline="", encoding="utf-8") as lines:
        table = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
