"""Many tasks of one kind: in this process, in several, on a Dask cluster, or in an executor of the caller's.

Comparisons, learning owners, the papers' figures and sweeps share out their work here. What is found does
not depend on where it is found: tasks share nothing, and their results are put in order by who uses them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from marketsched.mechanisms.errors import InvalidParameterError, SweepError
from marketsched.play.dask_workers import connected, run_on_cluster
from marketsched.play.kept_results import KeptResults
from marketsched.play.workers import Processes, run_in_processes

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 1000  # tasks that an executor knows of at a time
Where = str | Executor  # address of a Dask scheduler, or any executor of `concurrent.futures`


class Staying:
    """Workers that stay for several calls of `run_many`, as its ``executor``; see `workers_for`."""

    def __init__(self, run: Callable[..., Generator[tuple[Any, Any], None, None]]) -> None:
        self.run = run


@contextmanager
def workers_for(
    workers: int, executor: Where | None, begin: Callable[[], object] = int
) -> Iterator[Executor | Staying | None]:
    """Give what several calls of `run_many` take as ``executor``, so that workers are started once for all of them.

    Parameters
    ----------
    workers, executor
        As of `run_many`. One worker without an executor: None, all is done in this process.
    begin : function
        Called in each process here as soon as it has started: the place to import what tasks need.
    """
    if isinstance(executor, str):
        with connected(executor) as client:
            yield Staying(lambda function, tasks: run_on_cluster(function, tasks, client))
    elif executor is None and workers > 1:
        with Processes(workers) as processes:
            processes.start(begin)
            yield Staying(processes.run)
    else:
        yield executor


def run_many(
    function: Callable[[T], R],
    tasks: Sequence[T],
    workers: int = 1,
    executor: Where | Staying | None = None,
    kept: KeptResults | None = None,
) -> Generator[tuple[T, R], None, None]:
    """Run ``function(task)`` for every task; give each with its result as it is finished.

    Closing the iterator, or an error where it is used, ends what still runs.

    Parameters
    ----------
    function : function of one task
        With several processes found by its name where it runs, as are tasks and results on their way.
    tasks : sequence
        In the order in which they are begun. With ``kept`` their ``repr`` tells them apart.
    workers : int
        Processes, >= 1; one: this process. Not used with an executor.
    executor : str or concurrent.futures.Executor, optional
        The address of a Dask scheduler, as in ``"tcp://10.0.0.1:8786"``, whose workers may die; or an
        executor, which the caller ends; or what `workers_for` gives.
    kept : KeptResults, optional
        Where results are kept as they come; those that are there already are given first.

    Raises
    ------
    InvalidParameterError
        If ``executor`` is neither of them, or the address is none.
    SweepError
        If a process or the cluster is lost, or runs other code.
    Exception
        What ``function`` raises.
    """
    earlier = {} if kept is None else kept.read()
    missing = [task for task in tasks if repr(task) not in earlier]
    for task in tasks:
        if repr(task) in earlier:
            yield task, earlier[repr(task)]
    for task, found in _stream(function, missing, workers, executor):
        if kept is not None:
            kept.keep(repr(task), found)
        yield task, found


def _stream(
    function: Callable[[T], R], tasks: Sequence[T], workers: int, executor: Where | Staying | None
) -> Generator[tuple[T, R], None, None]:
    if isinstance(executor, str):
        with connected(executor) as client:
            yield from run_on_cluster(function, tasks, client)
    elif isinstance(executor, Staying):
        yield from executor.run(function, tasks)
    elif executor is not None:
        yield from _in_executor(function, tasks, executor)
    elif min(workers, len(tasks)) > 1:
        yield from run_in_processes(function, tasks, workers)
    else:
        for task in tasks:
            yield task, function(task)


def _in_executor(
    function: Callable[[T], R], tasks: Sequence[T], executor: Executor
) -> Generator[tuple[T, R], None, None]:
    if not callable(getattr(executor, "submit", None)):
        raise InvalidParameterError(
            place="executor", value=executor, legal="tcp://HOST:PORT, or an executor of concurrent.futures"
        )
    running: dict[Future[R], T] = {}
    waiting = iter(tasks)
    try:
        for task in _first(waiting, AT_ONCE):
            running[executor.submit(function, task)] = task
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task, found = running.pop(future), future.result()
                for following in _first(waiting, 1):
                    running[executor.submit(function, following)] = following
                yield task, found
    except BrokenExecutor as error:
        raise SweepError(f"the executor is lost: {error}") from None
    finally:
        for future in running:
            future.cancel()


def _first(items: Any, count: int) -> list[Any]:
    return [item for _, item in zip(range(count), items, strict=False)]


class TimeLeft:
    """The estimated time of the remaining tasks, from those done here.

    Examples
    --------
    >>> TimeLeft(clock=iter([0.0, 60.0]).__next__).words(done=2, total=6)
    'about 2 min left'
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._begin = clock, clock()

    def words(self, done: int, total: int) -> str:
        """Return an estimate in words; ``done``: tasks since this began, at least one."""
        seconds = (self._clock() - self._begin) / max(done, 1) * (total - done)
        return f"about {duration_words(seconds)} left"


def duration_words(seconds: float) -> str:
    """Return a rough time in words.

    Examples
    --------
    >>> duration_words(42), duration_words(600), duration_words(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
