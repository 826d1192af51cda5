"""Markets side by side: each is the run that it would be alone, whatever the workers, and none is run twice."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from marketsched import load, run
from marketsched.config.strict_yaml import dump_yaml
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.show.cli import app
from marketsched.sites import run_sites
from marketsched.sites.description import Sites
from refusals import refused
from sweep_tools import ONE_JOB

HALLS = {"name": "two halls", "sites": {"north": ONE_JOB, "south": {**ONE_JOB, "name": "other job"}}}


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.parquet")}


def test_each_site_is_the_run_it_would_be_alone(tmp_path):
    found = run_sites(HALLS, tmp_path / "out", seed=3).summary
    assert found["site"].tolist() == ["north", "south"] and found["seed"].nunique() == 2
    for row in found.to_dict(orient="records"):
        alone = run(HALLS["sites"][row["site"]], row["seed"])
        assert row["welfare"] == alone.outcome["welfare"] and row["bound"] == alone.outcome["bounds"]["dual"]
        kept = load(tmp_path / "out" / row["site"])
        pd.testing.assert_frame_equal(kept.jobs, alone.jobs)


def test_other_sites_do_not_change_a_sites_seed(tmp_path):
    alone = {"name": "one", "sites": {"south": HALLS["sites"]["south"]}}
    both, one = run_sites(HALLS, tmp_path / "both").summary, run_sites(alone, tmp_path / "one").summary
    assert both.loc[1, "seed"] == one.loc[0, "seed"]


def test_finished_sites_are_not_run_again(tmp_path):
    run_sites({**HALLS, "sites": {"north": ONE_JOB}}, tmp_path / "out")
    before = (tmp_path / "out" / "north" / "meta.json").stat().st_mtime_ns
    told = []
    run_sites(HALLS, tmp_path / "out", progress=lambda *what: told.append(what))
    assert told[0] == (1, 2, "starting") and told[-1][0] == 2
    assert (tmp_path / "out" / "north" / "meta.json").stat().st_mtime_ns == before
    refused(lambda: run_sites(HALLS, tmp_path / "out", seed=1), "another scenario or seed", error=InvalidParameterError)


@pytest.mark.slow
def test_processes_leave_the_same_files(tmp_path):
    run_sites(HALLS, tmp_path / "one")
    run_sites(HALLS, tmp_path / "two", jobs=2)
    assert files(tmp_path / "one") == files(tmp_path / "two")


@pytest.mark.parametrize("name", ["all", "a/b", "", 3])
def test_a_name_that_cannot_be_a_folder(name):
    refused(lambda: Sites.from_dict({"name": "x", "sites": {name: ONE_JOB}}), seen=name, error=InvalidParameterError)


def test_a_faulty_scenario_is_refused_before_anything_is_run(tmp_path):
    faulty = {**HALLS, "sites": {**HALLS["sites"], "west": {**ONE_JOB, "wrkload": {}}}}
    refused(lambda: run_sites(faulty, tmp_path / "out"), "wrkload", error=InvalidParameterError)
    assert not (tmp_path / "out").exists()


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hall.yaml").write_text(dump_yaml(ONE_JOB))
    (tmp_path / "halls.yaml").write_text(dump_yaml({"name": "two halls", "sites": {"a": "hall.yaml", "b": ONE_JOB}}))
    told = CliRunner().invoke(app, ["sites", "halls.yaml"])
    assert told.exit_code == 0, told.output
    lines = told.stdout.splitlines()
    assert lines[0] == "two halls: 2 independent markets" and lines[-1].startswith("written to runs/two-halls-sites")
    figures = json.loads(CliRunner().invoke(app, ["sites", "halls.yaml", "--json"]).stdout)
    assert [row["site"] for row in figures["sites"]] == ["a", "b"]
    view = CliRunner().invoke(app, ["report", "runs/two-halls-sites/all"])
    assert view.exit_code == 0, view.output
