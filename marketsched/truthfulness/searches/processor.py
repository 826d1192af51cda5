"""Seconds of the processor: what a budget counts, because a busy machine takes no more of them than an idle one.

Compiling does not count: on a new machine a search would end before its first play.
"""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

from numba.core import event

_elsewhere = 0.0  # of workers


class _Compiling(event.Listener):
    """Counts the seconds of the processor that compiling kernels takes; one that calls others holds theirs."""

    def __init__(self) -> None:
        self.seconds, self._depth, self._began = 0.0, 0, 0.0

    def on_start(self, event: Any) -> None:
        if not self._depth:
            self._began = time.thread_time()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if not self._depth:
            self.seconds += time.thread_time() - self._began


_compiling = _Compiling()
event.register("numba:compile", _compiling)  # type: ignore[no-untyped-call]


class Measured(NamedTuple):
    """What a task has found, and the seconds of the processor that it took in which process."""

    found: Any
    seconds: float
    process: int


def processor_seconds() -> float:
    """Return the seconds that this process and its workers have worked, as far as results have come back."""
    return time.process_time() - _compiling.seconds + _elsewhere


def thread_seconds() -> float:
    """Return the seconds that this thread has worked, without compiling."""
    return time.thread_time() - _compiling.seconds


def measured(found: Any, began: float) -> Measured:
    """Return what a task has found, which began when `thread_seconds` was ``began``."""
    return Measured(found, thread_seconds() - began, os.getpid())


def counted(task: Measured) -> Any:
    """Return what a task has found, and count its seconds unless it was done in this process, whose clock has them."""
    global _elsewhere
    if task.process != os.getpid():
        _elsewhere += task.seconds
    return task.found
