"""The worked changes of CONTRIBUTING: each patch applies to this tree, touches two files at most, and works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHANGES = Path(__file__).with_name("changes")
ROOMS = ("agents", "marketsched", "mechanisms", "relaxed_lp")
FIRST = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "Editable" not in str(finder)]
import marketsched
assert marketsched.__file__.startswith(sys.argv[1]), marketsched.__file__
"""
DONE = {  # what each change brings, asked of a tree that has it
    "scenario": """
from marketsched.config.scenario import Scenario
assert Scenario.load("two-shifts").mechanism.name == "bid-price"
""",
    "mechanism": """
found = marketsched.run("stochastic-mix", mechanism="highest-value").outcome
assert found["completed"] > 0 == found["revenue"]
""",
    "payment-rule": """
found = marketsched.run("stochastic-mix", mechanism="flat-fee:fee=0.5").outcome
assert found["revenue"] == 0.5 * found["completed"] > 0
""",
    "lie": """
from marketsched.agents.lies import PublicInformation
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.truthfulness.searches.families import default_families
truth, public = StatementOfWork(1, 1, DeadlineValue(4.0, 6), [(2, 2, 1.0)]), PublicInformation(4, 9, 8, max_value=9.0)
(family,) = [each for each in default_families(truth, public) if each.name == "rounded value"]
assert [lie.report(truth, public).value.highest for lie in family.members] == [9.0, 5.0, 4.0]
""",
    "log-format": """
from pathlib import Path
Path("runs.txt").write_text("begin end nodes who\\n" + "".join(f"{i} {i + 30} 1 u{i % 3}\\n" for i in range(40)))
found = marketsched.run("runs.txt", mechanism="first-come")
assert found.outcome["jobs"] == 40
""",
    "column-of-compare": """
from marketsched.results.views import WordTable
found = marketsched.compare("stochastic-mix", ["pay-as-bid", "first-come"], runs=1)
table = next(part for part in found.view().renderables if isinstance(part, WordTable))
assert "jobs\\nevicted" in [column.title for column in table.columns]
""",
    "http-endpoint": """
from marketsched.live.client import LiveClient
from marketsched.live.configuration import live_config
from marketsched.live.serving import serving
import httpx, pathlib
sizes = {"capacity": 2, "max_concurrency": 2, "max_duration": 3, "max_value": 9, "max_delay": 12}
sizes |= {"mechanism": "first-come"}
case = {"arrival": 1, "duration": 1, "probability": 1.0}
statement = {"concurrency": 1, "value": {"kind": "deadline", "value": 4, "deadline": 6}, "requirements": [case]}
with serving(live_config(sizes), "m.db", operator_token_file=pathlib.Path("token")) as url:
    token = LiveClient(url, pathlib.Path("token").read_text().strip()).create_owner("ann", deposit=5)["token"]
    LiveClient(url, token).submit(statement, name="one")
    answer = httpx.get(f"{url}/v1/counts", headers={"Authorization": f"Bearer {token}"}, trust_env=False).json()
assert sum(answer.values()) == 1, answer
""",
    "figure": """
found = marketsched.compare("stochastic-mix", ["pay-as-bid", "first-come"], runs=1)
assert found.plot("revenue").axes[0].get_ylabel() == "revenue, credits"
""",
}


def test_every_worked_change_is_a_patch_that_contributing_names():
    named = re.findall(r"changes/([a-z-]+)\.patch", (ROOT / "CONTRIBUTING.md").read_text())
    assert sorted(named) == sorted(path.stem for path in CHANGES.glob("*.patch")) == sorted(DONE)


@pytest.mark.parametrize("name", DONE)
def test_a_worked_change_touches_two_files_at_most(name):
    files = re.findall("^diff --git a/(.*) b/", (CHANGES / f"{name}.patch").read_text(), re.M)
    assert len([file for file in files if not file.startswith("docs/")]) <= 2


@pytest.mark.slow
@pytest.mark.long_after(3)
@pytest.mark.parametrize("name", DONE)
def test_a_worked_change_applies_and_works(name, tmp_path):
    tree = tmp_path / "tree"
    for room in ROOMS:
        shutil.copytree(ROOT / room, tree / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs", tree / "docs", ignore=shutil.ignore_patterns("*.png", "*.csv"))
    applied = subprocess.run(
        ["git", "apply", str(CHANGES / f"{name}.patch")], cwd=tree, capture_output=True, text=True, timeout=60
    )
    assert applied.returncode == 0, applied.stderr
    for room in ROOMS[0], *ROOMS[2:]:  # an installed package has the rooms inside
        (tree / room).rename(tree / "marketsched" / room)
    done = subprocess.run(
        [sys.executable, "-c", FIRST + DONE[name], str(tree)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tree), "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
