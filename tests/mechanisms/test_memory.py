"""Work that would take more memory than there is is refused before it begins, with its size and what is free."""

import re
import tracemalloc
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from marketsched import Market, Scenario, learn
from marketsched.mechanisms import (
    DeadlineValue,
    StatementOfWork,
    TooLargeError,
    get_mechanism,
    memory,
)
from marketsched.mechanisms.allocation import availability_from_periods, published_instance
from marketsched.mechanisms.auctions.vcg import vcg_outcome
from marketsched.mechanisms.limits import LAST_ROUND
from marketsched.mechanisms.memory import available_memory, check_memory
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.relaxed_lp.tasks import tasks_of_plans, tasks_of_reports
from marketsched.study.learning.comparing import compare_learning
from marketsched.study.learning.markets import contested_market
from marketsched.worlds.synthetic import SyntheticParameters, synthetic_pipelines
from tiny_scenarios import tiny

FREE = 2**27  # bytes, in most tests below
SIZES = {"max_concurrency": 1, "max_value": 9.0}
FOREVER = StatementOfWork(1, 1, DeadlineValue(1.0, LAST_ROUND), [(1, 1, 1.0)])


def market(name="posted-price", **sizes):
    return get_mechanism(name, capacity=2, **{"horizon": 9, "max_duration": 2, "max_delay": 9, **SIZES, **sizes})


def cluster(core, slots=4, **parts):
    return Scenario.from_dict({"name": "x", "cluster": {"core": core, "slots": slots, **parts}}).cluster.world(0)


def drawn(**jobs):
    return {"machines": {"kind": "gamma", "machines": 4}, "jobs": {"kind": "drawn", **jobs}}


def many_shares():
    """Few machines and few jobs, but many of both together."""
    machines = {"kind": "unequal", "machines": 50_000}
    world = cluster("opm", 50, machines=machines, jobs={"kind": "drawn", "per_slot": 5.0})
    return world.policy(Scenario.load("opm-default").cluster.choices(["opm"])[0], 50)


def log(horizon):
    return Market(Scenario.from_dict(tiny(workload__horizon=horizon)).setup(np.random.default_rng(0)))


LARGE = {
    "a menu": (lambda: market(horizon=9000, max_delay=9000, max_duration=9000).menu(1), "9000 starts x 9000 durations"),
    "a submission": (
        lambda: market(horizon=90_000, max_delay=90_000, max_duration=2000).submit(
            "a", StatementOfWork(1, 1, DeadlineValue(1.0, 90_000), [(1, d, 0.5) for d in (1, 2000)])
        ),
        "starts x 2000 durations",
    ),
    "slot prices": (
        lambda: market(horizon=LAST_ROUND, max_delay=LAST_ROUND),
        r"prices of 100000\d\d rounds: .*max_delay",
    ),
    "a calendar": (
        lambda: market("first-come", horizon=LAST_ROUND, max_delay=LAST_ROUND),
        "calendar of 10000000 rounds",
    ),
    "a calendar of bid prices": (
        lambda: market("bid-price", horizon=LAST_ROUND, max_delay=LAST_ROUND),
        "calendar of 10000000 rounds",
    ),
    "an auction": (lambda: vcg_outcome([1.0] * 9, [1] * 9, 20_000_000), "9 bids for 20000000 nodes"),
    "values of real jobs": (
        lambda: RealisedJobs.build([(FOREVER, 1, 1)] * 2, horizon=LAST_ROUND, max_delay=LAST_ROUND).values,
        "starts of 2 jobs",
    ),
    "a program over reports": (lambda: tasks_of_reports([FOREVER], LAST_ROUND), "a program over 9999999 starts"),
    "a program over plans": (lambda: tasks_of_plans([FOREVER], LAST_ROUND), "a program over 9999999 starts"),
    "a published cluster": (
        lambda: published_instance(np.random.default_rng(0), n_ports=5000, n_instances=5000),
        "5000 ports, 5000 instances and 6 types",
    ),
    "the cluster of a scenario": (
        lambda: cluster("ogasched", instance={"kind": "pai-mix", "ports": 5000, "instances": 5000}),
        "cluster.instance: a cluster of 5000 ports",
    ),
    "gangs": (
        lambda: cluster("ogasched", instance={"kind": "published"}, gangs={"tasks": [10**6, 10**6]}),
        "10000000 tasks of 10 ports",
    ),
    "channels": (
        lambda: cluster("esdp", instance={"kind": "published", "ports": 5000, "servers": 5000}),
        "5000 ports x 5000 servers",
    ),
    "gangs of channels": (
        lambda: cluster("esdp", instance={"kind": "gangs", "tasks": [10**6, 10**6]}),
        "3000000 tasks on 2 servers",
    ),
    "the log of a market": (lambda: log(10**6), r"log of 1000000 rounds, each with \d+ prices"),
    "slots": (lambda: cluster("esdp", 10**7, instance={"kind": "published"}), "tables of 10000000 slots"),
    "machines": (
        lambda: cluster("opm", **{**drawn(), "machines": {"kind": "gamma", "machines": 10**7}}),
        "cluster.machines: 10000000 machines",
    ),
    "jobs of machines": (lambda: cluster("opm", **drawn(per_slot=10**6)), r"cluster.jobs: 4e\+06 jobs in 4 slots"),
    "shares of machines": (many_shares, r"shares of \d+ jobs on 50000 machines"),
    "recorded machines": (
        lambda: availability_from_periods([0], [0.0], [1.0], n_machines=10**4, slots=10**4, slot_length=1.0),
        "10000 machines in 10000 slots",
    ),
    "pipelines": (
        lambda: synthetic_pipelines(
            rng=np.random.default_rng(0), parameters=SyntheticParameters(recurring_jobs=1000, birth_rounds=10**6)
        ),
        "recurring_jobs or birth_rounds",
    ),
    "what is learned": (lambda: learn(contested_market(), episodes=10**6), "8 owners did in 1000000 episodes"),
    "owners that learn": (lambda: compare_learning(["exponential"], owners=10**8), "jobs of 100000000 owners"),
    "runs of learning": (lambda: compare_learning(["exponential"], runs=10**8), "100000000 runs of 100 days"),
}


