"""One writer, a chain over everything that is answered, and nothing written before all is checked."""

import json
import os
import secrets
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from itertools import count

import numpy as np
import pytest

from live_tools import ANN, OPERATOR, PLAIN, ask, check_journal, look, refused, sow, state
from marketsched.live import calls, snapshots
from marketsched.live.clock import Clock
from marketsched.live.database import JournalError
from marketsched.live.journal import Journal
from marketsched.live.service import LiveService
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError

KEYS = ("first", "second")


def populated(path, **options):
    """Make a market with owners, tokens made and revoked, answers that are kept, charges and decisions."""
    service = LiveService(str(path), PLAIN, operator_token_file=path.with_suffix(".token"), **options)
    service.start()
    for name in ("ann", "ben"):
        ask(service, calls.create_owner(OPERATOR, {"owner": name, "deposit": 10, "limit": 3}))
    ask(service, calls.renew(OPERATOR, "ben"))
    for n, key in enumerate(KEYS, start=1):
        ask(service, calls.submit(ANN, {"sow": sow(n, 1)}), key)
        ask(service, calls.arrive(ANN, f"ann.{n}", {"signal": 1}))
        ask(service, calls.advance(OPERATOR, {}))
    ask(service, calls.complete(OPERATOR, "ann.2", {"exit_code": 0}))
    return service


def answers(path):
    """Return all that a service on this database answers; None if it is refused, by an error that is ours."""
    try:
        service = LiveService(str(path))
    except MarketschedError as error:
        assert str(error) and "\n" not in str(error)
        return None
    service.start()
    try:
        while not service.walk.over:  # what stands before the snapshot is read in its spare time
            ask(service, lambda turn: None)
        again = [ask(service, calls.submit(ANN, {"sow": sow(1, 1)}), key) for key in KEYS]
        listed = ask(service, calls.jobs(OPERATOR, None, None, "", 99))["jobs"]
        jobs = [ask(service, calls.job(OPERATOR, each["job"])) for each in listed]
        market = {**ask(service, look), "clock": None}
        accounts, ledger = ask(service, calls.owners(OPERATOR)), ask(service, calls.ledger(OPERATOR, None, 0, 99))
        return json.dumps([again, jobs, market, accounts, ledger, state(service.market), dict(service.tokens)])
    except MarketschedError:
        return None
    finally:
        service.stop()


def changed(path, rng):
    """Change one character of one field of the database; return what was changed."""

    def below(count):  # takes one draw, however many there are
        return int(rng.random() * count)

    with closing(sqlite3.connect(path)) as connection, connection:
        tables = ("journal", "decisions", "ledger", "accounts", "tokens", "idempotency", "market", "ended", "snapshots")
        table = tables[below(len(tables))]
        columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
        columns = [each for each in columns if each not in ("checked", "writer", "id")]
        column = columns[below(len(columns))]
        found = connection.execute(f"select rowid, {column} from {table} order by rowid").fetchall()
        rowid, old = found[below(len(found))]
        place, letter, new = rng.random(), rng.random(), "1"
        if isinstance(old, bytes):
            at = int(place * len(old))
            new = old[:at] + bytes([old[at] ^ (1 << int(8 * letter))]) + old[at + 1 :]
        elif old is not None:
            at, letters = int(place * len(str(old))), "0123456789abcx{}\"'-."
            new = str(old)[:at] + letters[int(letter * len(letters))] + str(old)[at + 1 :]
        try:
            connection.execute(f"update {table} set {column} = ? where rowid = ?", (new, rowid))
        except sqlite3.IntegrityError:  # the number of another row
            return ""
    return f"{table}.{column} of row {rowid}: {old!r} to {new!r}" if new not in (old, str(old)) else ""


def unmoved(monkeypatch):
    """Let a market's times and tokens be the same each time, and snapshots as often as is set."""
    numbers = count()
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: f"{next(numbers):0{size}}")
    monkeypatch.setattr(snapshots, "SHARE", 1e9)
    return partial(Clock, system=lambda: datetime(2026, 1, 1, tzinfo=UTC), elapsed=lambda: 0.0)


def one_byte_changes(tmp_path, count, seed, make_clock):
    path = tmp_path / "m.db"
    populated(path, snapshot_rows=7, make_clock=make_clock).stop()
    assert answers(path)
    before, rng, refusals = answers(path), np.random.default_rng(seed), 0
    whole = path.read_bytes()  # closed: all of it is in this file
    for _ in range(count):
        assert not (tmp_path / "m.db-wal").exists()  # in which a change before this one could stand
        path.write_bytes(whole)
        what = changed(path, rng)
        found = answers(path)
        refusals += found is None
        assert found in (None, before), what
    return refusals


@pytest.mark.slow
def test_a_changed_character_is_refused_or_changes_no_answer(tmp_path, monkeypatch):
    assert one_byte_changes(tmp_path, 10, 1, unmoved(monkeypatch)) > 5


