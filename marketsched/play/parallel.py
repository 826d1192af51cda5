"""Many tasks of one kind: in this process, in several, on a Dask cluster, or in an executor of the caller's.

Comparisons, audits, learning owners, the papers' figures and sweeps share out their work here. Tasks share nothing,
and who uses the results puts them in order, so they do not depend on where they are computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from typing import TypeVar

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.play.dask_workers import connected
from marketsched.play.kept_results import KeptResults
from marketsched.play.workers import Processes, Workers

T = TypeVar("T")
R = TypeVar("R")

Where = str | Executor  # address of a Dask scheduler, or any executor of `concurrent.futures`


@contextmanager
def workers_for(workers: int, executor: Where | Workers | None, needs: object = None) -> Iterator[Workers | None]:
    """Give what several calls of `run_many` take as ``executor``, so that workers are started once for all of them.

    One worker without an executor: None, all is done in this process. Parameters are those of `run_many` and
    `Processes`. Raises InvalidParameterError if ``executor`` is none, or its address is none, and SweepError if the
    cluster does not answer, or no process can be started.
    """
    if isinstance(executor, str):
        with connected(executor) as cluster:
            yield cluster
    elif executor is None and workers > 1:
        with Processes(workers, needs) as processes:
            yield processes
    elif executor is None or isinstance(executor, Workers):
        yield executor
    elif callable(getattr(executor, "submit", None)):
        yield Workers(executor)
    else:
        legal = "tcp://HOST:PORT, or an executor of concurrent.futures"
        raise InvalidParameterError(place="executor", value=executor, legal=legal)


def run_many(
    function: Callable[[T], R],
    tasks: Sequence[T],
    workers: int = 1,
    executor: Where | Workers | None = None,
    kept: KeptResults | None = None,
) -> Generator[tuple[T, R], None, None]:
    """Run ``function(task)`` for every task; give each with its result as it is finished.

    Closing the iterator, or an error where it is used, ends what still runs. What ``function`` raises is raised.

    Parameters
    ----------
    function : function of one task
        With several processes found by its name where it runs, as are tasks and results on their way.
    tasks : sequence
        In the order in which they are begun. With ``kept`` their ``repr`` tells them apart.
    workers : int
        Processes, >= 1; one: this process. Not used with an executor.
    executor : str or concurrent.futures.Executor, optional
        The address of a Dask scheduler, as in ``"tcp://10.0.0.1:8786"``; an executor, which the caller ends; or what
        `workers_for` gives, and errors as there.
    kept : KeptResults, optional
        Where results are kept as they come; those that are there already are given first.
    """
    earlier = {} if kept is None else kept.read()
    missing = [task for task in tasks if repr(task) not in earlier]
    for task in tasks:
        if repr(task) in earlier:
            yield task, earlier[repr(task)]
    with workers_for(min(workers, len(missing)), executor) as place:
        stream = ((task, function(task)) for task in missing) if place is None else place.run(function, missing)
        with closing(stream):
            for task, found in stream:
                if kept is not None:
                    kept.keep(repr(task), found)
                yield task, found


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
