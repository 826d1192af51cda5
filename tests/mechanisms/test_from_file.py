"""A mechanism in a file of one's own, by its name on every command and in Python."""

import pickle
import re
import subprocess
import sys
from textwrap import dedent

import pytest
from typer.testing import CliRunner

from marketsched import compare, run
from marketsched.config.mechanism_text import mechanism_in
from marketsched.config.named_mechanisms import named_mechanisms
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import read_scenario
from marketsched.config.strict_yaml import dump_yaml
from marketsched.mechanisms.errors import InvalidParameterError, SweepError
from marketsched.mechanisms.from_file import files_in_use, loaded_from_file, own_files
from marketsched.mechanisms.registry import builder_of, get
from marketsched.play.dask_workers import perform
from marketsched.play.kept_results import canonical, fingerprint, kept_for, run_key
from marketsched.show.cli import app
from refusals import refused

RULE = """
    from neighbour import SHARE
    from marketsched.mechanisms.auctions.round_auction import RoundAuction, Settlement, by_density

    class FirstPrice(RoundAuction):
        def __init__(self, *, share: float = SHARE, **sizes):
            super().__init__(**sizes)
            self.share = share

        def settle(self, bids, free):
            winners, _ = by_density(bids, free)
            return [Settlement(share=self.share) if i in winners else None for i in range(len(bids.nodes))]

    NOTHING = 3
"""
SIZES = {"capacity": 2, "horizon": 9, "max_concurrency": 1, "max_duration": 4, "max_value": 9.0, "max_delay": 8}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "own_rule.py").write_text(dedent(RULE))
    (tmp_path / "neighbour.py").write_text("SHARE = 0.5\n")
    (tmp_path / "broken_rule.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("own_rule", "neighbour"):
        sys.modules.pop(name, None)


def test_a_file_is_run_once_and_may_import_its_neighbours(folder):
    made = builder_of("own_rule.py:FirstPrice")(**SIZES)
    assert made.share == 0.5
    assert get("mechanism", f"{folder}/own_rule.py:FirstPrice") is type(made)
    assert builder_of("own_rule.py:FirstPrice")(**SIZES, share=0.25).share == 0.25


def test_files_that_are_not_here_are_those_beside_the_scenario(folder, tmp_path_factory, monkeypatch):
    market = {"name": "x", "workload": {"kind": "csv", "path": "own.csv"}, "mechanism": "own_rule.py:FirstPrice"}
    cluster = {"name": "x", "cluster": {"policies": ["drf", "own_rule.py:FirstPrice:share=0.2"]}}
    (folder / "own.csv").write_text("submit_s,run_s,processors\n")
    for name, content in (("market", market), ("cluster", cluster)):
        (folder / f"{name}.yaml").write_text(dump_yaml(content))
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    found = read_scenario(folder / "market.yaml")[0]
    assert found["mechanism"] == f"{folder}/own_rule.py:FirstPrice"
    assert found["workload"]["path"] == f"{folder}/own.csv"
    policies = read_scenario(folder / "cluster.yaml")[0]["cluster"]["policies"]
    assert policies == ["drf", f"{folder}/own_rule.py:FirstPrice:share=0.2"]


def test_keys_stand_behind_the_name():
    assert mechanism_in("own_rule.py:FirstPrice:share=0.2") == ("own_rule.py:FirstPrice", {"parameters.share": 0.2})


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("own_rule.py:FirstPrice(share=0.2)", "own_rule.py:FirstPrice:share=0.2"),
        ("bid-price(buckets=4, steps=1)", "bid-price:buckets=4:steps=1"),
        ("own_rule.py:FirstPrice(share=0.2", "own_rule.py:FirstPrice:share=0.2"),  # of a list that ends at its comma
        ("own_rule.py", "own_rule.py:Mine"),
    ],
)
def test_a_name_that_is_called_as_in_python_is_answered_with_its_form_here(folder, name, legal):
    found, changes = mechanism_in(name)
    with pytest.raises(InvalidParameterError, match=f": {re.escape(legal)}$"):
        Scenario.load("synthetic-pipelines").with_mechanism(found, changes)


def test_a_price_of_its_own_is_not_the_posted_one(folder):
    (folder / "own_rule.py").write_text(dedent(RULE).replace("share", "price"))
    assert mechanism_in("own_rule.py:FirstPrice:price=2")[1] == {"parameters.price": 2}


def test_what_was_kept_of_a_file_is_not_used_once_the_file_is_another(folder):
    named = (
        canonical({"mechanism": {"name": "own_rule.py:FirstPrice"}}),
        canonical({"s": "{name: own_rule.py:A, x: 1}"}),
    )
    before = [run_key(text, 0, False) for text in named]
    with (folder / "own_rule.py").open("a") as rule:
        rule.write("# another rule\n")
    assert all(run_key(text, 0, False) != kept for text, kept in zip(named, before, strict=True))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_rule.py:Second", "own_rule.py has no class or function Second: expected one of FirstPrice"),
        ("own_rule.py:NOTHING", "own_rule.py has no class or function NOTHING: expected one of FirstPrice"),
        ("no_rule.py:First", "no file no_rule.py in "),
        ("broken_rule.py:First", "broken_rule.py cannot be run: ZeroDivisionError: division by zero"),
    ],
)
def test_what_cannot_be_had_is_one_line(folder, name, message):
    refused(lambda: loaded_from_file(name), message, error=InvalidParameterError)


