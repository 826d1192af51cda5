"""What the search for hard instances is made of: sequences, changes, trials, and what is promised."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched import Scenario, run
from marketsched.config.mechanism_choice import MechanismChoice
from marketsched.config.named_mechanisms import promised_ratio
from marketsched.mechanisms.limits import SIZES
from marketsched.study.hard.birth_sequences import (
    InstanceLimits,
    JobSketch,
    entries,
    in_order,
    is_legal,
    random_sequence,
    realised_jobs,
    sketched,
    statement,
)
from marketsched.study.hard.instance_trial import Trial
from marketsched.study.hard.sequence_changes import MOST_RANDOM, Changes

LIMITS = InstanceLimits()
OVERBOOKED = {
    "name": "posted-price",
    "epsilon": -0.6,
    "threshold": 1.0,
    "pricing": {"kind": "posted", "prices": [0.01]},
    "eviction": "all",
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "mechanism",
    [
        {"name": "exponential"},
        {"name": "exponential", "epsilon": 0.2, "oracle": {"kind": "monte-carlo", "samples": 64}, "threshold": 0.1},
        OVERBOOKED,
        {**OVERBOOKED, "eviction": "running"},
        {"name": "first-come", "parameters": {"price": 0.3}},
    ],
)
def test_a_trial_is_a_run(mechanism):
    limits, choice = replace(LIMITS, capacity=5), MechanismChoice.model_validate(mechanism)
    changes, evicted = Changes(limits, 24, random_jobs=True), 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        sequence = random_sequence(limits, 20, rng)
        for _ in range(15):
            sequence = changes(sequence, rng)
        trial = Trial(limits, choice, (seed, seed + 10), 24)
        scenario = Scenario.from_dict(
            {
                "name": "a run",
                "workload": {
                    "kind": "jobs",
                    **{name: getattr(limits, name) for name in SIZES},
                    "jobs": entries(sequence),
                },
                "mechanism": choice.model_dump(exclude_none=True),
            }
        )
        results = [run(scenario, k) for k in trial.seeds]
        assert trial.welfare(sequence) == pytest.approx([r.outcome["welfare"] for r in results], rel=1e-12)
        evicted += sum(r.outcome["evicted"] + r.outcome["cancelled"] for r in results)
        bounds = [r.outcome["bounds"]["dual"] for r in results]
        assert trial(sequence).bound == pytest.approx(np.mean(bounds), rel=0.02)
    assert evicted > 0 or choice.epsilon >= 0


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_changes_stay_in_the_model(seed, random_jobs):
    rng = np.random.default_rng(seed)
    limits = InstanceLimits(
        capacity=4,
        horizon=int(rng.integers(1, 12)),
        max_concurrency=int(rng.integers(1, 4)),
        max_duration=int(rng.integers(1, 6)),
        max_value=float(rng.choice([1.0, 3.0, 100.0])),
        max_delay=int(rng.integers(2, 9)),
    )
    changes, sequence = Changes(limits, 12, random_jobs=random_jobs), random_sequence(limits, 6, rng)
    seen = {sequence}
    for _ in range(30):
        sequence = changes(sequence, rng)
        seen.add(sequence)
        assert 1 <= len(sequence) <= 12
        assert all(is_legal(sketch, limits) for sketch in sequence)
        assert list(sequence) == sorted(sequence, key=lambda sketch: sketch.birth)
        assert sum(not sketch.certain for sketch in sequence) <= (MOST_RANDOM if random_jobs else 0)
    assert len(seen) > (5 if limits.horizon > 1 else 1)  # a market of one round allows few sequences


@given(st.integers(0, 2**32 - 1))
def test_a_sketch_survives_the_way_through_a_job(seed):
    rng = np.random.default_rng(seed)
    changes, sequence = Changes(LIMITS, 12, random_jobs=False), random_sequence(LIMITS, 6, rng)
    for _ in range(20):
        sequence = changes(sequence, rng)
    for sketch, job in zip(sequence, realised_jobs(sequence, [0.5] * len(sequence)), strict=True):
        again = sketched(job, LIMITS, keep_law=False)
        assert again.shape[:2] == sketch.shape[:2]
        first = sketch.birth + sketch.soonest
        assert np.array_equal(statement(again).value.table(first, 20), statement(sketch).value.table(first, 20))


def test_steps_are_worth_what_they_say():
    sketch = JobSketch(3, 1, ((1, 2, 1.0),), ((4, 8.0), (6, 2.0)))
    assert statement(sketch).value(np.arange(3, 12)).tolist() == [0, 0, 0, 8, 8, 2, 2, 0, 0]
    assert is_legal(sketch, LIMITS)
    for wrong in (
        replace(sketch, steps=((4, 8.0), (4, 2.0))),
        replace(sketch, steps=((4, 2.0), (6, 8.0))),
        replace(sketch, steps=((4, 17.0),)),
        replace(sketch, steps=((12, 8.0),)),
        replace(sketch, steps=((2, 8.0),)),
        replace(sketch, points=((1, 5, 1.0),)),
        replace(sketch, width=3),
        replace(sketch, birth=23),
    ):
        assert not is_legal(wrong, LIMITS)


def test_jobs_born_together_keep_their_order():
    one, two = (JobSketch(3, width, ((0, 1, 1.0),), ((2, 4.0),)) for width in (2, 1))
    assert in_order([two, one]) == (two, one)


@pytest.mark.parametrize(
    ("changes", "capacity", "holds", "said"),
    [
        ({}, 18, True, "Theorem 5.1"),
        ({"epsilon": 0.1}, 20, True, "Theorem 5.1"),
        ({"epsilon": 0.1}, 19, False, "C' = 17.1 is below the 18 nodes"),
        ({"epsilon": -0.1}, 30, False, "overbooks"),
        ({"pricing": {"kind": "exponential", "floor": 0.1}}, 30, False, "floor 0.1 exceeds"),
        ({"pricing": {"kind": "exponential", "ceiling": 8.0}}, 30, False, "ceiling 8 is below V_max"),
    ],
)
def test_what_is_promised_for_certain_jobs(changes, capacity, holds, said):
    choice = MechanismChoice.model_validate({"name": "exponential", **changes})
    found = promised_ratio(choice, InstanceLimits(capacity=capacity), certain=True)
    assert found.holds is holds
    assert said in found.conditions
    low = changes.get("pricing", {}).get("floor", 1 / 16)
    high = changes.get("pricing", {}).get("ceiling", 16.0)
    assert found.alpha == pytest.approx(4 * math.log(2 * high / low) / min(1, 1 - choice.epsilon))


def test_what_is_promised_for_uncertain_jobs():
    sizes = InstanceLimits(max_concurrency=2, max_duration=4, max_value=10.0, max_delay=20, capacity=1904)  # W5
    rules = {"name": "posted-price", "epsilon": 0.2, "threshold": "auto"}
    found = promised_ratio(MechanismChoice.model_validate(rules), sizes, certain=False)
    assert found.holds, found.conditions
    assert found.alpha == pytest.approx(4 * math.log(320) / (1 - 0.48))
    small = promised_ratio(MechanismChoice.model_validate(rules), replace(sizes, capacity=1903), certain=False)
    assert (small.alpha, small.holds) == (found.alpha, False)
    kept = {**rules, "oracle": {"kind": "monte-carlo", "samples": 100}}
    assert "kept sample paths" in promised_ratio(MechanismChoice.model_validate(kept), sizes, certain=False).conditions
    none = promised_ratio(MechanismChoice.model_validate({"name": "posted-price"}), sizes, certain=False)
    assert (none.alpha, none.holds) == (None, False)
    assert promised_ratio(MechanismChoice(name="first-come"), sizes, certain=True).alpha is None
