"""Many tasks of one kind: the same results wherever they are found, and none lost when the work is interrupted."""

import operator
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import pytest

from marketsched.mechanisms.errors import InvalidParameterError, SweepError
from marketsched.play.kept_results import FORGOTTEN_SECONDS, KeptResults, fingerprint
from marketsched.play.parallel import run_many
from marketsched.play.workers import perform
from refusals import refused

TASKS = list(range(12))
square = partial(pow, exp=2)


@pytest.mark.parametrize("workers", [1, 2])
def test_in_processes(workers):
    assert dict(run_many(square, TASKS, workers)) == {task: task**2 for task in TASKS}


def test_in_an_executor_of_the_callers():
    with ThreadPoolExecutor(3) as pool:
        assert dict(run_many(square, TASKS, executor=pool)) == {task: task**2 for task in TASKS}
        assert pool.submit(square, 3).result() == 9  # it is the caller who ends it


@pytest.mark.parametrize("where", ["here", "processes", "threads"])
def test_an_error_of_a_task_is_raised(where):
    with ThreadPoolExecutor(1) as pool:
        place = {"here": {}, "processes": {"workers": 2}, "threads": {"executor": pool}}[where]
        with pytest.raises(ZeroDivisionError):
            list(run_many(partial(operator.truediv, 1), [2, 1, 0], **place))


@pytest.mark.slow
def test_an_executor_that_is_lost():
    with ProcessPoolExecutor(1) as pool, pytest.raises(SweepError, match="executor is lost"):
        list(run_many(_end_the_process, [0], executor=pool))


def _end_the_process(task):
    import os

    os._exit(task)


def test_a_worker_of_other_code_is_refused():
    with pytest.raises(SweepError, match=r"a worker has numpy .* \(here 1.0\): expected the same versions"):
        perform(len, "abc", {**fingerprint(), "numpy": "1.0"})


@pytest.mark.parametrize(
    ("executor", "place"), [(3, "executor"), ("tcp:/nowhere", "scheduler"), ("somewhere", "scheduler")]
)
def test_what_is_no_executor(executor, place):
    refused(
        lambda: list(run_many(square, TASKS, executor=executor)),
        place=place,
        seen=executor,
        error=InvalidParameterError,
    )


def test_interrupted_work_goes_on(tmp_path):
    played = []

    def play(task):
        if task == 7 and len(played) == 7:
            raise KeyboardInterrupt
        played.append(task)
        return task**2

    with pytest.raises(KeyboardInterrupt):
        list(run_many(play, TASKS, kept=KeptResults(tmp_path, {"question": 1})))
    damaged = next(KeptResults(tmp_path, {"question": 1}).path.iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-1])
    found = dict(run_many(play, TASKS, kept=KeptResults(tmp_path, {"question": 1})))
    assert found == {task: task**2 for task in TASKS}
    assert len(played) == len(TASKS) + 1  # one was damaged, and made twice
    other = KeptResults(tmp_path, {"question": 2})
    assert other.read() == {}
    assert len(KeptResults(tmp_path, {"question": 1}).read()) == len(TASKS)


def test_what_interrupted_work_left_long_ago_is_removed(tmp_path):
    old, recent = KeptResults(tmp_path, {"seed": 1}), KeptResults(tmp_path, {"seed": 2})
    old.keep("a", 1.0), recent.keep("a", 2.0)
    long_ago = time.time() - 2 * FORGOTTEN_SECONDS
    os.utime(old.path, (long_ago, long_ago))
    KeptResults(tmp_path, {"seed": 3}).keep("a", 3.0)
    assert not old.path.exists() and recent.read() == {"a": 2.0}
