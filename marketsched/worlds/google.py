r"""Markets made of the recurring jobs of the Google trace: recorded runs become statements of work.

A recurring job is a ``(user, group)`` with at least 20 submissions in the trace, 80 % of its gaps within 10 % of their
median, and a 95 % run of at most 4 h. (This choice looks at the whole trace; every prediction looks only at the past.)
Each of its runs that is announced inside the window becomes a statement by :mod:`marketsched.worlds.prediction`, and
the recorded run is what really happens. Round 1 begins ``first_day`` days after the trace's time 0.

Requests and values are in part a model, not data: see
:mod:`marketsched.worlds.demand` and :mod:`marketsched.worlds.owners`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd

from marketsched.agents.job import Job
from marketsched.mechanisms.legal import Count, Positive, Whole
from marketsched.mechanisms.randomness import Rng, generator_of
from marketsched.worlds.demand import demand_of
from marketsched.worlds.owners import HIGHEST_DENSITY, RecurringOwners, value_densities
from marketsched.worlds.prediction import History, Prediction, PredictionRule, predict
from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.derived import regularity
from marketsched.worlds.traces.trace import Source
from marketsched.worlds.workload import Workload, require

DAY_S = 86_400
TAIL_S = 43_200  # the market goes on for half a day after the last announcement
SLACK_S = (14_400, 7_200, 1_800, 900)  # by latency class

MIN_RUNS, MIN_REGULAR_SHARE = 20, 0.8


@dataclass(frozen=True)
class GoogleParameters(PredictionRule):
    """The parameters beside the prediction rule; the defaults are those of ``google-recurring``.

    Parameters
    ----------
    first_day, days : int
        The window: jobs are born from ``first_day`` days after the trace's time 0, for ``days``.
    durations : "revealed" or "hidden"
        Whether a job's duration is seen when it arrives, or only when it ends.
    capacity, max_concurrency : int
        C and c_max, nodes.
    longest_run_seconds : float
        Recurring jobs whose 95 % run is longer are left out.

    Examples
    --------
    >>> GoogleParameters(round_seconds=600.0).round_seconds
    600.0
    """

    first_day: Annotated[int, Whole(0, 28)] = 14
    days: Annotated[int, Whole(1, 29)] = 2
    durations: Literal["revealed", "hidden"] = "revealed"
    capacity: Count = 125
    max_concurrency: Count = 4
    longest_run_seconds: Positive = 14_400.0

    def __post_init__(self) -> None:
        PredictionRule.__post_init__(self)
        legal = f"expected at least max_concurrency = {self.max_concurrency}"
        require(self.capacity >= self.max_concurrency, f"capacity = {self.capacity!r}: {legal}")

    @property
    def revealed(self) -> bool:
        """Whether a job's duration is seen when it arrives."""
        return self.durations == "revealed"

    @property
    def birth_rounds(self) -> int:
        """Rounds in which jobs are born."""
        return math.ceil(self.days * DAY_S / self.round_seconds)

    @property
    def slack_rounds(self) -> tuple[int, ...]:
        """Slack of the deadlines by latency class, rounds."""
        return tuple(math.ceil(s / self.round_seconds) for s in SLACK_S)

    @property
    def max_delay(self) -> int:
        """S: lead, longest run, one round, longest slack, and the round in which the value is 0."""
        return self.lead_rounds + self.max_duration + 1 + max(self.slack_rounds) + 1

    @property
    def horizon(self) -> int:
        """T: half a day after the last birth, or ``max_delay`` if that is later."""
        return self.birth_rounds + max(math.ceil(TAIL_S / self.round_seconds), self.max_delay)


