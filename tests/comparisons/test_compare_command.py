"""`marketsched compare`: what it writes, what it prints, and what it refuses in one line."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from compared_markets import MAYBE
from marketsched.comparisons.comparing import compare
from marketsched.config.strict_yaml import dump_yaml
from marketsched.results.result import load
from marketsched.results.views import parts_of_view
from marketsched.show.cli import app


@pytest.fixture
def market_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "market.yaml").write_text(dump_yaml(MAYBE))
    return tmp_path / "market.yaml"


@pytest.mark.slow
def test_the_command_writes_tables_figure_and_how_it_came_about(market_file):
    call = ["compare", str(market_file), "--mechanisms", "posted-price, first-come", "--runs", "3", "--out", "out"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.stderr
    assert "written to out" in done.stdout
    folder = market_file.parent / "out"
    tables = {f"{name}.parquet" for name in ("against", "owners", "runs", "summary")}
    others = {"timings.json", "bounds.png", "summary.json", "scenario.yaml", "figure.png", "meta.json"}
    assert {path.name for path in folder.iterdir()} == tables | others
    runs = pd.read_parquet(folder / "runs.parquet")
    assert runs[["seed", "mechanism"]].values.tolist() == [
        [s, m] for s in range(3) for m in ("posted-price", "first-come")
    ]
    meta = json.loads((folder / "meta.json").read_text())
    assert (meta["seed"], meta["runs"], meta["mechanisms"]) == (0, 3, ["posted-price", "first-come"])
    refused = CliRunner().invoke(app, call)
    assert refused.exit_code == 2
    assert "holds an earlier run" in refused.stderr
    as_json = CliRunner().invoke(app, [*call, "--force", "--json"])
    told = json.loads(as_json.stdout)
    assert [row["mechanism"] for row in told["mechanisms"]] == ["posted-price", "first-come"]


@pytest.mark.slow
def test_loads_are_written_and_come_back(market_file):
    call = ["compare", "market.yaml", "--mechanisms", "posted-price,first-come", "--runs", "2", "--loads", "1,2"]
    done = CliRunner().invoke(app, [*call, "--out", "out"])
    assert done.exit_code == 0, done.stderr
    kept = load("out")
    assert kept.kind == "loads" and kept.meta["loads"] == [1.0, 2.0]
    again = compare(MAYBE, ["posted-price", "first-come"], runs=2, loads=[1, 2])
    assert parts_of_view(kept.view()) == parts_of_view(again.view())
    json.dumps(kept.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare"], "SCENARIO is missing"),
        (["compare", "market.yaml", "--mechanisms", " , "], "expected names, separated by commas"),
        (["compare", "market.yaml", "--mechanisms", "lottery"], "lottery"),
        (["compare", "nowhere"], "no such file"),
        (["compare", "market.yaml", "--loads", "1,x"], "expected numbers above 0"),
        (["compare", "market.yaml", "--loads", "0"], "loads"),
        (["compare", "cluster-default", "--loads", "1"], "expected a scenario of jobs"),
    ],
)
def test_refused(market_file, arguments, message):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert {path.name for path in market_file.parent.iterdir()} == {"market.yaml"}
