"""Importing the package is instant: nothing heavy is loaded before it is needed."""

import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

PACKAGES = (
    "marketsched",
    "marketsched.agents",
    "marketsched.study",
    "marketsched.mechanisms",
    "marketsched.relaxed_lp",
    "marketsched.truthfulness",
    "marketsched.cores",
    "marketsched.dashboard",
    "marketsched.finite",
    "marketsched.papers",
)
HEAVY = {"mesa", "cvxpy", "numba", "pandas", "matplotlib", "scipy"}


def heavy_modules(code: str, heavy: set[str] = HEAVY) -> set[str]:
    """Return which heavy packages a fresh interpreter has loaded after ``code``."""
    report = "\nimport sys; sys.stderr.write('loaded ' + ' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return heavy & set(done.stderr.rpartition("loaded ")[2].split())


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_loads_nothing_heavy(package):
    assert heavy_modules(f"import {package}") == set()


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "name", ["marketsched.config.scenario", "marketsched.worlds.traces", "marketsched.mechanisms.sow"]
)
def test_describing_a_market_needs_no_engine(name):
    assert heavy_modules(f"import {name}").isdisjoint({"mesa", "cvxpy", "numba"})


def loaded_by(*arguments: str, status: int = 0, heavy: set[str] = HEAVY) -> set[str]:
    """Return which heavy packages the command has loaded when it leaves with ``status``."""
    run = f"import runpy, sys; sys.argv = {['marketsched', *arguments]!r}"
    run += "\ntry: runpy.run_module('marketsched', run_name='__main__', alter_sys=False)"
    run += f"\nexcept SystemExit as stop: assert (stop.code or 0) == {status}, stop.code"
    return heavy_modules(run, heavy)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "arguments", [["--help"], ["report", "--help"], ["scenarios"], ["scenarios", "stochastic-mix"], ["traces"]]
)
def test_commands_that_only_read_load_nothing_heavy(arguments):
    assert loaded_by(*arguments) == set()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "arguments", [["--help"], ["report", "--help"], ["scenarios"], ["scenarios", "stochastic-mix"]]
)
def test_commands_that_list_do_not_even_load_numpy(arguments):
    assert loaded_by(*arguments, heavy=HEAVY | {"numpy"}) == set()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("command", ["run", "audit", "compare", "sweep", "report"])
def test_an_error_of_the_users_loads_nothing_heavy(command, tmp_path):
    faulty = tmp_path / "faulty.yaml"
    faulty.write_text("name: x\nworkload: {kind: synthetic-pipelines, nodes: 3}\n")
    assert loaded_by(command, str(faulty), status=2) == set()


@pytest.mark.slow
def test_a_run_loads_no_package_that_it_does_not_use(tmp_path):
    loaded = loaded_by("run", "stochastic-mix", "--out", str(tmp_path / "run"))
    assert {"numba", "pandas", "matplotlib"} <= loaded
    assert loaded.isdisjoint({"mesa", "cvxpy"})


@pytest.mark.slow
def test_mesa_is_loaded_where_owners_are_agents():
    assert "mesa" in heavy_modules("from marketsched import learn")


def test_heavy_modules_are_seen():
    assert heavy_modules("from marketsched import mechanisms; import numba") >= {"numba"}


def processor_seconds(*arguments):
    """Return what a Python process takes, and what it prints."""
    begin = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - begin, done.stdout


def test_help_is_there_at_once():
    """Under 0.3 s of processor time, or 3.4 imports of typer where the machine is slow; the best of several each."""
    best = typer = float("inf")
    for _ in range(10):
        seconds, printed = processor_seconds("-m", "marketsched", "--help")
        assert "run" in printed and "replay" in printed
        best, typer = min(best, seconds), min(typer, processor_seconds("-c", "import typer.main")[0])
        if best < max(0.3, 3.4 * typer):
            return
    pytest.fail(f"the fastest of ten took {best:.2f} s, {best / typer:.1f} imports of typer")


def offered() -> list[tuple[str, str]]:
    """Return (package, name) for all that the packages offer."""
    return [(package, name) for package in PACKAGES for name in import_module(package).__all__]


@pytest.mark.parametrize(("package", "name"), offered())
def test_an_offered_name_resolves(package, name):
    namespace = {}
    exec(f"from {package} import {name}", namespace)
    assert not isinstance(namespace[name], type(sys)), f"{name} is a sub-module, not what it should be"
    assert name in dir(import_module(package))


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_hides_behind_a_sub_module(package):
    """Importing ``package.x`` binds the sub-module to the name ``x``, whatever it was before."""
    module = import_module(package)
    files = {path.stem for folder in module.__path__ for path in Path(folder).iterdir()}
    assert files.isdisjoint(module.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"marketsched\.mechanisms attribute Nonsense"):
        import_module("marketsched.mechanisms").Nonsense  # noqa: B018
