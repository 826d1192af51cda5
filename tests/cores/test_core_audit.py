"""`marketsched audit` of a cluster scenario: what owners gain by lying to each policy, with and without payments."""

import pytest
from typer.testing import CliRunner

from marketsched.results.result import load
from marketsched.show.cli import app

pytestmark = pytest.mark.compiled  # audits play thousands of slots: too long for plain kernels

SMALL = {
    "esdp-default": (["highest-utility-first"], ["none", "displaced utility"]),
    "cluster-default": (["ogasched", "fairness"], ["none", "capacity prices", "none"]),
    "opm-default": (["fair"], ["none", "displaced work", "spending"]),
}
SIZES = {
    "esdp-default": ["cluster.slots=5"],
    "cluster-default": ["cluster.slots=5", "cluster.instance.instances=4", "cluster.instance.ports=3"],
    "opm-default": ["cluster.slots=12", "cluster.machines.machines=3", "cluster.jobs.per_slot=0.5"],
}


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize("scenario", SMALL)
def test_a_cluster_scenario_is_audited(scenario, tmp_path):
    policies, payments = SMALL[scenario]
    words = ["audit", scenario, "--seed", "1", "--out", str(tmp_path / "r")]
    words += [word for policy in policies for word in ("--mechanism", policy)]
    words += [word for change in SIZES[scenario] for word in ("--set", change)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code in (0, 3), done.output
    found = load(tmp_path / "r")
    assert found.kind == "core-lies" and found.summary["payment"].tolist() == payments
    assert set(found.lies["policy"]) == set(policies) and (found.lies["worlds"] == 20).all()
    assert (done.exit_code == 3) == bool(found.lies["pays"].any())
    assert "best lie found" in done.output and "20 fresh worlds" in done.output


@pytest.mark.long
@pytest.mark.slow
def test_the_published_worlds_are_audited_and_every_policy_by_itself_alike(tmp_path):
    words = ["audit", "published", "--worlds", "20", "--confidence", "0.95", "--mechanism"]
    done = CliRunner().invoke(app, [*words, "lcf", "--mechanism", "lwtf", "--out", str(tmp_path / "both")])
    assert done.exit_code == 3, done.output
    both = load(tmp_path / "both")
    assert both.summary[["core", "policy", "payment"]].values.tolist() == [
        ["esdp", "lcf", "none"],
        ["esdp", "lwtf", "none"],
    ]
    alone = CliRunner().invoke(app, [*words, "lwtf", "--out", str(tmp_path / "alone")])
    assert alone.exit_code == 0, alone.output
    one = load(tmp_path / "alone").lies
    assert one.equals(both.lies[both.lies["policy"] == "lwtf"].reset_index(drop=True))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["audit", "published", "--mechanism", "none"], "policy = 'none': expected one of ogasched, fairness, drf, "),
        (["audit", "esdp-default", "--mechanism", "drf"], "policy 'drf' is unknown: expected one of esdp, "),
    ],
)
def test_an_unknown_policy_is_one_line(words, line, tmp_path):
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "r")])
    assert done.exit_code == 2 and done.stderr.startswith(f"marketsched: {line}") and done.stderr.count("\n") == 1
