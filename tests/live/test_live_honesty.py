"""Probabilities cost something: no computing at a twentieth of its price, no work of others destroyed for nothing."""

import math
from types import SimpleNamespace

import pytest
from scipy import stats

from live_tools import ServedMarket, check_journal, refused, sow
from marketsched.live import calls
from marketsched.live.announcements import go_on, too_long, watch
from marketsched.live.configuration import live_config
from marketsched.live.job import LiveJob
from marketsched.live.machine import LiveMarket
from marketsched.live.principal import Principal
from marketsched.live.surprise import factor
from marketsched.mechanisms.errors import EventError

AT_LENGTH = [pytest.mark.slow, pytest.mark.long]
RULES = {  # of the attacks: 8 nodes, runs of a day
    "capacity": 8,
    "max_concurrency": 8,
    "max_duration": 24,
    "max_value": 3000,
    "max_delay": 60,
    "epsilon": -0.2,
    "threshold": 0.03,
    "pricing": {"kind": "posted", "prices": [5.0]},
    "announced_nodes": 16,
}


def ghost(arrival, chance, nodes=8, duration=1):
    """A job that is announced as unlikely."""
    return sow(arrival, duration, nodes=nodes, value=2000.0, deadline=arrival + duration + 1, probability=chance)


def one_attack(market, attacker, victim, chance=0.02):
    """Announce an unlikely job, let another one run for 22 rounds, and let the unlikely one come."""
    begin = market.service.market.round
    rare = market.submit(attacker, ghost(begin + 22, chance))
    run = market.submit(victim, sow(begin, 24, nodes=8, value=2900.0, deadline=begin + 24))
    assert rare["plan"][0]["start"] == begin + 22 and run["plan"][0]["start"] == begin
    market.arrive(run["job"], 24)
    market.advance(22)
    assert market.job(run["job"])["state"] == "running"
    market.arrive(rare["job"], 1)
    market.advance(1)
    found = market.job(run["job"]), market.job(rare["job"])
    market.advance(4)
    return found


@pytest.fixture
def market_of(tmp_path):
    made = []

    def make(*owners, **rules):
        made.append(
            ServedMarket(tmp_path / f"{len(made)}.db", {**RULES, **rules}, {each: {} for each in owners}, 10_000)
        )
        return made[-1]

    yield make
    for n, each in enumerate(made):
        each.service.stop()
        check_journal(f"{tmp_path}/{n}.db")


def test_who_evicts_its_own_run_pays_for_the_rounds_it_used(market_of):
    market = market_of("ann")
    run, rare = one_attack(market, "ann", "ann")
    assert run["state"] == "evicted" and rare["state"] == "running"
    price = 22 * 8 * 5.0
    assert run["charge"] == price and "pays for the rounds it used" in run["reason"]
    assert market.paid("ann") / price >= 0.8


def test_it_paid_a_twentieth_before(market_of):
    """The negative control."""
    market = market_of("ann", evicted_pay="nothing")
    run, _ = one_attack(market, "ann", "ann")
    # Journals that were written before hold these very words.
    assert run["reason"] == "it had to make room while it ran (last come, first out); it pays nothing"
    assert market.paid("ann") / (22 * 8 * 5.0) == pytest.approx(0.045, abs=0.001)


@pytest.mark.parametrize("group", [None, "lab"])
def test_related_accounts_count_as_one(group, tmp_path):
    related = {} if group is None else {"group": group}
    rules = {**RULES, "evicted_pay": "own"}
    market = ServedMarket(tmp_path / "m.db", rules, {"ann": related, "bea": related}, 10_000)
    run, _ = one_attack(market, "bea", "ann")
    assert run["state"] == "evicted" and run["charge"] == (None if group is None else 22 * 8 * 5.0)
    market.submit("ann", ghost(market.service.market.round + 5, 0.5))
    market.submit("bea", ghost(market.service.market.round + 5, 0.5))
    if group is not None:
        error = refused(EventError, market.submit, "bea", ghost(market.service.market.round + 5, 0.5))
        assert "16 of 16 are announced" in str(error)
    market.service.stop()
    check_journal(f"{tmp_path}/m.db")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("chance", "trials"),
    [(0.02, 12), (0.005, 12), *(pytest.param(each, 200, marks=AT_LENGTH) for each in (0.02, 0.005))],
)
def test_others_are_evicted_no_more_often_than_they_were_told(chance, trials, market_of):
    market, evicted = market_of("eve", "bob"), 0
    for _ in range(trials):
        run, rare = one_attack(market, "eve", "bob", chance)
        evicted += run["state"] == "evicted"
        if run["state"] != "evicted":
            assert (run["state"], rare["state"]) == ("running", "missed") and "announced as unlikely" in rare["reason"]
            assert rare["charge"] == rare_fee(chance)
    assert evicted == 1
    assert stats.binomtest(evicted, trials, chance).pvalue > 0.05 or trials < 50


def rare_fee(chance):
    return max(8.0, 0.5 * chance * 8 * 5.0)


def test_without_the_limit_every_run_is_evicted(market_of):
    """The negative control."""
    market = market_of("eve", "bob", surprise_limit=0)
    assert all(one_attack(market, "eve", "bob")[0]["state"] == "evicted" for _ in range(5))


# -- hidden durations ---------------------------------------------------------------------------------------

STAYS = {"threshold": 0.1}  # a plan is made as if failures up to .1 did not happen


def hidden(arrival, likely, unlikely, chance, **more):
    """A job of 8 nodes whose duration nobody sees: ``likely`` rounds, or with a small chance ``unlikely`` ones."""
    report = sow(arrival, likely, nodes=8, value=2000.0, deadline=arrival + 24, signal=None, **more)
    law = ((likely, 1 - chance), (unlikely, chance))
    return {**report, "requirements": [{**report["requirements"][0], "duration": d, "probability": p} for d, p in law]}


