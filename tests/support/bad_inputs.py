"""Files of every kind, and nasty values; `attempt` runs the command on one in a child of limited time and memory."""

import io
import json
import os
import re
import resource
import signal
import tempfile
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sweep_tools import ONE_JOB
from tiny_scenarios import TINY

SECONDS, MEMORY = 20, 2 * 2**30
NASTY = {
    "minus one": "-1",
    "zero": "0",
    "2^64": "18446744073709551616",
    "-2^63 - 1": "-9223372036854775809",
    "401 digits": "1" * 401,
    "5000 digits": "9" * 5000,
    "a hundred million": "100000000",
    "nan": ".nan",
    "inf": ".inf",
    "minus inf": "-.inf",
    "1e308": "1.0e+308",
    "1e-320": "1.0e-320",
    "1e-8": "1.0e-8",
    "a half": "0.5",
    "text": "text",
    "empty text": '""',
    "long text": "x" * 100_000,
    "a path": "../../etc/passwd",
    "markup": '"<b>[red]&amp;"',
    "control": '"a\\u0000b\\e[31m"',
    "arabic digits": '"١٢"',
    "superscript": '"²"',
    "null": "null",
    "true": "true",
    "list": "[1, 2]",
    "empty list": "[]",
    "list of nan": "[.nan, .nan]",
    "tiny pair": "[1.0e-8, 1.0e-8]",
    "mapping": "{a: 1}",
    "empty mapping": "{}",
    "number as key": "{1: 2}",
    "deep": "[" * 2000 + "]" * 2000,
    "endless": "&a [*a]",
    "bomb": "[&a [x,x,x,x,x,x,x,x], &b [*a,*a,*a,*a,*a,*a,*a,*a], &c [*b,*b,*b,*b,*b,*b,*b,*b], "
    "&d [*c,*c,*c,*c,*c,*c,*c,*c], &e [*d,*d,*d,*d,*d,*d,*d,*d], &f [*e,*e,*e,*e,*e,*e,*e,*e], "
    "&g [*f,*f,*f,*f,*f,*f,*f,*f], &h [*g,*g,*g,*g,*g,*g,*g,*g], &i [*h,*h,*h,*h,*h,*h,*h,*h], *i]",
    "int tag": "!!int abc",
    "timestamp tag": "!!timestamp nonsense",
    "date": "2011-05-01",
    "omap tag": "!!omap [1]",
    "set tag": "!!set [1]",
    "binary tag": "!!binary é",
    "object tag": "!!python/object:os.system {}",
    "sexagesimal": "1:30",
}

