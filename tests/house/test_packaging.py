"""The distribution holds every module and data file, and works where the repository is not."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import hashed_requirements
from fresh_install import DATA, faults_of

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]
ROOMS = SETUPTOOLS["package-dir"]  # dotted name: folder at the top of the repository


def modules_on_disk() -> dict[str, Path]:
    """Return the path inside a wheel of every source and data file, with its place in the repository."""
    found = {}
    for package, folder in ROOMS.items():
        for path in (ROOT / folder).rglob("*"):
            if (
                path.suffix in {".py", ".pyi", ".yaml", ".csv", ".jinja", ".css", ".js", ".lua", ".html"}
                or path.name == "py.typed"
            ):
                inside = Path(*package.split("."), *path.relative_to(ROOT / folder).parts)
                found[inside.as_posix()] = path
    return found


def test_every_folder_with_an_init_is_listed():
    folders = {
        str(Path(inside).parent).replace("/", ".") for inside in modules_on_disk() if inside.endswith("__init__.py")
    }
    assert folders == set(SETUPTOOLS["packages"])


def test_every_module_lies_in_a_package():
    folders = {Path(inside).parent.as_posix() for inside in modules_on_disk() if inside.endswith(".py")}
    assert folders == {package.replace(".", "/") for package in SETUPTOOLS["packages"]}


def test_constraints_are_names_and_versions_only():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines == sorted(lines, key=str.lower)
    for line in lines:
        name, _, version = line.partition("==")
        assert name.replace("-", "").replace("_", "").replace(".", "").isalnum(), line
        assert version and not set(version) & set(" @:/;#"), line


def test_every_dependency_is_constrained():
    pinned = {
        line.partition("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().split()
    }
    pinned.add("marketsched")  # an extra may name other extras
    extras = PROJECT["project"]["optional-dependencies"]
    asked = [*PROJECT["project"]["dependencies"], *(line for lines in extras.values() for line in lines)]
    for requirement in asked:
        name = requirement.split("[")[0].split("<")[0].split(">")[0].split("=")[0].lower().replace("_", "-")
        assert name in pinned, f"{requirement} has no tested version in constraints.txt"


def test_the_container_has_the_versions_that_were_tested_and_hashes_of_all_files():
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    tested = {name.lower().replace("_", "-"): version for name, version in pinned.items()}
    entries = (ROOT / "docs/live/container.txt").read_text().replace(" \\\n", "").splitlines()
    found = {}
    for entry in entries:
        if not entry.startswith("#"):
            name, *hashes = entry.split()
            name, version = name.split("==")
            found[name.lower().replace("_", "-")] = version
            assert hashes and all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", each) for each in hashes), entry
    assert found == {name: tested[name] for name in found}
    for requirement in hashed_requirements.requirements():
        assert re.split(r"[\[<>=]", requirement)[0].lower().replace("_", "-") in found, requirement


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Build a wheel from a copy of the tree, without network."""
    tree = tmp_path_factory.mktemp("tree") / "repository"
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in ROOMS.values():
        shutil.copytree(ROOT / folder, tree / folder, ignore=skip)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*build, "--wheel-dir", "out", "."], cwd=tree, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (built,) = (tree / "out").glob("*.whl")
    return built


@pytest.mark.slow
def test_wheel_holds_every_file(wheel):
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == set(modules_on_disk())


@pytest.mark.slow
def test_what_make_dist_refuses(wheel, tmp_path):
    assert faults_of(wheel) == []
    with zipfile.ZipFile(tmp_path / "bad.whl", "w") as bad:
        for name in (*DATA[1:], "agents/market.py", "marketsched/tests/test_market.py"):
            bad.writestr(name, "")
    assert faults_of(tmp_path / "bad.whl") == [
        f"{DATA[0]} is missing",
        "agents/market.py does not belong there",
        "marketsched/tests/test_market.py is a test",
    ]


@pytest.mark.slow
def test_wheel_works_on_its_own(wheel, tmp_path):
    """Import every module, and run the command, from a folder that has an agents.py of its own."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    (tmp_path / "agents.py").write_text("raise RuntimeError('this file is the user\\'s')\n")
    names = sorted(
        inside.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for inside in modules_on_disk()
        if inside.endswith(".py") and not inside.endswith("__main__.py")
    )
    names = [name for name in names if name != "marketsched.dashboard.page" or find_spec("solara")]  # of an extra
    # Without the finder of an editable install, which would supply what the wheel lacks.
    code = f"""
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "Editable" not in str(finder)]
from importlib import import_module
for name in {names!r}:
    module = import_module(name)
    assert module.__file__.startswith({str(tmp_path / "site")!r}), module.__file__
import runpy
sys.argv = ["marketsched", "scenarios"]
runpy.run_module("marketsched", run_name="__main__")
"""
    command = [sys.executable, "-c", code]
    environment = {"PYTHONPATH": str(tmp_path / "site"), "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(tmp_path / "mpl")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for scenario in (ROOT / "marketsched").glob("*/scenarios/*.yaml"):
        assert scenario.stem in done.stdout
