"""The search for hard instances: what it finds is real, replays, keeps to the model, and is hard."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from draws import many
from marketsched import Scenario, run
from marketsched.config.sow_codec import sow_from_json
from marketsched.mechanisms import InvalidParameterError, UnknownNameError, registry
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.limits import SIZES
from marketsched.study.hard.adversary import search_hard_instance
from marketsched.study.hard.birth_sequences import InstanceLimits
from marketsched.study.hard.instance_trial import TrialMeans
from refusals import refused

LIMITS = InstanceLimits()
TIGHT = InstanceLimits(capacity=3, horizon=8, max_delay=6)
OVERBOOKED = {
    "name": "posted-price",
    "epsilon": -0.6,
    "threshold": 1.0,
    "pricing": {"kind": "posted", "prices": [0.01]},
    "eviction": "all",
}


def jobs_scenario(jobs, mechanism=None, **limits):
    """A scenario of kind jobs with the default limits."""
    sizes = {name: getattr(LIMITS, name) for name in SIZES} | limits
    return {"name": "start", "workload": {"kind": "jobs", **sizes, "jobs": jobs}, "mechanism": mechanism or {}}


def entry(name="A", value=8.0, **fields):
    row = {
        "name": name,
        "birth": 1,
        "concurrency": 1,
        "value": {"kind": "deadline", "value": value, "deadline": 5},
        "requirements": [{"arrival": 2, "duration": 2, "probability": 1.0}],
        "arrival": 2,
        "duration": 2,
    }
    return {**row, **fields}


def optimum_by_trying_all(jobs, capacity, horizon, max_delay):
    """The best schedule of a few realised jobs, start by start."""
    choices = []
    for job in jobs:
        last = min(job.truth.birth + max_delay - 1, horizon + 1)
        starts = range(job.arrival, last - job.duration + 1)
        choices.append([None, *(s for s in starts if job.truth.value(s + job.duration) > 0)])
    best = 0.0
    for starts in itertools.product(*choices):
        load, value = np.zeros(horizon + 2), 0.0
        for job, s in zip(jobs, starts, strict=True):
            if s is not None:
                load[s : s + job.duration] += job.truth.concurrency
                value += job.truth.value(s + job.duration)
        if load.max() <= capacity:
            best = max(best, value)
    return best


# --- what is found ----------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("mechanism", ["exponential", "first-come", OVERBOOKED])
def test_what_is_found_replays_to_the_digit(mechanism, tmp_path):
    found = search_hard_instance(TIGHT, mechanism, steps=120, restarts=2, max_jobs=16, rng=3)
    again = Scenario.from_dict(found.scenario().to_dict())
    assert again == found.scenario()
    found.save(tmp_path / "hard.yaml")
    for scenario in (again, tmp_path / "hard.yaml"):
        assert run(scenario, found.seeds[0]).outcome["welfare"] == found.welfare
    assert again.expected == {"welfare": (found.welfare, 0.0)}
    assert again.mechanism.name == found.mechanism
    assert found.n_jobs == len(again.workload.jobs) <= 16


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("mechanism", ["exponential", "first-come"])
def test_the_optimum_is_that_of_all_schedules_tried(mechanism):
    for seed in range(3):
        found = search_hard_instance(TIGHT, mechanism, steps=60, restarts=2, max_jobs=4, rng=seed)
        setup = found.scenario().setup(np.random.default_rng(0))
        best = optimum_by_trying_all(setup.jobs, setup.capacity, setup.horizon, setup.max_delay)
        assert found.proven
        assert found.optimum == pytest.approx(best, rel=1e-12)
        assert found.ratio == found.ratio_bound == found.optimum / found.welfare >= 1.0
        assert found.lp_bound >= found.optimum >= found.welfare > 0
        assert found.ratio >= found.start_ratio >= 1.0


@pytest.mark.slow
def test_every_job_keeps_to_the_model():
    found = search_hard_instance(LIMITS, "exponential", steps=many(150, least=60), restarts=2, rng=1)
    workload = found.scenario().workload
    births = [job.birth for job in workload.jobs]
    assert births == sorted(births)
    for job in workload.jobs:
        sow = sow_from_json(
            job.birth, {"concurrency": job.concurrency, "value": job.value, "requirements": job.requirements}
        )
        assert 1 <= job.birth <= job.arrival <= LIMITS.horizon
        assert 1 <= job.duration <= LIMITS.max_duration
        assert 1 <= job.concurrency <= LIMITS.max_concurrency
        values = sow.value.table(job.arrival + job.duration, 2 * LIMITS.max_delay)
        assert ((values == 0) | ((values >= 1) & (values <= LIMITS.max_value))).all()
        assert (np.diff(values) <= 0).all()
        assert sow.value(job.birth + LIMITS.max_delay) == 0.0


@pytest.mark.long
@pytest.mark.slow
def test_equal_generators_find_equal_instances():
    one, two, other = (search_hard_instance(TIGHT, "first-come", steps=90, restarts=2, rng=rng) for rng in (7, 7, 8))
    assert one.scenario() == two.scenario()
    assert (one.history == two.history).all()
    assert (one.ratio, one.accepted, one.evaluations) == (two.ratio, two.accepted, two.evaluations)
    assert one.scenario() != other.scenario()


@pytest.mark.slow
def test_history_only_rises_and_bounds_the_ratio():
    found = search_hard_instance(LIMITS, "first-come", steps=200, restarts=4, rng=0)
    assert found.history.shape == (found.evaluations,)
    assert found.evaluations <= 200
    assert (np.diff(found.history) >= 0).all()
    assert found.ratio <= found.history[-1] * (1 + 1e-9)  # the dual bound is above the optimum
    assert 0 < found.accepted <= found.evaluations
    assert found.stopped == "steps"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("mechanism", ["exponential", OVERBOOKED])
def test_random_jobs_are_means_over_seeds(mechanism):
    limits = replace(TIGHT, capacity=4)
    found = search_hard_instance(
        limits, mechanism, steps=60, restarts=2, max_jobs=5, random_jobs=True, realisations=3, seed=5, rng=2
    )
    assert found.seeds == (5, 6, 7)
    welfare = [run(found.scenario(), seed).outcome["welfare"] for seed in found.seeds]
    assert found.welfare == math.fsum(welfare) / 3
    best = [
        optimum_by_trying_all(run_jobs(found.scenario(), seed), 4, limits.horizon, limits.max_delay)
        for seed in found.seeds
    ]
    assert found.optimum == pytest.approx(np.mean(best), rel=1e-12)
    assert found.ratio >= 1.0


def run_jobs(scenario, seed):
    """The jobs that arrive in a run with this seed."""
    setup = scenario.setup(np.random.default_rng(np.random.SeedSequence(seed)))
    return [job for job in setup.jobs if job.arrival is not None]


# --- it is hard -------------------------------------------------------------------------------------


class NeverWide(FirstCome):
    """First come, first served, but for jobs wider than one node, which never run."""

    def arrive(self, job, signal=None):
        if self._jobs[job].sow.concurrency == 1:
            super().arrive(job, signal)


def never_wide(*, epsilon, threshold, oracle, eviction, pricing, rng, **sizes):
    """Build it from the keys of a scenario."""
    return NeverWide(**sizes)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(many(3, least=1)))
def test_a_planted_weakness_is_found(seed, monkeypatch):
    monkeypatch.setitem(registry._TABLES["mechanism"], "never-wide", never_wide)
    found = search_hard_instance(None, "never-wide", steps=300, restarts=3, rng=seed)
    assert found.ratio > 50
    widths = [job.concurrency for job in found.scenario().workload.jobs]
    assert widths.count(2) > len(widths) / 2


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(many(3, least=1)))
def test_cheap_long_jobs_before_dear_ones_are_found(seed):
    # First come, first served at price 0: nothing but c_max D_max V_max = 128 bounds its ratio.
    found = search_hard_instance(None, "first-come", steps=600, restarts=3, rng=seed)
    luck = found.history[600 // 4 - 1]  # the hardest of those drawn at random, with which the search begins
    assert 5 < found.ratio <= 128
    assert found.ratio > luck


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    "mechanism", ["first-come", {"name": "posted-price", "pricing": {"kind": "posted", "prices": [0.0]}}]
)
def test_where_everything_fits_for_nothing_there_is_nothing_to_find(mechanism):
    found = search_hard_instance(InstanceLimits(capacity=200), mechanism, steps=100, restarts=2, max_jobs=30, rng=0)
    assert found.ratio == pytest.approx(1.0, abs=1e-12)
    assert found.ratio_bound == pytest.approx(1.0, abs=1e-12)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.compiled
def test_the_theorem_holds_where_its_conditions_do():
    found = search_hard_instance(InstanceLimits(capacity=18), "exponential", steps=many(200), restarts=2, rng=0)
    assert found.conditions_hold
    assert found.alpha == pytest.approx(4 * math.log(4 * 2 * 4 * 16))
    assert 1 <= found.ratio <= found.alpha
    small = search_hard_instance(InstanceLimits(capacity=17), "exponential", steps=10, restarts=2, rng=0)
    assert not small.conditions_hold
    assert "below the 18 nodes" in small.conditions


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.compiled
def test_the_theorem_holds_at_length():
    found = search_hard_instance(InstanceLimits(capacity=12), "exponential", steps=2000, rng=0)
    print(found)
    assert found.ratio <= found.alpha


def test_an_instance_that_earns_nothing_is_not_hard():
    assert TrialMeans(bound=5.0, welfare=0.0).score == 0.0
    dear = {"name": "posted-price", "pricing": {"kind": "posted", "prices": [100.0]}}
    with pytest.raises(InvalidParameterError, match="earned nothing from any of 20 instances"):
        search_hard_instance(None, dear, steps=20, restarts=2, rng=0)


# --- from a scenario --------------------------------------------------------------------------------


def test_a_scenario_gives_limits_start_and_mechanism():
    jobs = [entry("A"), entry("B", birth=2, value=3.0), entry("C", arrival=None)]
    scenario = jobs_scenario(jobs, {"name": "first-come"}, capacity=3, max_value=9.0)
    found = search_hard_instance(scenario, steps=1, restarts=1)
    assert found.mechanism == "first-come"
    assert (found.n_jobs, found.ratio, found.welfare) == (2, 1.0, 11.0)  # C never arrives
    workload = found.scenario().workload
    assert (workload.capacity, workload.max_value, workload.horizon) == (3, 9.0, LIMITS.horizon)
    other = search_hard_instance(Scenario.from_dict(scenario), "exponential", steps=30, restarts=2, rng=0)
    assert other.mechanism == "exponential"
    assert all(job.value["value"] <= 9.0 for job in other.scenario().workload.jobs if job.value["kind"] == "deadline")


@pytest.mark.slow
def test_sizes_of_the_mechanism_narrow_the_limits():
    own = {"name": "exponential", "capacity": 5, "max_concurrency": 1}
    found = search_hard_instance(jobs_scenario([entry()], own), steps=40, restarts=1, rng=0)
    assert found.scenario().workload.capacity == 5
    assert {job.concurrency for job in found.scenario().workload.jobs} == {1}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"scenario_or_limits": "synthetic-pipelines"}, "workload.kind = 'synthetic-pipelines': expected 'jobs'"),
        ({"scenario_or_limits": 7}, "scenario_or_limits = 7: expected a scenario"),
        ({"mechanism": None}, "mechanism = None: expected a name"),
        ({"mechanism": {"name": "exponential", "epsilon": 2}}, r"mechanism: epsilon = 2"),
        ({"realisations": 0}, "realisations = 0"),
        ({"scenario_or_limits": jobs_scenario([entry(value=0.5)])}, r"job 'A': expected .* values in \[1, 16\]"),
        ({"scenario_or_limits": jobs_scenario([entry(arrival=None)])}, "has 0 jobs that arrive"),
        ({"scenario_or_limits": jobs_scenario([entry(), entry("B")]), "max_jobs": 1}, "has 2 jobs that arrive"),
        (
            {
                "scenario_or_limits": jobs_scenario(
                    [
                        entry(
                            requirements=[
                                {"arrival": 2, "duration": d, "probability": 0.5, "signal": None} for d in (1, 2)
                            ]
                        )
                    ]
                ),
                "random_jobs": True,
            },
            "hides its duration",
        ),
    ],
)
def test_bad_input(arguments, said):
    with pytest.raises(InvalidParameterError, match=said):
        search_hard_instance(**{"mechanism": "exponential", "steps": 5, "restarts": 1, **arguments})


def test_unknown_names():
    refused(lambda: search_hard_instance(None, "auction"), place="name", seen="auction", error=InvalidParameterError)
    refused(lambda: search_hard_instance("nowhere", "exponential"), "no such file", error=UnknownNameError)


@pytest.mark.parametrize(
    ("name", "x"), [("capacity", 0), ("max_concurrency", 13), ("max_value", 0.5), ("max_delay", 1)]
)
def test_bad_limits(name, x):
    with pytest.raises(InvalidParameterError, match=f"{name} = {x}"):
        InstanceLimits(**{name: x})


def test_a_folder_that_is_not_there_leaves_nothing(tmp_path):
    found = search_hard_instance(TIGHT, "first-come", steps=5, restarts=1, rng=0)
    with pytest.raises(FileNotFoundError):
        found.save(tmp_path / "missing" / "hard.yaml")
    assert not list(tmp_path.iterdir())


# --- interruptions ----------------------------------------------------------------------------------


def stop_at(n):
    """A progress function that interrupts at the n-th evaluation."""

    def progress(done, total):
        assert 1 <= done <= total
        if done == n:
            raise KeyboardInterrupt

    return progress


@pytest.mark.slow
def test_an_interrupted_search_keeps_the_best_so_far():
    whole = search_hard_instance(TIGHT, "first-come", steps=200, restarts=2, rng=4)
    part = search_hard_instance(TIGHT, "first-come", steps=200, restarts=2, rng=4, progress=stop_at(60))
    assert part.stopped == "interrupt"
    assert part.evaluations == 60
    assert (part.history == whole.history[:60]).all()
    assert part.ratio >= part.start_ratio
    assert run(part.scenario()).outcome["welfare"] == part.welfare


def test_an_interruption_before_anything_is_found_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        search_hard_instance(TIGHT, "first-come", steps=200, rng=4, progress=stop_at(1))


def test_a_limit_of_seconds_ends_the_search():
    found = search_hard_instance(TIGHT, "first-come", steps=10**6, seconds=0.2, rng=4)
    assert found.stopped == "seconds"
    assert 1 <= found.evaluations < 10**6
