"""The dashboard's controls: what they accept, what they say to the rest, and what becomes of a scenario."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import read_scenario, scenario_names
from marketsched.dashboard.session import scaled_jobs
from marketsched.dashboard.settings import LIES, amount_of, apply, first_form, read_form
from marketsched.mechanisms.registry import mechanism_names

BASE = Scenario.load("synthetic-pipelines")
FORM = first_form(BASE, seed=3)
CONTROLS = tuple(FORM)


def test_an_untouched_form_is_the_scenario():
    settings, faults = read_form(FORM)
    assert faults == {} and settings.seed == 3 and settings.load == 100.0
    same = apply(settings, BASE)
    assert same.mechanism == BASE.mechanism and same.workload == BASE.workload
    assert same.owners.misreporting == 0.0


@pytest.mark.parametrize("name", [n for n in scenario_names() if "cluster" not in read_scenario(n)[0]])
def test_every_scenario_of_jobs_has_a_legal_first_form(name):
    scenario = Scenario.load(name)
    settings, faults = read_form(first_form(scenario, seed=0))
    assert faults == {}
    assert apply(settings, scenario).mechanism == scenario.mechanism


BAD = {
    "mechanism": ("", "no such", "posted-price "[:-2]),
    "capacity": ("0", "-3", "2.5", "many", "1e3", "nan", "9" * 400, "1000001"),
    "load": ("", "0", "-10", "nan", "inf", "1e9", "x", "100%"),
    "liars": ("", "-1", "101", "nan", "half"),
    "lie": ("", "truthful", "no such"),
    "amount": ("", "-1", "nan", "inf", "1e400", "two"),
    "seed": ("", "-1", "1.5", "nan", "0x10", "9" * 30, "seed"),
    "rounds": ("", "0", "-4", "1001", "1.5", "many"),
}


@pytest.mark.parametrize(("control", "value"), [(c, v) for c, values in BAD.items() for v in values])
def test_a_bad_value_is_refused_in_its_own_place(control, value):
    settings, faults = read_form({**FORM, control: value})
    assert settings is None
    assert set(faults) == {control}
    assert ": expected " in faults[control] and len(faults[control]) < 700 and "\n" not in faults[control]


@given(st.fixed_dictionaries({}, optional={control: st.text(max_size=30) for control in CONTROLS}))
def test_no_text_breaks_the_form(texts):
    settings, faults = read_form({**FORM, **texts})
    assert (settings is None) == bool(faults)
    if settings is not None:
        apply(settings, BASE)


def test_absent_controls_are_faults_not_errors():
    settings, faults = read_form({})
    assert settings is None and set(faults) == set(CONTROLS) - {"capacity"}


@pytest.mark.parametrize("mechanism", [name for name in mechanism_names() if not name.startswith("test:")])
@pytest.mark.parametrize("lie", LIES)
def test_all_choices_go_together(mechanism, lie):
    amount = f"{LIES[lie].telling:g}"
    form = {**FORM, "mechanism": mechanism, "lie": lie, "amount": amount, "liars": "40", "capacity": "77"}
    settings, faults = read_form(form)
    assert faults == {}
    scenario = apply(settings, BASE)
    assert scenario.mechanism.name == mechanism and scenario.mechanism.capacity == 77
    assert scenario.owners.misreporting == 0.4 and scenario.owners.strategy.kind == lie
    assert getattr(scenario.owners.strategy, amount_of(lie).name) == LIES[lie].telling


@pytest.fixture(scope="module")
def jobs():
    return BASE.setup(np.random.default_rng(0)).jobs[:200]


@pytest.mark.parametrize("load", [0.01, 0.5, 0.999, 1.0, 1.25, 3.0])
def test_load_scales_the_number_of_jobs(jobs, load):
    scaled = scaled_jobs(jobs, load, np.random.default_rng(1))
    assert abs(len(scaled) - load * len(jobs)) <= 1
    assert len({job.name for job in scaled}) == len(scaled)
    births = [job.truth.birth for job in scaled]
    assert births == sorted(births) or [j.truth.birth for j in jobs] != sorted(j.truth.birth for j in jobs)
    originals = {job.name: job for job in jobs}
    for job in scaled:
        twin = originals[job.name.partition("~")[0]]
        assert (job.owner, job.truth, job.arrival, job.duration) == (
            twin.owner,
            twin.truth,
            twin.arrival,
            twin.duration,
        )


def test_a_copy_never_takes_a_name_that_is_there(jobs):
    from dataclasses import replace

    pair = [replace(jobs[0], name="A"), replace(jobs[1], name="A~2"), replace(jobs[2], name="A~2~")]
    assert len({job.name for job in scaled_jobs(pair, 2.0, np.random.default_rng(0))}) == 6
