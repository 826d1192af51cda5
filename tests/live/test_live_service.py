"""What is answered is in the journal: restarts, altered journals, two services, full disks, databases that go away."""

import json
import sqlite3
import threading
import time
from datetime import timedelta

import pytest

from live_databases import binaries, database, postgres
from live_tools import ANN, OPERATOR, PLAIN, Hands, ask, check_journal, config, look, refused, sow, state
from marketsched.live import calls
from marketsched.live.configuration import live_config
from marketsched.live.database import JournalError
from marketsched.live.service import LiveService, Repeatable, UnavailableError
from marketsched.mechanisms.errors import EventError, InvalidParameterError, InvalidReportError

DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Let the key of a server's database lie in a folder of the test."""
    monkeypatch.chdir(tmp_path)


def begun(url, rules=PLAIN, **options):
    service = LiveService(url, rules, **options)
    service.start()
    return service


def populated(url, rules=PLAIN):
    """Return a service after a day of one owner."""
    service = begun(url, rules)
    ask(service, calls.create_owner(OPERATOR, {"owner": "ann", "deposit": 10}))
    for n in (1, 2, 3):
        ask(service, calls.submit(ANN, {"sow": sow(n, 1)}))
        ask(service, calls.arrive(ANN, f"ann.{n}", {"signal": 1}) if n < 3 else look)
        ask(service, calls.advance(OPERATOR, {}))
        if n < 3:
            ask(service, calls.complete(OPERATOR, f"ann.{n}", {"exit_code": 0}))
    return service


@pytest.mark.parametrize("kind", DATABASES)
def test_a_restart_leads_to_the_same_state(kind, tmp_path):
    with database(kind, tmp_path) as url:
        service = populated(url)
        before, last = state(service.market), service.last_seq
        service.stop()
        again = LiveService(url)
        assert state(again.market) == before and again.last_seq == last
        assert again.config == live_config(PLAIN)
        again.stop()
        check_journal(url)


def test_a_market_goes_on_with_its_own_configuration_alone(tmp_path):
    populated(f"{tmp_path}/m.db").stop()
    error = refused(InvalidParameterError, LiveService, f"{tmp_path}/m.db", {**PLAIN, "capacity": 3})
    assert error.place == "capacity" and "as this market was made with" in str(error)
    LiveService(f"{tmp_path}/m.db", {**PLAIN, "requests_per_second": 5}).stop()
    refused(InvalidParameterError, LiveService, f"{tmp_path}/new.db")


def test_what_the_mechanism_refuses_makes_no_market(tmp_path):
    sizes = {key: PLAIN[key] for key in PLAIN if key not in ("pricing", "threshold")}
    refused(InvalidParameterError, LiveService, f"{tmp_path}/m.db", {**PLAIN, "pricing": {"kind": "exponential"}})
    lawless = {**sizes, "mechanism": "bid-price", "parameters": {"forecast": "laws"}}
    refused(InvalidParameterError, LiveService, f"{tmp_path}/m.db", lawless)
    LiveService(f"{tmp_path}/m.db", {**sizes, "mechanism": "bid-price", "parameters": {"ahead": 9}}).stop()
    refused(InvalidParameterError, LiveService, f"{tmp_path}/m.db", {**sizes, "mechanism": "bid-price"})
    LiveService(f"{tmp_path}/m.db").stop()


@pytest.mark.parametrize("kind", DATABASES)
def test_a_second_service_is_refused_until_the_first_has_gone(kind, tmp_path):
    with database(kind, tmp_path) as url:
        first = begun(url)
        assert "another service" in str(refused(JournalError, LiveService, url, PLAIN))
        first.stop()
        LiveService(url, PLAIN).stop()


ALTERED = {
    "a report": ("update journal set body = replace(body, '4.0', '5.0') where event = 'submit'", "plan"),
    "a signal": ("update journal set body = '{\"signal\": 2}' where seq = 4", None),
    "who did it": ("update journal set by = 'ben' where seq = 8", "digest"),
    "when": ("update journal set time = replace(time, '20', '19') where seq = 8", "digest"),
    "a decision": ("update decisions set body = replace(body, 'start', 'drop') where event = 'start'", "decision"),
    "a lost decision": ("delete from decisions where event = 'start'", "decision 1: written is None"),
    "a charge": ("update ledger set micro = micro * 2 where what = 'charge'", "posting 1"),
    "a lost row": ("delete from journal where seq = 6", "row 6 is missing"),
    "a lost end": ("delete from journal where seq > 7", None),
    "a nonsense event": ("update journal set event = 'nonsense' where seq = 6", "row 6 (nonsense) cannot be played"),
}


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("case", ALTERED)
def test_an_altered_journal_stops_the_start(case, tmp_path):
    populated(f"{tmp_path}/m.db").stop()
    change, words = ALTERED[case]
    with sqlite3.connect(tmp_path / "m.db") as connection:
        changed = connection.execute(change).rowcount
    connection.close()
    assert changed
    error = str(refused(JournalError, LiveService, f"{tmp_path}/m.db"))
    assert words is None or words in error


