"""Workers of a Dask cluster that somebody else started (the extra ``cluster``)."""

from __future__ import annotations

import logging
import re
import threading
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from marketsched.experiments.run_records import Task, killed, perform
from marketsched.mechanisms.errors import InvalidParameterError, SweepError

ANSWER_SECONDS = 4.0
AT_ONCE = 1000  # tasks the scheduler knows of at a time


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Give a client of the scheduler at ``address``.

    Raises
    ------
    InvalidParameterError
        If it is no address, or the extra is not installed.
    SweepError
        If the scheduler does not answer within seconds.
    """
    if not re.fullmatch(r"(tcp|tls)://[^\s/]+:\d+/?", address):
        raise InvalidParameterError(f"scheduler = {address!r}: expected an address as in tcp://10.0.0.1:8786")
    if find_spec("distributed") is None:
        raise InvalidParameterError(
            "scheduler: the package distributed is not installed: expected `pip install 'marketsched[cluster]'`"
        )
    with _silence():
        client = _client(address)
        try:
            yield client
        finally:
            _within(ANSWER_SECONDS, client.close)


@contextmanager
def _silence() -> Iterator[None]:
    """Let Dask log nothing meanwhile: what matters is raised, and losing a worker is no matter."""
    _dask()  # sets levels of its own when it is imported
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
    before = {name: logging.getLogger(name).level for name in names}
    try:
        for name in names:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def _dask() -> Any:
    """Return the package; type checkers are to know nothing of it, whether it is installed or not."""
    return import_module("distributed")


def _client(address: str) -> Any:
    """Connect in a thread of its own: a port that accepts and stays silent would hold this one for ever."""

    def connect() -> Any:
        return _dask().Client(address, timeout=ANSWER_SECONDS, set_as_default=False)

    found = _within(ANSWER_SECONDS + 1.0, connect)
    if found is None or isinstance(found, BaseException):
        raise SweepError(
            f"scheduler {address}: no answer within {ANSWER_SECONDS:g} seconds: expected a Dask scheduler there"
        )
    return found


def _within(seconds: float, function: Callable[[], Any]) -> Any:
    """Return what ``function`` returns or raises, or None if it takes longer."""
    box: list[Any] = []

    def call() -> None:
        try:
            box.append(function())
        except BaseException as error:
            box.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    return box[0] if box else None


def run_on_cluster(tasks: Sequence[Task], client: Any) -> Generator[tuple[Task, str], None, None]:
    """Run ``tasks`` on the cluster; give each with its record as it is finished.

    A run whose worker dies is tried again by the scheduler, and given up when it has killed several.
    Closing the iterator, or an error where it is used, cancels what is left.

    Raises
    ------
    SweepError
        If the scheduler is lost, or a worker cannot run our code at all.
    """
    session = uuid.uuid4().hex[:12]
    waiting = iter(tasks)
    futures: dict[Any, Task] = {}
    finished = _dask().as_completed(loop=client.loop)

    def submit_next() -> None:
        task = next(waiting, None)
        if task is not None:
            future = client.submit(perform, task, key=f"marketsched-{session}-{task.key}", pure=False)
            futures[future] = task
            finished.add(future)

    try:
        for _ in range(AT_ONCE):
            submit_next()
        while futures:
            future = next(finished)
            task = futures.pop(future)
            text = _record(task, future)
            future.release()
            submit_next()
            yield task, text
    finally:
        if futures:
            _within(ANSWER_SECONDS, lambda: client.cancel(list(futures), force=True))
        with suppress(Exception):
            finished.clear()


def _record(task: Task, future: Any) -> str:
    try:
        return str(future.result())
    except _dask().KilledWorker as error:
        return killed(task, getattr(error, "allowed_failures", 3) + 1)
    except Exception as error:
        if future.status != "error":  # cancelled or lost: there is no scheduler any more
            raise SweepError("the scheduler is lost: finished runs are kept; start the sweep again to go on") from None
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise SweepError(f"a worker of the cluster cannot run: {what}: expected marketsched there as here") from None
