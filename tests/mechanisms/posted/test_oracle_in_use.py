"""Copies of a market share its oracle, and estimate as if each had one of its own."""

import copy

import numpy as np
import pytest

from draws import many
from marketsched.mechanisms import DeadlineValue, MonteCarloOracle, StatementOfWork, get_mechanism
from marketsched.mechanisms.posted.oracle_in_use import KeptOracle
from marketsched.truthfulness.situations.guarded_market import GuardedMarket, Snapshot

SIZES = {"capacity": 6, "horizon": 40, "max_concurrency": 2, "max_duration": 4, "max_value": 12.0, "max_delay": 9}
ORACLES = {
    "exact": {"kind": "exact"},
    "kept paths": {"kind": "monte-carlo", "samples": 130, "refresh": 0.3, "probe_every": 3},
    "fresh paths": {"kind": "monte-carlo", "samples": 70, "refresh": "submission"},
}


def statement(rng, now):
    points = {(now + int(rng.integers(0, 4)), int(rng.integers(1, 5))): 1.0 for _ in range(3)}
    rows = [(a, d, 0.95 / len(points)) for a, d in points]
    return StatementOfWork(now, int(rng.integers(1, 3)), DeadlineValue(float(rng.integers(1, 13)), now + 8), rows)


def step(mechanism, rng, waiting):
    """Play one round of random jobs; return what was announced and what happened."""
    now, seen = mechanism.round, []
    for k in range(int(rng.integers(0, 4))):
        waiting[now, k] = statement(rng, now)
        seen.append(mechanism.submit((now, k), waiting[now, k]))
        seen.append(mechanism.menu(1).failures.tolist() if rng.random() < 0.3 else None)
    for name, sow in list(waiting.items()):
        signal = next((d for a, d, _, _ in sow.law.points() if a == now), None)
        if signal is not None and rng.random() < 0.5:
            mechanism.arrive(name, signal)
            del waiting[name]
    events = mechanism.advance()
    running = [event.job for event in events if event.kind == "start"]
    return [*seen, events, *(mechanism.complete(job) for job in running if rng.random() < 0.5)]


def played(mechanism, seed, rounds):
    rng, waiting = np.random.default_rng(seed), {}
    seen = [step(mechanism, rng, waiting) for _ in range(rounds)]
    return repr((seen, mechanism.statistics(), mechanism.menu(2).failures.tolist()))


def market(oracle, seed, rounds=6):
    built = GuardedMarket(lambda rng: get_mechanism("posted-price", rng=rng, oracle=oracle, epsilon=-0.5, **SIZES),
                          np.random.default_rng(seed), SIZES["capacity"])  # fmt: skip
    played(built.mechanism, seed, rounds)
    return built


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("name", ORACLES)
def test_copies_go_on_as_the_market_itself_would(name):
    for seed in range(many(20, least=3)):
        one = market(ORACLES[name], seed)
        expected = [played(copy.deepcopy(one.mechanism), 100 + k, 5) for k in range(3)]
        kept = Snapshot(one)
        # Each copy on its own, one after the other, and the market at last: none has changed what the others share.
        assert [played(kept.copy().mechanism, 100 + k, 5) for k in range(3)] == expected
        assert played(kept.copy().mechanism, 100, 5) == expected[0]
        assert played(one.mechanism, 102, 5) == expected[2]
        assert len(set(expected)) == 3


def test_a_copy_that_only_submits_takes_no_oracle_of_its_own():
    kept = Snapshot(market(ORACLES["kept paths"], 1))
    copies = [kept.copy().mechanism for _ in range(2)]
    for mechanism in copies:
        mechanism.submit("new", statement(np.random.default_rng(5), mechanism.round))
        for _ in range(4):
            mechanism.advance()
    assert copies[0]._oracle._kept is copies[1]._oracle._kept
    copies[0].submit("another", statement(np.random.default_rng(6), copies[0].round))
    assert copies[0]._oracle._kept is not copies[1]._oracle._kept


def test_an_oracle_of_another_class_is_not_shared():
    class OwnOracle(MonteCarloOracle):
        """Might hold anything beside."""

    assert not KeptOracle(OwnOracle(9)).share() and KeptOracle(MonteCarloOracle(9)).share()
