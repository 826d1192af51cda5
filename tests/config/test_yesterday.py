"""Yesterday's log of a mechanism: a run's folder or a workload, in a file, on the command line and in Python."""

import numpy as np
import pytest
from typer.testing import CliRunner

import marketsched
from marketsched.agents.market import Market
from marketsched.config.scenario import Scenario
from marketsched.config.yesterday import yesterday
from marketsched.mechanisms import InvalidParameterError
from marketsched.show.cli import app

SMALL = {
    "name": "small",
    "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 80, "birth_rounds": 60, "capacity": 6},
    "mechanism": {"name": "bid-price"},
}


def scenario(changes=None, **workload):
    return Scenario.from_dict(
        {**SMALL, "workload": {**SMALL["workload"], **workload}, "mechanism": {"name": "bid-price", **(changes or {})}}
    )


def known(history):
    return scenario({"parameters": {"history": history}})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("runs") / "yesterday"
    marketsched.run(scenario(), seed=7).save(where)
    return where


def test_a_run_is_remembered_as_it_was(folder):
    """Every job that arrived while jobs were born teaches, a day earlier; the first prices are there at once."""
    setup = scenario().setup(np.random.default_rng(np.random.SeedSequence(7)))
    workload = scenario().workload.build(np.random.default_rng(0), None)
    log = yesterday(str(folder), scenario().mechanism, workload, None, read=Scenario.from_dict)
    assert [(a.owner, a.sow.birth, a.arrival, a.signal) for a in log.arrivals] == [
        (job.owner, job.truth.birth, job.arrival, job.signal) for job in setup.jobs if job.arrival is not None
    ]
    assert log.rounds == 60 and log.revealed
    market = Market(known(str(folder)), 1)
    store = market.mechanism._curves[0].past
    assert store.n == sum(job.arrival is not None and job.arrival <= 60 for job in setup.jobs)
    assert store.arrivals[0] >= -59 and store.arrivals[-1] <= 0


@pytest.mark.slow
def test_file_command_and_python_are_one(folder, tmp_path):
    """A file that names the folder, `--set` of the same, and Python give the same run; without it another."""
    file, out = tmp_path / "small.yaml", tmp_path / "out"
    file.write_text(scenario().to_yaml(), encoding="utf-8")
    command = ["run", str(file), "--seed", "1", "--set", f"mechanism.parameters.history={folder}", "--out", str(out)]
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code == 0, ran.output
    in_python = marketsched.run(known(str(folder)), seed=1)
    again = marketsched.run(out / "scenario.yaml", seed=1)
    for found in (in_python, again):
        assert found.jobs.equals(marketsched.load(out).jobs)
    assert not in_python.jobs["payment"].equals(marketsched.run(scenario(), seed=1).jobs["payment"])


def test_a_workload_is_a_log_too():
    """Its draws are its own, whatever the seed of the run, unless it names a seed."""
    section = {**SMALL["workload"], "capacity": 50}  # played on the nodes of the market that follows
    plain, seeded = (known({**section, **more}) for more in ({}, {"seed": 7}))
    arrivals = [
        [Market(made, seed).mechanism._curves[0].past.arrivals.tolist() for seed in (1, 2)] for made in (plain, seeded)
    ]
    assert arrivals[0][0] == arrivals[0][1] and arrivals[1][0] == arrivals[1][1] and arrivals[0] != arrivals[1]


def complaint(history, **workload):
    made = scenario({"parameters": {"history": history}}, **workload)
    with pytest.raises(InvalidParameterError) as raised:
        made.setup(np.random.default_rng(1))
    return str(raised.value)


def test_a_log_that_does_not_fit_is_refused_in_one_line(folder, tmp_path):
    place = "mechanism.parameters.history"
    assert f"{place}: {tmp_path / 'nowhere'} is not there: expected a folder" in complaint(str(tmp_path / "nowhere"))
    assert f"{place}.capacity = 6: expected 9, the nodes of this market" in complaint(str(folder), capacity=9)
    assert f"{place}.durations = 'revealed': expected hidden, as in this market" in complaint(
        str(folder), durations="hidden"
    )
    assert "workload.kind" in complaint({"kind": "no-such"}) or "no-such" in complaint({"kind": "no-such"})
    with pytest.raises(InvalidParameterError, match=r"parameters.history = 3: expected the folder of a finished run"):
        known(3)
    with pytest.raises(InvalidParameterError, match="none with forecast 'laws'"):
        scenario({"parameters": {"history": str(folder), "forecast": "laws"}}).setup(np.random.default_rng(1))


def test_reports_beyond_the_limits_of_today_are_refused(folder):
    made = scenario({"parameters": {"history": str(folder)}, "max_value": 1.0})
    with pytest.raises(InvalidParameterError, match=r"parameters\.history\.arrivals\[\d+\]\.value = .*\[0, 1\.0\]"):
        made.setup(np.random.default_rng(1))
