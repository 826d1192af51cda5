"""Bid prices: decisions of an independent reference, no report that pays, menus bit for bit, hidden durations."""

import numpy as np
import pytest

from bid_price_markets import RULES, SIZES, SmallJob, Turn, keeping, lies, past_log, play, random_market, utility
from marketsched.mechanisms import (
    DeadlineValue,
    EventError,
    InvalidParameterError,
    StatementOfWork,
    TableValue,
)
from marketsched.mechanisms.bid_price import bid_price, curve
from marketsched.mechanisms.bid_price.bid_price import BidPrice
from marketsched.mechanisms.bid_price.forecast import FromHistory
from marketsched.mechanisms.bid_price.queue import serve_queue
from refusals import refused


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("hidden", "chosen"),
    [
        (False, {}),
        (True, {"hidden_order": "sealed"}),
        (False, {"history": past_log(np.random.default_rng(3), 3, 30)}),
        (False, {"buckets": 3}),
    ],
)
def test_what_is_too_old_to_come_again_is_let_go_without_a_trace(hidden, chosen, monkeypatch):
    """The events of a market that keeps all it ever learnt, by one that keeps little."""
    jobs = random_market(np.random.default_rng(9), 150, 3.0, hidden)

    def played():
        market = BidPrice(3, 150, **SIZES, **RULES, **chosen)
        events = play(market, jobs, hidden=hidden)[2]
        return events, sum(found.past.kept_values for found in market._curves)

    monkeypatch.setattr(curve, "KEPT_LEFT", 9)  # those who stand in for others are kept, however old
    everything, kept = played()
    monkeypatch.setattr(curve, "CROWDED", 10)
    events, left = played()
    assert events == everything and 0 < left < 0.7 * kept


@pytest.mark.slow
@pytest.mark.long_after(4)
@pytest.mark.parametrize("seed", range(12))
def test_no_report_pays_and_none_moves_the_menu(seed):
    """Every lie of every owner, played in full: gain at most 0, exactly, and the same menu bit for bit."""
    rng = np.random.default_rng(200 + seed)
    jobs, capacity = random_market(rng, 16, 1.2), int(rng.integers(3, 5))

    def market():
        return keeping(BidPrice(capacity, 16, **SIZES, **RULES))

    honest = market()
    truth = play(honest, jobs)[:2]
    tried = 0
    for job in jobs:
        name, sow, arrival, duration = job[:4]
        for report in lies(sow, arrival):
            liar = market()
            assert utility(job, *play(liar, jobs, {name: report})[:2]) <= utility(job, *truth)
            assert liar.menu_at_arrival(name) == honest.menu_at_arrival(name)
            tried += 1
        menu = honest.menu_at_arrival(name)
        prices = menu.prices(sow.concurrency, duration, 17 - arrival)
        worth = sow.value.table(arrival + duration, prices.size)
        assert max(0.0, *(worth - prices)) - utility(job, *truth) <= 1e-12
    assert tried > 50


def test_a_job_that_waits_is_charged_the_rate_of_its_arrival():
    market = BidPrice(1, 30, max_concurrency=1, max_duration=4, max_value=50.0, max_delay=30, ahead=6, lags=(2,))
    jobs = []
    for birth in range(1, 12):
        for _ in range(2):
            rows = [(birth, 1, 0.5, None), (birth, 3, 0.5, None)]
            sow = StatementOfWork(birth, 1, DeadlineValue(20.0, birth + 8), rows)
            jobs.append(SmallJob(len(jobs), sow, birth, 3))
    rates = {}
    serve = market._serve_hidden

    def note(waiting):
        if any(x.arrival == market.round for x in waiting):
            rates[market.round] = float(market.slot_prices(market.round, 24).mean())
        return serve(waiting)

    market._serve_hidden = note
    starts, payments, _ = play(market, jobs, hidden=True)
    late = [name for name, start in starts.items() if start > jobs[name][2] and name in payments]
    assert late
    for name in late:
        assert payments[name] == pytest.approx(3 * rates[jobs[name][2]])


