"""What a newcomer sees: commands without arguments, and the commonest mistakes, each answered with what to do next."""

import re

import pytest
from typer.testing import CliRunner

import marketsched
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError
from marketsched.show.cli import app
from marketsched.study.learning.runs import learn

HEAD = "name: mine\nworkload:\n  kind: synthetic-pipelines\n"
FILES = {
    "indent.yaml": HEAD + " recurring_jobs: 3\n",
    "tab.yaml": "name: mine\nworkload:\n\tkind: synthetic-pipelines\n",
    "typo.yaml": HEAD + "  recuring_jobs: 3\n",
    "type.yaml": HEAD + "  recurring_jobs: many\n",
    "word.yaml": HEAD + "mechanism: exponential\n",
    "empty.yaml": "",
    "table.csv": "a,b\n1,2\n",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return a working folder with the files of a newcomer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MARKETSCHED_DATA", raising=False)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier" / "scenario.yaml").write_text(HEAD)
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(app, [*arguments], catch_exceptions=False)


def names():
    return re.findall(r"^  ([a-z]+)  ", call().stdout, re.M)


@pytest.mark.parametrize("name", ["run", "audit", "sweep", "report", "replay"])
def test_a_command_that_needs_something_shows_its_help(here, name):
    found = call(name)
    assert found.exit_code == 2 and "Arguments:" in found.output and "Options:" in found.output
    if name in ("run", "audit"):
        assert f"Try: marketsched {name} synthetic-pipelines" in found.output


def test_every_command_of_the_next_steps_is_there():
    steps = re.findall(r"^  .*?marketsched ([a-z]+)", call().stdout, re.M)
    assert set(steps) <= set(names()) and "run" in steps


@pytest.mark.slow_after(7)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare"], "such as cluster-pai or stochastic-mix (`marketsched scenarios` lists them), or a YAML file"),
        (["run", "synthetic-pipeline"], "did you mean 'synthetic-pipelines'?"),
        (["run", "Saturated.yml"], "did you mean 'saturated'?"),
        (["run", "folder"], "'folder' is a folder: expected a YAML file, or the name of a built-in one"),
        (["audit", "earlier"], "'earlier' is a folder: expected a YAML file, such as earlier/scenario.yaml"),
        (["run", "indent.yaml"], "indent.yaml: line 4, column 2: "),
        (["run", "indent.yaml"], "keys of one table all indented alike"),
        (["run", "tab.yaml"], "indented with blanks, never with tabs"),
        (["run", "typo.yaml"], "workload.recuring_jobs: unknown key (did you mean 'recurring_jobs'?)"),
        (["run", "type.yaml"], "workload.recurring_jobs = 'many': expected a whole number"),
        (["run", "word.yaml"], "expected a table of keys, such as mechanism: {name: exponential}"),
        (["run", "empty.yaml"], "`marketsched scenarios synthetic-pipelines` prints a scenario to begin with"),
        (
            ["run", "table.csv"],
            "expected --columns submit_s=COLUMN,run_s=COLUMN,processors=COLUMN, each one of a, b",
        ),
        (["run", "saturated"], "--data DIR, or set MARKETSCHED_DATA; `marketsched traces` lists them"),
        (["sweep", "synthetic-pipelines"], "no such file: expected a YAML file that names a scenario and what to vary"),
        (["sweep", "folder"], "is a folder: expected a YAML file that names a scenario"),
        (["sweep", "typo.yaml"], "is a scenario: expected a sweep, that is `scenario: typo.yaml` in another file"),
        (["report", "folder"], "expected a folder that marketsched wrote"),
        (["learn", "--mechanisms", "vickrey"], "expected one of armada, bid-price, "),
    ],
)
def test_a_mistake_is_answered_with_what_to_do(here, arguments, words):
    found = call(*arguments)
    assert found.exit_code == 2 and found.stdout == "" and words in found.stderr
    assert found.stderr.startswith("marketsched: ") and found.stderr.count("\n") == 1
    assert not (here / "runs").exists()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: marketsched.run(1), "expected the name of a built-in one, a file, or a mapping"),
        (lambda: marketsched.run("synthetic-pipelines", "3"), "seed = '3': expected a whole number"),
        (lambda: marketsched.compare("synthetic-pipelines", "vcg"), "at least one name, in a list"),
        (lambda: marketsched.Scenario.load("cluster-pai", kind="market"), "such as synthetic-pipelines"),
        (lambda: marketsched.run("saturated", policies=["drf"]), "policies = .*: expected none: saturated is a market"),
        (lambda: marketsched.compare("cluster-pai", runs=3, seed=2**64 - 2), "seed = 18446744073709551614: expected"),
        (lambda: learn("saturated"), r"expected a RepeatedMarket, as contested_market\(\)"),
        (
            lambda: marketsched.run("saturated", mechanism=dict),
            r"the class dict is no mechanism: expected a subclass of marketsched.mechanisms.Mechanism",
        ),
        (
            lambda: marketsched.compare("saturated", [dict]),
            r"the class dict is no mechanism: expected a subclass of marketsched.mechanisms.Mechanism",
        ),
        (lambda: marketsched.run("saturated", mechanism=["vcg", "spot"]), r"mechanism = \['vcg', 'spot'\]: expected"),
        (lambda: marketsched.Scenario.load("saturated").with_changes({"name": 3}), "changes = .*: expected texts, as"),
    ],
)
def test_python_says_it_too(make, words):
    with pytest.raises(InvalidParameterError, match=words) as found:
        make()
    assert isinstance(found.value, MarketschedError)
