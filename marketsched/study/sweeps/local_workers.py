"""Worker processes on this machine.

Each worker is a pool of one process, so that a process that is killed takes only its own run with
it, and it is known which run that was: it is tried again, and given up after three deaths. A process
that dies before it has begun takes no blame to its run; several such in a row end the sweep.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import connection, resource_tracker

from marketsched.mechanisms.errors import SweepError
from marketsched.study.sweeps.run_records import THREADS, Task, killed, one_thread, perform

MOST_DEATHS = 3
MOST_STILLBORN = 3


def cores() -> int:
    """Return how many processors this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def run_locally(tasks: Sequence[Task], jobs: int) -> Generator[tuple[Task, str], None, None]:
    """Run ``tasks`` in ``jobs`` processes; give each with its record as it is finished.

    Closing the iterator, or an error where it is used, kills the processes.

    Raises
    ------
    SweepError
        If a process cannot be started.
    """
    waiting = deque((task, 0) for task in tasks)
    running: dict[Future[str], tuple[_Worker, Task, int]] = {}
    workers: list[_Worker] = []
    idle: list[_Worker] = []

    def fill() -> None:
        while waiting and idle:
            worker = idle.pop()
            task, deaths = waiting.popleft()
            running[worker.submit(task)] = worker, task, deaths

    try:
        for _ in range(min(jobs, len(tasks))):
            workers.append(_Worker())
        idle.extend(workers)
        fill()
        while running:
            finished = []
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                worker, task, deaths = running.pop(future)
                idle.append(worker)
                try:
                    finished.append((task, future.result()))
                except BrokenProcessPool:
                    deaths += worker.start_again()
                    if deaths < MOST_DEATHS:
                        waiting.appendleft((task, deaths))
                    else:
                        finished.append((task, killed(task)))
            fill()  # nobody waits while a record is written
            yield from finished
    finally:
        busy = [worker for worker, _, _ in running.values()]
        for worker in busy:
            worker.kill()
        for worker in workers:
            worker.executor.shutdown(wait=True, cancel_futures=True)


class _Worker:
    """A process that runs one task after the other, and dies with the one that started it."""

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
                f"a worker process cannot be started: {error.strerror or error}: expected room for it, or fewer --jobs"
            ) from None

    def submit(self, task: Task) -> Future[str]:
        """Begin ``task``; a process that died while it had nothing to do is replaced."""
        try:
            return self.executor.submit(perform, task)
        except BrokenProcessPool:
            self.start_again()
            return self.executor.submit(perform, task)

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
        """Kill the process in the midst of a run."""
        with suppress(Exception):
            os.kill(self._process_id.result(timeout=10.0), signal.SIGKILL)


def _begin_worker() -> None:
    """Ignore Ctrl-C, which is for the process that started this one, and die when that one does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    one_thread()
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


@contextmanager
def _environment_of_workers() -> Iterator[None]:
    """Let processes that are started meanwhile use one thread each, and not see Ctrl-C while they start."""
    resource_tracker.ensure_running()  # would lift the block if it were started inside
    before = {variable: os.environ.get(variable) for variable in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                del os.environ[variable]
            else:
                os.environ[variable] = value
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
