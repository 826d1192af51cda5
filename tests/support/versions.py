"""Try the package on other Pythons, and on the newest versions of what it stands on.

    python tests/support/versions.py mesa      # newest Mesa 3.x, newest Python found: tests of agents, equal tables
    python tests/support/versions.py newest    # newest of everything on that Python: which dependency breaks?
    python tests/support/versions.py preview   # tests of agents on Mesa's next major version, where there is a preview

``--all`` takes every Python that is found; rooms behind ``newest`` are those whose tests are played. Environments are
made in build/versions and stay there. Without another Python it says so, and the status is 0.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "build" / "versions"
PYTHONS = ("3.13", "3.12")
COMPARED = ("synthetic-pipelines", "stochastic-mix")  # tables that have to be equal, seed 0
SUITE = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis")  # what the tests of agents need
ROOMS = ("tests/agents", "tests/worlds", "tests/results", "tests/play")  # those of `newest`
PREVIEW = "mesa>=4.0.0a0"
WORKERS = ("-n", "2", "--dist", "loadfile")
LONGEST = 900  # seconds of a step

SWEEP = "scenario: stochastic-mix\nseeds: 2\n"  # sweep.yaml

COMMANDS = (  # one of each, small
    "scenarios",
    "mechanisms",
    "traces list",
    "run stochastic-mix --out run",
    "report run",
    "compare stochastic-mix --runs 2 --optimum-seconds 0 --out compared",
    "audit stochastic-mix --plays 100 --out audited",
    "learn --days 20 --seeds 2 --workers 1 --out learnt",
    "sweep sweep.yaml --out swept",
    "run cluster-default --set cluster.slots=20 --out cluster",
    "reproduce --help",
    "live --help",
)


def pythons() -> dict[str, Path]:
    """Return the interpreters found, by version: on the PATH, or of pyenv."""
    found = {}
    for version in PYTHONS:
        named = shutil.which(f"python{version}")
        of_pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
        for path in [*([Path(named)] if named else []), *of_pyenv]:
            if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:  # no shim
                found[version] = path
                break
    return found


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command in plain settings, its output kept."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    environment |= {"MPLBACKEND": "Agg", "NUMBA_CACHE_DIR": str(HOME / "kernels"), "OMP_NUM_THREADS": "1"}
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False)


def environment(name: str, python: Path, *wanted: str) -> Path:
    """Return the interpreter of an environment with these requirements, made anew if they changed.

    Raises
    ------
    SystemExit
        If pip fails.
    """
    key = "\n".join(
        [str(python), *wanted, (ROOT / "pyproject.toml").read_text(), (ROOT / "constraints.txt").read_text()]
    )
    folder = HOME / name
    stamp, inside = folder / "stamp", folder / "bin" / "python"
    digest = hashlib.sha256(key.encode()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == digest):
        shutil.rmtree(folder, ignore_errors=True)
        for step in ((python, "-m", "venv", folder), (inside, "-m", "pip", "install", "--quiet", *wanted)):
            done = run(*step)
            if done.returncode:
                raise SystemExit(f"{name}: {' '.join(map(str, step))}\n{done.stderr[-3000:]}")
        stamp.write_text(digest)
    return inside


def tables(python: Path, scenario: str) -> dict[str, pd.DataFrame]:
    """Return the tables of a run with seed 0 under an interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(python, "-m", "marketsched", "run", scenario, "--seed", "0", "--out", "run", cwd=Path(folder))
        if done.returncode:
            raise SystemExit(f"{python}: run {scenario}: {done.stderr[-2000:]}")
        return {path.stem: pd.read_parquet(path) for path in sorted((Path(folder) / "run").glob("*.parquet"))}


def unequal(one: dict[str, pd.DataFrame], other: dict[str, pd.DataFrame]) -> list[str]:
    """Return which tables differ in any bit."""
    return [name for name in one.keys() | other.keys() if name not in one or not one[name].equals(other.get(name))]


def version_of(python: Path, package: str) -> str:
    """Return the version of a package in an environment."""
    return run(python, "-c", f"from importlib.metadata import version; print(version({package!r}))").stdout.strip()


def newest_mesa(found: dict[str, Path]) -> bool:
    """Play the tests of agents on the newest Mesa 3.x, and compare tables; return whether all is well."""
    others = _without_mesa()
    own = {scenario: tables(Path(sys.executable), scenario) for scenario in COMPARED}
    well = True
    for version, python in found.items():
        begin = time.perf_counter()
        inside = environment(f"mesa-{version}", python, "-c", str(others), "-e", str(ROOT), *SUITE)
        mesa = version_of(inside, "mesa")
        done = run(inside, "-m", "pytest", "-q", *WORKERS, "-m", "not slow", "-p", "no:cacheprovider", "tests/agents")
        differ = {name: unequal(own[name], tables(inside, name)) for name in COMPARED}
        closing = (done.stdout.strip().splitlines() or ["no output"])[-1]
        said = "equal tables" if not any(differ.values()) else f"tables differ: {differ}"
        print(f"Python {version}, Mesa {mesa}: {closing}; {said}; {time.perf_counter() - begin:.0f} s", flush=True)
        if done.returncode or any(differ.values()):
            print(done.stdout[-3000:])
            well = False
    return well