def test_a_name_in_a_file_without_its_ending_and_a_slip_are_told_once(folder):
    refused(lambda: mechanism_in("own_rule:FirstPrice"), "expected own_rule.py:FirstPrice, with .py")
    error = refused(lambda: named_mechanisms(Scenario.load("stochastic-mix"), ["own_rule.py:Second"]), "one of FirstPr")
    assert str(error).count("own_rule.py:Second") == 1


def test_a_module_of_that_name_is_not_replaced(folder):
    (folder / "json.py").write_text("def rule(**sizes): ...\n")
    refused(
        lambda: loaded_from_file("json.py:rule"), "a module called json is loaded already", error=InvalidParameterError
    )


@pytest.mark.slow
@pytest.mark.long
def test_workers_and_commands_know_it(folder):
    found = compare("stochastic-mix", ["own_rule.py:FirstPrice", "first-come"], runs=2, workers=2)
    assert set(found.tables["runs"]["mechanism"]) == {"own_rule.py:FirstPrice", "first-come"}
    command = [sys.executable, "-m", "marketsched", "run", "stochastic-mix", "-m", "own_rule.py:FirstPrice:share=0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "revenue" in done.stdout


def test_what_can_be_no_mechanism_is_refused_in_words(folder):
    (folder / "own_rule.py").write_text(
        dedent(RULE) + "class Nothing:\n    pass\n\nclass Always(FirstPrice):\n    truthful = 'always'\n"
    )
    refused(lambda: get("mechanism", "own_rule.py:Nothing"), "the class Nothing is no mechanism", legal="a subclass of")
    refused(lambda: get("mechanism", "own_rule.py:Always"), place="truthful", seen="always", legal="one of 'ex post'")


def test_a_rule_of_ones_own_is_described_with_its_keys(folder):
    (folder / "own_rule.py").write_text(
        dedent(RULE)
        .replace("share: float = SHARE", "share: Share = SHARE")
        .replace("from neighbour", "from marketsched.mechanisms.legal import Share\nfrom neighbour")
    )
    shown = " ".join(CliRunner().invoke(app, ["mechanisms", "own_rule.py:FirstPrice"]).stdout.split())
    assert "share a finite number in [0, 1] 0.5" in shown and "capacity" not in shown
    listed = CliRunner().invoke(app, ["mechanisms", "credits"]).stdout
    assert "\nshares" in listed and not re.search(r"^(round_seconds|owners) ", listed, re.MULTILINE)  # of a scenario
    of_ours = " ".join(CliRunner().invoke(app, ["mechanisms", "first-come"]).stdout.split())
    assert "price a finite number >= 0 - Credits per node and round" in of_ours
    assert "A job pays price * concurrency * (rounds used) when it completes" in of_ours


def test_what_a_scenario_names_lies_beside_it_or_here(folder, monkeypatch):
    (folder / "jobs.swf").write_text("1 0 0 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n")
    (folder / "x.yaml").write_text("workload: {kind: swf, path: jobs.swf}\nmechanism: 'own_rule.py:FirstPrice'\n")
    here = read_scenario("x.yaml")[0]
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    there = read_scenario("../x.yaml")[0]
    assert (here["workload"]["path"], here["mechanism"]) == ("jobs.swf", "own_rule.py:FirstPrice")
    assert (there["workload"]["path"], there["mechanism"]) == ("../jobs.swf", "../own_rule.py:FirstPrice")


@pytest.mark.compiled
def test_an_edited_file_is_run_anew_by_the_next_question(folder):
    """In a notebook: the second answer is that of the new text, though as long and written in the same second."""
    paid = [run("stochastic-mix", 1, mechanism="own_rule.py:FirstPrice").outcome["revenue"]]
    (folder / "own_rule.py").write_text(dedent(RULE).replace("share: float = SHARE", "share: float = 0.125"))
    paid.append(run("stochastic-mix", 1, mechanism="own_rule.py:FirstPrice").outcome["revenue"])
    (folder / "own_rule.py").write_text(dedent(RULE).replace("share: float = SHARE", "share: float = 0.250"))
    found = compare("stochastic-mix", ["own_rule.py:FirstPrice"], runs=2, optimum_seconds=0)
    paid.append(found.runs.set_index("seed").loc[1, "revenue"])
    assert paid[1] == pytest.approx(paid[0] / 4) and paid[2] == pytest.approx(paid[0] / 2)


def test_an_edit_is_run_whether_results_are_kept_or_not(folder):
    found = []
    for share, keep in ((0.125, None), (0.25, folder / "kept"), (0.5, None)):
        (folder / "own_rule.py").write_text(dedent(RULE).replace("= SHARE", f"= {share}"))
        kept_for(keep, {"mechanisms": ["own_rule.py:FirstPrice"]})
        found.append(builder_of("own_rule.py:FirstPrice")(**SIZES).share)
    assert found == [0.125, 0.25, 0.5]


def test_a_worker_with_another_text_of_the_file_refuses_the_task(folder):
    assert loaded_from_file("own_rule.py:FirstPrice")
    task, code, here = pickle.dumps((len, "own_rule.py:FirstPrice")), dict(fingerprint()), files_in_use()
    files = {"own_rule.py": here["own_rule.py"]}
    assert perform(task, code, files) == len("own_rule.py:FirstPrice")
    (folder / "own_rule.py").write_text(dedent(RULE) + "\n")
    assert perform(task, code, files)  # edited on the way: it goes on with what it began with
    now = own_files('"own_rule.py:FirstPrice"')
    assert now != files and perform(task, code, now)
    for wrong, message in ((files, f"another text in {folder / 'own_rule.py'}"), ({"gone.py": "0"}, "no file gone.py")):
        with pytest.raises(SweepError, match=message):
            perform(task, code, wrong)
