"""Results of finished tasks, kept on the disk until all are there: interrupted work goes on where it stopped.

What is kept lies in a folder whose name is a hash of the question (scenario, mechanisms, seeds, options) and
of the code, so that another question, or other code, never meets it.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from marketsched.mechanisms.from_file import own_files
from marketsched.play.fingerprint import canonical, fingerprint
from marketsched.results.output import whole_file

FORGOTTEN_SECONDS = 30 * 24 * 3600.0  # after which interrupted work is not gone on with


class KeptResults:
    """The results of one question's finished tasks.

    Parameters
    ----------
    folder : path
        Holds a folder for each question; made with the first result.
    question : mapping
        All that results depend on, as plain data.

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
