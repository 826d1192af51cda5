"""The search accuses nobody who is clean: whole markets of truthful mechanisms, searched for lies that pay."""

import numpy as np
import pytest
from scipy.stats import binom

from draws import many
from marketsched.mechanisms import DeadlineValue, StatementLaw, StatementOfWork, Vcg
from marketsched.truthfulness import Other, Situation, search
from small_mechanisms import UNIFORM, auction, small_market


@pytest.mark.long
@pytest.mark.slow
def test_posted_prices_are_not_accused_over_many_markets():
    """Worlds are gone through, durations revealed, the oracle exact: nothing may pay at all."""
    for seed in range(many(200)):
        found = search(small_market(seed), budget_seconds=None, max_plays=1200, seed=seed)
        assert not found.failures
        assert not any(d.inside_model for d in found)


@pytest.mark.long
@pytest.mark.slow
def test_the_second_price_is_not_accused_over_many_seeds():
    """Worlds are drawn, so that false alarms are possible: no more of them than the confidence allows."""
    alarms = 0
    for seed in range(many(200)):
        found = search(auction("second", UNIFORM, UNIFORM), budget_seconds=None, max_plays=1500, seed=seed)
        alarms += any(d.confirmed and d.inside_model for d in found)
    assert binom.sf(alarms - 1, many(200), 0.01) > 1e-3


def round_of_vcg(seed):
    """Return one round of VCG: four nodes, rivals of random laws, an owner that needs one to three nodes."""
    rng = np.random.default_rng(seed)
    limits = {"max_concurrency": 3, "max_duration": 1, "max_value": 20.0, "max_delay": 2}

    def bidder(value, nodes):
        return StatementOfWork(1, nodes, DeadlineValue(value, 2), [(1, 1, 1.0)])

    def rival():
        nodes, n = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        return StatementLaw([(bidder(float(v), nodes), 1 / n) for v in rng.integers(1, 21, n)])

    rivals = [Other(f"rival {i}", rival()) for i in range(3)]
    truth = bidder(float(rng.integers(2, 20)), int(rng.integers(1, 4)))
    ahead = int(rng.integers(4))
    return Situation(lambda rng: Vcg(4, 2, **limits), truth, rivals, capacity=4, horizon=2, max_delay=2, ahead=ahead)


@pytest.mark.long
@pytest.mark.slow
def test_vcg_is_not_accused_over_many_seeds():
    """Up to 27 worlds of the rivals' values, gone through one by one: nothing may pay at all."""
    won = 0
    for seed in range(many(200)):
        found = search(round_of_vcg(seed), budget_seconds=None, max_plays=1000, seed=seed)
        assert not found.failures
        assert not any(d.inside_model and d.gain_mean > 1e-9 for d in found)
        won += found.exact and found.truthful > 0
    assert won > many(50)  # else nothing was at stake


@pytest.mark.slow
def test_truthful_mechanisms_are_not_accused():
    for seed in range(many(5, least=2)):
        found = search(small_market(seed), budget_seconds=None, max_plays=2000, seed=seed)
        assert found.best(inside_model=True) is None
    found = search(auction("second", UNIFORM), budget_seconds=None, max_plays=6000)
    assert found.best(inside_model=True) is None and found.exact
