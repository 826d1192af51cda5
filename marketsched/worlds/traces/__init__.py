"""Readers of recorded traces, one file per format, and the table of the traces that are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.worlds.traces.catalogue import TRACES as TRACES
    from marketsched.worlds.traces.catalogue import Trace as Trace
    from marketsched.worlds.traces.catalogue import get_trace as get_trace
    from marketsched.worlds.traces.catalogue import verify as verify
    from marketsched.worlds.traces.folder import data_folder as data_folder

_LAZY: dict[str, tuple[str, ...]] = {
    "catalogue": (
        "TRACES",
        "Trace",
        "get_trace",
        "verify",
    ),
    "folder": ("data_folder",),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
