"""Imports point one way, libraries stay in their rooms, and kernels need nothing outside their file."""

import ast
import re
from pathlib import Path

import pytest

from slices import SLICES as TAKEN_OUT

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {  # dotted name: folder
    "marketsched.mechanisms": "mechanisms",
    "marketsched.relaxed_lp": "relaxed_lp",
    "marketsched.agents": "agents",
    "marketsched": "marketsched",
}
ROOMS = (  # from the bottom to the top; a room imports those before it, wherever in a file the import stands
    "marketsched.mechanisms",
    "marketsched.relaxed_lp",
    "marketsched.agents",
    "marketsched.worlds",
    "marketsched.config",
    "marketsched.results",
    "marketsched.play",
    "marketsched.comparisons",
    "marketsched.truthfulness",
    "marketsched.study",
    "marketsched.show",
    "marketsched.finite",
    "marketsched.papers",
    "marketsched.cores",
    "marketsched.slurm",
    "marketsched.live",
    "marketsched.dashboard",
    "marketsched",  # the doors: `__init__`, `__main__`, `testing` (users' test suites), `env` (their learners)
)
SLICES = tuple(f"marketsched.{folder}" for each in TAKEN_OUT.values() for folder in each if "/" not in folder)
assert set(ROOMS[-1 - len(SLICES) : -1]) == set(SLICES)  # above all rooms of the market: none of them imports a slice
OWNERS = {  # library: rooms that may import it
    "cvxpy": {"marketsched.relaxed_lp"},
    "fastapi": {"marketsched.live"},
    "httpx": {"marketsched.live"},
    "matplotlib": {"marketsched.results", "marketsched.show", *SLICES},
    "mesa": {"marketsched.agents"},
    "prometheus_client": {"marketsched.live"},
    "rich": {"marketsched.results", "marketsched.show", *SLICES},
    "sqlalchemy": {"marketsched.live"},
    "typer": {"marketsched.show", *SLICES},
    "uvicorn": {"marketsched.live"},
    "yaml": {"marketsched.config"},
}
NOT_IN_MECHANISMS = {"pandas"}
SECOND_COPIES = {"agents", "mechanisms", "relaxed_lp"}  # `import agents` would load every class a second time


def room_of(module: str) -> str:
    """Return the room a dotted name belongs to."""
    inside = [room for room in ROOMS[:-1] if module == room or module.startswith(room + ".")]
    return inside[0] if inside else "marketsched"


def points_up(room: str, other: str) -> bool:
    """Tell whether an import of ``other`` in ``room`` leads upwards, and so could close a circle, or into a slice."""
    return ROOMS.index(other) > ROOMS.index(room) or (other in SLICES and room == ROOMS[-1])


