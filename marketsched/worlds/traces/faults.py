"""Rows of a file that cannot be read: left out and counted, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from marketsched.mechanisms.errors import TraceError

FIRST_FAULTS = 3  # so many are shown


class Fault(NamedTuple):
    """An error in a line of a file."""

    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


def left_out(faults: Sequence[Fault], path: Path, strict: bool) -> dict[str, int]:
    """Return the count of rows that are left out, as notes of a log have it; with ``strict`` a fault is a TraceError.

    Examples
    --------
    >>> left_out([Fault(7, "run_s = '-2'"), Fault(3, "5 fields, not 18")], Path("a.swf"), strict=False)
    {"rows left out: not understood (line 3: 5 fields, not 18; line 7: run_s = '-2')": 2}
    """
    if faults and strict:
        first = min(faults)
        raise TraceError(first.what, source=f"{path}:{first.line}", legal="a row that can be read, or no --strict")
    return {f"rows left out: not understood ({faults_text(faults)})": len(faults)} if faults else {}


def none_can_be_read(faults: Sequence[Fault], path: Path) -> TraceError:
    """Return the error of a file all of whose rows are left out, for a fault or as jobs that have not ended."""
    if not faults:
        return TraceError("no job has ended", source=str(path), legal="jobs that have ended")
    legal = "numbers, or times as docs/logs.md lists them (2026-03-31T10:00:02 is always read)"
    return TraceError(f"no row can be read ({faults_text(faults)})", source=str(path), legal=legal)


def faults_text(faults: Sequence[Fault]) -> str:
    """Return in words the errors of the first few lines."""
    first = sorted(faults)[:FIRST_FAULTS]
    more = ", ..." if len(faults) > FIRST_FAULTS else ""
    return "; ".join(map(str, first)) + more
