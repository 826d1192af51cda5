"""Sweep files: what they describe, and one clear line for whatever is wrong, before anything is run."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from marketsched.config.scenario import Scenario
from marketsched.mechanisms import InvalidParameterError
from marketsched.show.cli import app
from marketsched.study import SweepSpec, runs_of
from marketsched.study.sweeps.runs import runs_from
from sweep_tools import CLUSTER, ONE_JOB, write_spec


def spec(**parts):
    return SweepSpec.from_dict({"scenario": ONE_JOB, **parts})


def test_the_grid_turns_inside_the_list_and_seeds_inside_the_grid():
    runs = runs_of(
        spec(
            overrides=[{}, {"workload.capacity": 3}],
            grid={"mechanism.epsilon": [0, 0.5], "workload.horizon": [6, 7]},
            seeds=[4, 2],
        )
    )
    seen = [(run.case.number, run.scenario_at("workload.capacity"), run.seed) for run in map(Described, runs)]
    assert seen == [(case, 2 if case < 4 else 3, seed) for case in range(8) for seed in (4, 2)]
    assert [run.case.labels for run in runs[::2]] == [
        {"mechanism.epsilon": epsilon, "workload.horizon": horizon, "workload.capacity": capacity}
        for capacity in (2, 3)
        for epsilon in (0.0, 0.5)
        for horizon in (6, 7)
    ]
    assert len({run.key for run in runs}) == len(runs)


class Described:
    """A run, and what its resolved scenario holds."""

    def __init__(self, run):
        self.case, self.seed = run.case, run.seed

    def scenario_at(self, place):
        here = self.case.scenario.to_dict()
        for step in place.split("."):
            here = here[step]
        return here


def test_a_seed_count_counts_from_zero_and_twenty_is_the_default():
    assert spec(seeds=3).seeds == (0, 1, 2)
    assert spec().seeds == tuple(range(20))
    assert [run.seed for run in runs_of(spec(seeds=2), first_seed=7)] == [7, 8]


def test_markets_and_clusters_stand_side_by_side_and_come_back_from_their_text():
    runs = runs_of(SweepSpec.from_dict({"scenarios": [ONE_JOB, CLUSTER, "stochastic-mix"], "seeds": 1}))
    assert [run.case.scenario.kind for run in runs] == ["market", "ogasched", "market"]
    assert all(type(run.case.scenario) is Scenario for run in runs)
    for run in runs:
        assert Scenario.from_dict(json.loads(run.case.text)) == run.case.scenario


@given(
    value=st.one_of(
        st.floats(0, 0.99, allow_subnormal=False),
        st.sampled_from([0, 1e-5, 1e-300, 0.1 + 0.2]),
    ),
    text=st.text(st.characters(codec="utf-8"), min_size=1, max_size=200),
)
def test_values_reach_the_scenario_as_they_are(value, text):
    """Through the YAML of ``--set`` and back; text may look like anything."""
    (run,) = runs_of(spec(overrides=[{"mechanism.epsilon": value, "description": text, "name": text}], seeds=1))
    assert (run.case.scenario.mechanism.epsilon, run.case.scenario.name) == (value, text)
    assert run.case.labels == {"mechanism.epsilon": value, "description": text, "name": text}


def test_whole_parts_may_be_replaced():
    oracle = {"kind": "monte-carlo", "samples": 7}
    (run,) = runs_of(spec(grid={"mechanism.oracle": [oracle]}, seeds=1))
    assert run.case.scenario.mechanism.oracle.samples == 7
    assert json.loads(run.case.text)["mechanism"]["oracle"] == oracle


def test_the_key_depends_on_scenario_seed_and_code_alone(monkeypatch):
    first, second = (runs_of(spec(seeds=1, grid=grid))[0] for grid in ({}, {"mechanism.epsilon": [0]}))
    assert first.key == second.key  # 0 is what the scenario has anyway
    others = [
        runs_of(spec(seeds=[1]))[0].key,
        runs_of(spec(seeds=1, overrides=[{"mechanism.epsilon": 0.1}]))[0].key,
        runs_of(spec(seeds=1, optimum=False))[0].key,
    ]
    monkeypatch.setattr("marketsched.play.kept_results.fingerprint", lambda: {"code": "other"})
    others.append(runs_of(spec(seeds=1))[0].key)
    assert len({first.key, *others}) == 5


def test_runs_of_several_sweeps_are_numbered_anew():
    one, two = runs_of(spec(seeds=2)), runs_of(spec(seeds=1, grid={"mechanism.epsilon": [0, 0.5]}))
    runs = runs_from([*one, *two])
    assert [(run.case.number, run.seed) for run in runs] == [(0, 0), (0, 1), (1, 0), (2, 0)]
    assert [run.key for run in runs] == [run.key for run in [*one, *two]]


def test_runs_may_be_written_out():
    runs = runs_from([(ONE_JOB, 3), (Scenario.from_dict(ONE_JOB), 4), ("stochastic-mix", 3, {"load": "high"})])
    assert [(run.case.number, run.case.scenario.name, run.seed) for run in runs] == [
        (0, "one job", 3),
        (0, "one job", 4),
        (1, "stochastic-mix", 3),
    ]
    assert runs[2].case.labels == {"load": "high"}


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], r"runs: none: expected at least one"),
        ([ONE_JOB], r"runs\[0\] = .*: expected \(scenario, seed\)"),
        ([(ONE_JOB, -1)], r"runs\[0\]\[1\] = -1: expected a whole number"),
        ([(ONE_JOB, 0, 3)], r"runs\[0\]\[2\] = 3: expected a table"),
    ],
)
def test_faulty_runs_are_named_by_place(runs, message):
    with pytest.raises(InvalidParameterError, match=message):
        runs_from(runs)


BAD = [
    ({"scenario": ONE_JOB, "sedes": 3}, "sedes: unknown key (did you mean 'seeds'?)"),
    ({"seeds": 3}, "scenario: expected one scenario, or a list of them under scenarios"),
    ({"scenario": ONE_JOB, "scenarios": [ONE_JOB]}, "scenario: expected one scenario, or a list"),
    ({"scenarios": [ONE_JOB, ONE_JOB]}, "scenarios: two have the name 'one job'"),
    ({"scenario": 3}, "scenario = 3: expected the name of a built-in scenario, a file"),
    ({"scenario": "nowhere"}, "no such file, and the built-in ones are"),
    ({"scenario": {"name": "x"}}, "workload is missing"),
    ({"scenario": ONE_JOB, "seeds": 0}, "seeds = 0: expected how many seeds, or a list of different seeds"),
    ({"scenario": ONE_JOB, "seeds": [1, 1]}, "expected how many seeds, or a list of different seeds"),
    ({"scenario": ONE_JOB, "seeds": [2**63]}, "expected how many seeds, or a list of different seeds"),
    ({"scenario": ONE_JOB, "seeds": True}, "expected how many seeds"),
    ({"scenario": ONE_JOB, "grid": {"mechanism.epsilonn": [0]}}, "mechanism.epsilonn: unknown key"),
    ({"scenario": ONE_JOB, "grid": {"mechanism.epsilon": [0, 2]}}, "with mechanism.epsilon=2: mechanism.epsilon = 2"),
    ({"scenario": ONE_JOB, "grid": {"mechanism.epsilon": 0}}, "mechanism.epsilon: 0: expected a list"),
    ({"scenario": ONE_JOB, "grid": {"mechanism.epsilon": []}}, "mechanism.epsilon: []: expected a list"),
    ({"scenario": ONE_JOB, "grid": {"mechanism.epsilon": [0, 0]}}, "0 is there twice: expected every value once"),
    ({"scenario": ONE_JOB, "grid": {"mechanism..epsilon": [0]}}, "expected the place of a value"),
    ({"scenario": ONE_JOB, "grid": {"name.x": [0]}}, "'x': expected no more parts here"),
    ({"scenario": ONE_JOB, "grid": {"workload.jobs.3.birth": [1]}}, "'3': expected a place in 0 .. 0"),
    ({"scenario": ONE_JOB, "grid": [1]}, "grid = [1]: expected a table of keys"),
    ({"scenario": ONE_JOB, "overrides": ["a=1"]}, "overrides[0] = 'a=1': expected a table of keys and values"),
    (
        {"scenario": ONE_JOB, "grid": {"name": ["x"]}, "overrides": [{"name": "y"}]},
        "overrides[0].name: is in the grid too",
    ),
    (
        {"scenario": ONE_JOB, "seeds": 1000, "grid": {"mechanism.epsilon": [i / 2000 for i in range(1001)]}},
        "1,001,000 runs",
    ),
]


@pytest.mark.slow_after(8)
@pytest.mark.parametrize(("content", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_bad_input_is_one_line_and_nothing_is_written(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    write_spec(tmp_path / "bad.yaml", **content)
    found = CliRunner().invoke(app, ["sweep", "bad.yaml", "--out", "out"], catch_exceptions=False)
    assert found.exit_code == 2 and found.stdout == ""
    assert message in found.stderr and found.stderr.startswith("marketsched: bad.yaml: ")
    assert found.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_files_are_looked_for_beside_the_sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    write_spec(tmp_path / "deep" / "one.yaml", **ONE_JOB)
    write_spec(tmp_path / "deep" / "sweep.yaml", scenario="one.yaml", grid={"mechanism.nonsense": [1]})
    found = CliRunner().invoke(app, ["sweep", "deep/sweep.yaml"], catch_exceptions=False)
    assert (
        found.exit_code == 2 and "one.yaml with mechanism.nonsense=1: mechanism.nonsense: unknown key" in found.stderr
    )


def test_a_change_of_what_the_sweep_varies_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_spec(tmp_path / "a.yaml", scenario=ONE_JOB, grid={"workload.capacity": [2, 3]}, seeds=1)
    lost = CliRunner().invoke(app, ["sweep", "a.yaml", "--set", "workload.capacity=7"], catch_exceptions=False)
    assert lost.exit_code == 2 and not (tmp_path / "runs").exists()
    assert "--set = 'workload.capacity': a.yaml: workload.capacity is varied there" in lost.stderr


@pytest.mark.slow
def test_files_without_a_name_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_spec(tmp_path / "a.yaml", scenario=ONE_JOB, grid={"workload.capacity": [2, 3]}, seeds=1)
    write_spec(tmp_path / "b.yaml", scenario=ONE_JOB, overrides=[{"workload.capacity": 4}, {}], seeds=1)
    for name, *changes in (("a.yaml",), ("b.yaml", "--set", "workload.capacity=7")):  # a case does not name it
        made = CliRunner().invoke(app, ["sweep", name, *changes, "--workers", "1"], catch_exceptions=False)
        assert made.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["a-sweep", "b-sweep"]
