"""A database that somebody made up, with a chain of digests that fits: reading it runs nothing."""

import json
import os
import pickle
import shutil
import sqlite3
import zlib
from contextlib import closing

import pytest

from live_tools import OPERATOR, PLAIN, refused, sow
from marketsched.live import calls
from marketsched.live.configuration import live_config
from marketsched.live.database import JournalError
from marketsched.live.journal import Journal
from marketsched.live.machine import LiveMarket
from marketsched.live.playing import check_market
from marketsched.live.service import LiveService
from marketsched.live.snapshots import digest_of, frozen, key_in, made_by, seal_of, thawed
from marketsched.mechanisms.errors import InvalidParameterError


class Calls:
    """Pickled as a call."""

    def __init__(self, function, *said):
        self.call = (function, said)

    def __reduce__(self):
        return self.call


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A market with a snapshot, and a row behind it."""
    path = tmp_path_factory.mktemp("crafted") / "m.db"
    service = LiveService(str(path), PLAIN)
    service.start()
    service.ask(calls.create_owner(OPERATOR, {"owner": "ann", "deposit": 50})).result(20)
    service.ask(calls.submit(OPERATOR, {"owner": "ann", "sow": sow(1)})).result(20)
    service.ask(lambda turn: service.take_snapshot()).result(20)
    service.stop()
    return path


@pytest.fixture
def path(written, tmp_path):
    """A copy of the market, and of its key."""
    shutil.copy(written.with_name("snapshot.key"), tmp_path)
    return shutil.copy(written, tmp_path / "m.db")


def craft(path, content, key):
    """Put a state into the last snapshot, sealed by a key, and make all digests fit: the chain has no key."""
    journal = Journal(str(path))
    journal.open(writing=False)
    config = live_config(journal.market()["configuration"])
    rows = list(journal.rows())
    changes, digest = [], ""
    for row in rows:
        if row.event == "snapshot":
            row.body |= {"digest": digest_of(content), "made_by": made_by(config), "seal": seal_of(content, key)}
        digest = journal.seal(row, digest)
        changes.append((json.dumps(row.body), digest, row.seq))
    journal.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("update journal set body = ?, digest = ? where seq = ?", changes)
        connection.execute("update snapshots set state = ?", (content,))


def test_a_state_with_the_seal_is_read(path):
    """The negative control: whoever has the key is believed, also with a state of other accounts than the ledger's."""
    market = LiveMarket(live_config(PLAIN))
    market.usable = 1
    craft(path, frozen(market), key_in(path.with_name("snapshot.key")))
    assert "ledger: " in str(refused(JournalError, LiveService, str(path)))


def test_a_crafted_snapshot_runs_nothing(path, tmp_path, caplog):
    content = pickle.dumps({"jobs": {"x": Calls(os.system, f"touch {tmp_path}/canary")}})
    pickle.loads(content)
    (tmp_path / "canary").unlink()  # what reading would do
    craft(path, zlib.compress(content), b"another key")
    assert check_market(str(path)).seq > 3  # which reads no snapshot
    for options in ({}, {"check_all": True}, {"key_file": tmp_path / "new key"}):
        service = LiveService(str(path), **options)  # passes it over
        service.stop()
        assert service.walk.last == 0 and service.last_seq > 3
    assert "has not the seal of this service's key" in caplog.text
    assert not (tmp_path / "canary").exists()


def test_a_state_without_the_seal_is_not_read(path, tmp_path):
    """Not even one that a service wrote: its arrays may have been changed."""
    key = tmp_path / "key"

    def begins_from(key_file):
        service = LiveService(str(path), key_file=key_file)
        service.start()
        service.ask(lambda turn: service.take_snapshot()).result(20)
        service.stop()
        return service.walk.last

    assert begins_from(key) == 0
    assert key.stat().st_mode & 0o777 == 0o600
    assert begins_from(key) > 0 and begins_from(tmp_path / "other key") == 0
    for content in ("x", "é", "ab" * 31):
        key.write_text(content)
        assert "holds no key" in str(refused(InvalidParameterError, LiveService, str(path), key_file=key))


@pytest.mark.parametrize("state", [b"no state", zlib.compress(b"no pickle"), zlib.compress(pickle.dumps([1]))])
def test_what_is_no_snapshot_is_refused(state):
    assert "the snapshot " in str(refused(JournalError, thawed, state, live_config(PLAIN)))


def test_what_cannot_be_written_is_not_written():
    market = LiveMarket(live_config(PLAIN))
    with open(os.devnull) as market.usable, pytest.raises(TypeError):
        frozen(market)
