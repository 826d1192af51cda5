"""The live market is the replayer: the same decisions in whatever order the world reports; quotes change nothing."""

import tracemalloc

import numpy as np
import pytest

from draws import many
from live_tools import MECHANISMS, PLAIN, Owners, config, play, random_quote, refused, replayed, sow, state
from marketsched.live.configuration import live_config
from marketsched.live.costs import fee, most_of
from marketsched.live.machine import LiveMarket
from marketsched.live.rows import Row
from marketsched.live.turn import due
from marketsched.mechanisms import register
from marketsched.mechanisms.errors import EventError, InvalidParameterError, InvalidReportError, UnknownNameError
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.schedulers.fair_share import FairShare
from marketsched.play.replaying import replay


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("name", MECHANISMS)
def test_export_replayed_gives_the_decisions_line_by_line(name):
    chosen, rows = config(name), []
    decisions = play(LiveMarket(chosen), many(120), 11, rows=rows)
    kinds = {decision["event"] for decision in decisions}
    assert {"plan", "start", "complete"} <= kinds and any("late" in line for line in _lines(rows))
    assert replayed(chosen, rows) == decisions


def _lines(rows):
    from marketsched.live.playing import exported

    return exported(iter(rows), 10**7)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("name", MECHANISMS)
def test_quotes_change_no_decision(name):
    quote = random_quote(np.random.default_rng(5))
    asked = LiveMarket(config(name))
    decisions = play(asked, many(160), 7, quote)
    plain = LiveMarket(config(name))
    assert play(plain, many(160), 7) == decisions
    assert state(asked) == state(plain)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_submission_gets_what_was_quoted(name):
    rng, market = np.random.default_rng(2), LiveMarket(config(name))
    quoted = []

    def quote(market, t):
        report, *_ = Owners(rng).statement(t, market.config.cluster is not None)
        offer = market.quote(market.accounts.get("ann"), f"ann.q{len(quoted)}", report)
        submitted = {"event": "submit", "owner": "ann", "job": offer.plan.job, "sow": report}
        decision = market.apply(submitted, 1).decisions[-1]
        assert decision["starts"] == [list(case) for case in offer.plan.starts]
        assert decision["estimated_utility"] == offer.plan.estimated_utility
        quoted.append(offer)

    play(market, many(60), 3, quote)
    assert len(quoted) > 20


def test_a_quote_names_the_price_that_is_charged():
    market = market_of(PLAIN)
    offer = market.quote(market.accounts.get("ann"), "ann.1", sow(1, 2, nodes=2))
    ((arrival, signal, duration, probability, start, price, failure),) = offer.runs
    assert (arrival, signal, duration, probability, start, price, failure) == (1, 2, 2, 1.0, 1, 2.0, 0.0)
    market.apply(submit("ann.1", sow(1, 2, nodes=2)), 2)
    market.apply({"event": "arrive", "owner": "ann", "job": "ann.1", "signal": 2}, 3)
    for row in (4, 5):
        market.apply({"event": "advance"}, row)
    applied = market.apply({"event": "complete", "owner": "ann", "job": "ann.1"}, 6)
    assert (market.load, market.busy, market.past[-1]) == (2, 0, (2, 2, 0))  # as the last job has ended
    assert applied.decisions[0]["payment"] == price and applied.ended[0].shown()["charge"] == price
    assert market.accounts.get("ann").balance == -2_000_000 and market.accounts.market == 2_000_000


def test_failure_probabilities_of_a_quote_are_those_of_the_paths():
    rules = {"capacity": 1, "max_concurrency": 1, "max_duration": 2, "max_value": 9, "max_delay": 9, "epsilon": -3.0}
    market = market_of({**rules, "pricing": {"kind": "posted", "prices": [0.5]}})
    half = sow(1, 1, probability=0.5)
    market.apply(submit("ann.1", half), 2)
    ((*_, failure),) = market.quote(market.accounts.get("ann"), "ann.2", sow(1, 1, deadline=2)).runs
    assert failure == 0.5  # on one node, where the first job is in half of all cases


def test_a_mechanism_without_quotes_is_asked_on_a_copy():
    @register("without-quotes")
    class WithoutQuotes(FairShare):
        quote = Mechanism.quote

    market = market_of({**SIZED, "mechanism": "without-quotes"})
    for _ in range(2):
        assert market.quote(market.accounts.get("ann"), "ann.1", sow()).plan.starts == ((1, 1, None),)
    market.apply(submit("ann.1", sow()), 2)


SIZED = {"capacity": 2, "max_concurrency": 2, "max_duration": 3, "max_value": 9, "max_delay": 12}


def market_of(rules):
    market = LiveMarket(live_config(rules))
    market.apply({"event": "owner", "owner": "ann", "role": "owner"}, 1)
    return market


