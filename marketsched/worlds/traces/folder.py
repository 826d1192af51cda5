"""Where the recorded traces are: an explicit folder, or the environment variable MARKETSCHED_DATA."""

from __future__ import annotations

import os
from pathlib import Path

from marketsched.mechanisms.errors import MissingDataError

VARIABLE = "MARKETSCHED_DATA"
HOW_TO_SET = f"give the folder of the trace files with --data DIR, or set {VARIABLE}; `marketsched traces` lists them"

Source = str | os.PathLike[str] | None  # a data folder, one file, or None: the folder in MARKETSCHED_DATA


def data_folder(folder: Source = None) -> Path:
    """Return the folder that holds the trace files.

    Parameters
    ----------
    folder : path, optional
        The folder; None: the one named by the environment variable ``MARKETSCHED_DATA``.

    Raises
    ------
    MissingDataError
        If no folder is named, or the one named is not there.
    """
    named = folder if folder is not None else os.environ.get(VARIABLE) or None
    if named is None:
        raise MissingDataError(f"no data folder: {HOW_TO_SET}")
    path = Path(named)
    if not path.is_dir():
        origin = "" if folder is not None else f" (from {VARIABLE})"
        raise MissingDataError(f"{path}{origin}: no such folder: {HOW_TO_SET}")
    return path


def locate(source: Source, *names: str) -> Path:
    """Return the path of a trace file.

    Parameters
    ----------
    source : path, optional
        The file itself, or the data folder (see :func:`data_folder`).
    *names : str
        Names the file goes by, the usual one first. A name that ends in ``.gz`` stands for the
        unpacked file as well.

    Raises
    ------
    MissingDataError
        If there is no such folder, or none of the names in it.
    """
    if source is not None and Path(source).is_file():
        return Path(source)
    folder = data_folder(source)
    for name in names:
        for path in (folder / name, folder / name.removesuffix(".gz")):
            if path.is_file():
                return path
    raise MissingDataError(f"{folder / names[0]}: no such file: {HOW_TO_SET}")
