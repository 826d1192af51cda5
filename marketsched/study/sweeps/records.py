"""One run of a sweep, in whichever process: a task goes in, the text of a record comes out.

A record holds only what a table or a manifest needs: the figures of the run, one row for a market and
one per policy for a cluster, or the error the run ended with. It is made where the run was made, and
is carried and kept as text, so that nothing on the way can change it.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from marketsched.config.scenario import Scenario
from marketsched.play.kept_results import difference, fingerprint
from marketsched.results.views import flat

DONE, FAILED, REFUSED = "done", "failed", "refused"
LONGEST_ERROR = 500  # characters of an error that a table, a manifest and a terminal show


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One run, as it is sent to a worker. ``data``, ``data_here``: see `_data_folder`."""

    key: str
    scenario: str
    seed: int
    optimum: bool
    data: str | None
    data_here: str | None
    code: Mapping[str, str]


def perform(task: SweepTask) -> str:
    """Run ``task`` and return its record as JSON; an error of the run is a record too."""
    differs = difference(task.code, fingerprint())  # processes here may import what was edited since
    if differs is not None:
        return _text({"run": task.key, "status": REFUSED, "error": differs})
    begin = time.perf_counter()
    outcome = _outcome(task)
    seconds = round(time.perf_counter() - begin, 6)
    return _text({"run": task.key, "seed": task.seed, **outcome, "seconds": seconds})


def _outcome(task: SweepTask) -> dict[str, Any]:
    """Run ``task``; whatever it raises is its outcome, but for Ctrl-C in the process that is asked to stop."""
    try:
        return {"status": DONE, "rows": _rows(task)}
    except KeyboardInterrupt as error:
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            raise
        return failure(error)
    except BaseException as error:  # SystemExit too, and what asynchronous code cancels itself with
        return failure(error)


def failure(error: BaseException) -> dict[str, Any]:
    """Return the record of a run that ended with ``error``."""
    message, kind = " ".join(str(error).split()), type(error).__name__
    line = _printable(f"{kind}: {message}" if message else kind)
    if len(line) > LONGEST_ERROR:
        line = f"{line[:LONGEST_ERROR]} ..."
    return {"status": FAILED, "error": line, "traceback": _printable("".join(traceback.format_exception(error)))}


def killed(task: SweepTask) -> str:
    """Return the record of a run whose process died whenever it was tried, in the same words wherever that was."""
    error = "WorkerDied: its process died every time, as one does that is killed or out of memory"
    return _text({"run": task.key, "seed": task.seed, "status": FAILED, "error": error, "seconds": 0.0})


def is_record(record: Any, key: str) -> bool:
    """Say whether ``record`` is all that the record of the run ``key`` has to be."""
    if not isinstance(record, Mapping) or record.get("run") != key:
        return False
    seconds, rows = record.get("seconds"), record.get("rows")
    if not isinstance(seconds, float) or not seconds >= 0.0:
        return False
    if record.get("status") == FAILED:
        return isinstance(record.get("error"), str)
    whole = isinstance(rows, list) and bool(rows) and all(isinstance(row, Mapping) and row for row in rows)
    return record.get("status") == DONE and whole


def _rows(task: SweepTask) -> list[dict[str, Any]]:
    from marketsched.play.running import run  # numba and pandas: a faulty sweep is refused without them

    scenario = Scenario.from_dict(json.loads(task.scenario))
    found = run(scenario, task.seed, data=_data_folder(task), optimum=task.optimum)
    if scenario.kind != "market":
        return [_figures(row) for row in found.records()]
    return [_figures({name: value for name, value in found.outcome.items() if name not in ("name", "meta")})]


def _data_folder(task: SweepTask) -> str | None:
    """Return the folder of traces: the requested one, else that of this machine, else that of the sweep's."""
    return task.data or os.environ.get("MARKETSCHED_DATA") or task.data_here


def _figures(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the leaves of ``data`` by their dotted names, as JSON knows them."""
    return {name: _value(value) for name, value in flat(data)}


def _value(value: Any) -> Any:
    """Return ``value`` as JSON knows it; numbers keep every digit, and stay NaN or infinite."""
    if isinstance(value, str):
        return _printable(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return _value(value.tolist())
    if isinstance(value, Iterable):
        return [_value(each) for each in value]
    return _printable(str(value))


def _printable(text: str) -> str:
    """Return ``text`` with halves of characters, as in names of files that are not UTF-8, written by number."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)
