"""Worker processes on this machine, for work that is repeated many times: sweeps, learning owners, the papers' figures.

Each worker is a pool of one process, so that a process that is killed takes only its own task with it,
and it is known which task that was: it is tried again, and given up after three deaths. A process
that dies before it has begun takes no blame to its task; several such in a row end the work. (Pools of
several processes do less: loky's and the standard library's break as a whole when one dies, pebble's
when one dies while it reads its task.)

Workers end with the process that started them, whatever ends it: on Linux the kernel kills them at
once, compiled code or not; elsewhere a thread of theirs sees it. Ctrl-C is for the one who started them.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import connection, resource_tracker
from typing import Any, Self, TypeVar

from marketsched.mechanisms.errors import SweepError

T = TypeVar("T")
R = TypeVar("R")

MOST_DEATHS = 3
MOST_STILLBORN = 3
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_PR_SET_PDEATHSIG = 1  # of Linux's prctl


def cores() -> int:
    """Return how many processors this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def run_in_processes(
    function: Callable[[T], R], tasks: Sequence[T], workers: int, died: Callable[[T], R] | None = None
) -> Generator[tuple[T, R], None, None]:
    """Run ``function(task)`` for every task in ``workers`` processes; give each with its result as it is finished.

    Closing the iterator, or an error where it is used, kills the processes. See `Processes.run`.
    """
    with Processes(min(workers, len(tasks))) as started:
        yield from started.run(function, tasks, died)


class Processes:
    """Worker processes that stay for several lists of tasks, until the end of a ``with`` block.

    Parameters
    ----------
    count : int
        How many; each begins with the first task that none of the others is free for.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[_Worker] = []
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended = True
        for worker in self._workers:
            if kind is not None:
                worker.kill()
            worker.executor.shutdown(wait=True, cancel_futures=True)

    def start(self, function: Callable[[], object]) -> None:
        """Start all processes now, and let each call ``function`` before its first task; do not wait for them."""
        while len(self._workers) < self._count:
            self._workers.append(_Worker())
        for worker in self._workers:
            worker.executor.submit(function)

    def run(
        self, function: Callable[[T], R], tasks: Sequence[T], died: Callable[[T], R] | None = None
    ) -> Generator[tuple[T, R], None, None]:
        """Run ``function(task)`` for every task; give each with its result as it is finished.

        Closing the iterator, or an error where it is used, kills the processes that are at work; others take their
        place in the next call.

        Parameters
        ----------
        function : function of one task
            Found by its name in the workers, as are tasks and results on their way.
        tasks : sequence
            In the order in which they are begun.
        died : function of one task, optional
            What stands for the result of a task whose process died every time it was tried; None: an error.

        Raises
        ------
        SweepError
            If a process cannot be started, or died with its task and there is no ``died``.
        Exception
            What ``function`` raises.
        """
        waiting = deque((task, 0) for task in tasks)
        running: dict[Future[R], tuple[_Worker, T, int]] = {}
        idle: list[_Worker] = []

        def fill() -> None:
            while waiting and idle:
                worker = idle.pop()
                task, deaths = waiting.popleft()
                running[worker.submit(function, task)] = worker, task, deaths

        try:
            while len(self._workers) < min(self._count, len(tasks)):
                self._workers.append(_Worker())
            idle.extend(reversed(self._workers))
            fill()
            while running:
                finished = []
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    worker, task, deaths = running.pop(future)
                    idle.append(worker)
                    try:
                        finished.append((task, future.result()))
                    except BrokenProcessPool:
                        if self._ended:
                            raise
                        deaths += worker.start_again()
                        if deaths < MOST_DEATHS:
                            waiting.appendleft((task, deaths))
                        elif died is not None:
                            finished.append((task, died(task)))
                        else:
                            raise SweepError(
                                f"a worker process died {deaths} times with the same task: expected enough memory, or "
                                "fewer --workers"
                            ) from None
                fill()  # so that workers do not wait while a result is used
                yield from finished
        finally:
            for worker, _, _ in running.values():
                worker.kill()
                self._workers.remove(worker)
                worker.executor.shutdown(wait=True, cancel_futures=True)


class _Worker:
    """A process that runs one task after the other."""

    def __init__(self) -> None:
        self._stillborn = 0
        self._start()

    def _start(self) -> None:
        try:
            with _environment_of_workers():
                self.executor = ProcessPoolExecutor(
                    1, mp_context=multiprocessing.get_context("spawn"), initializer=_begin_worker
                )
                self._process_id = self.executor.submit(os.getpid)
        except OSError as error:  # no more processes, or files open
            raise SweepError(
                f"no process can be started: {error.strerror or error}: expected room for it, or fewer --workers"
            ) from None

    def submit(self, function: Callable[[T], R], task: T) -> Future[R]:
        """Begin ``task``; a process that died while it had nothing to do is replaced."""
        try:
            return self.executor.submit(function, task)
        except BrokenProcessPool:
            self.start_again()
            return self.executor.submit(function, task)

    def start_again(self) -> bool:
        """Replace a process that died; say whether it ever came to life."""
        self.executor.shutdown(wait=False)
        lived = self._process_id.exception() is None
        self._stillborn = 0 if lived else self._stillborn + 1
        if self._stillborn == MOST_STILLBORN:
            raise SweepError(
                "worker processes die while they start: expected enough memory, and in a script of yours "
                "`if __name__ == '__main__':` around what is to be done once"
            )
        self._start()
        return lived

    def kill(self) -> None:
        """Kill the process, in the midst of a task or of its start."""
        processes: dict[int, Any] = getattr(self.executor, "_processes", None) or {}
        for process in list(processes.values()):
            with suppress(Exception):
                process.kill()


def one_thread() -> None:
    """Let compiled code use one thread from now on: workers share the cores, and sums keep their order."""
    for variable in THREADS:
        os.environ.setdefault(variable, "1")
    numba = sys.modules.get("numba")
    if numba is not None and numba.config.NUMBA_NUM_THREADS > 1:
        numba.set_num_threads(1)


def _begin_worker() -> None:
    """Ignore Ctrl-C and a closed terminal, and die with the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGHUP})
    one_thread()
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # as where the C library has no such function
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent.pid:  # it ended before the kernel knew
        os._exit(1)
    threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _start_tracker() -> None:
    """Start the process that tracks what workers share: like them it ignores a closed terminal, for us to answer."""
    if threading.current_thread() is not threading.main_thread():  # which alone may say what signals do
        resource_tracker.ensure_running()
        return
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # what is started inherits it
    try:
        resource_tracker.ensure_running()
    finally:
        signal.signal(signal.SIGHUP, before)


@contextmanager
def _environment_of_workers() -> Iterator[None]:
    """Let processes that are started meanwhile use one thread each, and not see Ctrl-C while they start."""
    _start_tracker()  # would lift the block if it were started inside
    before = {variable: os.environ.get(variable) for variable in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                del os.environ[variable]
            else:
                os.environ[variable] = value
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGHUP})
