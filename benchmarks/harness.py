"""What benchmarks are made of: rows with bounds, fair timing, peak memory.

A file ``bench_*.py`` beside this one marks functions with ``@benchmark``; each returns or yields
rows. Times differ between machines and hours, so a bound belongs on a ratio of two things that were
timed side by side in one run (:func:`time_interleaved`).
"""

from __future__ import annotations

import gc
import json
import math
import multiprocessing
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of a benchmark.

    ``at_most`` or ``at_least`` is what it must reach; with neither, the figure is for information.
    ``values`` are those of all repeats, of which ``value`` is the median; empty: it was measured once.
    """

    name: str
    value: float
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.at_most is not None and self.at_least is not None:
            raise ValueError(f"row {self.name!r} has two bounds: expected at_most, at_least or neither")

    @classmethod
    def of_repeats(cls, rows: Sequence[Row]) -> Row:
        """Return one row of the same figure measured several times; a row that has values of its own gives all."""
        values = tuple(value for row in rows for value in row.values or (row.value,))
        return replace(rows[-1], value=statistics.median(values), values=values)

    @classmethod
    def of_values(cls, name: str, values: Iterable[float], unit: str = "") -> Row:
        """Return the row of several values: their median, least and largest."""
        several = tuple(float(value) for value in values)
        return cls(name, statistics.median(several), unit, values=several)

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the largest of the repeats."""
        values = self.values or (self.value,)
        return min(values), max(values)

    @property
    def bound(self) -> float | None:
        """The bound, in ``unit``."""
        return self.at_least if self.at_most is None else self.at_most

    @property
    def ok(self) -> bool:
        """Whether the figure is a number within its bound."""
        if not math.isfinite(self.value):
            return False
        if self.at_most is not None:
            return self.value <= self.at_most
        return self.at_least is None or self.value >= self.at_least

    def as_dict(self) -> dict[str, Any]:
        """Return the row as it stands in ``bench.json``; a value that is not finite becomes null."""
        value, lowest, highest = (x if math.isfinite(x) else None for x in (self.value, *self.spread))
        found = {"name": self.name, "value": value, "lowest": lowest, "highest": highest}
        return {**found, "repeats": max(1, len(self.values)), "unit": self.unit, "bound": self.bound, "ok": self.ok}


Benchmark = Callable[[], Iterable[Row]]
REGISTERED: list[Benchmark] = []
ONCE: set[Benchmark] = set()
ON_REQUEST: set[Benchmark] = set()


def benchmark(function: Benchmark) -> Benchmark:
    """Register a function that returns or yields rows."""
    REGISTERED.append(function)
    return function


def once(function: Benchmark) -> Benchmark:
    """Mark a benchmark that is not repeated: its rows bring a spread of their own."""
    ONCE.add(function)
    return function


def on_request(function: Benchmark) -> Benchmark:
    """Mark a benchmark that takes minutes: it runs only where ``--only`` gives its name, ``file.function``."""
    ON_REQUEST.add(function)
    return function


@dataclass(frozen=True, slots=True)
class Timed:
    """Something to time: ``function(setup())``, or ``function()`` without a setup.

    The setup runs before every call and is not timed, so a call may use up what it was given.
    """

    function: Callable[..., Any]
    setup: Callable[[], Any] | None = None

    def seconds(self, calls: int = 1) -> float:
        """Return the mean time of ``calls`` calls, in seconds."""
        if self.setup is None:
            begin = time.perf_counter()
            for _ in range(calls):
                self.function()
            return (time.perf_counter() - begin) / calls
        total = 0.0
        for _ in range(calls):
            given = self.setup()
            begin = time.perf_counter()
            self.function(given)
            total += time.perf_counter() - begin
        return total / calls


def time_interleaved(
    candidates: Sequence[Timed | Callable[[], Any]],
    *,
    rounds: int = 31,
    shortest: float = 0.005,
    budget: float = 20.0,
) -> list[float]:
    """Return the median time of each candidate in seconds, all timed in turn: A B C A B C ...

    Whatever slows the machine for a while then slows all of them alike, and ratios hold.

    Parameters
    ----------
    candidates : sequence of Timed or callable
        What to time. Each is called once before, so that compilation is not counted.
    rounds : int
        How often the whole sequence is timed; an odd number has a median that was measured.
    shortest : float
        A sample of a fast candidate is the mean of as many calls as fill this time, seconds.
    budget : float
        No new round begins after this time, seconds; at least three rounds are run.
    """
    timed = [c if isinstance(c, Timed) else Timed(c) for c in candidates]
    for candidate in timed:
        candidate.seconds()  # compiles, fills caches
    calls = [max(1, min(1000, round(shortest / max(candidate.seconds(), 1e-9)))) for candidate in timed]
    samples: list[list[float]] = [[] for _ in timed]
    collecting = gc.isenabled()
    gc.disable()
    try:
        begin = time.perf_counter()
        for done in range(rounds):
            if done >= 3 and time.perf_counter() - begin > budget:
                break
            for sample, candidate, n in zip(samples, timed, calls, strict=True):
                sample.append(candidate.seconds(n))
    finally:
        if collecting:
            gc.enable()
    return [statistics.median(sample) for sample in samples]


def peak_memory(function: Callable[..., Any], *arguments: Any) -> float:
    """Run a function in a process of its own; return the largest memory that process held, in MB (10^6 bytes).

    The interpreter and all imports count. ``function`` must be importable by name: not a lambda, not local.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure_peak, args=(sender, function, arguments))
    process.start()
    sender.close()
    try:
        outcome = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"{function.__qualname__} died with exit code {process.exitcode}") from None
    process.join()
    if isinstance(outcome, BaseException):
        raise outcome
    return float(outcome)


def _measure_peak(sender: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Send back the peak of this process in MB, or the error."""
    try:
        function(*arguments)
        sender.send(_own_peak() / 1e6)
    except BaseException as error:
        sender.send(error)


def _own_peak() -> int:
    """Return the peak resident memory of this process in bytes.

    On Linux ``ru_maxrss`` starts at what the parent held when it started the child, so a small child of a
    large parent would look large; the kernel's own record of this process does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def write_rows(rows: Sequence[Row], out: Path) -> None:
    """Write rows as a JSON list of what `Row.as_dict` returns."""
    write_json([row.as_dict() for row in rows], out)


def write_json(data: Any, out: Path) -> None:
    """Write plain data as JSON, the whole file or nothing."""
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(data, indent=2, allow_nan=False) + "\n")
    os.replace(unfinished, out)