DAMAGE = {
    "a kept answer": ("update idempotency set answer = replace(answer, 'ann.1', 'ann.9')", "row 8 (submit)"),
    "whose answer": ("update idempotency set account = 'ben' where key = 'second'", "row 11 (submit)"),
    "a token": ("update tokens set digest = 'x' || substr(digest, 2) where account = 'ann'", "row"),
    "whose token": ("update tokens set account = 'operator' where account = 'ann'", "row"),
    "a revoked token": ("update tokens set revoked = null where revoked is not null", "row"),
    "one more token": ("insert into tokens values ('x', 'operator', 999, null)", "tokens has 5 rows"),
    "a role": ("update accounts set role = 'operator' where name = 'ann'", "accounts, ann"),
    "a balance": ("update accounts set balance_micro = 7 where name = 'ben'", "accounts, ben"),
    "a column": (
        "update decisions set job = 'ben.1' where event = 'start' and seq = 10",
        "row 10 (advance), decision 1",
    ),
    "the market": ("update market set name = 'another'", "row 1"),
    "no JSON": ("update journal set body = '{' || body where seq = 7", "row 7"),
    "no JSON in a decision": ("update decisions set body = 'x' || body where seq = 8", "row 8"),
    "no JSON in an answer": ("update idempotency set answer = 'x' where seq = 11", "row 11"),
    "no configuration": ("update market set configuration = '[]'", "configuration is damaged"),
}


@pytest.mark.slow_after(7)
@pytest.mark.parametrize("case", DAMAGE)
def test_damage_beside_the_journal_is_named(case, tmp_path):
    populated(tmp_path / "m.db").stop()
    change, words = DAMAGE[case]
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection, connection:
        assert connection.execute(change).rowcount
    assert words in str(refused(JournalError, LiveService, f"{tmp_path}/m.db"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("update market set configuration = json_set(configuration, '$.max_delay', 7)", "the market's configuration"),
        ("update journal set body = replace(body, 'counts', 'c0unts') where event = 'snapshot'", "(snapshot)"),
    ],
)
def test_damage_that_no_played_row_shows_is_named_at_a_snapshot(change, words, tmp_path):
    service = populated(tmp_path / "m.db", snapshot_rows=7)
    service.stop()
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection, connection:
        assert connection.execute(change).rowcount
    assert words in str(refused(JournalError, LiveService, f"{tmp_path}/m.db"))


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_has_one_writer_under_all_its_names(link, tmp_path):
    first = populated(tmp_path / "m.db")
    link(tmp_path / "m.db", tmp_path / "other.db")
    assert "another service" in str(refused(JournalError, LiveService, f"{tmp_path}/other.db"))
    ask(first, calls.submit(ANN, {"sow": sow(3, 1)}))
    first.stop()
    check_journal(f"{tmp_path}/m.db")


def test_where_locks_do_not_hold_the_first_writes_nothing_more(tmp_path, monkeypatch):
    first = populated(tmp_path / "m.db")
    monkeypatch.setattr(Journal, "_lock_file", lambda self: None)
    second = LiveService(f"{tmp_path}/m.db")
    second.start()
    refused(MarketschedError, ask, first, calls.submit(ANN, {"sow": sow(3, 1), "name": "lost"}))
    assert ask(second, calls.submit(ANN, {"sow": sow(3, 1), "name": "kept"}))["job"] == "ann.kept"
    assert "another service" in str(refused(MarketschedError, ask, first, calls.submit(ANN, {"sow": sow(3, 1)})))
    first.stop()
    second.stop()
    assert [row.job for row in check_journal(f"{tmp_path}/m.db")][-1] == "ann.kept"


@pytest.mark.parametrize(
    "clock",
    [
        {"kind": "wall", "round_seconds": 1e-6},
        {"kind": "wall", "round_seconds": 1e300},
        {"kind": "wall", "round_seconds": 60, "first_round": "9999-12-31T23:59:59Z"},
        {"kind": "wall", "round_seconds": 60, "first_round": "0001-01-01T00:00:00+14:00"},
        {"kind": "wall", "round_seconds": 1, "first_round": "2001-01-01T00:00:00Z"},
    ],
)
def test_a_clock_that_cannot_be_kept_is_refused_before_anything_is_written(clock, tmp_path):
    refused(InvalidParameterError, LiveService, f"{tmp_path}/m.db", {**PLAIN, "clock": clock})
    LiveService(f"{tmp_path}/m.db", {**PLAIN, "clock": {"kind": "wall", "round_seconds": 60}}).stop()


def test_a_market_is_not_made_where_its_operator_would_have_no_token(tmp_path):
    token = tmp_path / "operator.token"
    token.write_text("mine")
    with pytest.raises(FileExistsError):
        LiveService(f"{tmp_path}/m.db", PLAIN, operator_token_file=token)
    token.unlink()
    LiveService(f"{tmp_path}/m.db", PLAIN, operator_token_file=token).stop()
    assert len(token.read_text().strip()) == 43 and oct(token.stat().st_mode)[-3:] == "600"


@pytest.mark.parametrize("db", ["", ".", ":memory:", "sqlite://", "sqlite:///:memory:", "a\0b"])
def test_what_is_no_file_is_no_database(db):
    assert refused(InvalidParameterError, Journal, db).place == "db"
