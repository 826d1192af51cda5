r"""``synthetic-pipelines``: recurring jobs whose laws are known, and no data file.

400 recurring jobs in three priority bands, each with a period, a phase, a law of the jitter of its
arrival and a law of its duration; both laws have seven points, and what really happens is drawn
from them. Free jobs are announced shortly before they come and have time; production jobs are
short, tight, valuable and announced early. Periods, leads and values are chosen, not measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.legal import Maybe, Positive, Whole, check_fields
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.randomness import Rng, generator_of
from marketsched.worlds.demand import BANDS
from marketsched.worlds.prediction import IntegerLaw, distinct_rows, joint_law
from marketsched.worlds.runs import Law, Recurring, RecurringRuns
from marketsched.worlds.workload import Workload, require

# Seven points of a normal law, and their weights.
POINTS = np.array([-1.6, -0.9, -0.45, 0.0, 0.45, 0.9, 1.6])
WEIGHTS = np.array([0.08, 0.16, 0.18, 0.16, 0.18, 0.16, 0.08])

PERIODS, PERIOD_WEIGHTS = (12, 24, 36, 72, 288), (0.25, 0.2, 0.25, 0.15, 0.15)  # rounds
BAND_WEIGHTS = (0.4, 0.3, 0.3)  # free, middle, production
SINGLE_NODE = 0.8  # share of jobs on one node; the others take two
ON_THE_HOUR = 0.6  # share of jobs whose nominal start is the first round of an hour
HOUR_S = 3600.0

MEDIAN_RUN_S, RUN_SPREAD = 600.0, 1.3
LEAST_FREE_RUN_S, LONGEST_PRODUCTION_RUN_S = 1200.0, 1440.0
VARIATION, VARIATION_SPREAD = 0.3, 0.5
JITTER_S = 60.0

BYTES_PER_JOB = 1500.0  # as a job, and what a run keeps of it

BAND_DENSITY = np.array([1.5, 6.0, 36.0])  # credits per node-round
LOWEST_DENSITY, HIGHEST_DENSITY, DENSITY_SPREAD = 1.0, 40.0, 0.5
LEAD = (3, 12, 36)  # rounds
SLACK = (48, 6, 1)  # rounds


@dataclass(frozen=True)
class SyntheticParameters:
    """The parameters.

    Parameters
    ----------
    recurring_jobs : int
        Number of recurring jobs.
    birth_rounds : int
        Rounds in which jobs are born.
    utilisation : float
        The capacity is the expected work divided by this and by the rounds.
    capacity : int, optional
        C, nodes, instead of the one that follows from ``utilisation``.
    durations : "revealed" or "hidden"
        Whether a job's duration is seen when it arrives, or only when it ends.
    max_duration : int
        D_max, rounds; longer runs are clipped.
    round_seconds : float
        Length of a round.

    Examples
    --------
    >>> small = SyntheticParameters(recurring_jobs=20, birth_rounds=60)
    >>> len(synthetic_pipelines(rng=1, parameters=small).jobs) > 0
    True
    """

    recurring_jobs: Annotated[int, Whole(1, 100_000)] = 400
    birth_rounds: Annotated[int, Whole(1, 1_000_000)] = 288
    utilisation: Positive = 0.85
    capacity: Annotated[int | None, Maybe(Whole(2))] = None
    durations: Literal["revealed", "hidden"] = "revealed"
    max_duration: Annotated[int, Whole(1, 100_000)] = 48
    round_seconds: Positive = 300.0

    def __post_init__(self) -> None:
        check_fields(self)

    def build(self, rng: Rng) -> Workload:
        """Return the workload; see `synthetic_pipelines`."""
        return synthetic_pipelines(rng=rng, parameters=self)

    @property
    def revealed(self) -> bool:
        """Whether a job's duration is seen when it arrives."""
        return self.durations == "revealed"

    @property
    def max_delay(self) -> int:
        """S: lead, longest run, one round and slack of the band that needs most, and the round of value 0."""
        return max(lead + slack for lead, slack in zip(LEAD, SLACK, strict=True)) + self.max_duration + 2

    @property
    def horizon(self) -> int:
        """T: the last deadline is met by a completion in it."""
        return self.birth_rounds + self.max_delay


