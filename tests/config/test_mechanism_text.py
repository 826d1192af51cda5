"""One notation of a mechanism for every command and for Python."""

import json

import pytest
from typer.testing import CliRunner

from marketsched import run
from marketsched.config.mechanism_text import _takes_price, mechanism_in, mechanisms_in
from marketsched.mechanisms import FirstCome, register
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.show.cli import app


def test_commas_separate_mechanisms_and_keys_but_nothing_inside_brackets():
    assert mechanisms_in(["bid-price:buckets=4,ahead=3,vcg", "first-come:price=.5"]) == [
        "bid-price:buckets=4:ahead=3",
        "vcg",
        "first-come:price=.5",
    ]
    assert mechanisms_in(["posted-price:pricing={kind: posted, prices: [1, 2]},vcg"])[1] == "vcg"
    assert mechanisms_in([" , "]) == []


def test_values_are_yaml_and_rules_of_a_scenario_are_told_from_parameters():
    name, changes = mechanism_in("posted-price:pricing={kind: posted, prices: [1, 2]}:epsilon=.1:own=x")
    assert name == "posted-price"
    assert changes == {"pricing": {"kind": "posted", "prices": [1, 2]}, "epsilon": 0.1, "parameters.own": "x"}
    with pytest.raises(InvalidParameterError, match="epsilon is set twice"):
        mechanism_in("posted-price:epsilon=.1:epsilon=.2")
    for wrong in ("bid-price:buckets", "bid-price:=4", "bid-price:"):
        with pytest.raises(InvalidParameterError, match="expected name:key=value"):
            mechanism_in(wrong)


@pytest.mark.slow
def test_a_run_takes_one_mechanism_and_a_cluster_policies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    two = CliRunner().invoke(app, ["run", "stochastic-mix", "-m", "vcg,spot"])
    assert two.exit_code == 2 and "expected one, in a run of a market" in two.stderr
    policies = ["run", "cluster-default", "-m", "drf,fairness", "--set", "cluster.slots=20", "--json", "--out", "c"]
    found = json.loads(CliRunner().invoke(app, policies).stdout)
    assert [row["policy"] for row in found["policies"]] == ["drf", "fairness"]
    with pytest.raises(InvalidParameterError, match="is a cluster, and has policies"):
        run("cluster-default", mechanism="vcg")


def test_shells_complete_scenarios_and_the_last_mechanism_of_several():
    def completed(*words: str) -> list[str]:
        environment = {
            "_ROOT_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(["root", *words]),
            "COMP_CWORD": str(len(words)),
        }
        return CliRunner().invoke(app, [], prog_name="root", env=environment).stdout.split()

    assert completed("run", "syn") == ["synthetic-pipelines"]
    assert completed("compare", "x", "-m", "vcg,bid") == ["vcg,bid-price"]


def test_a_registered_mechanism_with_a_price_of_its_own_gets_it():
    @register("test:reserve")
    def reserve(*, price: float = 0.0, **sizes):
        return FirstCome(price=price, **sizes)

    assert _takes_price("test:reserve")
    assert not _takes_price("first-come") and not _takes_price("vcg") and not _takes_price("unheard-of")
