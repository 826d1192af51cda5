"""Durations hidden: runs that outlive the last round, or are stopped, pay nothing, and no report gains by that."""

import pytest

from bid_price_markets import SmallJob, Turn
from marketsched.agents.job import Job
from marketsched.agents.market_run import MarketRun
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import (
    DeadlineValue,
    FirstCome,
    LinearValue,
    StatementOfWork,
)

SIZES = {"max_concurrency": 2, "max_duration": 6, "max_value": 20.0, "max_delay": 9}


def test_a_job_whose_long_run_is_not_over_at_the_end_is_served_for_its_short_one():
    """T = 30, arrival in 20, 1 or 20 rounds: only the short run is ever charged, (8 - 1) / 2 is to be had."""
    market = FirstCome(
        1, 30, 1.0, max_concurrency=1, max_duration=20, max_value=9.0, max_delay=30, stop_at_deadline=False
    )
    truth = StatementOfWork(1, 1, DeadlineValue(8.0, 30), [(20, 1, 0.5, None), (20, 20, 0.5, None)])
    job = SmallJob(0, truth, 20, 1)
    turn = Turn(market, [job], 0, hidden=True)
    assert 0.5 * turn.utility(truth, 1) + 0.5 * turn.utility(truth, 20) == 3.5


def test_where_two_starts_are_left_the_better_one_is_held():
    """At 9 of 10 rounds the run of two would be paid for, at a loss; at 10 it would not: the job waits for 10."""
    market = FirstCome(1, 10, 4.0, **{**SIZES, "max_concurrency": 1}, stop_at_deadline=False)
    starts = []
    for now in range(1, 11):
        if now == 9:
            market.submit("A", StatementOfWork(9, 1, DeadlineValue(6.0, 11), [(9, 1, 0.5, None), (9, 2, 0.5, None)]))
            market.submit("B", StatementOfWork(9, 1, DeadlineValue(9.0, 11), [(9, 1, 1.0, None)]))
            market.arrive("A")
            market.arrive("B")
        starts += [(e.job, e.round) for e in market.advance() if e.kind.value == "start"]
    assert starts == [("A", 10)]  # 9: (6 - 4) / 2 + (6 - 8) / 2 = 0; 10: (6 - 4) / 2. B finds no node


def gains_of_a_nearer_deadline(**rules):
    """1 round, rarely 10, at 1 a round for 8, falling: the long run costs 10 and brings 7.2."""
    sizes = {"max_concurrency": 1, "max_duration": 20, "max_value": 9.0, "max_delay": 60}
    market = FirstCome(1, 200, 1.0, **sizes, **rules)
    law = [(1, 1, 0.9, None), (1, 10, 0.1, None)]
    truth = StatementOfWork(1, 1, LinearValue(8.0, 3, 0.1, 45), law)
    turn = Turn(market, [SmallJob(0, truth, 1, 1)], 0, hidden=True)
    near = StatementOfWork(1, 1, DeadlineValue(8.0, 3), law)
    return [0.9 * turn.utility(report, 1) + 0.1 * turn.utility(report, 10) for report in (truth, near)]


def test_a_stopped_run_is_charged_and_counted():
    """A run that may be short is stopped after its one round, and pays for it."""
    law = [(1, 1, 0.9, None), (1, 6, 0.1, None)]
    truth = StatementOfWork(1, 1, DeadlineValue(8.0, 3), law)
    market = FirstCome(1, 20, 1.0, **SIZES | {"max_concurrency": 1}, stop_at_loss=True)
    setup = MarketSetup("test", [Job("A", "owner", truth, 1, 6)], market, 1, 20, max_delay=9)
    result = MarketRun(setup).run()
    assert [(row.outcome, row.payment, row.utility) for row in result.jobs.itertuples()] == [("evicted", 1.0, -1.0)]


def test_a_nearer_deadline_gains_nothing_unless_runs_are_stopped_at_it():
    assert gains_of_a_nearer_deadline(stop_at_loss=True) == [pytest.approx(6.2)] * 2  # stopped, and pays its one round
    assert gains_of_a_nearer_deadline(stop_at_deadline=False) == [pytest.approx(6.02)] * 2
    assert gains_of_a_nearer_deadline() == [pytest.approx(6.02), pytest.approx(6.3)]  # no promise is made here
