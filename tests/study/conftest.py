"""A folder for sweeps that run in this process."""

import pytest

from marketsched.study.sweeps.records import perform


def in_this_process(tasks, workers, client=None):
    """Stand in for workers: the same tasks, the same records."""
    for task in tasks:
        yield task, perform(task)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return an empty working folder, and let sweeps run in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("marketsched.study.sweeps.sweeping._stream", in_this_process)
    return tmp_path
