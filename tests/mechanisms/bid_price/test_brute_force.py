"""No report pays: every owner of a small random market tries all reports of a grid, the others stay."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from bid_price_markets import SmallJob, Turn, play, utility
from marketsched.mechanisms import StatementOfWork, TableValue
from marketsched.mechanisms.bid_price.bid_price import BidPrice
from marketsched.mechanisms.bid_price.past import PastArrival, PastLog
from marketsched.mechanisms.limits import MarketLimits

HORIZON, CAPACITY = 11, 2
SIZES = {"max_concurrency": 2, "max_duration": 2, "max_value": 20.0, "max_delay": 8}
RULES = {"lags": (2, 3), "ahead": 5, "steps": 6, "step": 0.5, "slack": 0.1, "slack_gain": 0.02, "slack_ramp": 2}
VALUES = (0.0, 3.0, 8.0, 20.0)
MODES = ({}, {"buckets": 2}, {"log": True}, {"buckets": 2, "log": True})


def curves(first, values):
    """List every curve of three times, those before the first listed one being worth nothing."""
    found = []
    for skipped in range(3):
        for worth in combinations_with_replacement(sorted(values, reverse=True), 3 - skipped):
            found.append(TableValue({first + skipped + i: v for i, v in enumerate(worth)}))
    return found


def random_jobs(rng, horizon, hidden, per_round):
    jobs = []
    for now in range(1, horizon - 4):
        for _ in range(rng.poisson(per_round)):
            durations = (1, 2) if rng.random() < 0.7 else (int(rng.integers(1, 3)),)
            rows = [(now, d, 1 / len(durations), *([None] if hidden else [])) for d in durations]
            worth = curves(now + int(rng.integers(1, 4)), VALUES[1:])
            sow = StatementOfWork(now, int(rng.integers(1, 3)), worth[int(rng.integers(len(worth)))], rows)
            jobs.append(SmallJob(len(jobs), sow, now, int(rng.choice(durations)), f"owner-{len(jobs)}"))
    return jobs


def reports(sow, hidden):
    """List widths x curves, and with hidden durations x laws."""
    now, values = sow.birth, VALUES if not hidden else VALUES[::3] + VALUES[1:2]
    laws = [[(now, 1, 0.5), (now, 2, 0.5)]] if not hidden else [[(now, 1, 1.0, None)], [(now, 2, 1.0, None)]]
    laws += [[(now, 1, 0.5, None), (now, 2, 0.5, None)]] if hidden else []
    for first in (now + 1, now + 3):
        for worth in curves(first, values):
            for width in range(sow.concurrency, 3):  # with fewer nodes it would never end, and be worth nothing
                for law in laws:
                    yield StatementOfWork(now, width, worth, law)


def different(reports):
    """Leave out reports that say the same as an earlier one."""
    seen = set()
    for sow in reports:
        worth = tuple(sow.value.table(sow.birth, HORIZON + 2).tolist())
        key = sow.concurrency, sow.value.last, worth, tuple((row.duration, row.probability) for row in sow.requirements)
        if key not in seen:
            seen.add(key)
            yield sow


def small_market(seed, hidden, order, stops=True):
    """Return what builds the mechanism of a market, and its jobs."""
    rng = np.random.default_rng([seed, hidden])
    mode = dict(MODES[seed % len(MODES)])
    log = None
    if mode.pop("log", False):
        past = [PastArrival(j.owner, j.truth, j.arrival, None if hidden else j.duration)
                for j in random_jobs(rng, 10, hidden, 1.5)]  # fmt: skip
        log = PastLog(tuple(past), 5, MarketLimits(CAPACITY, 10, **SIZES)) if past else None

    def build():
        rules = {**SIZES, **RULES, **mode, "stop_at_deadline": False, "stop_at_loss": stops}
        return BidPrice(CAPACITY, HORIZON, **rules, history=log, hidden_order=order)

    return build, random_jobs(rng, HORIZON, hidden, 1.2)


def looked_at(jobs):
    """Return the last four jobs with a history to be priced by."""
    return [job for job in jobs if job.arrival > 2][-4:]


def fates(job, hidden):
    """List the durations that a job can have, and how likely each is."""
    return [(row.duration, row.probability) for row in job.truth.requirements] if hidden else [(job.duration, 1.0)]


def largest_gain(seed, hidden, order="strict", stops=True):
    """Return the most that any owner of one market gains over the truth by any report, and how many were tried."""
    build, jobs = small_market(seed, hidden, order, stops)
    most, tried = -np.inf, 0
    for job in looked_at(jobs):
        turn, cases = Turn(build(), jobs, job.name, hidden), fates(job, hidden)

        def expected(report, turn=turn, cases=cases):
            return sum(share * turn.utility(report, duration) for duration, share in cases)

        honest = expected(job.truth)
        for report in different(reports(job.truth, hidden)):
            most = max(most, expected(report) - honest)
            tried += 1
    return most, tried


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("hidden", "order"), [(False, "strict"), (True, "strict"), (True, "sealed")])
def test_going_on_from_the_turn_is_playing_it_all(hidden, order):
    for seed in range(3):
        build, jobs = small_market(seed, hidden, order)
        for job in looked_at(jobs)[:2]:
            turn = Turn(build(), jobs, job.name, hidden)
            for report in [job.truth, *list(reports(job.truth, hidden))[seed::31]]:
                for duration, _ in fates(job, hidden):
                    world = [*jobs]
                    world[job.name] = job._replace(duration=duration)
                    found = play(build(), world, {job.name: report}, hidden)
                    assert turn.utility(report, duration) == utility(world[job.name], *found)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", range(4))
def test_revealed_no_report_gains(seed):
    assert largest_gain(seed, hidden=False)[0] <= 0.0


@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.compiled
@pytest.mark.parametrize(("order", "stops"), [("strict", True), ("sealed", True), ("strict", False)])
@pytest.mark.parametrize("seed", range(2))
def test_hidden_no_report_gains_in_expectation(seed, order, stops):
    assert largest_gain(seed, True, order, stops)[0] <= 1e-9
