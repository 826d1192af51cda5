"""A recorded workload through HTTP: the decisions of `marketsched run` with that seed.

``MARKETSCHED_ROUNDS`` says how many rounds are played (0: all), ``MARKETSCHED_ROUND_SECONDS`` how long a round of the
trace is: the scenario's 300 s make 720 rounds of two days, and 20 s make 10,800.
"""

import copy
import json
import multiprocessing
import os
import time
from contextlib import contextmanager

import numpy as np
import pytest

from live_tools import check_journal
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.config.scenario import Scenario
from marketsched.config.sow_codec import sow_to_json
from marketsched.live import statements
from marketsched.live.client import LiveClient
from marketsched.live.serving import serving
from marketsched.play import replayer

SEED = 19
ROUNDS = int(os.environ.get("MARKETSCHED_ROUNDS", "30"))
ROUND_SECONDS = float(os.environ.get("MARKETSCHED_ROUND_SECONDS", "300"))
SCENARIOS = {
    "google-recurring": pytest.param(
        "google-recurring",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(not os.environ.get("MARKETSCHED_DATA"), reason="MARKETSCHED_DATA is not set"),
        ],
    ),
    "synthetic-pipelines": "synthetic-pipelines",
}


@contextmanager
def serving_apart(config, url, token):
    """Serve a market in a process of its own, which is a copy of this one; give the address."""

    def child():
        with serving(config, url, operator_token_file=token) as address:
            there.send(address)
            there.recv()

    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    try:
        assert here.poll(60)
        yield here.recv()
    finally:
        here.send("end")
        process.join(60)


def setup_of(name, mechanism):
    content = Scenario.load(name).to_dict()
    if name == "google-recurring":
        content["workload"]["round_seconds"] = ROUND_SECONDS
    content["mechanism"] = {"name": "bid-price"} if mechanism == "bid-price" else content["mechanism"]
    content["resubmit"] = False
    # The seed's streams as `run` spawns them.
    return Scenario.from_dict(content).setup(np.random.default_rng(np.random.SeedSequence(SEED)))


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("mechanism", ["posted-price", "bid-price"])
@pytest.mark.parametrize("name", SCENARIOS.values())
def test_through_http_the_decisions_are_those_of_a_run(name, mechanism, tmp_path, monkeypatch):
    setup = setup_of(name, mechanism)
    # A live market ends a run that outlasts all durations that were announced; a simulated one believes what it sees.
    jobs = [
        job for job in setup.jobs if job.arrival is None or job.truth.law.group_of(job.arrival, job.signal) is not None
    ]
    limits = setup.mechanism.limits
    rounds = 8 if name != "google-recurring" else ROUNDS or limits.horizon
    sizes = ("capacity", "horizon", "max_concurrency", "max_duration", "max_value", "max_delay")
    config = {key: getattr(limits, key) for key in sizes} | {"mechanism": mechanism, "requests_per_second": 1e6}
    config |= {"announced_nodes": "unlimited", "surprise_limit": 0}  # one owner has all jobs
    expected = [
        (event.round, event.kind.value, str(event.job), event.completion, event.payment)
        for event in play(MarketLoop(setup_of(name, mechanism).mechanism), TruthfulOwners(jobs), rounds)
    ]
    monkeypatch.setattr(statements, "MOST_CASES", 600)  # as many as a law of recorded runs has
    if mechanism == "posted-price":  # its stream of draws is one of several that the scenario's seed has
        fresh = setup_of(name, mechanism).mechanism
        monkeypatch.setattr(replayer, "_build_mechanism", lambda _: copy.deepcopy(fresh))
    token, begin = tmp_path / "token", time.monotonic()
    with serving_apart(config, f"{tmp_path}/m.db", token) as url:
        client = LiveClient(url, token.read_text().strip())
        client.create_owner("u", deposit=1e9)
        decisions, calls = through(client, jobs, rounds)
    seconds = time.monotonic() - begin
    assert len(decisions) == len(expected) > 0
    for found, wanted in zip(decisions, expected, strict=True):
        assert found[:4] == wanted[:4] and found[4] == pytest.approx(wanted[4], abs=5e-7)  # charges are in millionths
    if mechanism == "bid-price":
        check_journal(f"{tmp_path}/m.db")
    print(f"{name}, {mechanism}: {rounds} rounds, {len(decisions)} decisions, {calls} calls in {seconds:.0f} s")


def in_batches(client, calls):
    """Make calls in batches that are not too large for one request; return the answers."""
    answers, batch, size = [], [], 0
    for call in [*calls, None]:
        length = len(json.dumps(call))
        if batch and (call is None or len(batch) == 100 or size + length > 60_000):
            answers += client.batch(batch)
            batch, size = [], 0
        batch.append(call)
        size += length + 2
    assert all(answer["status"] in (200, 201) for answer in answers), answers
    return [answer["answer"] for answer in answers]


def through(client, jobs, rounds):
    """Play the jobs of one owner through a client; return the decisions as a run has them, and the number of calls."""
    born, arriving, ending, gone = {}, {}, {}, set()
    for job in jobs:
        born.setdefault(job.truth.birth, []).append(job)
        arriving.setdefault(job.arrival, []).append(job)
    known = {f"u.{job.name}": job for job in jobs}
    order = {name: i for i, name in enumerate(sorted(known, key=lambda name: known[name].truth.birth))}
    decisions, n_calls, done = [], 0, []
    for now in range(1, rounds + 2):
        # What ended with the round before is reported while this one is open.
        calls = [{"call": "complete", "job": name} for name in done]
        calls += [
            {"call": "submit", "body": {"sow": sow_to_json(job.truth), "name": str(job.name), "owner": "u"}}
            for job in born.get(now, ())
        ]
        calls += [
            {"call": "arrive", "job": f"u.{job.name}", "body": {"signal": job.signal}} for job in arriving.get(now, ())
        ]
        calls = calls[: len(done)] if now > rounds else [*calls, {"call": "advance"}]
        answers = in_batches(client, calls)
        n_calls += len(calls)
        for name, answer in zip(done, answers, strict=False):
            decisions.append((now - 1, "complete", str(known[name].name), answer["end"], answer["charge"]))
        for decision in answers[-1]["decisions"] if now <= rounds else ():
            name = decision["job"]
            decisions.append((now, decision["event"], str(known[name].name), None, 0.0))
            if decision["event"] == "start":
                ending.setdefault(now + known[name].duration - 1, []).append(name)
            else:
                gone.add(name)
        done = [name for name in sorted(ending.pop(now, ()), key=order.get) if name not in gone]
    return decisions, n_calls
