"""Cluster scenarios on the command line: what is printed, what is written, and how it ends."""

import io
import json

import pandas as pd
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from marketsched.comparisons.comparing import compare
from marketsched.config.strict_yaml import dump_yaml
from marketsched.cores.over import compare_over
from marketsched.play.running import run as run_scenario
from marketsched.results.views import parts_of_view
from marketsched.show.cli import app

FAMILY = {"kind": "published", "ports": 4, "instances": 6, "contention": 1, "overhead": [0.1, 0.2]}
SMALL = {
    "name": "small cluster",
    "cluster": {"slots": 60, "instance": FAMILY, "policies": ["ogasched", "drf", "fairness:share_over=all"]},
}
pytestmark = pytest.mark.compiled  # about files and pictures; many runs, too long for plain kernels

RUN_FILES = {"slots.parquet", "summary.parquet", "summary.json", "scenario.yaml", "figure.png", "meta.json"}
COMPARED = {"timings.json", "runs.parquet", "curves.parquet", "regrets.parquet", "summary.parquet", "summary.json",
            "scenario.yaml", "figure.png", "meta.json"}  # fmt: skip
SWEPT = {
    "runs.parquet",
    "timings.json",
    "summary.parquet",
    "summary.json",
    "scenario.yaml",
    "figure.png",
    "gain-overhead.png",
    "meta.json",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return an empty working folder that holds small.yaml alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MARKETSCHED_DATA", raising=False)
    (tmp_path / "small.yaml").write_text(dump_yaml(SMALL))
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(app, [str(x) for x in arguments], catch_exceptions=False)


def printed(view, width):
    console = Console(width=width, highlight=False, record=True, file=io.StringIO())
    console.print(view)
    return console.export_text()


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.slow
def test_a_run_writes_everything_and_prints_its_summary(here):
    found = call("run", "small.yaml", "--seed", 3, "--out", "out")
    assert found.exit_code == 0 and found.stderr == "" and found.stdout.endswith("written to out\n")
    assert "4 ports, 6 instances, 6 resources" in found.stdout and "not the same game" in found.stdout
    folder = here / "out"
    assert names(folder) == RUN_FILES
    slots, summary = pd.read_parquet(folder / "slots.parquet"), pd.read_parquet(folder / "summary.parquet")
    assert len(slots) == 180 and summary["observes"].tolist() == ["nothing", "arrivals", "arrivals"]
    assert [row["policy"] for row in json.loads((folder / "summary.json").read_text())] == SMALL["cluster"]["policies"]
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    meta = json.loads((folder / "meta.json").read_text())
    assert (meta["scenario"], meta["core"], meta["seed"], meta["complete"]) == ("small cluster", "ogasched", 3, True)
    about = json.loads(pq.read_schema(folder / "slots.parquet").metadata[b"marketsched"])
    assert (about["scenario"], about["seed"], about["versions"]) == ("small cluster", 3, meta["versions"])

    # The resolved scenario runs again, to the same bytes.
    assert call("run", folder / "scenario.yaml", "--seed", 3, "--out", "again").exit_code == 0
    for name in RUN_FILES - {"meta.json"}:
        assert (here / "again" / name).read_bytes() == (folder / name).read_bytes(), name


@pytest.mark.slow
def test_json_is_all_there_is_on_standard_output(here):
    found = call("run", "small.yaml", "--json", "--set", "cluster.slots=30", "--set", "cluster.policies=[fairness]")
    data = json.loads(found.stdout)
    assert [(row["policy"], row["slots"]) for row in data["policies"]] == [("fairness", 30)]
    assert found.stderr == "written to runs/small-cluster-seed0\n"
    assert call("run", "small.yaml").stdout.endswith("written to runs/small-cluster-seed0-2\n")


@pytest.mark.slow
def test_a_comparison_writes_everything(here):
    policies = "ogasched,ogasched:step=5:decay=0.99,ogasched:peek=true,binpacking"
    found = call("compare", "small.yaml", "--runs", 2, "--mechanisms", policies, "--out", "out")
    assert found.exit_code == 0 and found.stderr == "" and "seeds 0 to 1" in found.stdout
    assert names(here / "out") == COMPARED
    summary = json.loads((here / "out" / "summary.json").read_text())
    assert [row["policy"] for row in summary] == policies.split(",")
    assert [row["observes"] for row in summary] == ["nothing", "nothing", "arrivals", "arrivals"]
    assert all(row["reference_ratio"] for row in summary)  # beside every ratio
    again = call("compare", "small.yaml", "--runs", 2, "--mechanisms", policies, "--json", "--out", "out", "--force")
    assert len(json.loads(again.stdout)["policies"]) == 4
    refused = call("compare", "small.yaml", "--out", "out")
    assert refused.exit_code == 2 and "holds an earlier run" in refused.stderr


def test_without_the_best_fixed_allocation(here):
    found = call("compare", "small.yaml", "--runs", 2, "--optimum-seconds", 0, "--out", "out")
    assert found.exit_code == 0 and names(here / "out") == COMPARED - {"regrets.parquet"}
    assert "certified" not in found.stdout


@pytest.mark.slow
def test_a_sweep(here):
    key = "cluster.instance.contention"
    found = call("compare", "small.yaml", "--runs", 2, "--over", f"{key}=0.5,2", "--out", "out")
    assert found.exit_code == 0 and names(here / "out") == SWEPT
    runs = pd.read_parquet(here / "out" / "runs.parquet")
    assert runs.groupby(["value", "policy"], sort=False).size().tolist() == [2] * 6
    gain = call("compare", "small.yaml", "--runs", 1, "--over", "cluster.instance.gain=linear,log", "--json", "--out=b")
    assert [row["value"] for row in json.loads(gain.stdout)["policies"]] == ["linear"] * 3 + ["log"] * 3
    assert names(here / "b") == SWEPT


@pytest.mark.slow_after(7)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "small.yaml", "--set", "cluster.slots=0"], "small.yaml: cluster.slots = 0: expected a whole"),
        (["run", "cluster-openb"], "no data folder: give the folder of the trace files with --data DIR"),
        (["compare", "small.yaml", "--mechanisms", "ogasched,lottery"], "policy 'lottery' is unknown"),
        (["compare", "small.yaml", "--mechanisms", ","], "expected names, separated by commas"),
        (["compare", "small.yaml", "--mechanisms", "drf,drf"], "policy 'drf' is named twice"),
        (["compare", "small.yaml", "--over", "cluster.slots"], "expected key=value,value,..., as in cluster.instance"),
        (["compare", "small.yaml", "--over", "cluster.slots=5,5"], "expected every value once"),
        (["compare", "small.yaml", "--over", "cluster.slots=5,-5"], "with cluster.slots = -5: cluster.slots = -5"),
        (["compare", "small.yaml", "--over", "cluster.slits=5"], "cluster.slits: unknown key (did you mean 'slots'?)"),
        (["compare", "synthetic-pipelines", "--over", "workload.capacity=5"], "expected a cluster scenario"),
        (["run", "small.yaml", "--set", "cluster.instance.ports_per_instance=9"], "ports_per_instance = 9"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_nothing_is_written(here, arguments, message):
    found = call(*arguments)
    assert found.exit_code == 2 and found.stdout == ""
    assert message in found.stderr and found.stderr.count("\n") == 1
    assert names(here) == {"small.yaml"}


@pytest.mark.slow
def test_an_interruption_leaves_a_marked_folder(tmp_path, monkeypatch):
    def stop(done, total, what):
        if what.startswith(("fairness", "seed 1")):
            raise KeyboardInterrupt

    run = run_scenario(SMALL, progress=stop, keep_interrupted=True)
    run.save(tmp_path / "run")
    assert (tmp_path / "run" / "INCOMPLETE").read_text().startswith("interrupted after 2 of 3 policies")
    assert "INTERRUPTED after 2 of 3 policies" in " ".join(printed(run.view(), 110).split())
    found = compare(SMALL, runs=3, progress=stop, keep_interrupted=True)
    found.save(tmp_path / "compared")
    assert (tmp_path / "compared" / "INCOMPLETE").read_text().startswith("interrupted after 1 of 3 seeds")
    assert "INTERRUPTED after 1 of 3 seeds" in " ".join(printed(found.view(), 110).split())

    def second_value(done, total, what):
        if what.startswith("60"):
            raise KeyboardInterrupt

    swept = compare_over(SMALL, "cluster.slots", [30, 60], runs=1, progress=second_value, keep_interrupted=True)
    assert not swept.complete and swept.meta["finished"] == [30]
    assert "INTERRUPTED after 1 of 2 values" in printed(swept.view(), 110)


def test_an_interrupted_command_ends_with_130(here, monkeypatch):
    from marketsched.cores.comparing import PolicyContest

    whole = PolicyContest.play

    def second(self, seed, part, tell):
        if seed == 1:
            raise KeyboardInterrupt
        return whole(self, seed, part, tell)

    monkeypatch.setattr(PolicyContest, "play", second)
    done = call("compare", "small.yaml", "--runs", 3, "--out", "out", "--json")
    assert done.exit_code == 130 and (here / "out" / "INCOMPLETE").exists()
    assert json.loads(done.stdout)["complete"] is False


# -- what is printed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 110])
def test_views_fit_and_lose_no_digit(width):
    run, found = run_scenario(SMALL), compare(SMALL, runs=3)
    for view in (run.view(), found.view()):
        text = printed(view, width)
        assert max(map(len, text.splitlines())) <= width and "…" not in text
        assert "fairness:" in text
    for row in found.records():
        assert f"{row['reward_per_slot']:.4g}" in printed(found.view(), width).replace(",", "")


def test_what_a_reader_must_be_told():
    told = " ".join(parts_of_view(compare(SMALL, runs=3).view())[2])
    assert "ogasched decides before anything of the slot is known, drf, fairness:share_over=all after seeing" in told
    assert "3 seeds: ratios differ by tens of per cent between seeds" in told
    assert "the regret is within the bound of OgaSched (14)" in told and "certified to" in told
    costly = {**SMALL["cluster"], "instance": {**FAMILY, "gain": "log", "overhead": 1.0}}
    told = " ".join(parts_of_view(compare({"name": "costly", "cluster": costly}, runs=2, growth=False).view())[2])
    assert "no ratio where a total is not positive, in so many of 2 seeds: " in told
