"""Which code a run was made with: versions of all that a result may depend on, and a digest of our own sources.

Results of different code are never mixed: a run is kept under a name that this fingerprint is part
of, a folder of results says which code filled it, and a worker refuses tasks of other code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from marketsched.mechanisms.from_file import own_files
from marketsched.mechanisms.registry import GROUP
from marketsched.results.result import versions

MORE_PACKAGES = ("cvxpy", "highspy", "clarabel")  # solvers, beside what `versions` names
ROOMS = ("marketsched", "marketsched.agents", "marketsched.mechanisms", "marketsched.relaxed_lp")


@cache
def fingerprint() -> Mapping[str, str]:
    """Return the versions of packages, and the digest of our sources under ``code``; read once per process."""
    found = versions()
    for name in MORE_PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return {**found, **_plug_ins(), "code": source_digest()}


def _plug_ins() -> dict[str, str]:
    """Return a digest of the file of every module that a plug-in names, under ``plug-in NAME``."""
    found = {}
    for point in entry_points(group=GROUP):
        spec = find_spec(point.module)
        if spec is not None and spec.origin is not None and not point.module.startswith("marketsched."):
            found[f"plug-in {point.name}"] = _digest(Path(spec.origin))
    return dict(sorted(found.items()))


def source_digest() -> str:
    """Return a digest of every source file of the package, the same wherever and however it is installed."""
    digest = hashlib.sha256()
    for name, path in sorted(_sources().items()):
        digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def _sources() -> dict[str, Path]:
    """Return all modules by dotted name: rooms lie inside the package, or beside it in a source tree."""
    found: dict[str, Path] = {}
    for room in ROOMS:
        spec = find_spec(room)
        for folder in (spec.submodule_search_locations if spec is not None else None) or ():
            for path in Path(folder).rglob("*.py"):
                inside = path.relative_to(folder).with_suffix("").parts
                found[".".join((room, *inside))] = path
    return found


def difference(expected: Mapping[str, str], seen: Mapping[str, str]) -> str | None:
    """Return the first thing that differs between two fingerprints in words, or None if nothing does.

    Examples
    --------
    >>> difference({"numpy": "2.4.6", "code": "a"}, {"numpy": "2.4.0", "code": "b"})
    'numpy 2.4.0 (here 2.4.6)'
    """
    names = [*(name for name in expected if name != "code"), "code"]
    for name in names:
        if seen.get(name) != expected.get(name):
            what = "other sources of marketsched, digest" if name == "code" else name
            return f"{what} {seen.get(name, 'unknown')} (here {expected.get(name, 'unknown')})"
    return None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def run_key(scenario: str, seed: int, optimum: bool) -> str:
    """Return the name a run is kept under: a hash of its resolved scenario, the code and the seed.

    Parameters
    ----------
    scenario : str
        The resolved scenario, as :func:`canonical` writes it.
    seed : int
        Root of all randomness.
    optimum : bool
        Whether a cluster run looks for the best fixed allocation.
    """
    parts = {"scenario": scenario, "seed": seed, "optimum": optimum, "code": {**fingerprint(), **own_files(scenario)}}
    return hashlib.sha256(canonical(parts).encode()).hexdigest()[:24]


def canonical(data: Any) -> str:
    """Return ``data`` as JSON that is equal for equal data; numbers keep every digit."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
