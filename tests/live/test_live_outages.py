"""Owners do not pay for an operator's machine does: outages, clocks, files; and limits hold everywhere."""

import time

import numpy as np
import pytest

from live_tools import ANN, MECHANISMS, OPERATOR, PLAIN, SIZES, Hands, Owners, ask, check_journal, config, refused, sow
from marketsched.live import calls
from marketsched.live.accounts import MICRO
from marketsched.live.configuration import live_config
from marketsched.live.costs import held_at_arrival, most_of
from marketsched.live.machine import LiveMarket
from marketsched.live.service import LiveService, UnavailableError
from marketsched.mechanisms.errors import EventError, InvalidParameterError, MarketschedError

WALL = {**PLAIN, "clock": {"kind": "wall", "round_seconds": 60}, "no_show_fee": 2.0}


def begun(path, hands, **options):
    service = LiveService(str(path), None if path.exists() else WALL, make_clock=hands.clock, **options)
    service.start()
    return service


def now(service):
    ask(service, lambda turn: None)
    return ask(service, lambda turn: turn.market.round)


def with_a_run_and_a_ghost(path, hands):
    """A market in round 2: a job of two rounds runs, and another one is announced for round 3."""
    service = begun(path, hands)
    ask(service, calls.create_owner(OPERATOR, {"owner": "ann", "deposit": 50}))
    ask(service, calls.submit(ANN, {"sow": sow(1, 2), "name": "run"}))
    ask(service, calls.submit(ANN, {"sow": sow(3, 1), "name": "ghost"}))
    ask(service, calls.arrive(ANN, "ann.run", {"signal": 2}))
    hands.pass_(61)
    assert now(service) == 2 and service.market.jobs["ann.run"].state == "running"
    return service


def test_nobody_pays_for_rounds_in_which_no_service_ran(tmp_path):
    hands = Hands()
    service = with_a_run_and_a_ghost(tmp_path / "m.db", hands)
    service.stop()
    hands.pass_(60 * 5)
    service = begun(tmp_path / "m.db", hands)
    assert now(service) == 7
    jobs = {job["job"]: job for job in ask(service, calls.jobs(ANN, None, None, "", 10))["jobs"]}
    run, ghost = jobs["ann.run"], jobs["ann.ghost"]
    assert (run["state"], run["outcome"], run["charge"]) == ("completed", "unreported", 0.0)
    assert (ghost["state"], ghost["charge"]) == ("missed", 0.0) and "no service" in ghost["reason"]
    assert ask(service, calls.account(ANN, None))["balance"] == 50
    away = [row.body.get("away", False) for row in service.journal.rows() if row.event == "advance"]
    assert away == [False, True, True, True, True, True]
    service.stop()
    check_journal(f"{tmp_path}/m.db")


def test_a_service_that_ran_is_paid(tmp_path):
    """The negative control, and a round in whose second half the service was back."""
    hands = Hands()
    service = with_a_run_and_a_ghost(tmp_path / "m.db", hands)
    service.stop()
    hands.pass_(70)  # in the middle of round 3
    service = begun(tmp_path / "m.db", hands)
    assert now(service) == 3
    hands.pass_(60 - 11)
    assert now(service) == 4
    charges = {job["job"]: job["charge"] for job in ask(service, calls.jobs(ANN, None, None, "", 10))["jobs"]}
    assert charges == {"ann.run": 1.0, "ann.ghost": 2.0}
    service.stop()


def test_a_clock_a_day_ahead_stops_the_start_unless_it_is_told_to_catch_up(tmp_path):
    hands = Hands()
    service = with_a_run_and_a_ghost(tmp_path / "m.db", hands)
    service.stop()
    hands.pass_(24 * 3600)
    error = refused(InvalidParameterError, begun, tmp_path / "m.db", hands)
    assert "--catch-up" in str(error) and "a clock that is right" in str(error)
    hands.pass_(-24 * 3600)
    begun(tmp_path / "m.db", hands).stop()  # nothing was cleared
    hands.pass_(24 * 3600)
    service = begun(tmp_path / "m.db", hands, catch_up=True)
    for _ in range(200):
        if now(service) == 1442:
            break
    assert now(service) == 1442 and ask(service, calls.account(ANN, None))["balance"] == 50
    assert service.warning == ""
    service.stop()
    hands.pass_(-24 * 3600)
    service = begun(tmp_path / "m.db", hands)
    assert now(service) == 1442 and "the clock is behind the journal: round 1442" in service.warning
    service.stop()


# -- the database's file ------------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("how", ["renamed", "removed", "replaced"])
def test_nothing_is_answered_into_a_file_that_was_moved(how, tmp_path):
    path, away = tmp_path / "m.db", tmp_path / "away.db"
    service = LiveService(str(path), PLAIN)
    service.start()
    ask(service, calls.create_owner(OPERATOR, {"owner": "ann"}))
    path.rename(away)
    if how == "replaced":
        path.write_bytes(away.read_bytes())
    for n in range(3):
        error = refused(UnavailableError, ask, service, calls.create_owner(OPERATOR, {"owner": f"x{n}"}))
        assert "the file was moved, removed or replaced" in str(error)
    assert path.exists() == (how == "replaced")  # none is made in its place
    if how != "removed":
        away.replace(path)
        deadline = time.monotonic() + 20
        while service.down and time.monotonic() < deadline:
            time.sleep(0.1)
            service.ask(lambda turn: None).exception(20)
        ask(service, calls.create_owner(OPERATOR, {"owner": "x0"}))
    service.stop()


