"""Folders of results, written whole or not at all.

Everything is written into a temporary folder beside the target, flushed to the disk, and then moved
into place in one step. The temporary folders lie one level deeper than results do, so that a
pattern such as ``runs/*/events.parquet`` never meets a half-written file.

``meta.json`` lists the files it was written with: replacing a folder removes these and no
other, and a folder that holds anything else is not replaced.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import reprlib
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marketsched.mechanisms.errors import InvalidParameterError

if TYPE_CHECKING:
    import pandas as pd

PARTIAL = ".marketsched-partial"  # holds the temporary folders
PART = ".marketsched-"  # how the name of a half-written file begins
KEPT = ".marketsched-kept"  # holds results of finished tasks until all are there
META = "meta.json"  # what makes a folder one of ours
FILES = "files"  # its entry that lists the other files
INCOMPLETE = "INCOMPLETE"  # a file of this name marks a run that was interrupted
PAGE = "report.html"  # a report that was made of the folder, and lies in it
PAGE_MARK = '<meta name="generator" content="marketsched report">'
STALE_SECONDS = 24 * 3600.0  # a temporary folder older than this was left behind by a killed process
LONGEST_PART = 150  # bytes of a name that becomes part of a file's name
LONGEST_NAME, LONGEST_PATH = 255, 4000  # bytes; the path leaves room for what lies in the folder


def check_target(folder: Path, *, force: bool = False) -> None:
    """Refuse a target that may not be written, before any work is done for it.

    Parameters
    ----------
    folder : Path
        Where results are to go: absent, empty, or (with ``force``) a folder of results.
    force : bool
        Replace earlier results.

    Raises
    ------
    InvalidParameterError
        If a name in the path is too long; if the target is a file, a folder that holds something
        else than the results its ``meta.json`` lists, or earlier results and not ``force``; or if
        the folder it is to lie in cannot be written.
    """
    _check_names(folder)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InvalidParameterError(f"{folder} is not a folder: expected a new or empty folder")
    if folder.is_dir() and any(folder.iterdir()):
        if not (folder / META).is_file():
            raise InvalidParameterError(f"{folder} holds other files and no {META}: expected a new or empty folder")
        if not force:
            what, to = "an earlier run", "replace it"
            if (folder / INCOMPLETE).is_file():
                what, to = "an interrupted run", "go on from what it kept, or replace it"
            legal = f"a new folder, or --force (force=True in Python) to {to}"
            raise InvalidParameterError(f"{folder} holds {what}", legal=legal)
        _replaced_files(folder)
    above = folder.absolute().parent
    while not above.exists():
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise InvalidParameterError(f"{above} cannot be written: expected a folder that can")


def _check_names(path: Path) -> None:
    """Raise if a name of the path, or all of it, is longer than file systems take."""
    for name in path.parts:
        length = len(os.fsencode(name))
        if length > LONGEST_NAME:
            raise InvalidParameterError(
                f"folder name {reprlib.repr(name)} has {length:,} bytes: expected at most {LONGEST_NAME}"
            )
    length = len(os.fsencode(path.absolute()))
    if length > LONGEST_PATH:
        raise InvalidParameterError(
            f"path {reprlib.repr(str(path))} has {length:,} bytes: expected at most {LONGEST_PATH:,}"
        )


def _replaced_files(folder: Path) -> list[str]:
    """Return the names of the files in a folder of results that may be removed when it is replaced.

    Raises
    ------
    InvalidParameterError
        If it lists no files, or holds any that it does not list.
    """
    try:
        listed = json.loads((folder / META).read_text(encoding="utf-8"))[FILES]
        known = {META, *(name for name in listed if isinstance(name, str))}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InvalidParameterError(
            f"{folder / META} lists no {FILES!r} (a folder of an earlier version, or not ours): expected a new folder"
        ) from None
    if is_page(folder / PAGE):
        known.add(PAGE)
    names = sorted(path.name for path in folder.iterdir())
    foreign = [path for path in names if path not in known or (folder / path).is_dir()]
    if foreign:
        more = f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else ""
        raise InvalidParameterError(
            f"{folder} holds {foreign[0]}{more}, which no run has written: expected a new folder, or only earlier "
            "results in this one"
        )
    return names


def is_page(path: Path) -> bool:
    """Whether a file is a report that was written here (a device or pipe is not one)."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return PAGE_MARK.encode() in file.read(1000)


def file_name(name: str) -> str:
    """Return ``name`` with everything but letters, digits, dots, dashes and underscores replaced.

    The end of a long one is replaced by a few letters that depend on all of it.
    """
    safe = "".join(x if x.isalnum() or x in "._-" else "-" for x in name).strip(".") or "scenario"
    if len(safe.encode()) <= LONGEST_PART:
        return safe
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return safe.encode()[: LONGEST_PART - 9].decode(errors="ignore") + "-" + mark


