"""Free memory, checked before work that needs a lot of it.

Call `check_memory` before allocating arrays of user-chosen size: with the bytes they need together, at their largest
moment, and the numbers that make them so large. Work that needs more than there is is refused before it begins, with
both figures; otherwise it would end in the middle, or the machine would end the process.
"""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path

from marketsched.mechanisms.errors import TooLargeError

SMALL = 2**26  # bytes: what needs less is not worth asking, and arrays of every submission need less
_UNITS = ((2**60, "EiB"), (2**50, "PiB"), (2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def check_memory(what: str, wanted: float, legal: str) -> None:
    """Refuse work that would take more memory than there is.

    Parameters
    ----------
    what : str
        What would take it, with the sizes that make it so large: ``"a menu of 100 starts x 50 durations"``.
    wanted : float
        Bytes of everything that is there at the same time.
    legal : str
        What to make smaller, by the names under which it is given.

    Raises
    ------
    TooLargeError
        If ``wanted`` is above `SMALL` and above `available_memory`.

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
    """Return the bytes that this process can still take; infinite where that is unknown.

    The smallest of what the machine has free, what its container leaves (cgroup, version 2), and what the limits of
    the process leave (``ulimit -v`` and ``-d``).
    """
    machine = _kilobytes("/proc/meminfo", "MemAvailable")
    return min(_all_of_it() if machine is None else machine, _left_to_container(), _left_to_process())


def _all_of_it() -> float:
    """Return the memory of a machine that does not say what is free."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # no such name on this system
        return math.inf


def _left_to_container() -> float:
    """Return what a container may still take; files that are only kept in case they are read again do not count."""
    try:
        most, taken, parts = (
            Path("/sys/fs/cgroup", name).read_text() for name in ("memory.max", "memory.current", "memory.stat")
        )
        cached = re.search(r"^inactive_file (\d+)$", parts, re.MULTILINE)
        return math.inf if most.strip() == "max" else float(most) - float(taken) + (float(cached[1]) if cached else 0.0)
    except (OSError, ValueError):
        return math.inf


def _left_to_process() -> float:
    """Return what the limits of this process leave."""
    if sys.platform == "win32":
        return math.inf
    import resource

    left = math.inf
    for limit, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY:
            left = min(left, most - (_kilobytes("/proc/self/status", name) or 0.0))
    return left


def _kilobytes(file: str, name: str) -> float | None:
    """Return the bytes that a line ``name: number kB`` of a file of the system says; None: there is none."""
    try:
        found = re.search(rf"^{name}:\s+(\d+) kB$", Path(file).read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else float(found[1]) * 1024.0