def test_a_library_that_decides_otherwise_stops_the_start(tmp_path, monkeypatch):
    populated(f"{tmp_path}/m.db").stop()
    from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism

    right = PostedPriceMechanism.complete

    def dearer(self, job):
        event = right(self, job)
        return type(event)(event.round, event.kind, event.job, event.completion, event.payment + 1e-9)

    monkeypatch.setattr(PostedPriceMechanism, "complete", dearer)
    error = str(refused(JournalError, LiveService, f"{tmp_path}/m.db"))
    assert "journal row 6 (complete), decision 1" in error


def test_a_request_that_is_sent_again_happens_once(tmp_path):
    service = populated(f"{tmp_path}/m.db")
    work = calls.submit(ANN, {"sow": sow(4, 1)})
    first = ask(service, work, "key")
    last = service.last_seq
    assert ask(service, work, "key") == first and service.last_seq == last
    assert "used before" in str(refused(EventError, ask, service, work, "key", "another request"))
    together = [service.ask(work, Repeatable("ann", "other", "r")) for _ in range(20)]
    assert len({future.result(20)["job"] for future in together}) == 1 and service.last_seq == last + 1
    service.stop()
    again = begun(f"{tmp_path}/m.db")
    assert ask(again, work, "key") == first and again.last_seq == last + 1
    again.stop()


def test_no_token_is_written_down(tmp_path):
    service = begun(f"{tmp_path}/m.db", operator_token_file=tmp_path / "token")
    made = calls.create_owner(OPERATOR, {"owner": "ann"})
    token = ask(service, made, "key")["token"]
    assert ask(service, made, "key")["token"] is None  # what is kept of the answer has none
    service.stop()
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600 == (tmp_path / "m.db").stat().st_mode & 0o777
    written = b"".join(path.read_bytes() for path in tmp_path.glob("m.db*"))
    assert token.encode() not in written
    assert (tmp_path / "token").read_text().strip().encode() not in written


def test_a_refused_request_leaves_no_trace(tmp_path):
    service = populated(f"{tmp_path}/m.db")
    before, last = state(service.market), service.last_seq
    refused(Exception, ask, service, calls.submit(ANN, {"sow": sow(1, 9)}))
    assert state(service.market) == before and service.last_seq == last
    service.stop()


class Disk:
    """An SQLite database that is full while ``full`` is set."""

    def __init__(self, service):
        self.service = service

    def fill(self):
        self.service.ask(self._pages).result(20)

    def _pages(self, turn):
        # A limit on the pages is what SQLite itself answers like a full disk.
        raw = turn.journal.connection.connection.driver_connection
        raw.execute(f"PRAGMA max_page_count={raw.execute('PRAGMA page_count').fetchone()[0]}")


@pytest.mark.slow
def test_a_full_disk_is_answered_and_survived(tmp_path):
    service = populated(f"{tmp_path}/m.db")
    Disk(service).fill()
    taken, error = 0, None
    for n in range(10_000):
        try:
            ask(service, calls.submit(ANN, {"sow": sow(4, 1)}), f"full-{n}")
            taken += 1
        except UnavailableError as found:
            error = found
            break
    assert error is not None and "full" in str(error)
    # The limit ends with the connection: the service connects again, and has nothing that was not answered.
    deadline = time.monotonic() + 20
    while service.down and time.monotonic() < deadline:
        time.sleep(0.05)
    assert service.market.tally.total() == 3 + taken and service.restarts == 1
    ask(service, calls.submit(ANN, {"sow": sow(4, 1)}), f"full-{taken}")
    before = state(service.market)
    service.stop()
    rows = check_journal(f"{tmp_path}/m.db")
    assert sum(row.event == "submit" for row in rows) == 3 + taken + 1
    again = LiveService(f"{tmp_path}/m.db")
    assert state(again.market) == before
    again.stop()