CLUSTER = {
    "name": "small cluster",
    "cluster": {
        "core": "ogasched",
        "instance": {
            "kind": "published", "ports": 2, "instances": 4, "contention": 10.0, "gain": "mixed", "alpha": [1, 1.5],
            "overhead": [0.3, 0.5],
        },
        "arrivals": {"kind": "bernoulli", "probability": 0.7},
        "slots": 8,
        "policies": ["ogasched", "fairness"],
    },
}  # fmt: skip
ESDP = {
    "name": "small esdp",
    "cluster": {
        "core": "esdp",
        "instance": {
            "kind": "published", "ports": 2, "servers": 4, "types": 2, "edge_probability": 0.5, "capacity": 2,
            "requests": [1, 2], "unit": 1,
        },
        "arrivals": {"kind": "bernoulli", "probability": 0.9},
        "slots": 8,
        "policies": ["esdp", "lowest-cost-first"],
    },
}  # fmt: skip
OPM = {
    "name": "small opm",
    "cluster": {
        "core": "opm",
        "machines": {
            "kind": "gamma", "machines": 4, "up": [0.34, 94.35], "down": [0.19, 39.92], "available": [0.7, 1],
            "unavailable": [0, 0.1], "price": "own", "price_factor": 2,
        },
        "jobs": {
            "kind": "drawn", "per_slot": 0.5, "stay": 4, "spread": 1.45, "exponent": 0.5, "budget": [2, 100],
            "weight": [1, 5],
        },
        "slots": 8,
        "policies": ["opm", "fair"],
    },
}  # fmt: skip
MECHANISM = {
    "name": "posted-price",
    "epsilon": 0.05,
    "threshold": 0.05,
    "pricing": {"kind": "exponential", "floor": 0.02, "ceiling": 20},
    "oracle": {"kind": "monte-carlo", "samples": 20, "refresh": 0.1, "probe_every": 5},
    "eviction": "all",
}
PIPELINES = {
    "name": "small pipelines",
    "workload": {
        "kind": "synthetic-pipelines", "recurring_jobs": 12, "birth_rounds": 12, "utilisation": 0.85,
        "durations": "revealed", "max_duration": 12, "round_seconds": 300, "capacity": 6,
    },
    "mechanism": MECHANISM,
    "owners": {},
    "resubmit": False,
    "expected": {"load": [0.8, 0.1]},
}  # fmt: skip
MIXTURE = {
    "name": "small mixture",
    "workload": {
        "kind": "mixtures", "capacity": 8, "horizon": 24, "max_concurrency": 2, "max_duration": 6, "max_value": 20,
        "max_delay": 12, "round_seconds": 600,
        "jobs": [
            {
                "name": "report", "birth": 1, "copies": 4, "every": 0.5,
                "statements": [
                    {
                        "probability": 0.6, "concurrency": 1,
                        "value": {"kind": "linear", "value": 8, "from": 4, "slope": 1, "deadline": 9},
                        "requirements": [{"arrival": 1, "duration": 4, "probability": 1}],
                    },
                    {"probability": 0.4, "nothing": True},
                ],
            }
        ],
    },
    "mechanism": {"pricing": {"kind": "posted", "prices": [0.5]}, "oracle": {"kind": "exact"}},
}  # fmt: skip
SWEEP = {"name": "small sweep", "scenario": ONE_JOB, "seeds": [1], "grid": {"mechanism.epsilon": [0, 0.5]}}
REPLAY = {
    "mechanism": "posted-price", "capacity": 3, "max_concurrency": 2, "max_duration": 3, "max_value": 8.0,
    "max_delay": 9, "horizon": 12, "epsilon": 0.0, "threshold": 0.1, "seed": 0, "eviction": "all",
    "pricing": {"kind": "posted", "prices": [0.5]}, "oracle": {"kind": "exact"},
}  # fmt: skip
KINDS = {
    "jobs": TINY,
    "pipelines": PIPELINES,
    "mixtures": MIXTURE,
    "ogasched": CLUSTER,
    "esdp": ESDP,
    "opm": OPM,
    "sweep": SWEEP,
    "replay": REPLAY,
}
EVENTS = [
    {
        "round": 1,
        "event": "submit",
        "job": "a",
        "sow": {
            "concurrency": 1,
            "value": {"kind": "linear", "value": 4.0, "from": 4, "slope": 0.5, "deadline": 7},
            "requirements": [{"arrival": 2, "duration": 2, "probability": 0.5, "signal": 2}],
        },
    },
    {
        "round": 1,
        "event": "submit",
        "job": "b",
        "sow": {
            "concurrency": 1,
            "value": {"kind": "table", "values": {"4": 3.0, "5": 2.0}},
            "requirements": [{"arrival": 2, "duration": 2, "probability": 0.5}],
        },
    },
    {"round": 2, "event": "arrive", "job": "a", "signal": 2},
    {"round": 2, "event": "clear"},
]
GOOD_LINE = {"round": 1, "event": "submit", "job": "good", "sow": EVENTS[0]["sow"]}


@dataclass(frozen=True)
class Case:
    """A file: its kind, its text, and more options of the command."""

    kind: str
    text: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ending:
    """How a command ended: its exit status or what killed it, what it printed, and how long it took."""

    status: int | str
    out: str
    err: str
    seconds: float


