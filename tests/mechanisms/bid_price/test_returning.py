"""Owners who come at even intervals: when they are expected, and that reports still only select."""

import numpy as np
import pytest

from bid_price_markets import RULES, SIZES, SmallJob, keeping, lies, play, random_curve
from marketsched.mechanisms import StatementOfWork
from marketsched.mechanisms.bid_price.bid_price import BidPrice
from marketsched.mechanisms.bid_price.forecast import Expected, FromHistory
from marketsched.mechanisms.bid_price.returning import Returning
from marketsched.mechanisms.bid_price.tasks import TaskStore


def after(arrivals):
    """Return the store and the owners after arrivals ``(round, owner)``."""
    store, owners = TaskStore(), Returning()
    for arrival, owner in arrivals:
        owners.note(owner, store.n, arrival)
        store.add(arrival, 1, 1, np.ones(3))
    return store, owners


def expected_of(arrivals, now, last):
    """Return (round, weight) of the regular owners alone: no lag has anything to say."""
    store, owners = after(arrivals)
    none = np.zeros(0, np.int64)
    found = owners.instead(Expected(none, none, none, np.zeros(0), store.columns), now, last)
    at = {}
    for t, weight in zip(found.rounds.tolist(), found.weights.tolist(), strict=True):
        at[t] = at.get(t, 0.0) + weight
    return at


@pytest.mark.parametrize(
    ("came", "now", "wanted"),
    [
        ([10, 34, 58], 60, {82: 1.0, 106: 1.0}),
        ([10, 34], 60, {}),  # one interval is no period
        ([10, 34, 82], 90, {106: 2 / 3}),  # one of three multiples was missed
        ([10, 35, 58], 60, {82: 1.0, 106: 1.0}),  # a round off
        ([10, 34, 64], 66, {}),  # six are too many
        ([10, 10, 34, 58], 60, {}),  # together is no period
        ([10, 34, 58], 84, {84: 1.0, 106: 1.0}),  # two rounds late: expected now
        ([10, 34, 58], 85, {106: 1.0}),  # later: this one does not come
        ([10, 34, 58], 132, {132: 1.0, 154: 1.0}),  # two were missed, and the third is late
        ([10, 34, 58], 133, {}),  # gone
        ([3, 10, 34, 58, 82, 106, 130], 131, {154: 1.0}),  # what is more than six arrivals ago does not count
    ],
)
def test_an_owner_is_expected_where_its_last_arrivals_point_to(came, now, wanted):
    last = 160 if now > 100 else 110
    assert expected_of([(t, "ann") for t in came], now, last) == pytest.approx(wanted)


def test_the_last_jobs_of_a_regular_owner_stand_for_its_next_and_lags_for_the_others():
    came = [(1, "ann"), (2, "eve"), (5, "ann"), (6, "eve"), (9, "ann"), (11, "bob"), (12, "bob"), (13, "ann")]
    store, owners = after(came)
    by_lag = FromHistory([4]).expected(14, 21, store)
    assert owners.n == 3 and owners.periods.tolist() == [4.0, 0.0, 0.0]
    found = owners.instead(by_lag, 14, 21)
    lagged = [(row, t) for row, t in zip(by_lag.rows.tolist(), by_lag.rounds.tolist(), strict=True) if row in (5, 6)]
    anns = [(row, t) for t in (17, 21) for row in (7, 4, 2)]
    assert list(zip(found.rows.tolist(), found.rounds.tolist(), strict=True)) == lagged + anns
    assert found.weights.tolist() == pytest.approx([1.0] * len(lagged) + [1 / 3] * 6) and len(lagged) == 4


def test_owners_who_came_too_long_ago_are_forgotten_and_the_others_are_expected_as_before():
    came = [(1, "eve"), (3, "eve"), (5, "eve"), *[(t, f"owner-{t % 7}") for t in range(20, 90)]]
    (store, owners), (_, kept) = after(came), after(came)
    owners.forget(20)
    assert (owners.n, kept.n) == (7, 8)
    by_lag = FromHistory([3, 50]).expected(90, 110, store)
    for each, other in zip(owners.instead(by_lag, 90, 110)[:3], kept.instead(by_lag, 90, 110)[:3], strict=True):
        assert np.array_equal(each, other)
    for market in (owners, kept):
        market.note("eve", store.n, 90)
    assert owners.periods[-1] == 0.0  # she begins anew


def regular_market(rng, horizon=24):
    """List jobs of five owners, each of them in every fourth or fifth round."""
    jobs = []
    for now in range(1, horizon - 3):
        for number in range(5):
            if now % (4 + number % 2) == number % 4:
                d = int(rng.integers(1, 5))
                truth = StatementOfWork(now, int(rng.integers(1, 4)), random_curve(rng, now), [(now, d, 1.0)])
                jobs.append(SmallJob(len(jobs), truth, now, d, f"owner-{number}"))
    return jobs


def menus(jobs, reports=None, recurring=True, **rules):
    """Return the menu of each job."""
    market = keeping(BidPrice(3, 24, **SIZES, **RULES, recurring=recurring, **rules))
    starts = play(market, jobs, reports)[0]
    return [market.menu_at_arrival(job.name) for job in jobs], starts


def test_no_report_moves_its_own_menu_and_prices_are_others_than_those_of_lags():
    jobs = regular_market(np.random.default_rng(5))
    honest, _ = menus(jobs)
    assert honest != menus(jobs, recurring=False)[0]
    for job in jobs[12:15]:
        for report in lies(job.truth, job.arrival):
            assert menus(jobs, {job.name: report})[0][job.name] == honest[job.name]