@pytest.mark.slow
def test_memory_does_not_run_ahead_of_a_failed_write(tmp_path, monkeypatch):
    service = populated(f"{tmp_path}/m.db")
    before = state(service.market)
    write = service.journal.write
    failures = []

    def failing(batch):
        failures.append(len(batch.rows))
        raise JournalError("the disk is on fire")

    monkeypatch.setattr(service.journal, "write", failing)
    refused(UnavailableError, ask, service, calls.submit(ANN, {"sow": sow(4, 1)}))
    monkeypatch.setattr(service.journal, "write", write)
    deadline = time.monotonic() + 20
    while service.down and time.monotonic() < deadline:
        time.sleep(0.02)
    assert failures and state(service.market) == before
    service.stop()


@pytest.mark.slow
def test_a_commit_that_nobody_heard_of_is_not_repeated(tmp_path, monkeypatch):
    service = populated(f"{tmp_path}/m.db")
    write = service.journal.write

    def lost(batch):
        write(batch)
        raise JournalError("the connection was lost during commit")

    monkeypatch.setattr(service.journal, "write", lost)
    work = calls.submit(ANN, {"sow": sow(4, 1)})
    refused(UnavailableError, ask, service, work, "key")
    monkeypatch.setattr(service.journal, "write", write)
    deadline = time.monotonic() + 20
    while service.down and time.monotonic() < deadline:
        time.sleep(0.02)
    last = service.last_seq
    assert ask(service, work, "key")["job"] == "ann.4" and service.last_seq == last
    service.stop()


@pytest.mark.slow
@pytest.mark.skipif(binaries() is None, reason="PostgreSQL is not installed (Debian: postgresql)")
def test_a_database_that_goes_away_and_comes_back():
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="pg-", dir="/tmp")
    try:
        with postgres(folder) as server:
            service = populated(server.url)
            before = state(service.market)
            server.stop()
            for _ in range(3):
                error = refused(UnavailableError, ask, service, calls.submit(ANN, {"sow": sow(4, 1)}))
                assert "unavailable" in str(error)
            refused(UnavailableError, ask, service, look)
            server.start()
            deadline = time.monotonic() + 30
            while service.down and time.monotonic() < deadline:
                time.sleep(0.1)
            assert state(service.market) == before
            assert ask(service, calls.submit(ANN, {"sow": sow(4, 1)}))["job"] == "ann.4"
            assert "another service" in str(refused(JournalError, LiveService, server.url))
            service.stop()
            check_journal(server.url)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_statements_that_would_hold_others_up_are_refused_before_the_market_sees_them():
    rows = [{"arrival": 1, "duration": 1 + n % 3, "probability": 0.001} for n in range(257)]
    curve = {"kind": "table", "values": {str(n): 1.0 for n in range(1, 1026)}}
    shape = {"each": {"cpu": 1}, "on": {"a": [1]}, "law": [0.001] * 257}
    for report, words in (
        ({**sow(1), "requirements": rows}, "requirements has 257 cases: expected at most 256"),
        ({**sow(1), "value": curve}, "value.values has 1,025 times: expected at most 1,024"),
        ({"value": curve, "arrival": 1, "shapes": [shape]}, "value.values"),
        ({"value": {}, "arrival": 1, "shapes": [shape]}, "shapes have 257 cases"),
    ):
        for call in (calls.submit, calls.quote):
            assert words in str(refused(InvalidReportError, call, ANN, {"sow": report}))
    for report in ({**sow(1), "requirements": rows[:256]}, [], {"requirements": 3}, {"shapes": [3], "value": 1}):
        calls.submit(ANN, {"sow": report})  # what is wrong with these is said by the market


# -- clocks -------------------------------------------------------------------------------------------------


WALL = {**PLAIN, "clock": {"kind": "wall", "round_seconds": 60}}


def rounds(service):
    """Let the service look at its clock, and return the open round."""
    ask(service, lambda turn: None)
    return ask(service, lambda turn: turn.market.round)


def test_rounds_end_on_the_clock(tmp_path):
    hands = Hands()
    service = begun(f"{tmp_path}/m.db", WALL, make_clock=hands.clock)
    assert rounds(service) == 1
    hands.pass_(59)
    assert rounds(service) == 1
    hands.pass_(2)
    assert rounds(service) == 2
    refused(EventError, ask, service, calls.advance(OPERATOR, {}))
    hands.system += timedelta(days=400)  # somebody sets the clock: nothing moves
    assert rounds(service) == 2 and service.clock.offset() > 10**7
    hands.system -= timedelta(days=900)
    hands.pass_(60)
    assert rounds(service) == 3
    service.stop()


