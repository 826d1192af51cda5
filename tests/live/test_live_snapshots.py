"""Snapshots: a market that goes on from one is the market that was never stopped, to the last bit."""

import json
import sqlite3
import zlib
from contextlib import closing

import numpy as np
import pytest

from live_tools import MECHANISMS, OPERATOR, PLAIN, Owners, ask, check_journal, config, refused, sow, state
from marketsched.live import calls, snapshots
from marketsched.live.configuration import live_config
from marketsched.live.database import JournalError
from marketsched.live.journal import Journal
from marketsched.live.machine import LiveMarket
from marketsched.live.playing import play_journal
from marketsched.live.principal import Principal
from marketsched.live.service import LiveService
from marketsched.live.snapshots import frozen, key_in, thawed
from marketsched.live.turn import due


@pytest.fixture(autouse=True)
def as_often_as_asked(monkeypatch):
    monkeypatch.setattr(snapshots, "SHARE", 1e9)


class Traffic:
    """Random traffic that several markets meet alike."""

    def __init__(self, market, seed):
        self.market, self.owners, self.row = market, Owners(np.random.default_rng(seed)), 0
        self.said = []
        for name in self.owners.owners:
            self.act({"event": "owner", "owner": name, "role": "owner"})

    def act(self, event):
        self.row += 1
        applied = self.market.apply(event, self.row)
        ended = [job.kept() for job in applied.ended]
        self.said.append(json.dumps([applied.decisions, applied.postings, ended]))

    def rounds(self, count):
        for _ in range(count):
            self.owners.round(self.market, self.act)

    def drain(self):
        """Let all jobs come, and nothing new, until none is left."""
        while self.market.jobs:
            for name, owner, duration, seen in self.owners.ready.pop(self.market.round, ()):
                signal = {"signal": duration} if seen else {}
                self.act({"event": "arrive", "owner": owner, "job": name, **signal})
            for event in list(due(self.market)):
                self.act(event)
            self.act({"event": "advance"})


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("name", [*MECHANISMS, "two-offers", "spot", "quota", "credits", "fair-turns"])
def test_a_market_goes_on_from_its_snapshot_to_the_last_bit(name):
    rules = config(name) if name in MECHANISMS else config("first-come", mechanism=name)
    whole, cut = Traffic(LiveMarket(rules), 5), Traffic(LiveMarket(rules), 5)
    for _ in range(4):
        whole.rounds(10)
        cut.rounds(10)
        cut.market = thawed(frozen(cut.market), rules)
    assert whole.said == cut.said and state(whole.market) == state(cut.market)
    assert any('"complete"' in each for each in whole.said)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", [name for name in MECHANISMS if "bid-price" not in name])  # it learns from arrivals
def test_what_is_kept_does_not_grow_with_the_jobs_that_have_gone(name):
    traffic, sizes = Traffic(LiveMarket(config(name)), 6), []
    for _ in range(3):
        traffic.rounds(60)
        open_ = len(traffic.market.jobs)
        traffic.drain()
        assert open_ and traffic.market.tally["missed"] == 0
        sizes.append(len(zlib.decompress(frozen(traffic.market))))
    assert traffic.market.tally.total() > 300
    assert max(sizes) - min(sizes) < 4 * traffic.market.tally.total(), sizes  # less than 4 bytes a job


def live(path, rows=7, **options):
    service = LiveService(str(path), None if path.exists() else PLAIN, snapshot_rows=rows, **options)
    service.start()
    return service


def one_day(service, name):
    """Let one owner's jobs go through all that can happen to them."""
    who = Principal(name, "owner")
    ask(service, calls.create_owner(OPERATOR, {"owner": name, "deposit": 50}))
    for n in range(6):
        now = service.market.round
        job = ask(service, calls.submit(who, {"sow": sow(now, 1 + n % 2)}))["job"]
        if n % 3 != 2:
            ask(service, calls.arrive(who, job, {"signal": 1 + n % 2}))
        ask(service, calls.advance(OPERATOR, {}))
        if n % 3 == 0:
            ask(service, calls.complete(OPERATOR, job, {"exit_code": 0}))


def books(service):
    """Return all that a service answers about the past."""
    listed = ask(service, calls.jobs(OPERATOR, None, None, "", 99))["jobs"]
    jobs = [ask(service, calls.job(OPERATOR, each["job"])) for each in listed]
    ledger, owners = ask(service, calls.ledger(OPERATOR, None, 0, 999)), ask(service, calls.owners(OPERATOR))
    return json.dumps([listed, jobs, ledger, owners, state(service.market)])


