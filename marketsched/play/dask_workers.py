"""Workers of a Dask cluster that is already there (the extra ``cluster``).

Dask blames every task that a lost worker had been given, not only the one it was at, and gives all of
them up in the end. Those tasks are tried once more, each while the cluster has nothing else to do, so
that a task which kills its workers takes no other with it.
"""

from __future__ import annotations

import logging
import pickle
import re
import threading
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from marketsched.mechanisms.errors import InvalidParameterError, SweepError
from marketsched.mechanisms.from_file import as_it_is_now, files_in_use
from marketsched.play.kept_results import difference, fingerprint
from marketsched.play.workers import one_thread

T = TypeVar("T")
R = TypeVar("R")

ANSWER_SECONDS = 4.0
AT_ONCE = 1000  # tasks the scheduler knows of at a time
_ONE_TASK = threading.Lock()  # a worker may have several threads; a task has its process for itself


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


def run_on_cluster(
    function: Callable[[T], R], tasks: Sequence[T], client: Any, died: Callable[[T], R] | None = None
) -> Generator[tuple[T, R], None, None]:
    """Run ``function(task)`` for every task on the cluster; give each with its result as it is finished.

    A task whose worker dies is tried again by the scheduler, and given up when it has killed several.
    Closing the iterator, or an error of its user, cancels the remaining tasks.

    Parameters
    ----------
    function : function of one task
        Found by its name on the workers, as are tasks and results on their way.
    tasks : sequence
        In the order in which they are begun.
    client : distributed.Client
        Of the cluster; see `connected`.
    died : function of one task, optional
        What stands for the result of a task whose worker died every time it was tried; None: an error.

    Raises
    ------
    SweepError
        If the scheduler is lost, a worker runs other code or none of ours, or died with its task and
        there is no ``died``.
    Exception
        What ``function`` raises.
    """
    session = uuid.uuid4().hex[:12]
    waiting, blamed = deque(enumerate(tasks)), deque[tuple[int, T]]()
    futures: dict[Any, tuple[int, T]] = {}
    finished = _dask().as_completed(loop=client.loop)
    perform, code = _travelling(), dict(fingerprint())

    def submit(number: int, task: T, attempt: str) -> None:
        name = f"marketsched-{session}-{attempt}-{number}"
        work = pickle.dumps((function, task))
        files = {file: digest for file, digest in files_in_use().items() if file.encode() in work}
        future = client.submit(perform, work, code, files, key=name, pure=False)
        futures[future] = number, task
        finished.add(future)

    def submit_next() -> None:
        if waiting:
            submit(*waiting.popleft(), "first")
        elif blamed and not futures:
            submit(*blamed.popleft(), "alone")

    try:
        for _ in range(min(AT_ONCE, len(tasks))):
            submit_next()
        while futures:
            future = next(finished)
            number, task = futures.pop(future)
            answer, alone = _answer(future), "-alone-" in future.key
            future.release()
            if answer is None and not alone:
                blamed.append((number, task))
            submit_next()
            if answer is not None:
                yield task, _result(answer)
            elif alone and died is not None:
                yield task, died(task)
            elif alone:
                raise SweepError("workers of the cluster died whenever they had one task: expected enough memory there")
    finally:
        if futures:
            _within(ANSWER_SECONDS, lambda: client.cancel(list(futures), force=True))
        with suppress(Exception):
            finished.clear()


def _travelling() -> Callable[[bytes, dict[str, str], dict[str, str]], bytes]:
    """Return a function that is sent by value, as all are that have no name to be imported by.

    A worker that cannot read what it is sent leaves the cluster, and the task is waited for without end;
    this one can be read by all, and says on a worker without our package that it is missing.
    """

    def perform_there(work: bytes, code: dict[str, str], files: dict[str, str]) -> bytes:
        from marketsched.play.dask_workers import perform  # on the worker, where it may be missing

        return perform(work, code, files)

    return perform_there


def perform(work: bytes, code: Mapping[str, str], files: Mapping[str, str]) -> bytes:
    """Perform on a worker a task of `run_on_cluster`; return its result, or its error.

    ``files`` are those of mechanisms that the task names, with the digests that they have to have here.
    """
    with _ONE_TASK:
        differs = difference(code, fingerprint()) or _other_file(files)
        if differs is not None:
            return pickle.dumps(("differs", differs))
        function, task = pickle.loads(work)
        one_thread()
        try:
            return pickle.dumps(("done", function(task)))
        except Exception as error:
            return pickle.dumps(("raised", error))


def _other_file(files: Mapping[str, str]) -> str | None:
    """Return the first file that is missing here or has another text in words; one that was edited is run anew."""
    for name, digest in files.items():
        if files_in_use().get(name) == digest:
            continue  # an edit on the way is for the next question
        if not Path(name).is_file():
            return f"no file {name} (its folder is {Path.cwd()})"
        if as_it_is_now(Path(name)) != digest:
            return f"another text in {Path(name).resolve()}"
    return None


def _answer(future: Any) -> bytes | None:
    """Return what came back, or None if workers died with it."""
    try:
        return bytes(future.result())
    except _dask().KilledWorker:
        return None
    except Exception as error:
        if future.status != "error":  # cancelled or lost: there is no scheduler any more
            raise SweepError("the scheduler is lost: what is finished is kept; start the same again to go on") from None
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise SweepError(f"a worker of the cluster cannot run: {what}: expected marketsched there as here") from None


def _result(answer: bytes) -> Any:
    kind, found = pickle.loads(answer)
    if kind == "differs":
        raise SweepError(
            f"a worker has {found}: expected the same versions, and files of mechanisms, on every worker, and none "
            "installed or edited while it runs"
        )
    if kind == "raised":
        raise found
    return found
