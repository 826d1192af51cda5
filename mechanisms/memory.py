"""Free memory, checked before work that needs a lot of it.

Call `check_memory` before allocating arrays of user-chosen size: with the bytes they need together, at their largest
moment, and the numbers that make them so large. Work that needs more than there is is refused before it begins, with
both figures; otherwise it would end in the middle, or the machine would end the process.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import psutil

from marketsched.mechanisms.errors import TooLargeError

SMALL = 2**26  # bytes: what needs less is not worth asking, and arrays of every submission need less
_UNITS = ((2**60, "EiB"), (2**50, "PiB"), (2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def check_memory(what: str, wanted: float, legal: str) -> None:
    """Refuse work that would take more memory than there is: TooLargeError above `SMALL` and `available_memory`.

    ``what`` needs so many bytes at the same time, and names its sizes; ``legal`` are the parameters to make smaller.

    Examples
    --------
    >>> check_memory("a table of 2**60 numbers", 2**63, "a smaller table")
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.TooLargeError: a table of 2**60 numbers: 8 EiB of memory wanted, ...
    """
    if wanted <= SMALL:
        return
    left = available_memory()
    if wanted > left:
        sizes = f"{readable_size(wanted)} of memory wanted, {readable_size(left)} free"
        raise TooLargeError(f"{what}: {sizes}", legal=legal)


def readable_size(n_bytes: float) -> str:
    """Return a number of bytes as a person reads it.

    Examples
    --------
    >>> readable_size(3 * 2**30), readable_size(12)
    ('3 GiB', '12 bytes')
    """
    for unit, name in _UNITS:
        if n_bytes >= unit:
            return f"{n_bytes / unit:.3g} {name}"
    return f"{max(0, n_bytes):.0f} bytes"


def available_memory() -> float:
    """Return the bytes that this process can still take.

    The smallest of what the machine has free, what its container leaves (cgroup, version 2), and what the limits of
    the process leave (``ulimit -v`` and ``-d``).
    """
    free: float = psutil.virtual_memory().available
    return min(free, _left_to_container(), _left_to_process())


def _left_to_container() -> float:
    """Return what a container may still take; cached files, which can be dropped, do not count."""
    try:
        most, taken, parts = (
            Path("/sys/fs/cgroup", name).read_text() for name in ("memory.max", "memory.current", "memory.stat")
        )
        cached = re.search(r"^inactive_file (\d+)$", parts, re.MULTILINE)
        return math.inf if most.strip() == "max" else float(most) - float(taken) + (float(cached[1]) if cached else 0.0)
    except (OSError, ValueError):
        return math.inf


def _left_to_process() -> float:
    """Return what the limits of this process leave; there are none but on Linux."""
    process, left = psutil.Process(), math.inf
    if hasattr(process, "rlimit"):
        used = process.memory_info()
        for limit, taken in ((psutil.RLIMIT_AS, used.vms), (psutil.RLIMIT_DATA, used.data)):
            most = process.rlimit(limit)[0]
            left = left if most == psutil.RLIM_INFINITY else min(left, most - taken)
    return left
