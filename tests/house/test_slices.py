"""A slice can be taken out of the package: everything else goes on, to the same bytes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from slices import SLICES

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {"": "marketsched", "agents": "agents", "mechanisms": "mechanisms", "relaxed_lp": "relaxed_lp"}
COMMANDS = {
    "cores": {"audit published"},
    "finite": {"audit finite"},
    "live": {"live"},
    "papers": {"reproduce"},
    "dashboard": {"dashboard"},
}
SMALL = {
    "name": "small",
    "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 8, "birth_rounds": 20, "capacity": 12},
    "mechanism": {"oracle": {"kind": "monte-carlo", "samples": 20}},
}
PLAYED = (
    ("run", "small.yaml", "--seed", "3"),
    ("compare", "small.yaml", "--mechanisms", "posted-price,first-come", "--runs", "2"),
    ("audit", "small.yaml", "--owners", "2", "--plays", "100", "--mechanism", "first-come"),
    ("learn", "--mechanisms", "pay-as-bid", "--days", "4", "--seeds", "2", "--workers", "1"),
)
# Plays all commands and prints the names of the package's commands, exit statuses, and a digest of every file but
# those with times. The finder of an editable install would supply what the tree lacks.
PROGRAM = """
import hashlib, json, pathlib, sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "Editable" not in str(finder)]
from typer.main import get_command
from typer.testing import CliRunner
import marketsched
from marketsched.show.cli import app
assert marketsched.__file__.startswith(sys.argv[1]), marketsched.__file__
def without_seconds(data):
    if isinstance(data, dict):
        return {key: without_seconds(value) for key, value in data.items() if "seconds" not in key}
    return [without_seconds(each) for each in data] if isinstance(data, list) else data
group = get_command(app)
of_audit = group.get_command(None, "audit").list_commands(None)
found = {"commands": sorted([*group.list_commands(None), *(f"audit {name}" for name in of_audit)])}
for words in json.loads(sys.argv[2]):
    done = CliRunner().invoke(app, [*words, "--out", words[0]])
    assert done.exit_code in (0, 3), (done.output, done.stderr, done.exception)
    found[words[0]] = done.exit_code
    for path in sorted(pathlib.Path(words[0]).rglob("*")):
        content = path.read_bytes() if path.is_file() and path.name != "timings.json" else b""
        if path.suffix == ".json":
            content = json.dumps(without_seconds(json.loads(content or b"null"))).encode()
        found[str(path)] = hashlib.sha256(content).hexdigest()
print(json.dumps(found))
"""


def tree_without(place: Path, *missing: str) -> Path:
    """Make a tree of links to the package's rooms and to their parts, without the missing ones."""
    for room, folder in ROOMS.items():
        inside = place / "marketsched" / room
        inside.mkdir(parents=True, exist_ok=True)
        for path in (ROOT / folder).iterdir():
            if path.name != "__pycache__" and f"{room}/{path.name}".lstrip("/") not in missing:
                (inside / path.name).symlink_to(path)
    return place


def played_without(place: Path, *slices: str) -> dict[str, object]:
    """Return what is found in a copy of the package without these slices."""
    tree = tree_without(place / "tree", *(folder for name in slices for folder in SLICES[name]))
    (place / "small.yaml").write_text(json.dumps(SMALL))
    environment = {**os.environ, "PYTHONPATH": str(tree), "MPLBACKEND": "Agg"}
    command = [sys.executable, "-c", PROGRAM, str(tree), json.dumps(PLAYED)]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return played_without(tmp_path_factory.mktemp("whole"))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("slices", [tuple(SLICES), *((name,) for name in SLICES)], ids="-".join)
def test_without_a_slice_the_market_plays_to_the_same_bytes(slices, whole, tmp_path):
    found = played_without(tmp_path, *slices)
    gone = {command for name in slices for command in COMMANDS.get(name, ())}
    assert set(whole["commands"]) - set(found["commands"]) == gone
    assert {key: found[key] for key in found if key != "commands"} == {k: whole[k] for k in whole if k != "commands"}
    assert len(found) > 20


def test_what_registers_itself_is_taken_out_of_some_copy():
    folders = {folder for each in SLICES.values() for folder in each}
    assert {path.parent.name for path in (ROOT / "marketsched").glob("*/slice.py")} <= folders