def _without_mesa() -> Path:
    """Write the constraints of all packages but Mesa."""
    HOME.mkdir(parents=True, exist_ok=True)
    others = HOME / "constraints-without-mesa.txt"
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    others.write_text("\n".join(line for line in lines if not line.lower().startswith("mesa==")) + "\n")
    return others


def preview_of_mesa(version: str, python: Path) -> None:
    """Say how the tests of agents fare on the preview of Mesa's next major version; they need not pass."""
    inside = environment(f"preview-{version}", python, "-c", str(_without_mesa()), "-e", str(ROOT), *SUITE)
    done = run(inside, "-m", "pip", "install", "--quiet", "--upgrade", "--pre", "--no-deps", PREVIEW)
    if done.returncode:
        print(f"Python {version}: no preview of Mesa to be had ({PREVIEW})")
        return
    done = run(inside, "-m", "pytest", "-q", *WORKERS, "-m", "not slow", "-p", "no:cacheprovider", "tests/agents")
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-300:] or "no output"]
    print(f"Python {version}, Mesa {version_of(inside, 'mesa')}, a preview: {lines[-1]}", flush=True)
    for line in [each for each in lines if each.startswith(("FAILED", "ERROR"))][:10]:
        print(f"    {line[:200]}")


def newest_of_all(version: str, python: Path, rooms: tuple[str, ...]) -> bool:
    """Try the newest version of everything; return whether all is well, and print what breaks."""
    HOME.mkdir(parents=True, exist_ok=True)
    inside = environment(f"newest-{version}", python, "--upgrade", "-e", f"{ROOT}[viz,test]")
    moved = _moved(inside)
    print(f"Python {version}; other versions than in constraints.txt: {moved or 'none'}", flush=True)
    broken = []
    for package in _direct():
        done = run(inside, "-W", "error", "-c", f"import {_module(package)}")
        if done.returncode:
            broken.append(f"import {package}: {done.stderr.strip().splitlines()[-1]}")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sweep.yaml").write_text(SWEEP)
        for words in COMMANDS:
            done = run(inside, "-m", "marketsched", *words.split(), cwd=Path(folder))
            if done.returncode not in (0, 3) or "Warning" in done.stderr:  # 3: an audit that found a lie
                broken.append(f"marketsched {words}: {done.stderr.strip()[-300:]}")
    done = run(inside, "-m", "pytest", "-q", "-m", "not slow", *WORKERS, *rooms)
    print((done.stdout.strip().splitlines() or ["no output"])[-1], flush=True)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    broken += [f"test {name}" for name in failed]
    for each in broken:
        print(f"broken: {each}")
    if failed:
        _name_what_breaks(inside, failed[0], moved)
    return not broken and done.returncode == 0


def _name_what_breaks(inside: Path, test: str, moved: dict[str, str]) -> None:
    """Put back one package after the other, and say with which of them the test passes."""
    for package, change in moved.items():
        old, new = change.split(" -> ")
        run(inside, "-m", "pip", "install", "--quiet", "--no-deps", f"{package}=={old}")
        passes = run(inside, "-m", "pytest", "-q", "-x", test).returncode == 0
        run(inside, "-m", "pip", "install", "--quiet", "--no-deps", f"{package}=={new}")
        if passes:
            print(f"{package} {new} breaks {test}: it passes with {old}")
            return
    print(f"{test}: no single package among {', '.join(moved) or 'none'} breaks it")


def _direct() -> list[str]:
    """Return the packages that `pyproject.toml` asks for in every installation."""
    import tomllib

    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return [re.split(r"[\[<>=]", line)[0] for line in asked]


def _module(package: str) -> str:
    return {"pyyaml": "yaml"}.get(package.lower(), package.replace("-", "_"))


def _moved(inside: Path) -> dict[str, str]:
    """Return for each package whose version is not that of constraints.txt ``"old -> new"``."""
    lines = run(inside, "-m", "pip", "list", "--format", "freeze").stdout.splitlines()
    new = {_plain(name): version for name, _, version in (line.partition("==") for line in lines)}
    pairs = (line.partition("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    old = {_plain(name): version for name, _, version in pairs}
    return {name: f"{old[name]} -> {new[name]}" for name in old if name in new and new[name] != old[name]}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Try what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("mesa", "newest", "preview"))
    parser.add_argument("rooms", nargs="*", default=ROOMS, help="of newest: which tests")
    parser.add_argument("--all", action="store_true", help="every Python that is found, not the newest alone")
    asked = parser.parse_args()
    found = pythons()
    if not found:
        print(f"skipped: no Python {' or '.join(PYTHONS)} was found")
        return 0
    if not asked.all:
        found = dict([next(iter(found.items()))])
    if asked.what == "mesa":
        return int(not newest_mesa(found))
    if asked.what == "newest":
        well = [newest_of_all(version, python, tuple(asked.rooms)) for version, python in found.items()]
    else:
        well = []
    for version, python in found.items():
        preview_of_mesa(version, python)
    return int(not all(well))


if __name__ == "__main__":
    sys.exit(main())