@contextmanager
def whole_folder(target: Path, *, force: bool = False) -> Iterator[Path]:
    """Give an empty folder to fill; on leaving, it becomes ``target``, or nothing is left of it.

    Parameters
    ----------
    target : Path
        Where the filled folder goes. Missing parents are made.
    force : bool
        Replace earlier results, whole.

    Yields
    ------
    Path
        A temporary folder on the same file system.

    Raises
    ------
    InvalidParameterError
        As :func:`check_target`; nothing is written then.
    OSError
        If the disk does not take it, naming ``target``; nothing is left then.
    """
    target = target.absolute()
    check_target(target, force=force)
    target.parent.mkdir(parents=True, exist_ok=True)
    nursery = target.parent / PARTIAL
    nursery.mkdir(exist_ok=True)
    _sweep(nursery)
    partial = Path(tempfile.mkdtemp(prefix="new-", dir=nursery))
    try:
        with _naming(target, partial):
            yield partial
            _list_files(partial)
            partial.chmod(0o777 & ~_umask())  # mkdtemp makes it private
            _sync_tree(partial)
            _move_into_place(partial, target, nursery)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        with suppress(OSError):
            nursery.rmdir()  # fails, rightly, while another run uses it


@contextmanager
def _naming(target: Path, temporary: Path) -> Iterator[None]:
    """Let errors of the disk name the target, not a temporary file or nothing at all."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, (str, Path)) and not Path(error.filename).is_relative_to(temporary):
            raise
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno or errno.EIO, reason, str(target)) from error


def _list_files(partial: Path) -> None:
    """Enter the names of all files into the manifest."""
    path = partial / META
    meta = json.loads(path.read_text(encoding="utf-8"))
    write_json({**meta, FILES: sorted(each.name for each in partial.iterdir() if each.name != META)}, path)


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Give a path to write to; on leaving, it replaces ``target``, or nothing is left of it.

    Raises
    ------
    OSError
        If the target is a folder, or the folder it is to lie in is not there or cannot be written,
        or the disk does not take it, naming ``target``.
    """
    _check_names(target)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target.parent))
    target = target.absolute()
    handle, name = tempfile.mkstemp(prefix=PART, dir=target.parent)
    os.close(handle)
    partial = Path(name)
    try:
        with _naming(target, partial):
            yield partial
            partial.chmod(0o666 & ~_umask())
            to_disk(partial)
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _move_into_place(partial: Path, target: Path, nursery: Path) -> None:
    """Move ``partial`` to ``target``; what is there now is moved aside first, and removed last."""
    aside: Path | None = None
    old: list[str] = []
    if target.is_dir() and any(target.iterdir()):
        aside = Path(tempfile.mkdtemp(prefix="old-", dir=nursery))
        os.replace(target, aside)
    try:
        if aside is not None:
            old = _replaced_files(aside)  # again: a file may have been put there in the meantime
        os.replace(partial, target)  # an empty folder in its place is replaced too
    except BaseException:
        if aside is not None:
            os.replace(aside, target)
        raise
    to_disk(target.parent)
    if aside is not None:
        for name in old:
            (aside / name).unlink()
        aside.rmdir()


def _sweep(nursery: Path) -> None:
    """Remove temporary folders that a killed process left behind long ago."""
    for left in nursery.iterdir():
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_tree(folder: Path) -> None:
    for path in folder.iterdir():
        to_disk(path)
    to_disk(folder)


def write_table(table: pd.DataFrame, path: Path, about: Mapping[str, Any]) -> None:
    """Write ``table`` as Parquet (zstd), with ``about`` as JSON under ``marketsched`` in its schema."""
    write_parts([table], path, about)


def write_parts(parts: Iterable[pd.DataFrame], path: Path, about: Mapping[str, Any]) -> None:
    """Write a table that comes in parts, at least one, as `write_table` does; one part is in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    extra = {b"marketsched": json.dumps(plain(about), sort_keys=True).encode()}
    with ExitStack() as open_files:
        writer: Any = None
        for part in parts:
            schema = None if writer is None else writer.schema
            arrow = pa.Table.from_pandas(part, schema=schema, preserve_index=False)
            if writer is None:
                arrow = arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), **extra})
                writer = open_files.enter_context(pq.ParquetWriter(path, arrow.schema, compression="zstd"))
            writer.write_table(arrow.cast(writer.schema))


def write_json(data: Any, path: Path) -> None:
    """Write ``data`` as indented JSON; NumPy numbers become plain ones, NaN and infinities null."""
    path.write_text(json.dumps(plain(data), indent=2, allow_nan=False) + "\n", encoding="utf-8")


def plain(data: Any) -> Any:
    """Return ``data`` with mappings, sequences and numbers as JSON knows them."""
    if isinstance(data, Mapping):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, (str, bool, int)) or data is None:
        return data
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if hasattr(data, "tolist"):  # NumPy arrays and scalars
        return plain(data.tolist())
    if isinstance(data, (list, tuple, set, frozenset)):
        return [plain(value) for value in data]
    return str(data)