@pytest.mark.parametrize("call", LARGE)
def test_work_beyond_memory_is_refused_before_it_begins(call, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: FREE)
    work, words = LARGE[call]
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError) as caught:
            work()
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    line = str(caught.value)
    assert re.search(words, line) and re.search(r": [\d.]+ \w+ of memory wanted, 128 MiB free: expected ", line)
    assert "\n" not in line and taken < FREE


def test_what_is_small_is_not_asked_about(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: pytest.fail("asked"))
    check_memory("little", memory.SMALL, "less")


@pytest.mark.compiled
def test_a_menu_takes_no_more_than_was_asked_for(monkeypatch):
    asked = []
    oracle = {"kind": "monte-carlo", "samples": 64}
    mechanism = market(horizon=2000, max_delay=2000, max_duration=2000, oracle=oracle, rng=0)
    monkeypatch.setattr("marketsched.mechanisms.posted.menu.check_memory", lambda what, n, legal: asked.append(n))
    mechanism.menu(1)
    asked.clear()
    tracemalloc.start()
    try:
        mechanism.menu(1)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.5 * asked[0] < taken <= asked[0]


def test_limits_of_the_process_and_of_its_container_count(monkeypatch):
    files = {"memory.max": "max\n", "memory.current": "400\n", "memory.stat": "anon 3\ninactive_file 100\n"}
    limits = {psutil.RLIMIT_AS: psutil.RLIM_INFINITY, psutil.RLIMIT_DATA: psutil.RLIM_INFINITY}
    process = SimpleNamespace(
        rlimit=lambda which: (limits[which], psutil.RLIM_INFINITY),
        memory_info=lambda: SimpleNamespace(vms=300, data=100),
    )
    monkeypatch.setattr(memory, "Path", lambda *parts: SimpleNamespace(read_text=lambda: files[parts[-1]]))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=9000))
    monkeypatch.setattr(psutil, "Process", lambda: process)
    assert available_memory() == 9000
    files["memory.max"] = "5000\n"
    assert available_memory() == 5000 - 400 + 100
    limits[psutil.RLIMIT_AS] = 301
    assert available_memory() == 1
    limits[psutil.RLIMIT_DATA] = 50
    assert available_memory() == -50