def google_recurring(source: Source = None, *, rng: Rng, parameters: GoogleParameters | None = None) -> Workload:
    """Build ``google-recurring``: two days of recurring jobs, announced 2 h ahead, durations revealed.

    Parameters
    ----------
    source : path, optional
        Data folder; None: the one named by ``MARKETSCHED_DATA``.
    rng : int, Generator or None
        One stream each is spawned for values and for borrowed demand; the rest is recorded.
    parameters : GoogleParameters, optional
        Other choices.

    Returns
    -------
    Workload
        Jobs in order of their announcement. Tags of a job: ``group``, ``class`` (0..3), ``band``
        (free, middle, production), ``deadline`` (completion time), ``value_density`` (credits per
        node-round), ``covered`` (the law allows for what happens), ``early`` (came before it was
        announced), ``borrowed_demand``.

    Raises
    ------
    MissingDataError, TraceError
        If the trace files are not there or malformed.
    InvalidParameterError
        If no job is born in the window.

    Examples
    --------
    >>> google_recurring("traces", rng=7).capacity  # doctest: +SKIP
    125
    """
    rng = generator_of(rng)
    return _build("google-recurring", source, rng, parameters or GoogleParameters())


def saturated(source: Source = None, *, rng: Rng, parameters: GoogleParameters | None = None) -> Workload:
    """Build ``saturated``: the same runs on about half the nodes, not announced, durations hidden.

    As :func:`google_recurring`, with the defaults of :data:`SATURATED`.

    Examples
    --------
    >>> workload = saturated("DATA", rng=1)  # doctest: +SKIP
    """
    rng = generator_of(rng)
    return _build("saturated", source, rng, parameters or SATURATED)


SATURATED = GoogleParameters(capacity=66, durations="hidden", lead_seconds=0.0)


def recurring_groups(jobs: pd.DataFrame, longest_run_s: float) -> pd.DataFrame:
    """Return the recurring jobs of the trace: ``user, group, sched_class`` (that of the first run), sorted."""
    known = regularity(jobs)
    started = jobs[jobs["submit_s"] > 0].groupby(["user", "group"])
    # both tables are sorted by (user, group) and have one row for each
    known["run_s"] = started["run_s"].quantile(0.95).to_numpy()
    known["sched_class"] = started["sched_class"].first().to_numpy()
    regular = (known["n_runs"] >= MIN_RUNS) & (known["period_s"] > 0) & (known["regular_share"] >= MIN_REGULAR_SHARE)
    chosen = known[regular & (known["run_s"] <= longest_run_s)]
    return chosen[["user", "group", "sched_class"]].reset_index(drop=True)


def histories(jobs: pd.DataFrame, groups: pd.DataFrame, rule: PredictionRule) -> list[History]:
    """Return all runs of each recurring job, in order of submission."""
    index = pd.MultiIndex.from_frame(groups[["user", "group"]])
    code = index.get_indexer(pd.MultiIndex.from_frame(jobs[["user", "group"]]))
    chosen = (code >= 0) & (jobs["submit_s"].to_numpy() > 0)
    code, runs = code[chosen], jobs[chosen]
    order = np.lexsort((runs["submit_s"].to_numpy(), code))
    submits, run_s = runs["submit_s"].to_numpy()[order], runs["run_s"].to_numpy()[order]
    ends = submits + np.nan_to_num(runs["wait_s"].to_numpy()[order]) + run_s  # NaN where the end is not known
    rounds = np.ceil(np.nan_to_num(run_s) / rule.round_seconds).clip(1, rule.max_duration).astype(np.int64)
    bounds = np.searchsorted(code[order], np.arange(len(groups) + 1)).tolist()
    return [History(submits[i:j].tolist(), ends[i:j].tolist(), rounds[i:j].tolist()) for i, j in pairwise(bounds)]


class _RecurringJobs(NamedTuple):
    """The recurring jobs of a trace; none of this depends on the window."""

    histories: list[History]  # one for each recurring job
    owners: RecurringOwners  # what their runs ask for and are worth
    borrowed: int  # recurring jobs whose demand is borrowed
    last_submit_s: float  # of the whole trace


