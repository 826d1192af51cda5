"""Commands that run processes, killed at any moment: nobody is left, and no folder looks complete and is not."""

import json
import os
import signal
import time

import pytest

from marketsched.results.output import INCOMPLETE
from sweep_tools import CLUSTER, alive, children, start, wait_until, write_spec

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="looks for processes in /proc")
KILL, TERM, HUP, INT = signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT
PROMPT = {"learn": 2.0}  # seconds in which a signal is answered; others are to end, too, but may be importing


def command(name, folder):
    """Return arguments of a command that would take minutes in two processes."""
    out = ["--out", folder / "out", "--workers", 2]
    if name == "sweep":
        spec = write_spec(folder / "sweep.yaml", scenario={**CLUSTER, "cluster": {**CLUSTER["cluster"], "slots": 2000}})
        return ["sweep", spec, *out]
    if name == "reproduce":
        return ["reproduce", "--all", "--slots", 400, *out]
    if name == "compare":
        return ["compare", "stochastic-mix", "--mechanisms", "bid-price", "--loads", "1,2", "--runs", 60, *out]
    return ["learn", *out]


def looks_complete(folder):
    meta = folder / "meta.json"
    return meta.is_file() and not (folder / INCOMPLETE).exists() and json.loads(meta.read_text()).get("complete", True)


def written(folder):
    """Return every file below a folder, with what changes if it is written again."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def kill(name, number, folder, wait):
    """Start a command, send it a signal, and look at what is left of it."""
    process = start(*command(name, folder))
    try:
        assert wait_until(lambda: len(children(process.pid)) == 2), process.communicate(timeout=5)
        time.sleep(wait)
        workers = children(process.pid)
        begin = time.monotonic()
        os.killpg(process.pid, number) if number in (INT, HUP) else process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert time.monotonic() - begin < PROMPT.get(name, 5.0)
        assert wait_until(lambda: not any(map(alive, workers)), 1.0), f"workers outlive {name}"
        assert process.returncode == (-number if number is KILL else 130)
        if number is not KILL:
            assert err.startswith("marketsched: interrupted") and err.count("\n") == 1, err
    finally:
        process.kill()
    left = written(folder)
    assert not looks_complete(folder / "out")
    if name == "reproduce":
        for each in (folder / "out").iterdir() if (folder / "out").is_dir() else ():
            if each.is_dir() and not each.name.startswith("."):
                assert {path.name for path in each.iterdir()} >= {"meta.json", "table.parquet", "figure.png"}
    time.sleep(0.3)
    assert written(folder) == left


@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.parametrize(("name", "number"), [("sweep", KILL), ("reproduce", TERM), ("sweep", HUP), ("learn", INT)])
def test_a_command_that_is_killed_leaves_nobody(name, number, tmp_path):
    kill(name, number, tmp_path, 1.5)
