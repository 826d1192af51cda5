"""Results of finished tasks, kept on the disk until all are there: interrupted work goes on where it stopped.

What is kept lies in a folder whose name is a hash of the question (scenario, mechanisms, seeds, options) and
of the code, so that another question, or other code, never meets it.

The code is known by a fingerprint: versions of all that a result may depend on, and a digest of our own sources. A
folder of results says which code filled it, and a worker refuses tasks of other code.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from marketsched.mechanisms.from_file import own_files
from marketsched.mechanisms.registry import GROUP
from marketsched.results.output import whole_file
from marketsched.results.result import versions

FORGOTTEN_SECONDS = 30 * 24 * 3600.0  # after which interrupted work is not gone on with
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
    """Return the name a run is kept under: a hash of its scenario (`canonical`), its seed and the code.

    ``optimum``: whether a cluster run looks for the best fixed allocation.
    """
    parts = {"scenario": scenario, "seed": seed, "optimum": optimum, "code": {**fingerprint(), **own_files(scenario)}}
    return hashlib.sha256(canonical(parts).encode()).hexdigest()[:24]


def canonical(data: Any) -> str:
    """Return ``data`` as JSON that is equal for equal data; numbers keep every digit."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class KeptResults:
    """The results of one question's finished tasks: in ``folder`` one folder for each question, which is plain data.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     KeptResults(Path(folder), {"seed": 1}).keep("a", 2.5)
    ...     again = KeptResults(Path(folder), {"seed": 1}).read()
    >>> again
    {'a': 2.5}
    """

    def __init__(self, folder: Path, question: Mapping[str, Any]) -> None:
        parts = {"question": question, "code": {**fingerprint(), **own_files(canonical(question))}}
        self._read: dict[Path, tuple[str, Any]] = {}
        self.path = folder / hashlib.sha256(canonical(parts).encode()).hexdigest()[:24]

    def read(self) -> dict[str, Any]:
        """Return the kept results by the names of the tasks; a damaged file counts as none."""
        for path in sorted(self.path.glob("*.task")):
            if path not in self._read:
                # Pickled: tables keep every dtype, and only this package, of this digest, writes and reads them.
                with suppress(OSError, EOFError, pickle.UnpicklingError, ValueError):
                    self._read[path] = pickle.loads(path.read_bytes())
        return dict(self._read.values())

    def keep(self, name: str, result: Any) -> None:
        """Keep the result of the task ``name``: whole on the disk, or not at all."""
        if not self.path.is_dir():
            self._remove_forgotten()
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with whole_file(self.path / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.task") as partial:
            partial.write_bytes(pickle.dumps((name, result)))

    def _remove_forgotten(self) -> None:
        """Remove what interrupted work of others left here long ago: nobody has gone on with it."""
        for each in self.path.parent.glob("*/"):
            with suppress(OSError):
                if time.time() - each.stat().st_mtime > FORGOTTEN_SECONDS:
                    shutil.rmtree(each)

    def remove(self) -> None:
        """Remove the kept results: the work is complete and saved elsewhere."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            self.path.parent.rmdir()  # fails, rightly, while other questions have results there


def kept_for(keep: str | PathLike[str] | None, question: Mapping[str, Any]) -> KeptResults | None:
    """Return where results of a question are kept, None without a folder.

    Either way mechanisms in files that were edited since they were run are run anew (`own_files`).
    """
    if keep is not None:
        return KeptResults(Path(keep), question)
    own_files(json.dumps(question, default=str))
    return None