def snapshots_of(path):
    with closing(sqlite3.connect(path)) as connection:
        return [seq for (seq,) in connection.execute("select seq from snapshots order by seq")]


def test_the_two_last_snapshots_are_kept_and_a_restart_begins_behind_the_last(tmp_path):
    service = live(tmp_path / "m.db")
    one_day(service, "ann")
    last = service.last_seq
    service.stop()
    kept = snapshots_of(tmp_path / "m.db")
    assert len(kept) == 2 and last - kept[-1] < 14 and kept[-1] - kept[0] < 14
    journal = Journal(str(tmp_path / "m.db"))
    journal.open(writing=False)
    rules, seen = live_config(journal.market()["configuration"]), []
    key = key_in(tmp_path / "snapshot.key")
    played = play_journal(rules, journal, seen, key=key)
    (after,) = [row.body["after"] for row in journal.rows() if row.seq == kept[-1]]
    assert played.snapshot == after < kept[-1] and [row.seq for row in seen] == list(range(after + 1, last + 1))
    assert state(played.market) == state(play_journal(rules, journal, whole=True).market)
    journal.close()


def damaged(path, change):
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(change).rowcount


def walked(service):
    """Wait until all rows before the snapshot were read; return what was found."""
    while not service.walk.over and not service.down:
        ask_or_not = service.ask(lambda turn: None)
        ask_or_not.exception(20)
    return service.down


def test_a_damaged_snapshot_is_refused_and_can_be_passed_over(tmp_path):
    path = tmp_path / "m.db"
    service = live(path)
    one_day(service, "ann")
    before = books(service)
    service.stop()
    seq = snapshots_of(path)[-1]
    with closing(sqlite3.connect(path)) as connection, connection:
        (state_,) = connection.execute("select state from snapshots where seq = ?", (seq,)).fetchone()
        changed = state_[:40] + bytes([state_[40] ^ 1]) + state_[41:]
        connection.execute("update snapshots set state = ? where seq = ?", (changed, seq))
    assert f"snapshot of journal row {seq}" in str(refused(JournalError, LiveService, str(path)))
    again = live(path, check_all=True)
    assert books(again) == before
    again.stop()


def test_a_snapshot_of_other_code_is_passed_over(tmp_path, monkeypatch):
    path = tmp_path / "m.db"
    service = live(path)
    one_day(service, "ann")
    before = books(service)
    service.stop()
    monkeypatch.setattr(snapshots, "versions", lambda: {"numpy": "0"})
    again = live(path)
    assert again.walk.last == 0 and books(again) == before
    again.stop()


OLD_DAMAGE = {
    "a journal row": ("update journal set time = replace(time, '20', '21') where seq = 5", "row 5 "),
    "a decision": ("update decisions set body = replace(body, '1', '2') where seq = 3", "row 3"),
    "a job that has gone": ("update ended set owner = 'bob' where job = 'ann.1'", "row"),
    "what became of it": ("update ended set body = replace(body, 'done', 'fail') where job = 'ann.1'", "row"),
    "one less": ("delete from ended where job = 'ann.1'", "ended has"),
    "a posting": ("update ledger set what = 'no-show' where seq = 6", "row 6"),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("case", OLD_DAMAGE)
def test_damage_before_the_snapshot_is_named_soon_after_the_start(case, tmp_path):
    path = tmp_path / "m.db"
    service = live(path)
    one_day(service, "ann")
    service.stop()
    assert snapshots_of(path)[-1] > 10
    change, words = OLD_DAMAGE[case]
    damaged(path, change)
    try:
        again = live(path)
    except JournalError as error:
        assert words in str(error)
        return
    assert words in walked(again)
    again.stop()


def test_a_market_that_cannot_be_written_down_goes_on(tmp_path, monkeypatch):
    def fails(market):
        raise TypeError("cannot pickle")

    monkeypatch.setattr("marketsched.live.kept_market.frozen", fails)
    service = live(tmp_path / "m.db")
    one_day(service, "ann")
    assert not service.down and service.snapshots.every == 0 and snapshots_of(tmp_path / "m.db") == []
    service.stop()
    check_journal(f"{tmp_path}/m.db")
