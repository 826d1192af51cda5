"""Versions on which a result may depend."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("marketsched", "numpy", "numba", "scipy", "pandas", "pyarrow", "Mesa", "pydantic")


def versions() -> dict[str, str]:
    """Return the versions that a result may depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name.lower()] = version(name)
        except PackageNotFoundError:  # run from a source tree that was never installed
            found[name.lower()] = "unknown"
    return found
