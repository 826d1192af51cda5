"""Seconds of the processor: what a budget counts, because a busy machine takes no more of them than an idle one."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

_elsewhere = 0.0  # of workers


class Measured(NamedTuple):
    """What a task has found, and the seconds of the processor that it took in which process."""

    found: Any
    seconds: float
    process: int


def processor_seconds() -> float:
    """Return the seconds that this process and its workers have worked, as far as results have come back."""
    return time.process_time() + _elsewhere


def measured(found: Any, began: float) -> Measured:
    """Return what a task has found, which began when `time.thread_time` was ``began``."""
    return Measured(found, time.thread_time() - began, os.getpid())


def counted(task: Measured) -> Any:
    """Return what a task has found, and count its seconds unless it was done in this process, whose clock has them."""
    global _elsewhere
    if task.process != os.getpid():
        _elsewhere += task.seconds
    return task.found
