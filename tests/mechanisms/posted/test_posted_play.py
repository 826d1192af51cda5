"""Posted prices over columns: when they play, and that they go on where they stopped."""

from functools import partial

import numpy as np
import pytest

from marketsched.agents import Job
from marketsched.agents.job_table import table_of
from marketsched.agents.market_run import MarketRun
from marketsched.agents.referee import compare_plays
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import DeadlineValue, PostedPriceMechanism, StatementOfWork
from marketsched.mechanisms.columns import Outcomes
from marketsched.mechanisms.named import posted_price
from marketsched.mechanisms.posted import posted_play
from marketsched.mechanisms.posted.exponential import _SlotQuote
from marketsched.truthfulness import check_mechanism

SIZES = {"capacity": 4, "horizon": 30, "max_concurrency": 3, "max_duration": 5, "max_value": 20.0, "max_delay": 12}
SAMPLED = {"kind": "monte-carlo", "samples": 70, "refresh": 0.5, "probe_every": 7}
OVERBOOKED = {"epsilon": -1.0, "threshold": 1.0, "pricing": {"kind": "posted", "prices": [0.1]}, "seed": 3}


def crowded(n=60, points=2, seed=5):
    """Jobs for more nodes than there are; a third of them takes longer, or comes later, than its law says."""
    rng, jobs = np.random.default_rng(seed), []
    for i, birth in enumerate(np.sort(rng.integers(1, 25, n)).tolist()):
        waits, lengths = sorted({*rng.integers(0, 5, points).tolist()}), sorted({*rng.integers(1, 6, 2).tolist()})
        law = [(birth + w, d, 0.9 / (len(waits) * len(lengths)), None) for w in waits for d in lengths]
        truth = StatementOfWork(
            birth, int(rng.integers(1, 4)), DeadlineValue(float(rng.integers(9, 20)), birth + 11), law
        )
        late, longer = rng.random(2) < 1 / 6
        arrival = birth + (9 if late else waits[-1])
        jobs.append(Job(f"job {i}", f"owner {i % 3}", truth, arrival, 7 if longer else lengths[-1], None))
    return tuple(jobs)


def setup_of(jobs, kind=PostedPriceMechanism, **changes):
    mechanism = posted_price(**SIZES, **(OVERBOOKED | {"oracle": SAMPLED} | changes))
    mechanism.__class__ = kind
    return MarketSetup("crowded", jobs, mechanism, *(SIZES[name] for name in ("capacity", "horizon", "max_delay")))


def test_a_crowded_market_is_the_same_and_removes_jobs_in_every_way():
    jobs = crowded()
    found = compare_plays(lambda: setup_of(jobs))
    assert found.whole and found.difference == ""
    outcome = MarketRun(setup_of(jobs)).run().outcome
    assert min(outcome[name] for name in ("completed", "dropped", "cancelled", "evicted")) >= 3


def test_prices_ledger_and_theorems_are_the_same_afterwards():
    found = [MarketRun(setup_of(crowded()), by_rounds=each) for each in (False, True)]
    for market in found:
        market.play()
    one, other = (market.mechanism for market in found)
    assert found[0].played_whole and not found[1].played_whole
    assert one.certificate() == other.certificate() and one.load == other.load == 0
    assert one.theorems(revealed=True) == other.theorems(revealed=True) and one.round == other.round
    for each in ("committed", "slot_prices"):
        np.testing.assert_array_equal(getattr(one, each)(1, 45), getattr(other, each)(1, 45))


def test_a_play_goes_on_where_it_stopped():
    columns = table_of(crowded()).columns(SIZES["max_delay"])
    found = []
    for stops in ([30], [1, 2, 9, 10, 29, 30]):
        mechanism, outcomes = setup_of(()).mechanism, Outcomes.empty(columns.n, 30, 4)
        assert all(mechanism.play(columns, outcomes, until) for until in stops)
        found.append(outcomes)
    one, other = found
    for name in ("starts", "left", "endings", "payments", "prices", "surface", "promised", "planned", "estimates"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


class FirstOutFirstIn(PostedPriceMechanism):
    """Removes the oldest job first: a rule of its own."""

    def _clear_overload(self, starting):
        self._active = dict(reversed(self._active.items()))
        removed = super()._clear_overload(starting)
        self._active = dict(reversed(self._active.items()))
        return removed


class Constants(PostedPriceMechanism):
    """Nothing but a constant of its own."""

    truthful = "none"


@pytest.mark.parametrize(
    ("changes", "whole"),
    [
        ({}, True),
        ({"kind": Constants}, True),
        ({"kind": FirstOutFirstIn}, False),
        ({"eviction": "running"}, False),
        ({"oracle": {"kind": "exact"}}, False),
    ],
)
def test_what_the_kernels_do_not_cover_is_played_by_rounds(changes, whole):
    jobs = crowded(12)
    found = compare_plays(lambda: setup_of(jobs, **changes))
    assert found.whole == whole and found.difference == ""


def test_a_law_of_many_points_is_played_by_rounds(monkeypatch):
    monkeypatch.setattr(posted_play, "MAX_POINTS", 3)
    assert not compare_plays(lambda: setup_of(crowded(12))).whole
    monkeypatch.setattr(posted_play, "MAX_POINTS", 4)
    assert compare_plays(lambda: setup_of(crowded(12))).whole


def test_the_check_of_plug_ins_plays_it_whole():
    factory = partial(posted_price, oracle={"kind": "monte-carlo", "samples": 20})
    assert check_mechanism(factory, n_markets=2)["plays whole markets as round by round"].outcome == "passed"


def test_a_price_is_the_sum_that_numpy_makes():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 8, 9, 31, 127, 128, 129, 300, 517):
        prices = rng.uniform(0, 20, n + 3) ** 3
        assert _SlotQuote(3, 5, prices).price(6, n) == float(3 * prices[1 : n + 1].sum())
