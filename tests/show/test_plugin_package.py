"""The package in examples/plugin: installed by pip into an environment of its own, every command knows what it adds."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from example_runs import EXAMPLES

HERE = EXAMPLES / "plugin"
LONGEST = 25  # lines of a file that adds one thing


def test_one_file_for_each_idea_and_none_is_long():
    files = {path.name: path.read_text() for path in (HERE / "src" / "marketsched_example").glob("*.py")}
    assert set(files) == {"__init__.py", "flat_rate.py", "lottery.py", "sacct.py"}
    assert all(len(text.splitlines()) <= LONGEST for text in files.values())
    entries = re.compile(r'^\[project\.entry-points.*\n(?:".*\n)+', re.M)
    (shown,), (declared,) = (entries.findall((HERE / name).read_text()) for name in ("README.md", "pyproject.toml"))
    assert shown == declared


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    """Install the package from a copy; return a function that runs a command beside its scenario files."""
    home = tmp_path_factory.mktemp("plugin")
    shutil.copytree(HERE, home / "plugin", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [*pip, "--target", home / "site", home / "plugin"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    environment = {**os.environ, "PYTHONPATH": str(home / "site")}

    def run(*arguments, status=0):
        done = subprocess.run(
            [sys.executable, "-m", "marketsched", *arguments],
            cwd=home / "plugin", env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == status and "Traceback" not in done.stderr, done.stderr
        return done

    return run


@pytest.mark.slow
@pytest.mark.long
def test_lists_name_what_it_adds(market):
    (shown,) = re.findall(r"^```text\n(.*?)^```$", (HERE / "README.md").read_text(), re.M | re.S)
    assert market("scenarios").stdout.endswith(shown)
    assert "Jobs of a Slurm cluster, as sacct prints them" in market("traces", "--data", ".").stdout


@pytest.mark.slow
@pytest.mark.long
def test_its_mechanism_sells_its_log(market):
    done = market("run", "market.yaml", "--json", "--out", "run")
    found = json.loads(done.stdout)
    assert found["jobs"] > 50 and found["revenue"] > 0
    options = (
        "--mechanisms",
        "flat-rate,flat-rate:rate=2,first-come",
        "--runs",
        "2",
        "--optimum-seconds",
        "0",
        "--json",
    )
    rows = json.loads(market("compare", "market.yaml", *options, "--workers", "2", "--out", "compared").stdout)
    revenue = {row["mechanism"]: row["revenue"] for row in rows["mechanisms"]}
    assert revenue["flat-rate:rate=2"] > revenue["flat-rate"] > revenue["first-come"] == 0
    wrong = market("run", "market.yaml", "--set", "mechanism.parameters.rate=-1", "--out", "no", status=2)
    readme = (HERE / "README.md").read_text()
    (line,) = re.findall(r"`(mechanism\.parameters\.rate = .*?)`", readme.replace("\n", " "))
    assert wrong.stderr.strip().endswith(line)


@pytest.mark.slow
@pytest.mark.long
def test_its_policy_plays_beside_others(market):
    done = market("run", "cluster.yaml", "--set", "cluster.slots=40", "--json", "--out", "cluster")
    assert {"lottery", "lottery:greed=0.1", "fairness"} == {
        row["policy"] for row in json.loads(done.stdout)["policies"]
    }


def test_the_readme_runs_what_is_there():
    text = (HERE / "README.md").read_text()
    for name in re.findall(r"(?:run|compare) (\S+\.yaml)", text):
        assert (HERE / name).is_file()
    assert (HERE / "jobs.txt").stat().st_size < 20_000 and Path(HERE / "pyproject.toml").is_file()