def test_bad_parameters_and_missing_menus():
    for wrong, message in (
        ({"forecast": "laws", "laws": [1]}, r"laws\[0\]"),
        ({"forecast": "laws"}, "no laws: expected laws, one for each job"),
        ({"laws": []}, "and laws: expected"),
        ({"lags": (3,), "lag_hours": (4.0,)}, r"lags = \(3,\) and lag_hours = \(4.0,\): expected one of them"),
        ({"history": "runs/a"}, "history = 'runs/a': expected a PastLog"),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            BidPrice(2, 9, **{**SIZES, "max_concurrency": 2}, **wrong)
    refused(lambda: BidPrice(3, 9, **SIZES).menu_at_arrival("a"), "keep_menus", error=EventError)


def test_laws_take_the_place_of_the_past():
    """A wave that laws announce is priced before it comes; the past alone cannot know of it."""
    sows = [StatementOfWork(8, 1, DeadlineValue(30.0, 11), [(8, 2, 1.0)]) for _ in range(12)]
    early = StatementOfWork(6, 1, DeadlineValue(2.0, 14), [(6, 4, 1.0)])
    jobs = [SmallJob(0, early, 6, 4), *(SmallJob(1 + i, sow, 8, 2) for i, sow in enumerate(sows))]
    for laws, worth in ((None, 1), ([early, *sows], 2)):
        kind = {"forecast": "history" if laws is None else "laws", "laws": laws}
        market = BidPrice(2, 20, **{**SIZES, "max_concurrency": 2}, **kind, ahead=10, rng=1, slack=0.0)
        starts, _, _ = play(market, jobs)
        assert sum(name > 0 for name in starts) == worth
        if laws is not None:
            assert starts.get(0, 20) >= 10  # the cheap job waits until the wave is over


def test_lags_in_hours_follow_the_length_of_a_round(monkeypatch):
    seen = []
    monkeypatch.setattr(bid_price, "FromHistory", lambda lags, _: seen.append(list(lags)) or FromHistory(lags))
    for given in (
        {}, {"lag_hours": (4, 10)}, {"lag_hours": (4, 10), "round_seconds": 600.0}, {"round_seconds": 600.0},
        {"lag_hours": (0.01,), "round_seconds": 3600.0},
    ):  # fmt: skip
        BidPrice(3, 9, **SIZES, **given)
    assert seen == [[48, 72, 96, 120], [48, 120], [24, 60], [48, 72, 96, 120], [1]]


def later_menus(market, jobs, owner, after):
    return [market.menu_at_arrival(job.name) for job in jobs if job.owner == owner and job.arrival > after]


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize(("buckets", "own_reports_teach"), [(1, True), (3, False)])
def test_past_reports_move_ones_later_prices_through_the_calendar_alone(buckets, own_reports_teach):
    """Where a lie leaves the calendar as it was, menus of the owner's later jobs are the same, bit for bit."""
    same_calendar = moved = 0
    chosen = {"buckets": buckets, "bucket_seed": 7}
    for seed in range(2):
        rng = np.random.default_rng(400 + seed)
        jobs = random_market(rng, 24, 1.5, owners=6)
        honest = keeping(BidPrice(4, 24, **SIZES, **RULES, **chosen))
        starts = play(honest, jobs)[0]
        for job in jobs[:8]:
            for report in lies(job.truth, job.arrival):
                liar = keeping(BidPrice(4, 24, **SIZES, **RULES, **chosen))
                same_width = report.concurrency == job.truth.concurrency
                if same_width and play(liar, jobs, {job.name: report})[0] == starts:
                    same_calendar += 1
                    pair = [later_menus(each, jobs, job.owner, job.arrival) for each in (honest, liar)]
                    moved += pair[0] != pair[1]
    assert same_calendar > 30  # else the comparison shows nothing
    assert (moved > 0) == own_reports_teach


def test_buckets_are_dealt_by_name_and_seed_alone():
    market = BidPrice(3, 9, **SIZES, buckets=4, bucket_seed=1)
    dealt = [market.bucket_of(f"owner-{i}") for i in range(400)]
    assert all(60 < dealt.count(b) < 140 for b in range(4))
    assert dealt == [BidPrice(5, 99, **SIZES, buckets=4, bucket_seed=1).bucket_of(f"owner-{i}") for i in range(400)]
    assert dealt != [BidPrice(3, 9, **SIZES, buckets=4, bucket_seed=2).bucket_of(f"owner-{i}") for i in range(400)]


def certain_hidden(birth, width, worth, deadline, duration):
    """A statement of a job that comes at once and whose duration is known to its owner alone."""
    return StatementOfWork(birth, width, DeadlineValue(worth, deadline), [(birth, duration, 1.0, None)])


class Watched(BidPrice):
    """Notes the nodes that are free at the turn of one job, in each round in which it is in the queue, and its rate."""

    watched = None

    def _serve_hidden(self, queue):
        before = self._free.copy()
        starts = super()._serve_hidden(queue)
        for place, x in enumerate(queue):
            if x.job == self.watched:
                serve_queue(queue[:place], before, self.round, self._order)
                self.turns.append((self.round, int(before[self.round - 1]), x.agreed.rate))
        return starts


def turns_moved(seed, *, horizon=26, per_market=2, **chosen):
    """Return how many lies were tried, and how many moved the liar's own turns or rate while it waits either way."""
    rng = np.random.default_rng([seed, 500])
    jobs, capacity = random_market(rng, horizon, 2.0, hidden=True), int(rng.integers(3, 5))
    tried = moved = 0
    starts = play(Watched(capacity, horizon, **SIZES, **RULES, **chosen), jobs, hidden=True)[0]
    waited = [job for job in jobs if starts.get(job.name, 0) > job.arrival]
    for job in waited[:: max(1, len(waited) // per_market)][:per_market]:
        market = Watched(capacity, horizon, **SIZES, **RULES, **chosen)
        market.watched, market.turns = job.name, []
        turn = Turn(market, jobs, job.name, hidden=True)
        honest = turn.played(job.truth)[1].turns
        for report in lies(job.truth, job.arrival, hidden=True):
            if report.concurrency >= job.truth.concurrency:  # with fewer nodes it would never end
                lied = turn.played(report)[1].turns
                both = min(len(honest), len(lied))
                tried += 1
                moved += honest[:both] != lied[:both]
    return tried, moved


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [{}, {"buckets": 2}], ids=["", "buckets"])
def test_sealed_no_report_moves_ones_own_turn(chosen):
    found = np.sum([turns_moved(seed, hidden_order="sealed", **chosen) for seed in range(4)], axis=0)
    assert found[0] > 50 and found[1] == 0


def test_a_job_worth_more_later_keeps_the_nodes_of_its_first_turn():
    """Its curve has nothing before time 6: at its turn it books the start it likes best."""
    market = BidPrice(2, 20, **{**SIZES, "max_concurrency": 2})
    late = StatementOfWork(1, 1, TableValue({6: 9.0, 7: 9.0}), [(1, 2, 1.0, None)])
    now = StatementOfWork(1, 1, DeadlineValue(5.0, 9), [(1, 2, 1.0, None)])
    jobs = [(0, late, 1, 2, ""), (1, now, 1, 2, ""), (2, now, 1, 2, "")]
    jobs = [SmallJob(*job) for job in jobs]
    starts, payments, _ = play(market, jobs, hidden=True)
    assert starts == {0: 4, 1: 1, 2: 3} and payments == {0: 0.0, 1: 0.0, 2: 0.0}


def test_yesterday_teaches_from_the_first_round():
    """With a log prices are there in round 1, from lags that reach into it; another market's log is refused."""
    rng = np.random.default_rng(9)
    log = past_log(rng, 3)
    jobs = random_market(rng, 24, 3.0)
    fresh, taught = (BidPrice(3, 24, **SIZES, **RULES, history=each) for each in (None, log))
    for market in (fresh, taught):
        play(market, jobs, until=3)
    assert fresh.slot_prices(3, 9).sum() == 0.0 and taught.slot_prices(3, 9).sum() > 0.0
    with pytest.raises(InvalidParameterError, match=r"history.capacity = 3: expected 4, the nodes of this market"):
        BidPrice(4, 24, **SIZES, history=log)
    with pytest.raises(InvalidParameterError, match=r"arrivals\[\d+\]\.value = .*: expected values in \[0, 1.0\]"):
        BidPrice(3, 24, **{**SIZES, "max_value": 1.0}, history=log)
    with pytest.raises(InvalidParameterError, match=r"history = .*: expected none with forecast 'laws'"):
        BidPrice(3, 24, **SIZES, history=log, forecast="laws", laws=[jobs[0].truth])
