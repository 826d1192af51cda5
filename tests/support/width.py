"""How wide a command is: the files of the package in which a function runs, and the modules that it imports.

    python tests/support/width.py run compare audit

A reader who follows a command through the code passes these files. Functions that run at import, and compiled kernels,
are not seen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "run": ("run", "synthetic-pipelines", "-m", "bid-price", "--set", "workload.recurring_jobs=20"),
    "compare": (
        "compare",
        "synthetic-pipelines",
        "-m",
        "bid-price,first-come",
        "--runs",
        "2",
        "--set",
        "workload.recurring_jobs=20",
    ),
    "audit": ("audit", "stochastic-mix", "-m", "first-come", "--owners", "1", "--plays", "100"),
}
# The profile is set once everything that a command imports at its beginning is there; what it imports later shows its
# functions `<module>` and those that a module calls while it is imported, which are left out.
PROGRAM = """
import json, sys
from marketsched.show.cli import app
from typer.testing import CliRunner
root, words = sys.argv[1], json.loads(sys.argv[2])
rooms = tuple(f"{root}/{room}/" for room in ("agents", "marketsched", "mechanisms", "relaxed_lp"))
ran, importing = set(), [0]
def seen(frame, event, argument):
    code = frame.f_code
    if code.co_name == "<module>":
        importing[0] += 1 if event == "call" else -1 if event == "return" else 0
    elif event == "call" and not importing[0] and code.co_filename.startswith(rooms):
        ran.add(code.co_filename)
sys.setprofile(seen)
done = CliRunner().invoke(app, words)
sys.setprofile(None)
assert done.exit_code in (0, 3), (done.output, done.exception)
modules = {name for name in sys.modules if name.split(".")[0] == "marketsched"}
print(json.dumps({"files": sorted(name[len(root) + 1:] for name in ran), "modules": sorted(modules)}))
"""


def width_of(command: str) -> dict[str, list[str]]:
    """Return the ``files`` and ``modules`` of a command of `COMMANDS`."""
    with tempfile.TemporaryDirectory() as folder:
        words = [*COMMANDS[command], "--out", str(Path(folder) / "out")]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(ROOT), json.dumps(words)],
            capture_output=True, text=True, timeout=600, env={**os.environ, "MPLBACKEND": "Agg"}, cwd=folder,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print both counts of each command."""
    for command in sys.argv[1:] or COMMANDS:
        found = width_of(command)
        print(f"{command}: {len(found['files'])} files, {len(found['modules'])} modules")


if __name__ == "__main__":
    main()