# -- limits -------------------------------------------------------------------------------------------------


class Limited:
    """Random statements of owners with limits, as `calls.submit` takes them."""

    def __init__(self, rules, seed):
        self.market, self.owners, self.row, self.refused = LiveMarket(rules), Owners(np.random.default_rng(seed)), 0, 0
        for name, limit in zip(self.owners.owners, (0.0, 5.0, 40.0), strict=True):
            self.act({"event": "owner", "owner": name, "role": "owner", "limit": limit})
            self.act({"event": "deposit", "owner": name, "credits": 60})

    def act(self, event):
        market = self.market
        if event["event"] == "submit":
            owner = market.accounts.get(event["owner"])
            offer = market.quote(owner, event["job"], event["sow"])
            event = {**event, "most": most_of(market, owner, offer, event["sow"], 0)}
            event["held"] = held_at_arrival(market, owner, offer)
        self.row += 1
        market.apply(event, self.row)
        for account in market.accounts.known.values():
            assert account.limit is None or account.balance >= -account.limit, event

    def attempt(self, event):
        try:
            self.act(event)
        except MarketschedError:
            self.refused += 1

    def rounds(self, count):
        for _ in range(count):
            self.owners.round(self.market, self.attempt)
            for name, account in self.market.accounts.known.items():
                if account.balance < 20 * MICRO:
                    self.act({"event": "deposit", "owner": name, "credits": 30})


ALL = [*MECHANISMS, "two-offers", "spot", "armada", "pay-as-bid", "cluster-exponential"]


def rules_of(name):
    if name in MECHANISMS:
        return config(name)
    return config("cluster-bid-price" if "cluster" in name else "first-come", mechanism=name, parameters={})


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("name", ALL)
def test_no_balance_falls_below_its_limit(name):
    traffic = Limited(rules_of(name), 7)
    traffic.rounds(60)
    assert traffic.market.tally["completed"] > 5


def test_a_job_worth_more_than_the_limit_is_refused_where_prices_are_made_at_arrival(tmp_path):
    rules = {"capacity": 8, "max_concurrency": 8, "max_duration": 24, "max_value": 300, "max_delay": 40}
    service = LiveService(f"{tmp_path}/m.db", {**rules, "mechanism": "bid-price", "no_show_fee": 0.5})
    service.start()
    ask(service, calls.create_owner(OPERATOR, {"owner": "ann", "deposit": 6, "limit": 0}))
    asked = calls.submit(ANN, {"sow": sow(1, 24, nodes=8, value=288.0, deadline=30)})
    error = refused(EventError, ask, service, asked)
    assert "account = 288.0" in str(error) and "at most 6 credits" in str(error)
    ask(service, calls.submit(ANN, {"sow": sow(1, 24, nodes=8, value=6.0, deadline=30)}))
    service.stop()


def test_an_owner_with_a_limit_pays_what_one_without_pays():
    """Where prices are made at arrival: what is held bounds the charge, also of a job that has gone by then."""
    rules = live_config({**SIZES, "mechanism": "first-come", "parameters": {"price": 0.5}})
    for limit in (0.0, None):
        market = LiveMarket(rules)
        market.apply(
            {"event": "owner", "owner": "ann", "role": "owner", **({} if limit is None else {"limit": limit})}, 1
        )
        market.apply({"event": "deposit", "owner": "ann", "credits": 60.0}, 2)
        ann, said = market.accounts.get("ann"), {"owner": "ann", "job": "ann.1"}
        offer = market.quote(ann, "ann.1", sow(1, 2, nodes=2))
        held, most = held_at_arrival(market, ann, offer), most_of(market, ann, offer, sow(1, 2, nodes=2), 0)
        market.apply({"event": "submit", **said, "sow": sow(1, 2, nodes=2), "most": most, "held": held}, 3)
        market.apply({"event": "arrive", **said, "signal": 2}, 4)
        for row in (5, 6):
            market.apply({"event": "advance"}, row)
        assert market.apply({"event": "complete", **said}, 7).ended[0].shown()["charge"] == 2.0
        assert held == (limit is not None)


def test_a_plan_without_a_start_holds_the_fee_alone():
    market = LiveMarket(live_config({**PLAIN, "pricing": {"kind": "posted", "prices": [50.0]}}))
    market.apply({"event": "owner", "owner": "ann", "role": "owner", "limit": 0.0}, 1)
    market.apply({"event": "deposit", "owner": "ann", "credits": 1.0}, 2)
    ann = market.accounts.get("ann")
    offer = market.quote(ann, "ann.1", sow(1, value=9.0))
    assert offer.plan.starts[0][2] is None
    assert most_of(market, ann, offer, sow(1, value=9.0), MICRO) == MICRO and not held_at_arrival(market, ann, offer)


def test_free_mechanisms_hold_nothing_but_the_fee():
    market = LiveMarket(config("fair-share"))
    market.apply({"event": "owner", "owner": "ann", "role": "owner", "limit": 0.0}, 1)
    ann = market.accounts.get("ann")
    assert most_of(market, ann, market.quote(ann, "ann.1", sow(1)), sow(1), 0) == 0
