"""Workers that tasks are given to, and what is done when one of them dies; `Processes` are those on this machine.

Processes are loky's, as joblib carries it: a pool breaks as a whole when one of its processes dies, and another one
takes its place. (`joblib.Parallel` ends with its pool, and never hears of a worker that dies on a Dask cluster.)

Processes end with the one that started them, whatever ends it. Ctrl-C is for the one who started them.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from marketsched.mechanisms.errors import SweepError
from marketsched.play.kept_results import difference, fingerprint

T = TypeVar("T")
R = TypeVar("R")

MOST_DEATHS = 3  # of processes with the same task
MOST_STILLBORN = 3  # pools in a row of which no process came to life
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_UNSEEN = {signal.SIGINT, signal.SIGHUP}  # by workers


def cores() -> int:
    """Return how many processors this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


class Workers:
    """Workers of an executor of `concurrent.futures`, which the caller ends."""

    at_once = 1000  # tasks that the executor knows of at a time
    most_deaths = 1  # of workers with the same task
    state = "starting"  # in words

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def run(
        self, function: Callable[[T], R], tasks: Sequence[T], died: Callable[[T], R] | None = None
    ) -> Generator[tuple[T, R], None, None]:
        """Run ``function(task)`` for every task; give each with its result as it is finished.

        Of the tasks that were under way when a worker died each is tried again alone, at the end: so it is known which
        one ends its workers; ``died`` makes its result, else it is an error. Closing the iterator, or an error where it
        is used, ends what still runs. What ``function`` raises is raised, and SweepError if workers cannot be started,
        are lost or run other code.
        """
        waiting, alone = deque(tasks), deque[tuple[T, int]]()
        running: dict[Future[R], tuple[T, int]] = {}

        def fill() -> None:
            while waiting and len(running) < self.at_once:
                task = waiting.popleft()
                running[self.submit(function, task)] = task, 0
            if alone and not running:
                task, deaths = alone.popleft()
                running[self.submit(function, task)] = task, deaths

        try:
            fill()
            while running:
                finished = []
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task, deaths = running.pop(future)
                    error = CancelledError() if future.cancelled() else future.exception()
                    if error is None:
                        finished.append((task, future.result()))
                    elif not self.lost(error):
                        raise error
                    elif deaths + 1 < self.most_deaths:
                        alone.append((task, deaths + 1))
                    elif died is not None:
                        finished.append((task, died(task)))
                    else:
                        raise SweepError(
                            f"workers died {deaths + 1} times with the same task: expected enough memory, or fewer "
                            "--workers"
                        )
                fill()  # so that workers do not wait while a result is used
                yield from finished
        finally:
            if running:
                self.abandon(running)

    def submit(self, function: Callable[[T], R], task: T) -> Future[R]:
        """Begin a task."""
        return self._executor.submit(function, task)

    def lost(self, error: BaseException) -> bool:
        """Tell whether a task ended with ``error`` because its worker died; raise if no other takes its place."""
        if isinstance(error, BrokenExecutor):
            raise SweepError(f"the executor is lost: {error}") from None
        return False

    def abandon(self, futures: Iterable[Future[Any]]) -> None:
        """End tasks whose results nobody waits for."""
        for future in futures:
            future.cancel()


class Processes(Workers):
    """``count`` processes on this machine; they are started at once, and stay until the end of a ``with`` block.

    ``needs``, a function of the module that tasks need, is found by its name in each as soon as it starts.
    """

    most_deaths = MOST_DEATHS

    def __init__(self, count: int, needs: object = None) -> None:
        self.at_once = 2 * count  # so that none waits for its next task
        self._count, self._needs, self._stillborn = count, needs, 0
        self._pool: Any = None
        self._start()

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._kill()
        elif self._pool is not None:
            self._pool.shutdown(wait=True)

    def submit(self, function: Callable[[T], R], task: T) -> Future[R]:
        """Begin a task; in another pool, if a process died."""
        code = dict(fingerprint())
        for _ in range(MOST_STILLBORN):
            if self._pool is None:
                self._start()
            try:
                future: Future[R] = self._pool.submit(perform, function, task, code)
                return future
            except BrokenExecutor:
                self._stillborn = 0 if self._first.exception() is None else self._stillborn + 1
                self._pool = None
            if self._stillborn == MOST_STILLBORN:
                break
        raise SweepError(
            "worker processes die while they start: expected enough memory, and in a script of yours "
            "`if __name__ == '__main__':` around what is to be done once"
        )

    def lost(self, error: BaseException) -> bool:
        """Tell whether a process died."""
        return isinstance(error, BrokenExecutor)

    def abandon(self, futures: Iterable[Future[Any]]) -> None:
        """Kill the processes; others take their place in the next call."""
        self._kill()

    def _kill(self) -> None:
        if self._pool is not None:
            for process_id in [*self._pool._processes]:  # `kill_workers` fails if a task was given just before
                with suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGKILL)
            self._pool.shutdown(wait=True)
            self._pool = None

    def _start(self) -> None:
        from joblib.externals.loky import ProcessPoolExecutor
        from joblib.externals.loky.backend import get_context

        try:
            with _unseen_signals():
                self._pool = ProcessPoolExecutor(
                    self._count,
                    context=get_context("loky_init_main"),
                    env=dict.fromkeys(THREADS, "1"),  # they share the cores, and sums keep their order
                    initializer=_begin_worker,
                    initargs=(os.getpid(), self._needs),
                )
                self._first: Future[int] = self._pool.submit(os.getpid)
        except OSError as error:  # no more processes, or files open
            raise SweepError(
                f"no process can be started: {error.strerror or error}: expected room for it, or fewer --workers"
            ) from None


def perform(function: Callable[[T], R], task: T, code: Mapping[str, str]) -> R:
    """Return ``function(task)``, in a worker whose code is that of the one who asks."""
    differs = difference(code, fingerprint())  # it may have started after an edit
    if differs is not None:
        raise SweepError(
            f"a worker has {differs}: expected the same versions on every worker, and none installed or edited while "
            "it runs"
        )
    return function(task)


def _begin_worker(parent: int, needs: object) -> None:
    """Ignore Ctrl-C and a closed terminal, keep large markets, and end with the process that started this one."""
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = math.inf  # a market that stays for the next task is no leak
    for number in _UNSEEN:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _UNSEEN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.1)
    os._exit(1)


@contextmanager
def _unseen_signals() -> Iterator[None]:
    """Let processes that are started meanwhile not see Ctrl-C and a closed terminal while they start."""
    from joblib.externals.loky.backend import resource_tracker as of_loky

    here = threading.current_thread() is threading.main_thread()  # which alone may say what signals do
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN) if here else None
    try:  # trackers of what processes share: they inherit what HUP does, and would lift the block of signals
        resource_tracker.ensure_running()
        of_loky.ensure_running()
    finally:
        if here:
            signal.signal(signal.SIGHUP, before)
    signal.pthread_sigmask(signal.SIG_BLOCK, _UNSEEN)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _UNSEEN)
