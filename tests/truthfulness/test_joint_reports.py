"""What bets show of mean gains, and could have shown; joint reports of the jobs of an owner."""

import numpy as np
import pytest

from marketsched.agents.job import Job
from marketsched.agents.lies import ScaleValue
from marketsched.mechanisms import DeadlineValue, StatementOfWork, get_mechanism
from marketsched.truthfulness.conduct.all_jobs import AllJobs
from marketsched.truthfulness.searches.betting import detectable, exceeds, lower_end, mean_interval
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.joint_reports import joint_gains, joint_utility
from marketsched.truthfulness.situations.guarded_market import snapshot
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand

SIZES = {"capacity": 3, "horizon": 20, "max_delay": 15}
TRUTH = AllJobs("", "")
LIMITS = {"max_concurrency": 2, "max_duration": 6, "max_value": 10.0}


def market(name, seed=0, n=12, **parameters):
    rng, jobs = np.random.default_rng(seed), []
    for i in range(n):
        birth, value = 1 + i // 3, float(rng.uniform(1, 10))
        points = [(birth, d, p, d) for d, p in ((1, 0.5), (3, 0.3), (5, 0.2))]
        truth = StatementOfWork(birth, int(rng.integers(1, 3)), DeadlineValue(value, birth + 6), points)
        jobs.append(Job(f"job {i}", f"owner {i % 3}", truth, birth, 3, 3))
    return MarketAtHand(lambda rng: get_mechanism(name, **SIZES, **LIMITS, **parameters, rng=rng), jobs, **SIZES)


def test_the_stated_power_is_that_of_planted_gains():
    """At the stated gain nine of ten searches confirm; at half of it fewer, at twice it nearly all."""
    rng, failure = np.random.default_rng(8), 0.002
    for spread in (0.02, 0.3):
        seen = [detectable(rng.normal(0, spread, 40), -2.0, failure) for _ in range(8)]
        found = []
        for factor in (0.5, 1.0, 2.0):
            again = [exceeds(rng.normal(0, spread, (50, 40)) + factor * gain, -2.0, failure) for gain in seen]
            found.append(float(np.mean(again)))
        assert found[0] < 0.6
        assert 0.75 < found[1] <= 1.0
        assert found[2] > 0.97
    assert detectable([1.0], -2.0, failure) == np.inf


@pytest.mark.long
@pytest.mark.slow
def test_lower_ends_hold_and_bets_that_learn_need_fewer_worlds():
    rng = np.random.default_rng(4)
    wrong = np.mean([lower_end(rng.choice([-1.0, 0.5], 60, p=[1 / 3, 2 / 3]), -2.0, 0.05) > 0 for _ in range(1000)])
    assert wrong <= 0.05
    gains = rng.choice([0.75, 0.0, -0.5], (60, 170), p=[0.35, 0.35, 0.3])
    fixed = [mean_interval(row, -1.0, 1.0, 1 - 2 * 0.0025)[0] > 0 for row in gains]
    assert exceeds(gains, -1.0, 0.0025).mean() > np.mean(fixed)


def test_joint_reports_are_played_for_all_jobs_of_an_owner():
    given = market("pay-as-bid")
    mine = [job for job in given.setup.jobs if job.owner == "owner 0"]
    assert joint_utility(given, mine, TRUTH) == pytest.approx(sum(given.outcomes[job.name].utility for job in mine))
    assert joint_utility(given, mine, AllJobs("", "", withheld=tuple(job.name for job in mine))) == 0.0
    kept = snapshot(given.at_turn(mine[-2].name))  # the market as the owner's first job but one from the end finds it
    halved = {job.name: ScaleValue(0.5).report(job.truth, given.public) for job in mine[-2:]}
    for does in (TRUTH, AllJobs("", "", halved)):
        assert joint_utility(given, mine[-2:], does, kept) == pytest.approx(joint_utility(given, mine[-2:], does))
    found = joint_gains(given, Budget(60, None))
    assert len(found) == 3
    assert found[0].gain > 0
    assert "of all its 4 jobs" in found[0].words
