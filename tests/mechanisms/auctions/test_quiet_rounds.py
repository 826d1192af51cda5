"""Rounds in which nothing moves are not played: every rule that promises them gives the same market round by round."""

from __future__ import annotations

import numpy as np
import pytest

from marketsched.agents import Job
from marketsched.agents.referee import compare_plays
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import DeadlineValue, FallingValue, LinearValue, StatementOfWork
from marketsched.mechanisms.auctions.rows_play import RowsPlay
from marketsched.mechanisms.registry import get_mechanism

CAPACITY, HORIZON, MAX_DELAY = 4, 260, 190
LIMITS = {"capacity": CAPACITY, "horizon": HORIZON, "max_concurrency": 4, "max_duration": 60, "max_value": 900.0}
OWNERS = ["owner 0", "owner 1", "owner 2"]
RULES = {  # by name: parameters, each set of which is played
    "first-come": [{}, {"price": 0.4}],
    "easy-backfill": [{}, {"kill": False, "drop_hopeless": False}, {"order": "class"}, {"reserve": "strict"}],
    "conservative-backfill": [{}, {"grace": 0}],
    "fair-share": [{"half_life_hours": 1.0}, {"rule": "fair-tree", "by_reservation": True}, {"reserve": "none"}],
    "fair-turns": [{"owners": OWNERS}, {"owners": OWNERS, "kept": 0.5}],
    "credits": [  # purses that run dry, and late jobs that wait for the income that pays for them
        {"owners": OWNERS[:2], "carry_rounds": 20.0},
        {"owners": OWNERS, "carry_rounds": 60.0, "start": 0.0, "income": 0.2, "margin": 4.0},
        {"owners": OWNERS, "patience": 0},
    ],
    "bid-price": [{}, {"hidden_order": "sealed"}, {"stop_at_loss": True, "buckets": 2}, {"ahead": 40, "tail": False}],
    "largest-value-first": [{}, {"preempt": False}, {"ratio": 1.1, "most_preemptions": 2}],
    "two-offers": [{}, {"requeue": False}, {"spare": False}, {"counts_saved": True}, {"round_seconds": 60.0}],
}


def drawn_jobs(rng):
    """Few jobs, most of them long and patient, some with checkpoints, in a long horizon."""
    jobs = []
    for i, birth in enumerate(np.sort(rng.integers(1, HORIZON - 60, rng.integers(4, 14))).tolist()):
        durations = np.unique(rng.integers(1, 61, rng.integers(1, 4))).tolist()
        points = [(birth, d, 1.0 / len(durations), None) for d in durations]
        value, last = float(rng.integers(5, 900)), birth + int(rng.integers(1, MAX_DELAY))
        curve = DeadlineValue(value, last)
        if rng.random() < 0.3:
            curve = LinearValue(value, birth + 2, value / MAX_DELAY / 2, last)
        elif rng.random() < 0.3:
            curve = FallingValue(value, birth + 5, float(rng.integers(1, 60)), HORIZON)
        more = {"patience": [None, None, 0, 9, 90][rng.integers(5)], "checkpoint": [None, 1, 7][rng.integers(3)]}
        truth = StatementOfWork(birth, int(rng.integers(1, 5)), curve, points, **more)
        duration = int(rng.choice([*durations, 60]))
        jobs.append(Job(f"job {i}", f"owner {i % 3}", truth, birth, duration, None))
    return tuple(jobs)


def differences(make, seeds):
    """Return the seeds of drawn markets that are another one round by round."""
    found = []
    for seed in seeds:
        jobs = drawn_jobs(np.random.default_rng(seed))
        sizes = {"capacity": CAPACITY, "horizon": HORIZON, "max_delay": MAX_DELAY}
        played = compare_plays(lambda: MarketSetup("drawn", jobs, make(**LIMITS, max_delay=MAX_DELAY), **sizes))  # noqa: B023
        assert played.whole
        if played.difference:
            found.append(seed)
    return found


@pytest.mark.parametrize("name", RULES)
def test_promises_of_quiet_rounds_hold(name, monkeypatch):
    played, before = [], RowsPlay._play_round
    monkeypatch.setattr(RowsPlay, "_play_round", lambda self, now, outcomes: played.append(before(self, now, outcomes)))
    for parameters in RULES[name]:
        assert not differences(
            lambda parameters=parameters, **given: get_mechanism(name, **given, **parameters), range(8)
        )
    if name != "first-come":  # its kernel has a clock of its own
        assert len(played) < 0.5 * HORIZON * 8 * len(RULES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_promises_of_quiet_rounds_hold_in_many_markets(name):
    n = len(RULES[name])
    for k, parameters in enumerate(RULES[name]):
        seeds = range(1000 + k, 1100, n)
        assert not differences(lambda parameters=parameters, **given: get_mechanism(name, **given, **parameters), seeds)
