"""Write `docs/live/container.txt`: packages of a live market's container, with versions of constraints.txt and hashes.

pip finds them, for the Python and the machines of the container of docs/live.md, and says the hash of each file; it
installs nothing. To be run when constraints.txt, or a requirement of the extras ``live`` and ``postgres``, has changed:
``python tests/support/hashed_requirements.py``.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "docs/live/container.txt"
PYTHON, MACHINES = "3.12", ("x86_64", "aarch64")
EXTRAS = ("live", "postgres")
GLIBC = ("manylinux2014", "manylinux_2_17", "manylinux_2_24", "manylinux_2_27", "manylinux_2_28", "manylinux_2_34")
HEAD = f"""# Packages of a live market, in a container of Python {PYTHON} on Linux ({", ".join(MACHINES)}), with hashes:
# pip install --require-hashes --only-binary :all: -r docs/live/container.txt
# Made of pyproject.toml and constraints.txt by `python tests/support/hashed_requirements.py`.
"""


def requirements() -> list[str]:
    """Return the requirements of the container, as pyproject.toml states them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *(each for extra in EXTRAS for each in project["optional-dependencies"][extra])]


def files_of(machine: str) -> dict[str, str]:
    """Return the SHA-256 of the wheel that pip takes for each ``name==version``."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        platforms = [word for glibc in GLIBC for word in ("--platform", f"{glibc}_{machine}")]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run"]
        command += ["--ignore-installed", "--only-binary", ":all:", "--target", f"{folder}/target"]
        command += ["--python-version", PYTHON, *platforms, "--report", str(report)]
        subprocess.run([*command, "-c", str(ROOT / "constraints.txt"), *requirements()], check=True)
        found = json.loads(report.read_text())["install"]
    named = (
        (f"{each['metadata']['name'].lower()}=={each['metadata']['version']}", each["download_info"]) for each in found
    )
    return {name: info["archive_info"]["hashes"]["sha256"] for name, info in named}


def main() -> None:
    """Write the file."""
    hashes: defaultdict[str, set[str]] = defaultdict(set)
    for machine in MACHINES:
        for name, found in files_of(machine).items():
            hashes[name].add(found)
    lines = (
        " \\\n    ".join([name, *(f"--hash=sha256:{each}" for each in sorted(hashes[name]))]) for name in sorted(hashes)
    )
    LOCK.write_text(HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
