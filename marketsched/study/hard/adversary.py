r"""Search for hard instances: markets in which a mechanism earns the smallest share of the optimum.

Simulated annealing over birth sequences within the limits of the model (C, T, c_max, D_max, V_max, S).
What is maximised is

.. math:: \frac{\text{upper bound on } OPT}{\text{welfare of the mechanism}}

with the certified dual bound (29) of docs/mathematics.md above and, below, what the mechanism really
earns when the market is played (Algorithm 1: evictions, payments, everything). An instance from which
it earns nothing scores 0: it tells nothing about the ratio, and neither does an empty one. The best
instances of all restarts are then measured exactly: the linear program (11) and the exact optimum in
hindsight above, a full market run below. The worst one is kept as a scenario, to be run again.

Owners report truthfully, durations are revealed at arrival, and no job is submitted again. With random
jobs every instance is played under a fixed list of seeds, and OPT and welfare are means over them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.config.job_list import JobList
from marketsched.config.mechanism_choice import MechanismChoice
from marketsched.config.named_mechanisms import promised_ratio
from marketsched.config.scenario import Scenario
from marketsched.config.strict_yaml import validated
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Positive, Seed, Whole, legal
from marketsched.mechanisms.limits import SIZES
from marketsched.mechanisms.randomness import generator_of
from marketsched.play.running import run
from marketsched.relaxed_lp.bounds import realised_bound
from marketsched.relaxed_lp.hindsight import hindsight_optimum
from marketsched.results.hard_kind import instance_file
from marketsched.results.output import whole_file
from marketsched.results.result import Result, versions
from marketsched.study.hard.annealing import Progress, Search, SearchLength, Stopped
from marketsched.study.hard.birth_sequences import BirthSequence, InstanceLimits, entries, sketched
from marketsched.study.hard.instance_trial import Trial
from marketsched.study.hard.sequence_changes import Changes

NODE_LIMIT = 20_000  # of the exact optimum's search tree: a limit that is the same on every machine


@dataclass(frozen=True, slots=True, eq=False)
class HardInstance:
    """The worst instance found for a mechanism, and how bad it is. Money in credits.

    ``ratio`` is the worth of the best schedule found in hindsight over the mechanism's welfare, and
    the true ratio lies in [ratio, ratio_bound]; if ``proven`` that schedule is optimal and both are
    equal. With several ``seeds`` all of them are ratios of means.
    """

    mechanism: str  # its name
    ratio: float  # optimum / welfare
    ratio_bound: float  # bound / welfare
    proven: bool  # the optimum is exact
    optimum: float  # of a schedule in hindsight
    bound: float  # no schedule in hindsight is worth more
    lp_bound: float  # (11) of the jobs as they turn out, >= the exact optimum
    welfare: float  # what the mechanism earns
    start_ratio: float | None  # of the instance the search began with; None: nothing was earned there
    alpha: float | None  # what a theorem allows the ratio to be; None: no theorem is about this mechanism
    conditions_hold: bool  # all conditions of that theorem hold at this size
    conditions: str  # which do or do not
    n_jobs: int
    seeds: tuple[int, ...]  # of the runs that welfare is the mean of
    evaluations: int
    accepted: int  # changes that the annealing took
    seconds: float
    stopped: Stopped  # what ended the search
    history: NDArray[np.float64] = field(repr=False)  # (evaluations,), best score after each
    instance: Scenario = field(repr=False)

    def scenario(self) -> Scenario:
        """Return the instance as a scenario: `run` with one of ``seeds`` earns exactly the welfare found."""
        return self.instance

    def save(self, path: str | PathLike[str]) -> None:
        """Write the scenario to a YAML file, whole or not at all.

        Raises
        ------
        OSError
            If the file cannot be written; an earlier file then remains.
        """
        with whole_file(Path(path)) as partial:
            partial.write_text(self.instance.to_yaml(), encoding="utf-8")


def hard_instances(found: Mapping[str, HardInstance], *, seed: int, asked: int | None = None) -> Result:
    """Return what searches have found, by what their mechanisms are called, as one result.

    Parameters
    ----------
    found : mapping of str to HardInstance
    seed : int
        Of the searches.
    asked : int, optional
        How many were to be made; None: these.

    Returns
    -------
    Result
        Of kind ``hard``: one row per mechanism in the summary, and ``hard-LABEL.yaml``, its instance, which runs.
    """
    figures = [field.name for field in fields(HardInstance) if field.name not in ("history", "instance")]
    rows = [{"label": label} | {name: getattr(each, name) for name in figures} for label, each in found.items()]
    asked = len(found) if asked is None else asked
    complete = len(found) == asked and all(each.stopped != "interrupt" for each in found.values())
    meta = {"mechanisms": list(found), "mechanisms_asked_for": asked, "seed": seed, "versions": versions()}
    texts = {instance_file(label): each.instance.to_yaml() for label, each in found.items()}
    return Result("hard", {}, pd.DataFrame(rows), {**meta, "complete": complete}, texts)


@legal
def search_hard_instance(
    scenario_or_limits: Scenario | InstanceLimits | str | PathLike[str] | Mapping[str, Any] | None = None,
    mechanism: str | Mapping[str, Any] | MechanismChoice | None = None,
    *,
    steps: Count = 2000,
    restarts: Count = 5,
    seconds: Positive | None = None,
    max_jobs: Count = 48,
    random_jobs: bool = False,
    realisations: int | None = None,
    seed: Seed = 0,
    exact_seconds: Positive = 60.0,
    progress: Progress | None = None,
    rng: np.random.Generator | int | None = None,
) -> HardInstance:
    """Search for an instance on which a mechanism does worst against the best schedule in hindsight.

    Parameters
    ----------
    scenario_or_limits : Scenario, name, path or mapping; MarketLimits; None
        A scenario of workload kind ``jobs`` gives the limits and the instance to start from (its
        jobs as they really turn out with ``seed``). Limits alone, by default the small ones of
        `InstanceLimits`: the search starts from instances drawn at random.
    mechanism : str, mapping or MechanismChoice, optional
        A name of the registry (with the rules of the scenario, if there is one, as far as they suit
        it), or a mechanism as in a scenario file; None: the scenario's own. Sizes of its own narrow
        the limits.
    steps : int
        Instances evaluated at most, over all restarts.
    restarts : int
        Annealing runs before the last, from the hardest of a quarter of ``steps`` drawn at random; the
        first of them from the scenario's instance.
    seconds : float, optional
        Time limit, seconds; the result then depends on the machine.
    max_jobs : int
        Most jobs of an instance.
    random_jobs : bool
        Also try jobs with two possible arrivals or durations; a scenario's jobs keep their laws.
    realisations : int, optional
        Runs that welfare and OPT are means of, with seeds ``seed``, ``seed + 1``, ...; by default 8
        with random jobs, and 1 without.
    seed : int
        Of the (first) run that an instance is scored with.
    exact_seconds : float
        Time limit of each exact optimum.
    progress : function of (int, int), optional
        Called after each evaluation with their number so far, and in all.
    rng : Generator or int, optional
        Source of the search: equal ones find equal instances.

    Returns
    -------
    HardInstance
        The worst instance found. On Ctrl-C, the worst so far.

    Raises
    ------
    InvalidParameterError
        If a number is out of range; if the scenario is of another kind, or one of its jobs is
        outside the model; if the mechanism refuses its parameters, or earned nothing anywhere.
    UnknownNameError
        If the mechanism or the scenario has no such name.
    KeyboardInterrupt
        If it comes before anything was found.

    Examples
    --------
    >>> found = search_hard_instance(InstanceLimits(capacity=2), "first-come", steps=60, restarts=1, rng=0)
    >>> found.proven, found.ratio >= found.start_ratio, found.scenario().workload.kind
    (True, True, 'jobs')
    """
    base, limits, choice = _read(scenario_or_limits, mechanism)
    plan = SearchLength(
        steps,
        restarts,
        math.inf if seconds is None else seconds,
        max_jobs,
    )
    n_runs = Whole(1).check("realisations", (8 if random_jobs else 1) if realisations is None else realisations)
    first = None if base is None else _start(base, limits, seed, plan.max_jobs, keep_law=random_jobs)
    trial = Trial(limits, choice, range(seed, seed + n_runs), plan.max_jobs)
    changes = Changes(limits, plan.max_jobs, random_jobs=random_jobs)
    search = Search(trial, changes, plan, progress)
    search.run(first, generator_of(rng))
    return _measured(search, exact_seconds)


def _read(
    given: Scenario | InstanceLimits | str | PathLike[str] | Mapping[str, Any] | None,
    mechanism: str | Mapping[str, Any] | MechanismChoice | None,
) -> tuple[Scenario | None, InstanceLimits, MechanismChoice]:
    """Return the scenario, if there is one, the limits, and the mechanism; sizes of its own narrow the limits."""
    if given is not None and not isinstance(given, (Scenario, InstanceLimits, str, PathLike, Mapping)):
        raise InvalidParameterError(f"scenario_or_limits = {given!r}: expected a scenario, MarketLimits, or None")
    base = None if given is None or isinstance(given, InstanceLimits) else Scenario.of(given, kind="market")
    if base is not None and not isinstance(base.workload, JobList):
        raise InvalidParameterError(
            f"scenario {base.name!r}: workload.kind = {base.workload.kind!r}: expected 'jobs', whose jobs and limits a "
            "search can change"
        )
    if isinstance(mechanism, MechanismChoice):
        choice = mechanism
    elif isinstance(mechanism, Mapping):
        choice = validated(MechanismChoice, mechanism, "mechanism")
    elif base is not None:
        choice = base.mechanism if mechanism is None else base.with_mechanism(mechanism).mechanism
    elif isinstance(mechanism, str):
        choice = validated(MechanismChoice, {"name": mechanism}, "mechanism")
    else:
        raise InvalidParameterError(f"mechanism = {mechanism!r}: expected a name, if no scenario says which")
    sizes = given if isinstance(given, InstanceLimits) else base.workload if base is not None else InstanceLimits()
    of_market = {name: getattr(sizes, name) for name in SIZES}
    merged = of_market | {name: getattr(choice, name) for name in SIZES if getattr(choice, name) is not None}
    for name in ("max_concurrency", "max_duration", "max_value"):  # reports keep to both
        merged[name] = min(merged[name], of_market[name])
    merged["max_concurrency"] = min(merged["max_concurrency"], merged["capacity"])
    return base, InstanceLimits(**merged), choice


def _start(base: Scenario, limits: InstanceLimits, seed: int, max_jobs: int, *, keep_law: bool) -> BirthSequence:
    """Return the jobs of a scenario, with their laws or as they turn out with this seed."""
    workload = base.workload.build(np.random.default_rng(np.random.SeedSequence(seed)).spawn(3)[0], None)
    found = (sketched(job, limits, keep_law=keep_law) for job in workload.jobs)
    first = tuple(sketch for sketch in found if sketch is not None)
    if not 0 < len(first) <= max_jobs:
        raise InvalidParameterError(
            f"scenario {base.name!r} has {len(first)} jobs that arrive: expected 1 to {max_jobs} (max_jobs)"
        )
    return first


class _Measure(NamedTuple):
    """One instance, measured; means over the seeds, credits."""

    optimum: float
    bound: float
    proven: bool
    welfare: float

    @property
    def ratio(self) -> float:
        """OPT over welfare, from below."""
        return self.optimum / self.welfare if self.welfare > 0 else 0.0


def _measure(trial: Trial, sequence: BirthSequence, exact_seconds: float, welfare: list[float]) -> _Measure:
    """Return the exact optimum of each seed beside what the mechanism earned there."""
    limits = trial.limits
    found = [
        hindsight_optimum(
            trial.realised(jobs), limits.capacity, limits.horizon, time_limit=exact_seconds, node_limit=NODE_LIMIT
        )
        for jobs in trial.jobs(sequence)
    ]
    # What the mechanism ran is a schedule, too: sums that differ in the last digit must not put it above the best.
    best = [max(one.value, earned) for one, earned in zip(found, welfare, strict=True)]
    bounds = [max(one.bound, value) for one, value in zip(found, best, strict=True)]
    proven = all(one.proven for one in found)
    return _Measure(_mean(best), _mean(best if proven else bounds), proven, _mean(welfare))


def _mean(numbers: list[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def _measured(search: Search, exact_seconds: float) -> HardInstance:
    """Measure the best instances exactly, and return the worst of them for the mechanism."""
    trial = search.trial
    assert search.first is not None
    ranked = sorted(search.finalists, key=lambda sequence: -search.finalists[sequence])
    if not search.finalists[ranked[0]]:
        raise InvalidParameterError(
            f"mechanism {trial.choice.name!r} earned nothing from any of {len(search.history)} instances: expected one "
            f"that runs some job worth at most max_value = {trial.limits.max_value:g}"
        )
    if search.stopped == "interrupt":
        ranked = ranked[:1]
    candidates = dict.fromkeys([*ranked, search.first])
    measures = {one: _measure(trial, one, exact_seconds, trial.welfare(one)) for one in candidates}
    worst, start = max(candidates, key=lambda one: measures[one].ratio), measures[search.first]
    scenario = _scenario(trial, worst, measures[worst], search)
    earned = [_replayed(scenario, seed) for seed in trial.seeds]
    found = _measure(trial, worst, exact_seconds, earned)
    lp = _mean([_lp_bound(trial, jobs) for jobs in trial.jobs(worst)])
    promise = promised_ratio(trial.choice, trial.limits, certain=all(sketch.certain for sketch in worst))
    return HardInstance(
        mechanism=trial.choice.name,
        ratio=found.ratio,
        ratio_bound=found.bound / found.welfare,
        proven=found.proven,
        optimum=found.optimum,
        bound=found.bound,
        lp_bound=max(lp, found.optimum),
        welfare=found.welfare,
        start_ratio=start.ratio if start.welfare > 0 else None,
        alpha=promise.alpha,
        conditions_hold=promise.holds,
        conditions=promise.conditions,
        n_jobs=len(worst),
        seeds=trial.seeds,
        evaluations=len(search.history),
        accepted=search.accepted,
        seconds=search.seconds,
        stopped=search.stopped,
        history=np.array(search.history),
        instance=scenario,
    )


def _replayed(scenario: Scenario, seed: int) -> float:
    """Return the welfare of a full run."""
    return float(run(scenario, seed).outcome["welfare"])


def _lp_bound(trial: Trial, jobs: list[Job]) -> float:
    """Return the certified value of (11) for jobs as they turned out."""
    return realised_bound(trial.realised(jobs), trial.limits.capacity, trial.limits.horizon).dual_value


def _scenario(trial: Trial, sequence: BirthSequence, measure: _Measure, search: Search) -> Scenario:
    """Write an instance out as a scenario."""
    limits, seeds = trial.limits, trial.seeds
    runs = f"seed {seeds[0]}" if len(seeds) == 1 else f"means over seeds {seeds[0]} to {seeds[-1]}"
    data = {
        "name": f"hard-for-{trial.choice.name}",
        "description": (
            f"Found by a search for instances on which the mechanism earns least of the best in hindsight: "
            f"{measure.optimum:.6g}{'' if measure.proven else ' or more'} against a welfare of {measure.welfare:.6g}, "
            f"ratio {measure.ratio:.4g} ({runs}; {len(search.history)} instances tried)."
        ),
        "workload": {
            "kind": "jobs",
            **{name: getattr(limits, name) for name in SIZES},
            "jobs": entries(sequence),
        },
        "mechanism": trial.choice,
    }
    if len(seeds) == 1:
        data["expected"] = {"welfare": measure.welfare}
    return Scenario.from_dict(data)
