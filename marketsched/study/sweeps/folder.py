"""The folder of a sweep: one file for each finished run, then the table and the manifest.

``runs/KEY.json`` is written as soon as a run is finished: into a file in `PARTIAL` first, flushed to
the disk, then moved into place, so that it is there whole or not at all. `PARTIAL` lies apart, and
its files end in nothing a reader looks for, so that no pattern meets one. A lock on ``.lock`` keeps
a second sweep out; it is the system's, and goes with the process that holds it, however that ends.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from marketsched.mechanisms.errors import InvalidParameterError, SweepError
from marketsched.play.kept_results import difference, fingerprint
from marketsched.results.output import INCOMPLETE, META, PARTIAL, plain, to_disk
from marketsched.study.sweeps.records import is_record

KIND, FORMAT = "sweep", 1
LOCK, RUNS, TABLE = ".lock", "runs", "results.parquet"
OURS = {LOCK, RUNS, TABLE, META, INCOMPLETE, PARTIAL}


def check_sweep_target(folder: Path) -> None:
    """Refuse a folder that no sweep, or a sweep of other code, has filled.

    Raises
    ------
    InvalidParameterError
        If it is a file, holds something else, or was filled by other versions.
    """
    if folder.exists() and not folder.is_dir():
        raise InvalidParameterError(f"{folder} is not a folder: expected a new folder, or one of a sweep")
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if META not in names:
        other = sorted(names - OURS if LOCK in names else names)  # `runs` may be the user's own; a sweep locks first
        if other:
            raise InvalidParameterError(f"{folder} holds {other[0]} and no {META}: expected a new or empty folder")
        return
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        known = meta["kind"] == KIND, int(meta["format"]), dict(meta["versions"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        known = False, 0, {}
    if not known[0]:
        raise InvalidParameterError(f"{folder} holds other results than a sweep's: expected a new folder")
    differs = f"format {known[1]} (here {FORMAT})" if known[1] != FORMAT else difference(fingerprint(), known[2])
    if differs is not None:
        raise InvalidParameterError(
            f"{folder} holds a sweep made with {differs}: expected the same versions, or a new folder"
        )


class Kept(NamedTuple):
    """The data kept in memory of a finished run; its figures stay on the disk until the table is made."""

    status: str
    error: str | None
    seconds: float


class SweepFolder:
    """A locked folder; see `open_folder`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._partial = path / PARTIAL
        self._runs = path / RUNS

    def prepare(self) -> None:
        """Make missing folders, and remove half-written files of a killed sweep."""
        shutil.rmtree(self._partial, ignore_errors=True)
        self._partial.mkdir()
        self._runs.mkdir(exist_ok=True)

    def record(self, key: str) -> dict[str, Any]:
        """Return the record of a finished run.

        Raises
        ------
        InvalidParameterError
            If the file is not one we wrote.
        OSError
            If it cannot be read.
        """
        data = self._file(key).read_bytes()
        try:
            record = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError):
            record = None
        if not is_record(record, key):
            raise InvalidParameterError(f"{self._file(key)} is damaged: expected the record of a run")
        return dict(record)

    def finished(self, keys: Iterable[str]) -> dict[str, Kept]:
        """Return what there is to remember of the runs that are finished, by key.

        Raises
        ------
        InvalidParameterError
            If files are not ones we wrote: the first, and how many more.
        OSError
            If they cannot be read.
        """
        there = {path.name for path in os.scandir(self._runs)}
        found, damaged = {}, []
        for key in keys:
            if self._file(key).name not in there:
                continue
            try:
                found[key] = kept(self.record(key))
            except InvalidParameterError as error:
                damaged.append(str(error))
        if damaged:
            more = f" (and {len(damaged) - 1:,} more)" if len(damaged) > 1 else ""
            raise InvalidParameterError(f"{damaged[0]}; without the file it is made again{more}")
        return found

    def keep(self, key: str, text: str) -> None:
        """Write the record of a finished run."""
        self.write(self._file(key), lambda path: path.write_text(text, encoding="utf-8"))

    def _file(self, key: str) -> Path:
        return self._runs / f"{key}.json"

    def manifest(self, data: Mapping[str, Any]) -> None:
        """Write the manifest: what makes the folder that of a sweep."""
        text = json.dumps(plain({"kind": KIND, "format": FORMAT, **data}), indent=1, ensure_ascii=False)
        self.write(self.path / META, lambda path: path.write_text(text + "\n", encoding="utf-8"))

    def mark(self, text: str | None) -> None:
        """Mark the folder as incomplete, or with None as complete."""
        target = self.path / INCOMPLETE
        if text is None:
            target.unlink(missing_ok=True)
        else:
            self.write(target, lambda path: path.write_text(text + "\n", encoding="utf-8"))

    def write(self, target: Path, fill: Callable[[Path], Any]) -> None:
        """Let ``fill`` write a file, and move it to ``target`` whole.

        Raises
        ------
        SweepError
            If the disk does not take it.
        """
        partial = self._partial / target.stem
        try:
            fill(partial)
            to_disk(partial)
            os.replace(partial, target)
            to_disk(target.parent)
        except OSError as error:
            raise SweepError(f"{target}: {error.strerror or error}: finished runs are kept") from None

    def tidy(self) -> None:
        """Remove the folder of half-written files."""
        shutil.rmtree(self._partial, ignore_errors=True)


@contextmanager
def open_folder(path: Path) -> Iterator[SweepFolder]:
    """Give the folder of a sweep, locked; it is made if it is not there.

    Raises
    ------
    InvalidParameterError
        As `check_sweep_target`; nothing is written then.
    SweepError
        If another sweep uses it, or it cannot be written.
    """
    check_sweep_target(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise SweepError(f"{path} cannot be written: {error.strerror or error}: expected a folder that can") from None
    try:
        _lock(lock, path)
        check_sweep_target(path)  # the one who had it may have changed it
        folder = SweepFolder(path)
        try:
            folder.prepare()
        except OSError as error:
            raise SweepError(f"{path} cannot be written: {error.strerror or error}") from None
        try:
            yield folder
        finally:
            folder.tidy()
    finally:
        os.close(lock)


def _lock(lock: int, path: Path) -> None:
    """Lock the file, and write into it who has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise SweepError(f"{path / LOCK} cannot be locked: {error.strerror or error}") from None
        holder = os.pread(lock, 200, 0).decode(errors="replace").strip() or "unknown"
        raise SweepError(
            f"{path} is in use by another sweep ({holder}): expected to wait until it ends, or another folder"
        ) from None
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    except OSError as error:
        raise SweepError(f"{path} cannot be written: {error.strerror or error}") from None


def kept(record: Mapping[str, Any]) -> Kept:
    """Return the data to keep in memory of a record."""
    return Kept(record["status"], record.get("error"), record["seconds"])