def imported(tree: ast.AST, package: str) -> list[tuple[int, str]]:
    """Return (line, dotted name) of all imports, wherever they stand; relative ones resolved in ``package``."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], base]).rstrip(".")
            found += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
    return found


def violations(source: str, module: str, package: str) -> list[str]:
    """Return what is wrong with the imports of one module of the package."""
    room, wrong, tree = room_of(module), [], ast.parse(source)
    for line, name in imported(tree, package):
        top = name.split(".")[0]
        if top == "marketsched" and name != "marketsched.__version__" and points_up(room, room_of(name)):
            wrong.append(f"{module}:{line} imports {name}, which lies above {room}")
        if room not in OWNERS.get(top, {room}) or (room == ROOMS[0] and top in NOT_IN_MECHANISMS):
            wrong.append(f"{module}:{line} imports {top}, which has no place in {room}")
        if top in SECOND_COPIES:
            wrong.append(f"{module}:{line} imports {name}: write marketsched.{name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            wrong.append(f"{module}:{node.lineno} prints: library code returns what it has to say")
    return wrong


def sources() -> dict[str, tuple[Path, str]]:
    """Return module: (file, package) for every source file."""
    found = {}
    for room, folder in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = [room, *path.relative_to(ROOT / folder).with_suffix("").parts]
            package = ".".join(parts[:-1])
            found[package if parts[-1] == "__init__" else ".".join(parts)] = (path, package)
    return found


def test_imports_point_one_way():
    modules = sources()
    assert set(ROOMS) <= {room_of(module) for module in modules} <= {*ROOMS}
    assert {m for m in modules if room_of(m) == "marketsched"} == {
        "marketsched",
        "marketsched.__main__",
        "marketsched.env",
        "marketsched.testing",
    }
    wrong = [line for m, (path, package) in modules.items() for line in violations(path.read_text(), m, package)]
    assert not wrong, "\n".join(wrong)


def test_nobody_loads_a_second_copy_of_a_room():
    wrong = []
    for folder in ("tests", "benchmarks", "examples"):
        for path in (ROOT / folder).rglob("*.py"):
            for line, name in imported(ast.parse(path.read_text()), ""):
                # Beside a model of its own, an example may have an agents.py: Mesa's convention.
                own = (path.parent / f"{name.split('.')[0]}.py").exists()
                if name.split(".")[0] in SECOND_COPIES and not own:
                    wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from marketsched.agents import Market", "marketsched.mechanisms.posted.menu"),
        ("def f():\n    import marketsched.agents.market", "marketsched.relaxed_lp.lp"),
        ("from ..agents import market", "marketsched.mechanisms.sow"),
        ("from marketsched import scenario", "marketsched.agents.market"),
        ("import mesa", "marketsched.play.running"),
        ("from marketsched import Scenario", "marketsched.play.running"),
        ("if TYPE_CHECKING:\n    from marketsched.config.scenario import Scenario", "marketsched.worlds.workload"),
        ("def f():\n    from marketsched.show.cli import app", "marketsched.study.sweeps.sweeping"),
        ("from marketsched.results import output", "marketsched.config.scenario"),
        ("import yaml", "marketsched.study.sweeps.sweeping"),
        ("from matplotlib import pyplot", "marketsched.truthfulness.audit"),
        ("import rich.table", "marketsched.play.running"),
        ("from mesa.time import x", "marketsched.mechanisms.sow"),
        ("import cvxpy as cp", "marketsched.agents.market"),
        ("import pandas as pd", "marketsched.mechanisms.sow"),
        ("import fastapi", "marketsched.show.commands.run"),
        ("from sqlalchemy import select", "marketsched.play.replaying"),
        ("from marketsched.live.client import LiveClient", "marketsched.play.workers"),
        ("import agents.market", "marketsched.play.running"),
        ("from mechanisms import sow", "marketsched.agents.market"),
        ("print(1)", "marketsched.worlds.traces.swf"),
    ],
)
def test_a_wrong_import_is_found(source, module):
    assert len(violations(source, module, module.rpartition(".")[0])) == 1


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from marketsched.mechanisms.sow import StatementOfWork\nimport mesa", "marketsched.agents.market"),
        ("from .sow import Requirement", "marketsched.mechanisms.values"),
        ("from marketsched.agents import Market\nimport pandas", "marketsched.play.running"),
        ("import cvxpy", "marketsched.relaxed_lp.lp"),
        ("from marketsched import __version__\nimport rich", "marketsched.show.cli"),
        ("from marketsched.show.cli import app", "marketsched.__main__"),
    ],
)
def test_a_right_import_passes(source, module):
    assert violations(source, module, module.rpartition(".")[0]) == []


def from_our_own_files(source: str) -> list[str]:
    """Return the names that compiled functions take from other files of the package.

    numba's cache looks only at the kernel's own file, so after an edit of the other file it would bring
    back the old result: in an installed package too.
    """
    tree = ast.parse(source)
    ours = {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("marketsched")))
        or isinstance(node, ast.Import)
        for alias in node.names
        if isinstance(node, ast.ImportFrom) or alias.name.startswith("marketsched")
    }
    used = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in node.decorator_list):
            names = {n.id for statement in node.body for n in ast.walk(statement) if isinstance(n, ast.Name)}
            used += [f"{node.name} (line {node.lineno}) uses {name}" for name in sorted(names & ours)]
    return used


def test_kernels_need_nothing_outside_their_file():
    wrong = [
        f"{module}: {use}" for module, (path, _) in sources().items() for use in from_our_own_files(path.read_text())
    ]
    assert not wrong, "\n".join(wrong)


def test_make_kernels_runs_the_tests_of_every_room_with_kernels():
    (listed,) = re.findall(r"^KERNELS := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    chosen = re.findall(r"tests/[a-z_/]+", listed)
    assert all((ROOT / name).exists() or list(ROOT.glob(f"{name}*")) for name in chosen)
    for path, _ in sources().values():
        if re.search(r"^@.*n?jit", path.read_text(), re.M):
            room = path.parent.relative_to(ROOT).as_posix().removeprefix("marketsched/")
            assert any(f"tests/{room}".startswith(name) or name.startswith(f"tests/{room}/") for name in chosen), path


def test_a_kernel_that_leans_on_another_file_is_found():
    source = (
        "from marketsched.mechanisms.limits import SLACK\nimport numpy as np\n"
        "@njit(cache=True)\ndef _kernel(x):\n    return np.sum(x) + SLACK\ndef plain():\n    return SLACK\n"
    )
    assert from_our_own_files(source) == ["_kernel (line 4) uses SLACK"]