def one_long_run(market, attacker, victim, chance):
    """Run for longer than is likely, into the rounds of a job that was submitted later; return both jobs."""
    begin = market.service.market.round
    long = market.submit(attacker, hidden(begin, 2, 8, chance))
    run = market.submit(victim, sow(begin + 2, 4, nodes=8, value=2900.0, deadline=begin + 6))
    assert long["plan"][0]["start"] == begin and run["plan"][0]["start"] == begin + 2
    market.arrive(long["job"], None)
    market.advance(2)
    market.arrive(run["job"], 4)
    market.advance(1)
    found = market.job(run["job"]), market.job(long["job"])
    market.advance(10)
    return found


@pytest.mark.parametrize(
    ("chance", "trials"),
    [(0.02, 8), (0.005, 8), *(pytest.param(each, 200, marks=AT_LENGTH) for each in (0.02, 0.005))],
)
def test_hidden_long_runs_keep_others_out_no_more_often_than_announced(chance, trials, market_of):
    market, lost = market_of("eve", "bob", **STAYS), 0
    for _ in range(trials):
        run, long = one_long_run(market, "eve", "bob", chance)
        lost += run["state"] != "running"
        if run["state"] == "running":
            assert (long["state"], long["outcome"]) == ("completed", "overrun") and "longer than" in long["reason"]
            assert long["charge"] == 2 * 8 * 5.0  # it pays for the rounds it had
    assert lost == 1
    assert stats.binomtest(lost, trials, chance).pvalue > 0.05 or trials < 50


@pytest.mark.slow
def test_without_the_limit_every_hidden_run_keeps_others_out(market_of):
    """The negative control."""
    market = market_of("eve", "bob", surprise_limit=0, **STAYS)
    assert all(one_long_run(market, "eve", "bob", 0.02)[0]["state"] != "running" for _ in range(4))


def test_a_run_that_starts_again_is_tested_for_each_duration_once():
    market = LiveMarket(live_config(RULES))
    market.apply({"event": "owner", "owner": "ann", "role": "owner"}, 1)
    job = LiveJob("ann.1", "ann", 1, 1, [], 0, [8], law=((1, 0.5), (2, 0.3), (8, 0.2)), state="running", start=1)
    market.jobs["ann.1"], market._replayer = job, SimpleNamespace(open_round=2)
    watch(market, job)
    go_on(market)
    before = dict(market.records._known)
    market._replayer.open_round, job.start = 5, 4  # it was taken back, and ran its first round once more
    watch(market, job)
    go_on(market)
    assert market.records._known == before and job.outlasted == 1 and (job.name, 2) in market.outlasting[6]
    market._replayer.open_round = 6
    go_on(market)
    assert market.records._known != before and job.outlasted == 2


def test_runs_that_go_on_in_the_same_round_are_tested_together():
    market = LiveMarket(live_config(RULES))
    market._replayer = SimpleNamespace(open_round=3)
    for owner in ("ann", "ben"):
        market.apply({"event": "owner", "owner": owner, "role": "owner"}, 1)
    for name in ("ann.1", "ann.2", "ann.3", "ben.1"):
        owner = name.partition(".")[0]
        law = ((2, 0.98), (8, 0.02))
        market.jobs[name] = LiveJob(name, owner, 1, 1, [], 0, [8], law=law, state="running", start=1)
        watch(market, market.jobs[name])
    assert [job.name for job in too_long(market)] == ["ann.2", "ann.3"]  # one of each owner's may go on


@pytest.mark.parametrize("odds", [(0.02, 0.9), (0.25,) * 4, (0.01,) * 100, (0.5, 0.3, 0.2), (0.0, 0.4), (1.0,)])
def test_the_mean_of_a_factor_is_at_most_one(odds):
    never = max(0.0, 1.0 - sum(odds))
    mean = sum(p * factor(odds, n) for n, p in enumerate(odds) if p) + never * factor(odds, None)
    assert mean <= 1 + 1e-12
    if never < min(p for p in odds if p):
        assert math.isinf(factor((0.0, 1.0), 0))


# -- announcements ------------------------------------------------------------------------------------------


def test_ghosts_pay_half_of_the_price_that_they_withhold(market_of):
    market = market_of("eve", no_show_fee=0.1)
    price = 8 * 24 * 5.0
    said = market.submit("eve", ghost(2, 0.9, duration=24))
    assert said["no_show_fee"] == pytest.approx(0.5 * 0.9 * price)
    quoted = market.ask(calls.quote(Principal("eve", "owner"), {"sow": ghost(9, 0.9, nodes=1, duration=2)}))
    assert quoted["no_show_fee"] == pytest.approx(
        max(0.1, 0.5 * sum(r["probability"] * r["price"] for r in quoted["runs"]))
    )
    market.advance(2)
    assert market.job(said["job"])["state"] == "missed" and market.paid("eve") >= 0.5 * 0.9 * price


def test_announcements_have_a_limit_by_default(market_of):
    plain = {key: each for key, each in RULES.items() if key != "announced_nodes"}
    assert live_config(plain).most_announced == 8  # at least one job of any legal width, and two where there is room
    assert live_config({**plain, "capacity": 16}).most_announced == 16
    assert live_config({**plain, "capacity": 100}).most_announced == 25
    assert live_config({**plain, "announced_nodes": "unlimited"}).most_announced is None
    market = market_of("eve", announced_nodes=None)
    market.submit("eve", ghost(5, 0.5))
    assert "announced_nodes" in str(refused(EventError, market.submit, "eve", ghost(5, 0.5)))