def submit(name, report):
    return {"event": "submit", "owner": "ann", "job": name, "sow": report}


def test_an_arrival_does_not_end_the_submissions_of_its_round():
    market = market_of(PLAIN)
    market.apply(submit("ann.1", sow()), 2)
    market.apply({"event": "arrive", "job": "ann.1", "signal": 1}, 3)
    market.apply(submit("ann.2", sow()), 4)
    market.apply({"event": "arrive", "job": "ann.2", "signal": 1}, 5)
    started = [each["job"] for each in market.apply({"event": "advance"}, 6).decisions]
    assert started == ["ann.1", "ann.2"]


def test_a_node_that_failed_is_not_charged():
    market = market_of(PLAIN)
    market.apply(submit("ann.1", sow()), 2)
    market.apply({"event": "arrive", "job": "ann.1", "signal": 1}, 3)
    market.apply({"event": "advance"}, 4)
    applied = market.apply({"event": "complete", "job": "ann.1", "outcome": "node-failed", "exit_code": 1}, 5)
    assert applied.postings == [] and applied.decisions[0]["payment"] == 0.5
    (ended,) = applied.ended
    assert ended.shown()["charge"] == 0 and ended.outcome == "node-failed" and not market.jobs


def test_rounds_with_fewer_nodes_are_counted():
    market = market_of(PLAIN)
    for usable, rounds in ((1, 2), (2, 3), (0, 1)):
        market.apply({"event": "nodes", "usable": usable}, 2)
        for _ in range(rounds):
            market.apply({"event": "advance"}, 3)
    assert market.short_rounds == 3


BAD = {
    "an unknown job": ({"event": "complete", "job": "ann.9"}, UnknownNameError),
    "a second arrival": ({"event": "arrive", "job": "ann.2", "signal": 1}, EventError),
    "neither signal nor duration": ({"event": "arrive", "job": "ann.1"}, EventError),
    "a list for a signal": ({"event": "arrive", "job": "ann.1", "signal": [1]}, EventError),
    "a signal far off": ({"event": "arrive", "job": "ann.1", "signal": 10**30}, InvalidReportError),
    "a long signal": ({"event": "arrive", "job": "ann.1", "signal": "x" * 101}, InvalidReportError),
    "a signal that cannot be printed": ({"event": "arrive", "job": "ann.1", "signal": "\n"}, InvalidReportError),
    "a duration of nothing": ({"event": "arrive", "job": "ann.1", "duration": 0}, InvalidReportError),
    "a job that does not run": ({"event": "complete", "job": "ann.1"}, EventError),
    "a name twice": ({"event": "submit", "owner": "ann", "job": "ann.1", "sow": sow()}, EventError),
    "an owner twice": ({"event": "owner", "owner": "ann", "role": "owner"}, EventError),
    "a name of the ledger": ({"event": "owner", "owner": "market", "role": "owner"}, InvalidParameterError),
    "a name with a dot": ({"event": "owner", "owner": "ann.b", "role": "owner"}, InvalidParameterError),
    "no role": ({"event": "owner", "owner": "ben", "role": "king"}, InvalidParameterError),
    "no credits": ({"event": "deposit", "owner": "ann", "credits": 0}, InvalidParameterError),
    "debts": ({"event": "deposit", "owner": "ann", "credits": -1.0}, InvalidParameterError),
    "credits of a stranger": ({"event": "deposit", "owner": "ben", "credits": 1.0}, UnknownNameError),
}


@pytest.mark.parametrize("case", BAD)
def test_a_refused_event_changes_nothing(case):
    market = market_of(PLAIN)
    market.apply(submit("ann.1", sow()), 2)
    market.apply(submit("ann.2", sow()), 3)
    market.apply({"event": "arrive", "job": "ann.2", "signal": 1}, 4)
    before = state(market)
    event, error = BAD[case]
    refused(error, market.apply, event, 5)
    assert state(market) == before
    assert [each["job"] for each in market.apply({"event": "advance"}, 6).decisions] == ["ann.2"]


def test_a_limit_counts_what_open_jobs_may_cost():
    market = market_of({**PLAIN, "no_show_fee": 0.0})
    market.apply({"event": "owner", "owner": "ben", "role": "owner", "limit": 1.0}, 2)
    ben = market.accounts.get("ben")
    for number, report in enumerate((sow(), sow())):
        offer = market.quote(ben, f"ben.{number}", report)
        most = most_of(market, ben, offer, sow(), fee(market.config, 1))
        market.apply({"event": "submit", "owner": "ben", "job": f"ben.{number}", "sow": report, "most": most}, 3)
    error = refused(EventError, most_of, market, ben, market.quote(ben, "ben.3", sow()), sow(), 0)
    assert "at most 0 credits" in str(error)
    market.apply({"event": "deposit", "owner": "ben", "credits": 0.5}, 4)
    assert most_of(market, ben, market.quote(ben, "ben.3", sow()), sow(), fee(market.config, 1)) == 500_000


