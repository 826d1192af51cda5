"""The folder of a sweep: one file for each finished run, then the table and the manifest.

``runs/KEY.json`` is there whole or not at all, as soon as a run is finished. A lock on ``.lock`` keeps a second sweep
out; it is the system's, and goes with the process that holds it, however that ends.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from marketsched.mechanisms.errors import InvalidParameterError, SweepError
from marketsched.play.kept_results import difference, fingerprint
from marketsched.results.output import INCOMPLETE, META, PART, plain, whole_file
from marketsched.study.sweeps.records import is_record

KIND, FORMAT = "sweep", 1
LOCK, RUNS, TABLE = ".lock", "runs", "results.parquet"
OURS = {LOCK, RUNS, TABLE, META, INCOMPLETE}


def check_sweep_target(folder: Path) -> None:
    """Raise InvalidParameterError if a folder is a file, holds something else, or was filled by other versions."""
    if folder.exists() and not folder.is_dir():
        raise InvalidParameterError(f"{folder} is not a folder: expected a new folder, or one of a sweep")
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if META not in names:
        ours = {name for name in names if name in OURS or name.startswith(PART)} if LOCK in names else set()
        if foreign := names - ours:  # `runs` may be the user's own; a sweep locks first
            raise InvalidParameterError(f"{folder} holds {min(foreign)} and no {META}: expected a new or empty folder")
        return
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        ours_, form, versions = meta["kind"] == KIND, int(meta["format"]), dict(meta["versions"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        ours_, form, versions = False, 0, {}
    if not ours_:
        raise InvalidParameterError(f"{folder} holds other results than a sweep's: expected a new folder")
    differs = f"format {form} (here {FORMAT})" if form != FORMAT else difference(fingerprint(), versions)
    if differs is not None:
        raise InvalidParameterError(
            f"{folder} holds a sweep made with {differs}: expected the same versions, or a new folder"
        )


class SweepFolder:
    """A locked folder; see `open_folder`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def record(self, key: str) -> dict[str, Any] | None:
        """Return the record of a run; None if there is none, or a damaged one."""
        with suppress(FileNotFoundError, ValueError, RecursionError):
            record = json.loads(self._file(key).read_bytes())
            return dict(record) if is_record(record, key) else None
        return None

    def finished(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the finished runs by key, without their figures, which stay on the disk."""
        there = {path.name for path in os.scandir(self.path / RUNS)}
        records = ((key, self.record(key)) for key in keys if self._file(key).name in there)
        return {key: without_figures(record) for key, record in records if record is not None}

    def keep(self, key: str, text: str) -> None:
        """Write the record of a finished run."""
        self.write(self._file(key), text)

    def _file(self, key: str) -> Path:
        return self.path / RUNS / f"{key}.json"

    def manifest(self, data: Mapping[str, Any]) -> None:
        """Write the manifest, which makes the folder that of a sweep."""
        text = json.dumps(plain({"kind": KIND, "format": FORMAT, **data}), indent=1, ensure_ascii=False)
        self.write(self.path / META, text + "\n")

    def mark(self, text: str | None) -> None:
        """Mark the folder as incomplete, or with None as complete."""
        if text is None:
            (self.path / INCOMPLETE).unlink(missing_ok=True)
        else:
            self.write(self.path / INCOMPLETE, text + "\n")

    def write(self, target: Path, fill: str | Callable[[Path], Any]) -> None:
        """Write a file whole, a text or what ``fill`` writes; SweepError if the disk does not take it."""
        try:
            with whole_file(target) as partial:
                partial.write_text(fill, encoding="utf-8") if isinstance(fill, str) else fill(partial)
        except OSError as error:
            raise SweepError(f"{target}: {error.strerror or error}: finished runs are kept") from None


def without_figures(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is remembered of a finished run: its status, error and seconds."""
    return {key: record.get(key) for key in ("status", "error", "seconds")}


@contextmanager
def open_folder(path: Path) -> Iterator[SweepFolder]:
    """Give the folder of a sweep, locked and without half-written files; it is made if it is not there.

    Raises InvalidParameterError if `check_sweep_target` raises it; nothing is written then. Raises SweepError if
    another sweep uses it, or it cannot be written.
    """
    check_sweep_target(path)
    with ExitStack() as stack:
        try:
            path.mkdir(parents=True, exist_ok=True)
            _lock(stack.enter_context((path / LOCK).open("a+", encoding="utf-8")), path)
            check_sweep_target(path)  # the one who had it may have changed it
            (path / RUNS).mkdir(exist_ok=True)
            for left in (*path.glob(f"{PART}*"), *(path / RUNS).glob(f"{PART}*")):
                left.unlink()
        except OSError as error:
            reason = error.strerror or error
            raise SweepError(f"{path} cannot be written: {reason}: expected a folder that can") from None
        yield SweepFolder(path)


def _lock(lock: Any, path: Path) -> None:
    """Lock the file, and write into it who has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        lock.seek(0)
        raise SweepError(
            f"{path} is in use by another sweep ({lock.read(200).strip() or 'unknown'}): expected to wait until it "
            "ends, or another folder"
        ) from None
    lock.truncate(0)
    lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    lock.flush()
