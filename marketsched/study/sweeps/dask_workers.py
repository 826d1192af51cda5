"""Workers of a Dask cluster that somebody else started (the extra ``cluster``).

Dask blames every run that a lost worker had been given, not only the one it was at, and gives all of
them up in the end. Those runs are tried once more, each while the cluster has nothing else to do, so
that a run which kills its workers takes no other with it.
"""

from __future__ import annotations

import logging
import re
import threading
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from marketsched.mechanisms.errors import InvalidParameterError, SweepError
from marketsched.study.sweeps.records import Task, killed, perform

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
        with warnings.catch_warnings():
            # Of packages that no result depends on; for the others there is the fingerprint.
            warnings.simplefilter("ignore", import_module("distributed.versions").VersionMismatchWarning)
            yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def _dask() -> Any:
    """Return the package; type checkers are to know nothing of it, whether it is installed or not."""
    return import_module("distributed")


def _client(address: str) -> Any:
    """Connect in a thread of its own: a port that accepts and stays silent would hold this one for ever."""

    class QuietClient(_dask().Client):  # type: ignore[misc]
        def __del__(self) -> None:
            """Do nothing: one that never connected would wait, and complain."""

    def connect() -> Any:
        return QuietClient(address, timeout=ANSWER_SECONDS, set_as_default=False)

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
    waiting, blamed = deque(tasks), deque[Task]()
    futures: dict[Any, Task] = {}
    finished = _dask().as_completed(loop=client.loop)
    function = _travelling()

    def submit(task: Task, attempt: str) -> None:
        name = f"marketsched-{session}-{attempt}-{task.key}"
        future = client.submit(function, asdict(task), key=name, pure=False)
        futures[future] = task
        finished.add(future)

    def submit_next() -> None:
        if waiting:
            submit(waiting.popleft(), "first")
        elif blamed and not futures:
            submit(blamed.popleft(), "alone")

    try:
        for _ in range(min(AT_ONCE, len(tasks))):
            submit_next()
        while futures:
            future = next(finished)
            task = futures.pop(future)
            text, alone = _record(future), "-alone-" in future.key
            future.release()
            if text is None and not alone:
                blamed.append(task)
            submit_next()
            if text is not None or alone:
                yield task, text or killed(task)
    finally:
        if futures:
            _within(ANSWER_SECONDS, lambda: client.cancel(list(futures), force=True))
        with suppress(Exception):
            finished.clear()


def _travelling() -> Callable[[dict[str, Any]], str]:
    """Return a function that is sent by value, as all are that have no name to be imported by.

    A worker that cannot read what it is sent leaves the cluster, and the run is waited for without end;
    this one can be read by all, and says on a worker without our package that it is missing.
    """

    def perform_there(task: dict[str, Any]) -> str:
        return perform(Task(**task))

    return perform_there


def _record(future: Any) -> str | None:
    """Return the record that came back, or None if workers died with it."""
    try:
        return str(future.result())
    except _dask().KilledWorker:
        return None
    except Exception as error:
        if future.status != "error":  # cancelled or lost: there is no scheduler any more
            raise SweepError("the scheduler is lost: finished runs are kept; start the sweep again to go on") from None
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise SweepError(f"a worker of the cluster cannot run: {what}: expected marketsched there as here") from None
