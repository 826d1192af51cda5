"""Partitions of a log: told by nodes in use at once, played alone, and never merged without a word."""

import numpy as np
import pandas as pd
import pytest

from marketsched.recorded.waits import causes_words, waits_of
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.market import Window, market_of
from marketsched.worlds.logs.rule import LogRule
from refusals import refused


def queue_of_one(rng, n, load, nodes, name):
    """Return jobs of one node each on a partition, first come first served, and busy for ``load`` of the time."""
    run = rng.integers(600, 7200, n).astype(float)
    submit = np.sort(rng.uniform(0, run.sum() / nodes / load, n)).round()
    free, start = np.zeros(nodes), np.empty(n)
    for j in range(n):
        k = int(free.argmin())
        start[j] = max(submit[j], free[k])
        free[k] = start[j] + run[j]
    user = rng.integers(0, 3, n)
    names = {"queue": name, "user": [f"{name}{each}" for each in user]}
    return pd.DataFrame({"submit_s": submit, "run_s": run, "processors": 1, "start_s": start, **names})


@pytest.fixture
def log():
    rng = np.random.default_rng(1)
    full, idle = queue_of_one(rng, 400, 1.4, 2, "full"), queue_of_one(rng, 800, 0.4, 20, "idle")
    return JobLog.of(pd.concat([full, idle]))


def test_users_of_the_full_partition_wait_as_they_did(log):
    found = waits_of(log, by=["queue"])
    full = found.groups.set_index("name").loc["full"]
    assert full["ahead"] > 0.99 and full["mean_wait_hours"] > 1
    assert found.outcome["partitions"]["full"] == 2
    assert causes_words(log.of_partition("full")) == "Of all recorded waiting, nodes were busy for 100%."
    assert "for 100%" not in causes_words(log.of_partition("idle"))


def test_a_partition_is_a_market_of_its_own(log):
    alone = market_of(log, Window(partition="full"), LogRule(round_seconds=300.0), rng=0)
    assert alone.capacity == 2 and len(alone.jobs) == 400
    merged = market_of(log, Window(), LogRule(round_seconds=300.0), rng=0)
    assert "full (2 nodes), idle" in merged.notes["warnings"] and "--partition full" in merged.notes["warnings"]
    refused(lambda: market_of(log, Window(partition="ful"), LogRule(), rng=0), place="partition", legal="full, idle")


def test_queues_that_share_nodes_are_no_partitions(log):
    queues = np.random.default_rng(3).permutation(log.table["queue"])
    assert JobLog.of(log.table.assign(queue=queues)).partitions == {}
