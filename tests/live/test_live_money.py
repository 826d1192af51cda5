"""Nobody computes for nothing: what runs on is charged, what does not come has a price, and truth stays best."""

import itertools

import pytest

from live_tools import ANN, OPERATOR, PLAIN, ServedMarket, check_journal, refused, sow
from marketsched.live import calls
from marketsched.live.configuration import live_config
from marketsched.live.machine import LiveMarket
from marketsched.live.turn import due
from marketsched.mechanisms import Event, EventKind, Mechanism
from marketsched.mechanisms.errors import EventError


@pytest.fixture
def market(tmp_path):
    with_fee = Market(f"{tmp_path}/m.db", {**PLAIN, "no_show_fee": 2.0, "announced_nodes": 3})
    yield with_fee
    with_fee.service.stop()
    check_journal(f"{tmp_path}/m.db")


class Market(ServedMarket):
    """A service with one owner, ann, who has 100 credits."""

    def __init__(self, url, rules):
        super().__init__(url, rules, {"ann": {}}, 100)

    def submit(self, name, report):
        return super().submit("ann", report, name)

    def arrive(self, name, signal):
        return super().arrive(f"ann.{name}", signal)

    def job(self, name):
        return super().job(f"ann.{name}")

    def paid(self):
        return super().paid("ann")


@pytest.mark.parametrize("signal", [{}, {"signal": None}, {"signal": "small"}])
def test_a_job_that_runs_on_is_charged_for_what_it_booked(market, signal):
    market.submit("on", sow(1, 2, **signal))
    market.arrive("on", signal.get("signal", 2))
    market.advance(2)
    assert market.job("on")["state"] == "running" and market.paid() == 0
    market.advance()
    found = market.job("on")
    assert (found["state"], found["outcome"], found["charge"], found["end"]) == ("completed", "overrun", 1.0, 3)
    assert market.paid() == 1.0  # two rounds
    refused(EventError, market.ask, calls.complete(OPERATOR, "ann.on", {}))
    market.advance(3)
    assert market.paid() == 1.0


def test_an_overrun_frees_its_nodes_for_the_round_that_it_did_not_book(market):
    market.submit("on", sow(1, 2, nodes=2))
    market.arrive("on", 2)
    plan = market.submit("next", sow(3, 1, nodes=1))["plan"]
    assert plan == [{"arrival": 3, "signal": 1, "start": 3}]
    market.advance(2)
    market.arrive("next", 1)
    assert [each["event"] for each in market.advance()] == ["complete", "start"]


def test_no_shows_pay_the_fee_and_are_capped(market):
    assert market.submit("ghost", sow(2, 3, nodes=2))["no_show_fee"] == 4.0
    error = refused(EventError, market.submit, "more", sow(2, 3, nodes=2))
    assert "at most 1" in str(error) and error.place == "concurrency"
    market.advance()
    assert market.paid() == 0
    market.advance()
    found = market.job("ghost")
    assert (found["state"], found["charge"], market.paid()) == ("missed", 4.0, 4.0)
    assert "did not come" in found["reason"] and list(market.service.market.jobs) == []
    late = market.arrive("ghost", 3)  # it has gone: nothing follows
    assert late["state"] == "missed" and market.advance() == []
    assert market.paid() == 4.0 and market.job("ghost")["state"] == "missed"
    market.submit("more", sow(5, 3, nodes=2))


@pytest.mark.parametrize(("wait", "signal"), [(0, 3), (1, 2)])
def test_what_comes_otherwise_than_it_said_pays_the_fee_and_says_why(market, wait, signal):
    market.submit("ghost", sow(2, 3, nodes=2))
    market.advance(wait) if wait else None
    market.arrive("ghost", signal)
    market.advance()
    found = market.job("ghost")
    assert (found["state"], found["charge"], market.paid()) == ("dropped", 4.0, 4.0)
    assert found["reason"].endswith("which was not announced; announced: round 2 with signal 3")


