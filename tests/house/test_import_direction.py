"""Imports point one way, libraries stay in their rooms (contracts in pyproject.toml); kernels need only their file."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slices import SLICES

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("agents", "marketsched", "mechanisms", "relaxed_lp")
WRONG = {  # an import, put into a file: the contract that it breaks
    (
        "marketsched/worlds/workload.py",
        "from marketsched.config.scenario import Scenario",
    ): "a room imports those below",
    ("mechanisms/sow.py", "if TYPE_CHECKING:\n    from marketsched.agents import market"): "a room imports those below",
    ("marketsched/play/running.py", "def f():\n    from marketsched.live import client"): "a room imports those below",
    ("marketsched/env.py", "import marketsched.cores.playing"): "what users import",
    ("marketsched/results/tables.py", "from marketsched import testing"): "no room imports the doors",
    ("mechanisms/limits.py", "import pandas as pd"): "rules and markets",
    ("agents/market.py", "import cvxpy as cp"): "linear programs",
    ("marketsched/play/replaying.py", "from mesa.time import x"): "Mesa stays",
    ("marketsched/play/fingerprint.py", "import yaml"): "YAML is read",
    ("marketsched/show/cli.py", "from sqlalchemy import select"): "the server's libraries",
    ("marketsched/truthfulness/audit.py", "from matplotlib import pyplot"): "figures and tables",
    ("agents/loop.py", "import typer"): "commands are",
}


def contracts(package: Path) -> dict[str, bool]:
    """Return the contracts of pyproject.toml, and whether the package in a folder keeps them."""
    pytest.importorskip("importlinter", reason="needs import-linter (the extra dev)")
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--config", ROOT / "pyproject.toml"]
    environment = {**os.environ, "COLUMNS": "300"}  # a contract in one line
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, timeout=120)
    found = dict(re.findall(r"^(.+) (KEPT|BROKEN)$", done.stdout, re.M))
    assert len(found) >= 10, done.stdout + done.stderr
    return {name: kept == "KEPT" for name, kept in found.items()}


def linked(source: Path, folder: Path) -> Path:
    """Make the tree in which the package lies as it is imported, and return its folder."""
    package = folder / "marketsched"
    package.mkdir(parents=True)
    for path in [*(source / "marketsched").iterdir(), *(source / room for room in FOLDERS if room != "marketsched")]:
        (package / path.name).symlink_to(path)
    return folder


def test_imports_point_one_way(tmp_path):
    broken = [name for name, kept in contracts(linked(ROOT, tmp_path / "tree")).items() if not kept]
    assert not broken, f"{broken}: run lint-imports in build/src to see the imports"


def test_every_slice_stands_above_the_market_s_rooms():
    layers = re.search(r"^layers = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.M | re.S)[1]
    upper = re.findall(r'"(\w+)"', layers.splitlines()[0])
    assert set(upper) == {folder for each in SLICES.values() for folder in each if "/" not in folder}


def test_wrong_imports_are_found(tmp_path):
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / "copy" / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for (file, line), _ in WRONG.items():
        with (tmp_path / "copy" / file).open("a") as end:
            end.write(f"\n{line}\n")
    found = contracts(linked(tmp_path / "copy", tmp_path / "tree"))
    assert not any(found.values()) and all(any(name.startswith(begin) for name in found) for begin in WRONG.values())


def sources() -> list[Path]:
    """Return every source file of the package."""
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def compared_files(tree: ast.Module) -> set[str]:
    """Return all names that come from files whose kernels a `kernel_over` lists: their cache notices these files."""
    listed = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "kernel_over"
        for name in node.args
        if isinstance(name, ast.Name)
    }
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name
        for node in imports
        if listed & {alias.asname or alias.name for alias in node.names}
        for alias in node.names
    }


def from_our_own_files(source: str) -> list[str]:
    """Return the names that compiled functions take from other files of the package."""
    tree = ast.parse(source)
    ours = {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("marketsched")))
        or isinstance(node, ast.Import)
        for alias in node.names
        if isinstance(node, ast.ImportFrom) or alias.name.startswith("marketsched")
    }
    used, ours = [], ours - compared_files(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(
            "jit" in ast.unparse(d) or "compiled" in ast.unparse(d) for d in node.decorator_list
        ):
            names = {n.id for statement in node.body for n in ast.walk(statement) if isinstance(n, ast.Name)}
            used += [f"{node.name} (line {node.lineno}) uses {name}" for name in sorted(names & ours)]
    return used


@pytest.mark.slow
def test_kernels_need_nothing_outside_their_file():
    wrong = [f"{path.name}: {use}" for path in sources() for use in from_our_own_files(path.read_text())]
    assert not wrong, "\n".join(wrong)


def test_make_kernels_runs_the_tests_of_every_room_with_kernels():
    (listed,) = re.findall(r"^KERNELS := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    chosen = re.findall(r"tests/[a-z_/]+", listed)
    assert all((ROOT / name).exists() or list(ROOT.glob(f"{name}*")) for name in chosen)
    for path in sources():
        if re.search(r"^@.*n?jit", path.read_text(), re.M):
            room = path.parent.relative_to(ROOT).as_posix().removeprefix("marketsched/")
            assert any(f"tests/{room}".startswith(name) or name.startswith(f"tests/{room}/") for name in chosen), path


def test_a_kernel_that_leans_on_another_file_is_found():
    source = (
        "from marketsched.mechanisms.limits import SLACK\nimport numpy as np\n"
        "@njit(cache=True)\ndef _kernel(x):\n    return np.sum(x) + SLACK\ndef plain():\n    return SLACK\n"
    )
    assert from_our_own_files(source) == ["_kernel (line 4) uses SLACK"]


def test_a_kernel_over_other_files_must_list_them():
    listed = "from marketsched.a import b, c\nfrom marketsched.d import e\n_compiled = kernel_over(b)\n"
    fine, wrong = (
        listed + "@_compiled\ndef f():\n    return b() + c()\n",
        listed + "@_compiled\ndef f():\n    return e()\n",
    )
    assert from_our_own_files(fine) == [] and from_our_own_files(wrong) == ["f (line 5) uses e"]
