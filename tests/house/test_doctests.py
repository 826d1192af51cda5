"""Every example in a docstring, and the README's, is run and gives what it says."""

import doctest
import pkgutil
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

# walk_packages over marketsched alone would miss the three rooms that are mapped into it.
ROOTS = ("marketsched", "marketsched.agents", "marketsched.mechanisms", "marketsched.relaxed_lp")
ROOT = Path(__file__).resolve().parents[2]
OF_AN_EXTRA = {"marketsched.dashboard.page": "solara"}  # modules that cannot be imported without it
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.fixture(autouse=True)
def table_of_mechanisms(monkeypatch):
    """Let an example register a mechanism of its own; other tests do not see it."""
    registry = import_module("marketsched.mechanisms.registry")
    monkeypatch.setattr(registry, "_TABLES", {kind: dict(table) for kind, table in registry._TABLES.items()})


def modules_under(root: str) -> list[str]:
    """Return the dotted names of a root and of all modules below it."""
    walk = pkgutil.walk_packages(import_module(root).__path__, root + ".")
    return [root, *(found.name for found in walk if not found.name.endswith("__main__"))]


def importable(names: list[str]) -> list[str]:
    """Return the modules without those that need an extra which is not installed."""
    return [name for name in names if name not in OF_AN_EXTRA or find_spec(OF_AN_EXTRA[name])]


@pytest.mark.slow
@pytest.mark.parametrize("root", ROOTS)
def test_docstrings_of_a_room(root):
    names = modules_under(root)
    folder = ROOT / root.rpartition(".")[2]
    files = [path for path in folder.rglob("*.py") if path.name != "__main__.py"]
    assert len(set(names)) >= len(files), f"found {names}, but {folder.name}/ holds {len(files)} files"
    failed = {}
    for name in importable(names):
        result = doctest.testmod(import_module(name), optionflags=OPTIONS)  # what differs is printed
        if result.failed:
            failed[name] = result.failed
    assert not failed


def test_docstrings_hold_examples():
    finder = doctest.DocTestFinder()
    tests = [t for root in ROOTS for name in importable(modules_under(root)) for t in finder.find(import_module(name))]
    assert sum(len(test.examples) for test in tests) >= 4


def listed() -> dict[str, object]:
    """Return every public class and function: those that a package lists in its `__init__.pyi`, by dotted name."""
    stubs = [path for path in ROOT.rglob("__init__.pyi") if not {".venv", "build"} & set(path.relative_to(ROOT).parts)]
    found = {}
    for stub in stubs:
        package = ".".join(stub.parent.relative_to(ROOT).parts)
        package = package if package.startswith("marketsched") else f"marketsched.{package}"
        module = import_module(package)
        for name in module.__all__:
            if callable(getattr(module, name)):
                found[f"{package}.{name}"] = getattr(module, name)
    return found


def lacking(things: dict[str, object]) -> list[str]:
    """Return which of these have neither an example nor name the one thing in whose example they are seen."""
    shows = {dotted.rpartition(".")[2] for dotted, thing in things.items() if ">>>" in (thing.__doc__ or "")}
    seen_at = re.compile(r"^ *Examples\n *-+\n *See `(?:\w+\.)*(\w+)`", re.M)
    return [
        dotted
        for dotted, thing in things.items()
        if dotted.rpartition(".")[2] not in shows
        and not ((found := seen_at.search(thing.__doc__ or "")) and found[1] in shows)
    ]


def test_every_public_name_shows_an_example():
    things = listed()
    assert len(things) > 200 and lacking(things) == []


@pytest.mark.slow
def test_readme():
    """The fenced examples of the README, run in order in one namespace."""
    text = (ROOT / "README.md").read_text()
    blocks = [block for block in re.findall(r"^```(?:python|pycon)\n(.*?)^```", text, re.M | re.S) if ">>>" in block]
    assert blocks, "README.md has no fenced Python example with >>> and its printed result"
    parser, runner, namespace = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=OPTIONS), {}
    for number, block in enumerate(blocks, 1):
        test = parser.get_doctest(block, namespace, f"README example {number}", "README.md", 0)
        runner.run(test, clear_globs=False)
        namespace.update(test.globs)
    assert runner.failures == 0
    assert runner.tries > 0