def _arguments(case: Case, folder: Path) -> list[str]:
    file = folder / "bad.yaml"
    if case.kind == "events":
        file.write_text(yaml.safe_dump(REPLAY))
        (folder / "log.jsonl").write_text(f"{case.text}\n{json.dumps(GOOD_LINE)}\n")
        return ["replay", str(file), str(folder / "log.jsonl")]
    file.write_text(case.text)
    if case.kind == "replay":
        (folder / "log.jsonl").write_text(json.dumps(GOOD_LINE) + "\n")
        return ["replay", str(file), str(folder / "log.jsonl")]
    if case.kind == "sweep":
        return ["sweep", str(file), "--out", str(folder / "out"), "--workers", "1", *case.options]
    return ["run", str(file), "--out", str(folder / "out"), *case.options]


def attempt(case: Case, seconds: int = SECONDS) -> Ending:
    """Run the command on a case in a forked child.

    The child may take so many seconds of processor time, and `MEMORY` more than is taken now. The first play of a
    kind compiles its kernels, and gets more time for that.
    """
    from marketsched.show.cli import app

    with tempfile.TemporaryDirectory() as name:
        folder, begin = Path(name), time.monotonic()
        with warnings.catch_warnings():  # of threads, from Python 3.12 on; the child needs none of them
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            _child(app, _arguments(case, folder), folder, seconds)
        status: int | str = "endless"
        while time.monotonic() < begin + 3 * seconds:  # a sleeper, or one on a busy machine
            done, code = os.waitpid(child, os.WNOHANG)
            if done:
                ended = os.waitstatus_to_exitcode(code)
                status = ended if ended >= 0 else f"killed by {signal.Signals(-ended).name}"
                break
            time.sleep(0.002)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        texts = [(folder / x).read_text() if (folder / x).exists() else "" for x in ("stdout", "stderr")]
        return Ending(status, *texts, time.monotonic() - begin)


def _child(app: Any, arguments: list[str], folder: Path, seconds: int) -> None:
    """Run the command, leave what it printed in the folder, and end the process with its exit status."""
    status = 1
    out, err = io.StringIO(), io.StringIO()
    try:
        taken = int(re.search(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (taken + MEMORY, taken + MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        os.chdir(folder)
        with redirect_stdout(out), redirect_stderr(err):
            try:
                app(arguments, standalone_mode=True)
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException as error:
        status = 99
        err.write(f"Traceback: {type(error).__name__}: {str(error)[:200]}")
    finally:
        (folder / "stdout").write_text(out.getvalue(), errors="replace")
        (folder / "stderr").write_text(err.getvalue(), errors="replace")
        os._exit(status)


def crash(case: Case, ending: Ending) -> str:
    """Return what is wrong with an ending of which nobody knows whether it had to be refused, or nothing."""
    if isinstance(ending.status, str):
        return f"{ending.status} after {ending.seconds:.1f} s"
    if "Traceback" in ending.err:
        return ending.err.strip().splitlines()[-1][:200]
    if case.kind == "events":
        last = ending.out.splitlines()[-1:] or [""]
        if ending.status not in (0, 1) or '"good"' not in last[0]:
            return f"the good line behind it is not answered: status {ending.status}, {ending.err[:150]!r}"
        return ""
    failed = ending.status == 1 and case.kind == "sweep" and "runs failed" in ending.err
    if ending.status in (0, 3) or failed:
        return ""
    if ending.status != 2 or ending.err.count("\n") != 1 or not ending.err.startswith("marketsched: "):
        return f"status {ending.status}, {ending.err.count(chr(10))} lines: {ending.err[:150]!r}"
    return f"a line of {len(ending.err)} letters" if len(ending.err) > 2500 else ""


def as_it_stands(kind: str) -> Ending:
    """Run the command on a file of this kind as it is, with time to compile.

    Here first: what is loaded and compiled here need not be in every child.
    """
    from marketsched.show.cli import app

    text = json.dumps(EVENTS[0]) if kind == "events" else yaml.safe_dump(KINDS[kind], sort_keys=False)
    case = Case(kind, text)
    if kind != "sweep":  # which plays in processes of its own
        with tempfile.TemporaryDirectory() as name, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            with suppress(SystemExit):
                app(_arguments(case, Path(name)), standalone_mode=True)
    return attempt(case, 200)
