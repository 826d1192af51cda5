"""Workers of a Dask cluster that is already there (the extra ``cluster``).

A task whose worker dies is tried again by the scheduler. Dask blames every task that a lost worker had been given, not
only the one it was at, and gives all of them up in the end; `Workers.run` tries those once more, each alone.
"""

from __future__ import annotations

import logging
import pickle
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from marketsched.mechanisms.errors import InvalidParameterError, SweepError
from marketsched.mechanisms.from_file import as_it_is_now, files_in_use
from marketsched.play import workers
from marketsched.play.kept_results import fingerprint

T = TypeVar("T")
R = TypeVar("R")

ANSWER_SECONDS = 4.0
_ONE_TASK = threading.Lock()  # a worker may have several threads; a task has its process for itself


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Give the workers of the scheduler at ``address``.

    Raises InvalidParameterError if it is no address, or the extra is not installed, and SweepError if the scheduler
    does not answer within seconds.
    """
    if not re.fullmatch(r"(tcp|tls)://[^\s/]+:\d+/?", address):
        raise InvalidParameterError(f"scheduler = {address!r}: expected an address as in tcp://10.0.0.1:8786")
    if find_spec("distributed") is None:
        raise InvalidParameterError(
            "scheduler: the package distributed is not installed: expected `pip install 'marketsched[cluster]'`"
        )
    dask = _dask()  # sets levels of logs when it is imported
    logs = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    before = [log.level for log in logs]
    with warnings.catch_warnings():  # what matters is raised, and losing a worker is no matter
        warnings.simplefilter("ignore", import_module("distributed.versions").VersionMismatchWarning)
        try:
            for log in logs:
                log.setLevel(logging.CRITICAL + 1)
            client = _within(lambda: dask.Client(address, timeout=ANSWER_SECONDS, set_as_default=False))
            if client is None:
                raise SweepError(
                    f"scheduler {address}: no answer within {ANSWER_SECONDS:g} seconds: expected a Dask scheduler there"
                )
            try:
                yield Cluster(client)
            finally:
                _within(client.close)
        finally:
            for log, level in zip(logs, before, strict=True):
                log.setLevel(level)


def _dask() -> Any:
    """Return the package; type checkers are to know nothing of it, whether it is installed or not."""
    return import_module("distributed")


def _within(function: Callable[[], Any]) -> Any:
    """Return what ``function`` returns; None if it fails, or takes long, as with a port that accepts and is silent."""
    found: list[Any] = []

    def call() -> None:
        try:
            found.append(function())
        except Exception:
            return

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(ANSWER_SECONDS + 1.0)
    return found[0] if found else None


class Cluster(workers.Workers):
    """Workers that a ``distributed.Client`` reaches."""

    most_deaths = 2  # of what the scheduler has given up; it has tried several workers each time

    def __init__(self, client: Any) -> None:
        super().__init__(client.get_executor(pure=False))
        if not client.scheduler_info()["workers"]:
            self.state = "waiting for workers of the cluster"

    def submit(self, function: Callable[[T], R], task: T) -> Future[R]:
        """Send a task, with the digests of the files of mechanisms that it names."""
        work = pickle.dumps((function, task))
        files = {file: digest for file, digest in files_in_use().items() if file.encode() in work}
        return self._executor.submit(_travelling(), work, dict(fingerprint()), files)

    def lost(self, error: BaseException) -> bool:
        """Tell whether workers died."""
        if isinstance(error, CancelledError):
            raise SweepError("the scheduler is lost: what is finished is kept; start the same again to go on") from None
        if isinstance(error, ImportError):
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise SweepError(f"a worker of the cluster cannot run: {what}: expected marketsched there as here")
        return isinstance(error, _dask().KilledWorker)


def _travelling() -> Callable[[bytes, dict[str, str], dict[str, str]], Any]:
    """Return a function that is sent by value, as all are that have no name to be imported by.

    A worker that cannot read what it is sent leaves the cluster, and the task is waited for without end;
    this one can be read by all, and says on a worker without our package that it is missing.
    """

    def perform_there(work: bytes, code: dict[str, str], files: dict[str, str]) -> Any:
        from marketsched.play.dask_workers import perform  # on the worker, where it may be missing

        return perform(work, code, files)

    return perform_there


def perform(work: bytes, code: Mapping[str, str], files: Mapping[str, str]) -> Any:
    """Return the result of a task on a worker; SweepError if it has other code, or files with other digests."""
    with _ONE_TASK:
        for name, digest in files.items():
            if files_in_use().get(name) == digest:
                continue  # an edit on the way is for the next question
            if not Path(name).is_file():
                raise SweepError(f"a worker has no file {name}: expected it in {Path.cwd()}")
            if as_it_is_now(Path(name)) != digest:
                raise SweepError(f"a worker has another text in {Path(name).resolve()}: expected the same on all")
        function, task = pickle.loads(work)
        return workers.perform(function, task, code)