def recurring_jobs(source: Source, rng: np.random.Generator, parameters: GoogleParameters) -> _RecurringJobs:
    """Read the trace and draw what its recurring jobs ask for and are worth.

    Equal states of ``rng`` give equal draws in every window: they are made once per recurring job,
    whether or not it has a run there.
    """
    jobs = TRACES["google-jobs"].read(source)
    groups = recurring_groups(jobs, parameters.longest_run_seconds)
    values_rng, demand_rng = rng.spawn(2)
    demand = demand_of(groups, TRACES["google-demand"].read(source), parameters.max_concurrency, demand_rng)
    densities = value_densities(demand.band, values_rng)
    owners = RecurringOwners(
        groups, demand, densities, parameters.slack_rounds, parameters.max_delay, parameters.revealed
    )
    last = float(jobs["submit_s"].max())
    return _RecurringJobs(histories(jobs, groups, parameters), owners, int(demand.borrowed.sum()), last)


def _build(name: str, source: Source, rng: np.random.Generator, parameters: GoogleParameters) -> Workload:
    known = recurring_jobs(source, rng, parameters)
    origin = float(parameters.first_day * DAY_S)
    made: list[tuple[float, Job]] = []
    too_late = 0
    for g, past in enumerate(known.histories):
        for run, prediction in born_in_window(past, parameters, origin):
            arrival = math.floor((past.submits[run] - origin) / parameters.round_seconds) + 1
            if arrival > parameters.horizon:
                too_late += 1
                continue
            job = known.owners.job(g, run, prediction, arrival, past.durations[run])
            made.append((prediction.birth_s, job))
    require(
        bool(made),
        f"first_day = {parameters.first_day}, days = {parameters.days}: no recurring job is born in these days; "
        f"the trace ends on day {known.last_submit_s / DAY_S:.2f}",
    )
    made.sort(key=lambda pair: pair[0])  # inside a round, who announces first submits first
    ordered = tuple(job for _, job in made)
    return Workload(
        name,
        ordered,
        capacity=parameters.capacity,
        birth_rounds=parameters.birth_rounds,
        horizon=parameters.horizon,
        max_concurrency=parameters.max_concurrency,
        max_duration=parameters.max_duration,
        max_value=HIGHEST_DENSITY * parameters.max_concurrency * parameters.max_duration,
        max_delay=parameters.max_delay,
        round_seconds=parameters.round_seconds,
        notes=_notes(ordered, len(known.histories), known.borrowed, too_late),
    )


def born_in_window(past: History, parameters: GoogleParameters, origin: float) -> list[tuple[int, Prediction]]:
    """Return (index of run, prediction) of the runs of one recurring job that are born in the window."""
    born: list[tuple[int, Prediction]] = []
    end = origin + parameters.days * DAY_S
    for run in range(1, len(past.submits)):
        # a birth lies between the submission before and that of the run itself
        if past.submits[run] < origin or math.isnan(past.ends[run]):
            continue
        if past.submits[run - 1] >= end:
            break
        prediction = predict(past, run, parameters, origin)
        if prediction is not None and origin <= prediction.birth_s < end:
            born.append((run, prediction))
    return born


def _notes(jobs: tuple[Job, ...], n_groups: int, n_borrowed: int, too_late: int) -> dict[str, str | int | float]:
    """Return the modelling choices, and what they amount to."""
    return {
        "source": "Google cluster data 2011-2, CC BY 4.0; values, deadlines and borrowed demand are a model",
        "recurring jobs": n_groups,
        "recurring jobs with borrowed demand": n_borrowed,
        "statements": len(jobs),
        "points per statement, mean": sum(job.truth.durations.size for job in jobs) / len(jobs),
        "what happened is in the law, share": sum(job.tags["covered"] for job in jobs) / len(jobs),
        "runs that came before they were announced": sum(job.tags["early"] for job in jobs),
        "deadlines cut to max_delay": sum(job.tags["deadline_cut"] for job in jobs),
        "runs left out because they came after the last round": too_late,
    }
