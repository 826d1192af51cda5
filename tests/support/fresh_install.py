"""Install a wheel into an empty environment outside the repository, and run a first market with its figure.

    python tests/support/fresh_install.py dist/marketsched-*.whl [-c constraints.txt]

Prints the seconds that pip, the first run (kernels are compiled) and the second one take. The exit status is 1 if the
wheel lacks a file that is no module, holds a test, or a run fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

FIRST = ("run", "synthetic-pipelines", "-m", "bid-price")
DATA = (  # beside modules: what the commands read, one of each kind
    "marketsched/py.typed",
    "marketsched/__init__.pyi",
    "marketsched/mechanisms/__init__.pyi",
    "marketsched/mechanisms/rules.csv",
    "marketsched/config/scenarios/synthetic-pipelines.yaml",
    "marketsched/live/job_submit.lua",
    "marketsched/live/assets/page.html",
    "marketsched/live/assets/page.js",
    "marketsched/show/reports/report.jinja",
    "marketsched/show/reports/report.css",
    "marketsched/dashboard/assets/page.css",
    "marketsched/dashboard/assets/theme.js",
)


def faults_of(wheel: Path) -> list[str]:
    """Return what is wrong with the files in a wheel."""
    inside = zipfile.ZipFile(wheel).namelist()
    missing = [f"{name} is missing" for name in DATA if name not in inside]
    foreign = [f"{name} does not belong there" for name in inside if not name.startswith("marketsched")]
    tests = [f"{name} is a test" for name in inside if "/tests/" in name or Path(name).name.startswith("test_")]
    return missing + foreign + tests


def seconds(what: str, *command: str | Path, cwd: Path) -> float:
    """Run a command away from the repository and its settings; print and return how long it took.

    Raises
    ------
    SystemExit
        If it fails; the message has what it wrote.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA", "VIRTUAL"))}
    environment = {**kept, "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(cwd / "matplotlib")}
    begin = time.perf_counter()
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    took = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(f"{what}: exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    print(f"{what}: {took:.1f} s", flush=True)
    return took


def try_wheel(wheel: Path, constraints: Path | None) -> None:
    """Install the wheel, and run a first market twice."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        seconds("an empty environment", sys.executable, "-m", "venv", home / "venv", cwd=home)
        pinned = ["-c", str(constraints.resolve())] if constraints else []
        pip = (home / "venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        seconds("pip install", *pip, *pinned, wheel.resolve(), cwd=home)
        for run, what in (("first", "first run, kernels compiled"), ("second", "second run")):
            seconds(what, home / "venv/bin/marketsched", *FIRST, "--out", home / run, cwd=home)
            figure = home / run / "figure.png"
            if not figure.read_bytes().startswith(b"\x89PNG"):
                raise SystemExit(f"{figure.name} is no picture")


def main() -> None:
    """Check the wheel that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("-c", "--constraints", type=Path, help="versions, as of pip")
    asked = parser.parse_args()
    faults = faults_of(asked.wheel)
    if faults:
        raise SystemExit("\n".join(faults))
    print(f"{asked.wheel.name}: {len(zipfile.ZipFile(asked.wheel).namelist())} files, none missing, no test")
    try_wheel(asked.wheel, asked.constraints)


if __name__ == "__main__":
    main()
