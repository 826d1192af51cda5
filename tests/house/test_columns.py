"""Every column of the tables that results have stands on docs/columns.md, in its tables."""

import re
from pathlib import Path

import pytest

import marketsched
from marketsched.config.scenario import Scenario
from marketsched.study.learning.comparing import compare_learning
from two_kinds import CLUSTER, SCENARIO

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS / "columns.md", *DOCS.glob("columns/*.csv")]
NAMED = {name for page in PAGES for name in re.findall(r"`([a-z_A-Z0-9]+)`", page.read_text())}
SPREAD = re.compile(r"_(low|high|deviation|least|most|per_slot)$")  # the page says what these mean
OF_ROWS = {"mechanism", "seed", "scenario", "runs", "load", "slot", "policy", "rule", "figure", "job", "class"}  # keys
TINY = ("synthetic-pipelines", "workload.recurring_jobs=40")


def tiny(name, *changes):
    return Scenario.load(name).with_changes(*changes)


def log(folder):
    rows = "".join(f"{900 * i},1,1000,u{i % 2}\n" for i in range(12))
    (folder / "log.csv").write_text("submit_s,processors,run_s,user\n" + rows)
    return str(folder / "log.csv")


CORE = ["cluster.slots=30"]
RESULTS = {
    "run": lambda folder: marketsched.run(tiny(*TINY)),
    "posted prices": lambda folder: marketsched.run(tiny(*TINY), mechanism="posted-price"),
    "run on a cluster": lambda folder: marketsched.run(SCENARIO),
    "comparison": lambda folder: marketsched.compare(tiny(*TINY), ["bid-price", "first-come"], runs=2),
    "comparison of a cluster": lambda folder: marketsched.compare(SCENARIO, runs=1),
    "comparison of a log": lambda folder: marketsched.compare(log(folder), ["two-offers", "easy-backfill"], runs=1),
    "loads": lambda folder: marketsched.compare(tiny(*TINY), ["first-come"], runs=1, loads=[0.8]),
    "learning": lambda folder: compare_learning(["pay-as-bid"], owners=2, nodes=1, days=4, runs=2),
    "OgaSched": lambda folder: marketsched.compare(tiny("cluster-default", *CORE), ["ogasched", "drf"], runs=2),
    "ESDP": lambda folder: marketsched.compare(tiny("esdp-default", *CORE), ["esdp"], runs=1),
    "OPM": lambda folder: marketsched.compare(tiny("opm-default", *CORE), ["opm"], runs=1),
    "a core": lambda folder: marketsched.run(tiny("cluster-default", *CORE), policies=["ogasched"]),
    "audit": lambda folder: marketsched.audit(tiny(*TINY), ["pay-as-bid"], plays=100, owners=2).result(),
}


@pytest.mark.slow
@pytest.mark.parametrize("result", RESULTS)
def test_every_column_is_explained(result, tmp_path):
    found = RESULTS[result](tmp_path)
    tables = {"summary": found.summary, **found.tables}
    tags = set() if "jobs" not in tables else {"group", "band", "period", "deadline", "value_density", "covered"}
    columns = {
        part
        for name, table in tables.items()
        if name != "prices" and not name.startswith("certificates-")
        for column in table.columns
        for part in str(column).split(".")
    }
    columns = {SPREAD.sub("", SPREAD.sub("", each)) if each not in NAMED else each for each in columns}
    statistics = {each.split(".")[1] for each in found.summary.columns if str(each).startswith("mechanism.")}
    columns = {re.sub(r"^(first|second)_(?=wait_rounds|own)", "", each) for each in columns}
    assert columns - NAMED - OF_ROWS - tags - statistics - set(CLUSTER["resources"]) == set()
