"""A recorded workload through HTTP: the decisions of `marketsched run` with that seed."""

import os
import time

import numpy as np
import pytest

from live_tools import check_journal
from marketsched.agents.loop import MarketLoop, TruthfulOwners, play
from marketsched.config.scenario import Scenario
from marketsched.config.sow_codec import sow_to_json
from marketsched.live.client import LiveClient
from marketsched.live.serving import serving
from marketsched.play import replaying

SEED = 19
ROUNDS = int(os.environ.get("MARKETSCHED_ROUNDS", "30"))
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


def setup_of(name, mechanism):
    content = Scenario.load(name).to_dict()
    content["mechanism"] = {"name": "bid-price"} if mechanism == "bid-price" else content["mechanism"]
    content["resubmit"] = False
    # The seed's streams as `run` spawns them.
    return Scenario.from_dict(content).setup(np.random.default_rng(np.random.SeedSequence(SEED)))


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("mechanism", ["posted-price", "bid-price"])
@pytest.mark.parametrize("name", SCENARIOS.values())
def test_through_http_the_decisions_are_those_of_a_run(name, mechanism, tmp_path, monkeypatch):
    rounds = ROUNDS if name == "google-recurring" else 8
    setup = setup_of(name, mechanism)
    limits = setup.mechanism.limits
    sizes = ("capacity", "horizon", "max_concurrency", "max_duration", "max_value", "max_delay")
    config = {key: getattr(limits, key) for key in sizes} | {"mechanism": mechanism, "requests_per_second": 1e6}
    expected = [
        (event.round, event.kind.value, str(event.job), event.completion, event.payment)
        for event in play(MarketLoop(setup_of(name, mechanism).mechanism), TruthfulOwners(setup.jobs), rounds)
    ]
    # Its rules and its stream of draws are the scenario's; what a configuration can say of them is less.
    monkeypatch.setattr(replaying, "_build_mechanism", lambda _: setup_of(name, mechanism).mechanism)
    token, calls, begin = tmp_path / "token", 0, time.monotonic()
    with serving(config, f"{tmp_path}/m.db", operator_token_file=token) as url:
        client = LiveClient(url, token.read_text().strip())
        client.create_owner("u")
        arriving, ending, names, decisions = {}, {}, {}, []
        for job in setup.jobs:
            names[f"u.{job.name}"] = str(job.name)
            arriving.setdefault(job.arrival, []).append(job)
        born = {}
        for job in setup.jobs:
            born.setdefault(job.truth.birth, []).append(job)
        length = {f"u.{job.name}": job.duration for job in setup.jobs}
        order = {f"u.{job.name}": i for i, job in enumerate(sorted(setup.jobs, key=lambda job: job.truth.birth))}
        for now in range(1, rounds + 1):
            for job in born.get(now, ()):
                client.submit(sow_to_json(job.truth), name=str(job.name), owner="u")
            for job in arriving.get(now, ()):
                client.arrive(f"u.{job.name}", signal=job.signal)
            calls += len(born.get(now, ())) + len(arriving.get(now, ())) + 1
            for decision in client.advance()["decisions"]:
                decisions.append((now, decision["event"], names[decision["job"]], None, 0.0))
                if decision["event"] == "start":
                    ending.setdefault(now + length[decision["job"]] - 1, []).append(decision["job"])
            for job in sorted(ending.pop(now, ()), key=order.get):
                if client.job(job)["state"] == "running":
                    done = client.complete(job)
                    calls += 2
                    decisions.append((now, "complete", names[job], done["end"], done["charge"]))
    assert len(decisions) == len(expected) > 0
    for found, wanted in zip(decisions, expected, strict=True):
        assert found[:4] == wanted[:4] and found[4] == pytest.approx(wanted[4], abs=5e-7)  # charges are in millionths
    if mechanism == "bid-price":
        check_journal(f"{tmp_path}/m.db")
    seconds = time.monotonic() - begin
    print(f"{name}, {mechanism}: {rounds} rounds, {len(decisions)} decisions, {calls} calls in {seconds:.0f} s")