def test_a_drop_says_that_nothing_was_worth_its_price(market):
    market.submit("poor", sow(1, 3, value=1.0))
    market.arrive("poor", 3)
    market.advance()
    found = market.job("poor")
    assert found["state"] == "dropped" and "worth its price" in found["reason"] and market.paid() == 0


def test_withdrawals_cost_the_fee_or_the_rounds(market):
    for name in ("early", "ready", "runs"):
        market.submit(name, sow(1, 3))
    ask = market.ask
    assert ask(calls.withdraw(ANN, "ann.early", {}))["charge"] == 2.0
    refused(EventError, ask, calls.withdraw(ANN, "ann.early", {}))
    market.arrive("ready", 3)
    assert ask(calls.withdraw(ANN, "ann.ready", {}))["charge"] is None
    market.arrive("runs", 3)
    market.advance(2)
    assert (market.job("ready")["outcome"], market.job("ready")["charge"]) == ("withdrawn", 0.5)
    assert ask(calls.withdraw(ANN, "ann.runs", {}))["charge"] == 1.0
    assert market.job("runs")["outcome"] == "withdrawn" and market.paid() == 3.5


@pytest.mark.parametrize("rounds", [1, 4])
def test_nodes_of_a_job_that_was_taken_back_count_until_the_rounds_that_it_announced(market, rounds):
    """Nobody else gets them until then, so who takes jobs back announces no more nodes than others do."""
    for n in range(3):
        market.submit(f"back{n}", sow(4, 1))
        market.ask(calls.withdraw(ANN, f"ann.back{n}", {}))
    said = refused(EventError, market.submit, "more", sow(1, 1))
    assert "at most 0: 3 of 3 are announced and have not come, 3 of them taken back before their time" in str(said)
    market.advance(rounds)
    if rounds == 4:
        assert market.submit("more", sow(5, 1))["state"] == "submitted"
    else:
        refused(EventError, market.submit, "more", sow(2, 1))


def test_the_mechanism_has_the_last_word_on_the_fee(market, monkeypatch):
    asked = []

    def halves(mechanism, job, fee=0.0):
        asked.append((job, fee))
        return Event(mechanism.round, EventKind.WITHDRAW, job, payment=fee / 2)

    monkeypatch.setattr(Mechanism, "withdraw", halves)
    for name in ("early", "ghost"):
        market.submit(name, sow(2, 3))
    assert market.ask(calls.withdraw(ANN, "ann.early", {}))["charge"] == 1.0
    market.advance(2)
    assert market.job("ghost")["charge"] == 1.0 and market.paid() == 2.0
    assert asked == [("ann.early", 2.0), ("ann.ghost", 2.0)]


def test_what_the_ledger_could_not_hold_is_refused_at_submission(tmp_path):
    rules = {**PLAIN, "max_value": 1e9, "max_duration": 1, "pricing": {"kind": "posted", "prices": [9e8]}}
    market = Market(f"{tmp_path}/m.db", rules)
    accounts = market.service.market.accounts
    accounts.market = 2**63 - 1 - 1_000_000_000_000_000  # as after many years
    market.submit("a", sow(1, 1, value=1e9))
    error = refused(EventError, market.submit, "b", sow(1, 1, value=1e9))
    assert error.place == "account" and market.service.last_seq == 3
    market.service.stop()


# -- what it does to the theorem ----------------------------------------------------------------------------

CASES = ((2, 1, 0.375), (2, 3, 0.125), (3, 1, 0.25))  # arrival, duration (hidden), probability; else it never comes
VALUE, NEVER = 8.0, 0.25


def report(cases, nodes=1, value=VALUE):
    rows = [{"arrival": a, "duration": d, "probability": p, "signal": None} for a, d, p in cases]
    return {
        **sow(1, 1, nodes=nodes),
        "requirements": rows,
        "value": {"kind": "deadline", "value": value, "deadline": 7},
    }