@dataclass(frozen=True, slots=True)
class _Pipelines:
    """The recurring jobs, as drawn; one entry each."""

    band: NDArray[np.int64]  # index into BANDS
    nodes: NDArray[np.int64]
    period: NDArray[np.int64]  # rounds
    phase: NDArray[np.int64]  # rounds before the first nominal start, in [0, period)
    median_s: NDArray[np.float64]  # of the run
    variation: NDArray[np.float64]  # coefficient of variation of the run
    jitter_s: NDArray[np.float64]  # standard deviation of the arrival, s
    density: NDArray[np.float64]  # credits per node-round


def draw_pipelines(
    parameters: SyntheticParameters, shape_rng: np.random.Generator, values_rng: np.random.Generator
) -> _Pipelines:
    """Draw the recurring jobs; ``values_rng`` draws values, ``shape_rng`` the rest."""
    n = parameters.recurring_jobs
    band = shape_rng.choice(len(BANDS), size=n, p=BAND_WEIGHTS)
    nodes = np.where(shape_rng.random(n) < SINGLE_NODE, 1, 2)
    period = shape_rng.choice(PERIODS, size=n, p=PERIOD_WEIGHTS)
    phase = (shape_rng.random(n) * period).astype(np.int64)
    hour = max(round(HOUR_S / parameters.round_seconds), 1)
    phase = np.where(shape_rng.random(n) < ON_THE_HOUR, phase // hour * hour, phase)
    median = MEDIAN_RUN_S * np.exp(RUN_SPREAD * shape_rng.standard_normal(n))
    median = np.where(band == 0, np.maximum(median, LEAST_FREE_RUN_S), median)
    median = np.where(band == 2, np.minimum(median, LONGEST_PRODUCTION_RUN_S), median)
    variation = VARIATION * np.exp(VARIATION_SPREAD * shape_rng.standard_normal(n))
    jitter = JITTER_S * np.exp(shape_rng.standard_normal(n))
    density = BAND_DENSITY[band] * np.exp(DENSITY_SPREAD * values_rng.standard_normal(n))
    density = density.clip(LOWEST_DENSITY, HIGHEST_DENSITY)
    return _Pipelines(band, nodes, period, phase, median, variation, jitter, density)


def run_rounds(
    median_s: NDArray[np.float64], variation: NDArray[np.float64], parameters: SyntheticParameters
) -> NDArray[np.int64]:
    """Return durations, rounds, shape (n, 7): the points of log-normal laws of these medians and variations."""
    sigma = np.array([math.sqrt(math.log1p(each**2)) for each in variation.tolist()])
    rounds = np.ceil(median_s[:, None] * np.exp(sigma[:, None] * POINTS) / parameters.round_seconds)
    found: NDArray[np.int64] = rounds.clip(1, parameters.max_duration).astype(np.int64)
    return found


def start_rounds(
    lead: NDArray[np.int64], jitter_s: NDArray[np.float64], parameters: SyntheticParameters
) -> NDArray[np.int64]:
    """Return waits from the birth to the arrival, rounds >= 0, shape (n, 7): points of normal laws around the leads."""
    late = np.rint(jitter_s[:, None] * POINTS / parameters.round_seconds).astype(np.int64)
    waits: NDArray[np.int64] = np.maximum(lead[:, None] + late, 0)
    return waits


def merged(rounds: NDArray[np.int64]) -> IntegerLaw:
    """Return the law with the seven weights at these values, which do not fall."""
    new = np.concatenate(([True], rounds[1:] != rounds[:-1]))
    return IntegerLaw(rounds[new], np.bincount(new.cumsum() - 1, weights=WEIGHTS).astype(np.float64))


def synthetic_pipelines(*, rng: Rng, parameters: SyntheticParameters | None = None) -> Workload:
    """Build ``synthetic-pipelines``: one day of 400 recurring jobs with known laws.

    Parameters
    ----------
    rng : int, Generator or None
        One stream each is spawned for the recurring jobs, their values, and what really happens.
    parameters : SyntheticParameters, optional
        Other choices.

    Returns
    -------
    Workload
        Jobs in order of birth, those of one round in order of recurring job. Tags of a job:
        ``group``, ``band`` (free, middle, production), ``period`` (rounds), ``deadline``
        (completion time), ``value_density`` (credits per node-round), ``covered`` (always true).

    Raises
    ------
    InvalidParameterError
        If no job is born.
    TooLargeError
        If the jobs do not fit into memory.

    Examples
    --------
    >>> workload = synthetic_pipelines(rng=7)
    >>> workload.capacity, sorted({job.tags["band"] for job in workload.jobs})
    (120, ['free', 'middle', 'production'])
    """
    rng = generator_of(rng)
    parameters = parameters or SyntheticParameters()
    shape_rng, values_rng, reality_rng = rng.spawn(3)
    pipelines = draw_pipelines(parameters, shape_rng, values_rng)
    expected = int((1 + parameters.birth_rounds // pipelines.period).sum())
    check_memory(
        f"{expected} jobs of {parameters.recurring_jobs} recurring jobs",
        BYTES_PER_JOB * expected,
        "fewer recurring_jobs or birth_rounds",
    )
    jobs, work, points = _runs(pipelines, parameters, reality_rng)
    require(len(jobs) > 0, f"birth_rounds = {parameters.birth_rounds}: no job is born in them")
    followed = max(round(work / parameters.birth_rounds / parameters.utilisation), 2)
    return Workload(
        "synthetic-pipelines",
        jobs,
        capacity=followed if parameters.capacity is None else parameters.capacity,
        birth_rounds=parameters.birth_rounds,
        horizon=parameters.horizon,
        max_concurrency=2,
        max_duration=parameters.max_duration,
        max_value=HIGHEST_DENSITY * 2 * parameters.max_duration,
        max_delay=parameters.max_delay,
        round_seconds=parameters.round_seconds,
        notes={
            "source": "no data: periods, leads, runs and values are chosen",
            "recurring jobs": parameters.recurring_jobs,
            "statements": len(jobs),
            "points per statement, mean": points / len(jobs),
            "capacity that follows from the expected work": followed,
        },
    )


def _runs(
    pipelines: _Pipelines, parameters: SyntheticParameters, reality_rng: np.random.Generator
) -> tuple[RecurringRuns, float, int]:
    """Return the runs that are born in the window, their expected node-rounds, and the points of all their laws."""
    lead, phase = np.array(LEAD)[pipelines.band], pipelines.phase
    # Nominal starts are `period` apart; those announced before the first round are not ours.
    first = np.maximum(np.ceil((lead - phase) / pipelines.period).astype(np.int64), 0)
    nominal = 1 + phase + first * pipelines.period
    births = nominal - lead
    counts = np.maximum(0, -((births - parameters.birth_rounds - 1) // pipelines.period))
    laws, law_of, means, longest = _laws(pipelines, lead, parameters)
    tags = {
        "band": np.array(BANDS)[pipelines.band],
        "period": pipelines.period,
        "deadline": None,
        "value_density": pipelines.density,
        "covered": np.ones(counts.size, np.bool_),  # drawn from the law
    }
    values = np.maximum(1.0, pipelines.density * pipelines.nodes * means)
    deadlines = nominal + longest + 1 + np.array(SLACK)[pipelines.band]
    of = Recurring("pipeline-", births, pipelines.nodes, laws, law_of, values, deadlines, tags)
    groups = np.repeat(np.arange(counts.size), counts)
    run = np.arange(groups.size) - np.repeat(np.cumsum(counts) - counts, counts)
    born = births[groups] + run * pipelines.period[groups]
    waits, durations = of.drawn(groups, reality_rng)
    order = np.argsort(born, kind="stable")
    numbers = (first[groups] + run)[order]
    columns = (groups[order], numbers, born[order], (born + waits)[order], durations[order])
    runs = RecurringRuns(of, *columns, revealed=parameters.revealed)
    work = float(np.cumsum(counts * pipelines.nodes.astype(np.float64) * means)[-1])  # one after the other
    sizes = np.array([law[2].size for law in laws])
    return runs, work, int(counts @ sizes[law_of])


def _laws(
    pipelines: _Pipelines, lead: NDArray[np.int64], parameters: SyntheticParameters
) -> tuple[list[Law], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return what is known of runs: the laws that differ, which each recurring job has, mean and 95 % durations.

    What is known of a run does not depend on which run it is: the law moves with the birth.
    """
    rounds = run_rounds(pipelines.median_s, pipelines.variation, parameters)
    waits = start_rounds(lead, pipelines.jitter_s, parameters)
    kinds, law_of = distinct_rows(np.hstack([waits, rounds]))
    laws, means, longest = [], np.empty(len(kinds)), np.empty(len(kinds), np.int64)
    for i, points in enumerate(kinds):
        wait, duration = (merged(part) for part in np.split(points, 2))
        laws.append(joint_law(wait, duration, 49))
        means[i], longest[i] = duration.mean, duration.quantile(0.95)
    return laws, law_of, means[law_of], longest[law_of]