def test_rounds_that_ended_while_nobody_served_are_late(tmp_path):
    hands = Hands()
    service = begun(f"{tmp_path}/m.db", WALL, make_clock=hands.clock)
    hands.pass_(61)
    assert rounds(service) == 2
    service.stop()
    hands.pass_(60 * 5)
    service = begun(f"{tmp_path}/m.db", WALL, make_clock=hands.clock)
    assert rounds(service) == 7
    late = [row.body.get("late_seconds") for row in service.journal.rows() if row.event == "advance"]
    assert late == [None, 241.0, 181.0, 121.0, 61.0, None]
    service.stop()
    hands.system -= timedelta(hours=3)  # behind the journal: the open round lasts until its end comes
    service = begun(f"{tmp_path}/m.db", WALL, make_clock=hands.clock)
    assert rounds(service) == 7
    service.stop()


def test_a_clock_of_another_century_stops_the_start(tmp_path):
    hands = Hands()
    begun(f"{tmp_path}/m.db", WALL, make_clock=hands.clock).stop()
    hands.system += timedelta(days=36_500)
    error = refused(InvalidParameterError, LiveService, f"{tmp_path}/m.db", make_clock=hands.clock)
    assert "a clock that is right" in str(error)


def test_who_hangs_up_stops_nothing(tmp_path):
    service = LiveService(f"{tmp_path}/m.db", PLAIN)
    waiting = [service.ask(look) for _ in range(3)]
    assert waiting[1].cancel()
    service.start()
    assert waiting[2].result(20)["round"] == waiting[0].result(20)["round"] == 1
    assert ask(service, calls.advance(OPERATOR, {}))["round"] == 2
    service.stop()


def test_jobs_can_be_looked_at_before_they_are_written(tmp_path):
    """All of this is one transaction: what it looks at is in the journal only after it."""
    service = LiveService(f"{tmp_path}/m.db", PLAIN)
    deposit = {"owner": "ann", "deposit": 10}
    asked = [
        calls.create_owner(OPERATOR, deposit),
        calls.submit(ANN, {"sow": sow(1, 1), "name": "a"}),
        calls.job(ANN, "ann.a"),
        calls.arrive(ANN, "ann.a", {"signal": 1}),
        calls.advance(OPERATOR, {}),
        calls.complete(OPERATOR, "ann.a", {}),
        calls.jobs(ANN, None, None, "", 9),
        calls.job(ANN, "ann.a"),
    ]
    waiting = [service.ask(work) for work in asked]
    service.start()
    _, submitted, first, *_, completed, page, last = [future.result(20) for future in waiting]
    assert submitted["plan"] == first["plan"] == completed["plan"] == page["jobs"][0]["plan"] == last["plan"] != []
    assert [row["event"] for row in last["history"]] == ["submit", "arrive", "advance", "complete"]
    assert ask(service, calls.job(ANN, "ann.a")) == last  # and from the disk, now
    assert ask(service, calls.jobs(ANN, None, None, "", 9)) == page
    service.stop()


def test_jobs_are_listed_page_by_page_whatever_became_of_them(tmp_path):
    service = populated(f"{tmp_path}/m.db")
    for _ in range(4):
        ask(service, calls.submit(ANN, {"sow": sow(6, 1)}))

    def names(state, after="", limit=3):
        page = ask(service, calls.jobs(OPERATOR, None, state, after, limit))
        return [job["job"].removeprefix("ann.") for job in page["jobs"]], page["more"]

    assert names(None) == (["1", "2", "3"], True) and names(None, "ann.3") == (["4", "5", "6"], True)
    assert names(None, "ann.6") == (["7"], False) and names("completed", "ann.1") == (["2"], False)
    assert names("submitted", limit=2) == (["4", "5"], True) and names("submitted", "ann.2", 9)[0] == list("4567")
    assert names("missed") == (["3"], False)  # it was announced for round 3, and never came
    assert +service.market.tally == {"completed": 2, "missed": 1, "submitted": 4}
    assert list(service.market.jobs) == [f"ann.{n}" for n in range(4, 8)]
    service.stop()


def test_clients_together_lose_nothing(tmp_path):
    service = begun(f"{tmp_path}/m.db", config("posted-price", requests_per_second=1000))
    ask(service, calls.create_owner(OPERATOR, {"owner": "ann", "deposit": 1e6}))
    answered = []

    def client(number):
        for n in range(20):
            answered.append(ask(service, calls.submit(ANN, {"sow": sow(1, 1), "name": f"{number}-{n}"}))["job"])

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    service.stop()
    rows = check_journal(f"{tmp_path}/m.db")
    assert sorted(answered) == sorted(row.job for row in rows if row.event == "submit") and len(answered) == 160
    assert json.dumps(rows[-1].body)