def utility(stated, rules, truth=(*CASES, (None, 1, NEVER)), value=VALUE):
    """Return the expected utility of an owner of one node's work who states this, by playing each of its fates."""
    total = 0.0
    for arrival, duration, probability in truth:
        market = LiveMarket(live_config(rules))
        row = iter(range(1, 999))
        for name in ("ann", "ben"):
            market.apply({"event": "owner", "owner": name, "role": "owner"}, next(row))
        market.apply({"event": "submit", "owner": "ben", "job": "ben.1", "sow": sow(2, 2, nodes=1)}, next(row))
        market.apply({"event": "submit", "owner": "ann", "job": "ann.1", "sow": stated}, next(row))
        job = market.jobs["ann.1"]
        while market.round <= 9:
            if market.round == 2:
                market.apply({"event": "arrive", "job": "ben.1", "signal": 2}, next(row))
            if market.round == arrival and not job.gone:
                market.apply({"event": "arrive", "job": "ann.1"}, next(row))
            if job.state == "running" and job.start + duration == market.round:
                market.apply({"event": "complete", "job": "ann.1"}, next(row))
            for event in list(due(market)):
                market.apply(event, next(row))
            market.apply({"event": "advance"}, next(row))
        done = job.outcome == "done" and job.state == "completed" and stated["concurrency"] >= 1 and job.end <= 7
        total += probability * (value * done - (job.charge or 0) / 1e6)
    return total


MARKET = {**PLAIN, "max_value": 9, "pricing": {"kind": "posted", "prices": [0.5, 0.5, 3.0, 0.5]}, "no_show_fee": 1.0}
MARKET |= {"no_show_share": 0.0}  # the fee of the theorem, which is the same for every report


def lies():
    shares = (0.05, 0.25, 0.5)
    for arrivals in ((1,), (2,), (3,), (4,), (2, 3), (2, 4), (1, 2, 3, 4)):
        for durations, share in itertools.product(((1, 3), (3,), (2, 3)), shares):
            cases = [(a, d, share / len(durations)) for a in arrivals for d in durations]
            for nodes, value in ((1, VALUE), (2, VALUE), (1, 2.0)):
                if sum(p for *_, p in cases) <= 1:
                    yield report(cases, nodes, value)


@pytest.mark.slow
@pytest.mark.long
def test_with_the_fee_no_lie_is_better_than_the_truth_or_staying_away():
    truth = utility(report(CASES), MARKET)
    assert truth > 0 and truth == pytest.approx(utility(report(CASES), {**MARKET, "no_show_fee": 0.0}) - NEVER)
    assert max(utility(lie, MARKET) for lie in lies()) <= truth + 1e-9
    free = {**MARKET, "no_show_fee": 0.0}  # a fee on the share that was announced would be lowered by announcing less
    shares = ((utility(lie, free), sum(row["probability"] for row in lie["requirements"])) for lie in lies())
    assert max(worth - NEVER * share for worth, share in shares) > utility(report(CASES), free) - NEVER * 0.75 + 0.05
    # A fee this high keeps the owner away: the truth is worth less than nothing, and every lie still less.
    high = {**MARKET, "no_show_fee": 100.0}
    assert max(utility(lie, high) for lie in lies()) <= utility(report(CASES), high) + 1e-9 < 0


def test_a_statement_that_leaves_its_long_case_out_buys_a_trial_and_no_more():
    """The limit is an option that the paper has not: it is the outcome of withdrawing the job as it runs."""
    truth, short = ((1, 1, 0.5), (1, 3, 0.5)), [(1, 1, 1.0)]
    rules = {**MARKET, "pricing": {"kind": "posted", "prices": [0.5, 3.0, 3.0]}}
    worth = utility(report(truth, value=2.0), rules, truth, 2.0), utility(report(short, value=2.0), rules, truth, 2.0)
    assert worth[0] == 0.0 and worth[1] == 0.5 * (2.0 - 0.5) + 0.5 * (0.0 - 0.5)
    honest = utility(report(short, value=1.0), rules, ((1, 1, 1.0),), 1.0)  # half of its value, surely within a round
    assert honest == worth[1]
