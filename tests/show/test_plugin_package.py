"""The package in examples/plugin: installed by pip into an environment of its own, every command knows what it adds."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from example_runs import EXAMPLES

HERE = EXAMPLES / "plugin"


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
