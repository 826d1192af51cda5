"""Compiled kernels that call kernels of other files: what is kept of them is used until one of these files changes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit


def kernel_over(*others: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles a function which calls kernels of other files.

    numba's cache compares the file of the function alone, and would bring back what an older version of the others was
    compiled to. Here it compares theirs, too: ``others`` are one kernel of each file that anything is taken from.
    """
    stamps = tuple(_stamp(inspect.getfile(getattr(other, "py_func", other))) for other in others)

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        kernel: Any = njit(cache=True)(function)
        kept: Any = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
        if not hasattr(kept, "_source_stamp"):  # plain Python, or a numba that keeps its cache in another way
            kernel = njit(function)
            return kernel  # type: ignore[no-any-return]
        kept._source_stamp = (kept._source_stamp, *stamps)
        return kernel  # type: ignore[no-any-return]

    return compiled


def _stamp(file: str) -> tuple[float, int]:
    """Return what tells one version of a file from another."""
    found = Path(file).stat()
    return found.st_mtime, found.st_size