def test_the_market_ends_with_its_horizon():
    market = market_of({**PLAIN, "horizon": 2})
    market.apply(submit("ann.1", sow(1, 3)), 2)
    market.apply({"event": "arrive", "job": "ann.1", "signal": 3}, 3)
    for row in (4, 5):
        market.apply({"event": "advance"}, row)
    assert market.over and not market.jobs and market.tally.total() == 1
    refused(EventError, market.apply, {"event": "advance"}, 6)
    refused(EventError, market.quote, market.accounts.get("ann"), "ann.2", sow(3))


def _to_the_last_round():
    """Return a market after its last round, 2, in which two jobs have run; its journal; and how to act."""
    market, rows = market_of({**PLAIN, "horizon": 2}), []

    def act(event):
        opened = market.round
        applied = market.apply(event, len(rows) + 2)
        body = {key: value for key, value in event.items() if key not in ("event", "owner", "job")}
        rows.append(Row(len(rows) + 2, "", opened, event["event"], "x", event.get("owner"), event.get("job"), body))
        rows[-1].decisions = applied.decisions
        return applied

    longer = sow(2, 1)
    row = {"arrival": 2, "probability": 0.5, "signal": None}
    longer["requirements"] = [{**row, "duration": duration} for duration in (1, 3)]
    act(submit("ann.short", sow(2, 1)))
    act(submit("ann.long", longer))
    act({"event": "advance"})
    act({"event": "arrive", "job": "ann.short", "signal": 1})
    act({"event": "arrive", "job": "ann.long"})
    act({"event": "advance", "more": True})
    return market, rows, act


def test_a_job_that_completes_in_the_last_round_is_recorded_and_paid():
    market, rows, act = _to_the_last_round()
    assert market.over and market.rounds_left == 1
    assert {job.state for job in market.jobs.values()} == {"running"}
    assert replayed(market.config, rows) == [each for row in rows for each in row.decisions]
    applied = act({"event": "complete", "job": "ann.short"})
    assert [(each["event"], each["completion"], each["payment"]) for each in applied.decisions] == [
        ("complete", 3, 0.5)
    ]
    assert applied.postings[-1].micro == 500_000
    applied = act({"event": "advance"})
    assert [each["event"] for each in applied.decisions] == ["evict"]
    assert applied.postings[-1].micro == 500_000  # the round it used
    assert not market.rounds_left and all(job.gone for job in market.jobs.values())
    refused(EventError, market.apply, {"event": "advance"}, 20)
    assert replayed(market.config, rows) == [each for row in rows for each in row.decisions]


def test_what_was_booked_up_to_the_last_round_is_paid_when_the_market_closes():
    market, _, act = _to_the_last_round()
    (ended,) = due(market)
    assert (ended["job"], ended["outcome"]) == ("ann.short", "overrun")
    assert act(ended).postings[-1].micro == 500_000


@pytest.mark.parametrize("arrival", [100, 9_999_000])
def test_a_job_that_comes_too_late_costs_no_more_the_later_it_is(arrival):
    """The tables of a quote reach no further than a start can be worth anything: no report makes them large."""
    market = market_of({**SIZED, "pricing": {"kind": "exponential"}, "capacity": 9})
    tracemalloc.start()
    offer = market.quote(market.accounts.get("ann"), "ann.1", sow(arrival, 3, deadline=10_000_000))
    market.apply(submit("ann.1", sow(arrival, 3, deadline=10_000_000)), 2)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert offer.plan.starts == ((arrival, 3, None),) and taken < 1_000_000


def test_late_completes_and_open_ends_in_a_log():
    rules = {**PLAIN, "horizon": 9, "mechanism": "posted-price"}
    del rules["announced_nodes"]
    log = [
        {"round": 1, "event": "submit", "job": "A", "sow": sow(1, 2)},
        {"round": 1, "event": "arrive", "job": "A", "signal": 2},
        {"round": 2, "event": "end"},
        {"round": 3, "event": "submit", "job": "B", "sow": sow(3, 1)},
        {"round": 2, "event": "complete", "job": "A", "late": True},
        {"round": 3, "event": "end", "open": True},
    ]
    found = [(each["round"], each["event"], each.get("job")) for each in replay(rules, log)]
    assert found == [(1, "plan", "A"), (1, "start", "A"), (3, "plan", "B"), (2, "complete", "A")]
    plain = [dict(line) for line in log]
    del plain[4]["late"]
    assert [each["event"] for each in replay(rules, plain)][3] == "error"
    plain[4] |= {"late": True, "round": 1}
    assert "cleared last, 2" in [each for each in replay(rules, plain)][3]["message"]
