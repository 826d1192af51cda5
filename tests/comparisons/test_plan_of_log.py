"""How many processes a comparison of a log gets by default."""

import pytest

from marketsched.comparisons.plan_of_log import plan_of_log
from marketsched.config.scenario import Scenario

PLANS = "marketsched.comparisons.plan_of_log"
SMALL = {
    "name": "small",
    "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 8, "birth_rounds": 40, "capacity": 6},
}


def test_processes_of_large_logs_need_more_memory(monkeypatch):
    """Each of 1 GB and as much again for its jobs: two of them in half of 9 GB."""
    base = Scenario.from_dict(SMALL)
    n_jobs = len(base.workload_of(0, None).jobs)
    for name, value in (("JOB_S", 1.0), ("PROCESS_BYTES", 1e9), ("JOB_BYTES", 1e9 / n_jobs)):
        monkeypatch.setattr(f"{PLANS}.{name}", value)
    monkeypatch.setattr(f"{PLANS}.cores", lambda: 64)
    monkeypatch.setattr(f"{PLANS}.available_memory", lambda: 9e9)
    assert plan_of_log(base, ["first-come"], 20).workers == 2


@pytest.mark.parametrize(
    ("seconds", "cores", "gigabytes", "asked", "workers"),
    [
        (0.1, 8, 64, None, 1),  # over in a moment
        (60, 8, 64, None, 6),  # three seeds at two loads
        (60, 4, 64, None, 4),
        (60, 8, 1.3, None, 2),  # half of the memory for processes of .3 GB
        (60, 8, 0.1, None, 1),
        (60, 8, 64, 3, 3),
        (60, 8, 0.1, 9, 9),  # who asks for more than there are seeds and loads
    ],
)
def test_a_long_comparison_is_shared_as_far_as_seeds_processors_and_memory_go(
    monkeypatch, seconds, cores, gigabytes, asked, workers
):
    monkeypatch.setattr(f"{PLANS}.cores", lambda: cores)
    monkeypatch.setattr(f"{PLANS}.available_memory", lambda: gigabytes * 1e9)
    base = Scenario.from_dict(SMALL)
    n_jobs = len(base.workload_of(0, None).jobs)
    monkeypatch.setattr(f"{PLANS}.JOB_S", seconds / (n_jobs * 12))
    found = plan_of_log(base, ["first-come", "credits"], 3, 2, workers=asked)
    assert (found.jobs, found.mechanisms, found.plays, found.workers) == (n_jobs, 2, 12, workers)
    assert found.seconds == pytest.approx(seconds / min(workers, 6)) and found.is_long == (seconds > 20)
