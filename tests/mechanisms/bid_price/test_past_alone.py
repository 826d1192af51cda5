"""What mechanisms earn that know the past alone: (33) of docs/mathematics.md on examples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import DeadlineValue, EventKind, StatementOfWork, get_mechanism

NODES = 4


def jobs_of(d, factor, case):
    """Return NODES jobs of d rounds worth d each, and in the second case as many that are worth ``factor`` a round."""
    kinds = [(1, d, float(d))] + ([(2, d - 1, factor * (d - 1))] if case else [])
    jobs = []
    for birth, rounds, worth in kinds:
        truth = StatementOfWork(birth, 1, DeadlineValue(worth, birth + rounds), [(birth, rounds, 1.0)])
        jobs += [Job(f"{birth}-{i}", "owner", truth, birth, rounds, rounds) for i in range(NODES)]
    return jobs


def welfare(name, jobs, d, factor, **rules):
    limits = {"max_concurrency": 1, "max_duration": d, "max_value": factor * d, "max_delay": d + 2}
    mechanism = get_mechanism(name, capacity=NODES, horizon=d + 3, **limits, **rules)
    events = play(MarketLoop(mechanism), TruthfulOwners(jobs), d + 3)
    truths = {job.name: job.truth for job in jobs}
    return sum(float(truths[e.job].value(e.completion)) for e in events if e.kind is EventKind.COMPLETE)


@pytest.mark.parametrize(("d", "factor"), [(2, 6.0), (4, 3.0), (6, 20.0)])
def test_no_rule_without_a_forecast_earns_more_than_33_in_both_cases(d, factor):
    most = 1 / (2 - d / (factor * (d - 1)))
    both = [jobs_of(d, factor, case) for case in (0, 1)]
    best = [max(welfare("first-come", jobs, d, factor, price=price) for price in (0.0, 1.0)) for jobs in both]
    assert best == [NODES * d, NODES * factor * (d - 1)]
    for name, rules in (("first-come", {}), ("first-come", {"price": 1.0}), ("bid-price", {}), ("two-offers", {})):
        shares = [welfare(name, jobs, d, factor, **rules) / b for jobs, b in zip(both, best, strict=True)]
        assert min(shares) <= most, (name, shares)


@given(st.integers(2, 9), st.floats(2.01, 99))
def test_33_is_what_the_best_share_earns(d, factor):
    r, x = d / (factor * (d - 1)), np.linspace(0, 1, 20001)
    assert np.minimum(x, x * r + 1 - x).max() == pytest.approx(1 / (2 - r), abs=1e-4)
