"""What the tests of sweeps share: small scenarios, processes of their own, and a script with odd mechanisms."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from marketsched.config.strict_yaml import dump_yaml

ONE_JOB = {
    "name": "one job",
    "workload": {
        "kind": "jobs",
        "capacity": 2,
        "horizon": 6,
        "max_concurrency": 1,
        "max_duration": 2,
        "max_value": 4,
        "max_delay": 6,
        "jobs": [
            {
                "name": "A",
                "birth": 1,
                "concurrency": 1,
                "value": {"kind": "deadline", "value": 4, "deadline": 5},
                "requirements": [
                    {"arrival": 2, "duration": 2, "probability": 0.5},
                    {"arrival": 3, "duration": 1, "probability": 0.5},
                ],
            }
        ],
    },
    "mechanism": {"pricing": {"kind": "posted", "prices": [0.5]}},
}
CLUSTER = {
    "name": "small cluster",
    "cluster": {"slots": 40, "policies": ["ogasched", "fairness"], "instance": {"kind": "small-integer"}},
}

# A script that offers mechanisms of its own to the workers, which import it, and is the command line otherwise.
SCRIPT = """
import os, signal
from pathlib import Path
from marketsched.mechanisms.registry import get_mechanism, register

HERE = Path(__file__).parent

def rest(parameters):
    parameters = {name: value for name, value in parameters.items() if name != "sort"}
    return get_mechanism("posted-price", **parameters)

@register("odd")
def odd(sort="none", **parameters):
    with (HERE / "built").open("a") as file:
        file.write(f"{sort}\\n")
    if sort == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    if sort == "faulty" and not (HERE / "mended").exists():
        raise RuntimeError("it is broken")
    if sort == "once" and not (HERE / "killed").exists():
        (HERE / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return rest(parameters)

if __name__ == "__main__":
    from marketsched.show.cli import app
    app(prog_name="marketsched")
"""


def write_spec(path: Path, **spec) -> Path:
    path.write_text(dump_yaml(spec))
    return path


def start(*arguments, script: Path | None = None, **options) -> subprocess.Popen:
    """Start `marketsched`, or a script in its place, in a process and a session of its own."""
    command = [sys.executable, *(["-m", "marketsched"] if script is None else [script]), *arguments]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True} | options
    return subprocess.Popen([str(x) for x in command], **options)


def finish(process: subprocess.Popen, status: int = 0) -> tuple[str, str]:
    """Wait for the end; return what was printed on standard output and standard error."""
    out, err = process.communicate(timeout=240)
    assert process.returncode == status, (process.returncode, out, err)
    return out, err


def sweep(spec: Path, out: Path, *options, status: int = 0, **kwargs) -> str:
    """Sweep in a process of its own; return all that was printed."""
    return "".join(finish(start("sweep", spec, "--out", out, *options, **kwargs), status))


def records(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the finished runs in a folder, each with what changes if it is written again."""
    return {path.stem: (path.stat().st_ino, path.stat().st_mtime_ns) for path in (folder / "runs").glob("*.json")}


def wait_for_runs(folder: Path, count: int, process: subprocess.Popen) -> None:
    """Wait until that many runs are finished."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if len(list((folder / "runs").glob("*.json"))) >= count:
            return
        time.sleep(0.005)
    raise AssertionError(f"{count} runs were never there: {process.poll()}")


def children(process_id: int) -> list[int]:
    """Return the worker processes of a sweep."""
    found = []
    for task in Path(f"/proc/{process_id}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    commands = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in found}
    return [child for child, command in commands.items() if b"popen_loky" in command or b"spawn_main" in command]


def alive(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(true, seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def table_bytes(folder: Path) -> str:
    """Return a digest of the table."""
    return hashlib.sha256((folder / "results.parquet").read_bytes()).hexdigest()


def manifest(folder: Path) -> dict:
    """Return the manifest without durations."""
    found = json.loads((folder / "meta.json").read_text())
    for run in found["durations"]:
        assert run.pop("seconds") >= 0
    return found


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


WHOLE = {".lock", "meta.json", "results.parquet", "runs"}  # what a finished sweep consists of


@contextmanager
def dask_cluster(folder, workers):
    """Start a scheduler and workers, each a process of its own; give its address and their processes."""
    address = folder / "scheduler.json"
    log = (folder / "dask.log").open("w")
    options = {"stdout": log, "stderr": log, "cwd": folder, "start_new_session": True}
    common = ["--host", "127.0.0.1", "--no-dashboard"]

    def process(module: str, *arguments) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *common, *arguments]
        return subprocess.Popen([str(x) for x in command], **options)

    processes = [process("dask_scheduler", "--port", 0, "--scheduler-file", address)]
    try:
        assert wait_until(lambda: address.exists() and address.stat().st_size > 0)
        time.sleep(0.2)
        where = json.loads(address.read_text())["address"]
        for _ in range(workers):
            processes.append(process("dask_worker", where, "--nthreads", 1, "--death-timeout", 20))
        yield where, processes
    finally:
        for each in processes:
            os.killpg(each.pid, signal.SIGKILL)  # a nanny's worker too
            each.wait()
        log.close()
