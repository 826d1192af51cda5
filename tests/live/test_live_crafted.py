"""A database that somebody made up, with a chain of digests that fits: reading it runs nothing."""

import base64
import json
import os
import pickle
import shutil
import sqlite3
import subprocess
import zlib
from contextlib import closing

import numpy as np
import pytest

from live_tools import OPERATOR, PLAIN, refused, sow
from marketsched.live import (
    calls,
    slurm,  # what the first dotted name goes through
)
from marketsched.live.configuration import live_config
from marketsched.live.database import JournalError
from marketsched.live.journal import Journal
from marketsched.live.machine import LiveMarket
from marketsched.live.plain_state import Classes, plain, rebuilt
from marketsched.live.playing import check_market, play_journal
from marketsched.live.service import LiveService
from marketsched.live.snapshots import digest_of, frozen, made_by, thawed
from marketsched.mechanisms.errors import InvalidParameterError

assert slurm.subprocess is subprocess


class Calls:
    """Pickled as a call."""

    def __init__(self, function, *said):
        self.call = (function, said)

    def __reduce__(self):
        return self.call


def pickles(touch):
    """Return pickles, by what they try; `pickle` runs the command of each."""
    objects = np.empty(1, dtype=object)
    objects[0] = Calls(os.system, touch)
    return {
        "REDUCE": pickle.dumps(Calls(os.system, touch), 2),
        "numpy with objects": pickle.dumps(objects, 5),
        "a dictionary of a market": pickle.dumps({"jobs": {"x": Calls(os.system, touch)}}, 5),
    }


def state(*nodes):
    return json.dumps({"nodes": list(nodes), "root": [len(nodes) - 1]})


def data(touch):
    """Return states in today's form, by what they try."""
    nothing = base64.b64encode(b"\0" * 8).decode()
    popen = {"args": ["sh", "-c", touch]}
    field = {"fields": 0}
    return {
        "class of a module of the package": state(["object", ["marketsched.live.slurm", "Popen"], popen]),
        "class that a module imports": state(["object", ["marketsched.live.machine", "Counter"], field]),
        "class with a dotted name": state(["object", ["marketsched.live.machine", "LiveMarket.__class__"], field]),
        "function": state(["object", ["os", "system"], {"command": touch}]),
        "function of the package": state(["object", ["marketsched.mechanisms.sow", "_rebuild"], field]),
        "class of another package": state(["object", ["subprocess", "Popen"], popen]),
        "named tuple of none": state(["named", ["subprocess", "Popen"], [touch]]),
        "factory": state(["default", "system", [[touch, touch]]]),
        "array of objects": state(["array", "|O", [1], "C", True, nothing]),
        "array of fields of objects": state(["array", [["x", "|O"]], [1], "C", True, nothing]),
        "type by name": state(["array", "numpy.testing._private.utils.runstring", [1], "C", True, nothing]),
        "generator": state(["generator", {"bit_generator": "os.system"}, 1, [], 4, 0]),
        "unknown kind": state(["reduce", ["os", "system"], [touch]]),
        "module by its path": state(["object", [f"{'../' * 9}tmp/x", "X"], field]),
        "too deep": "[" * 100_000,
        "no table": "[]",
    }  # fmt: skip


KINDS = sorted(["pickle: " + each for each in pickles("")] + ["data: " + each for each in data("")])


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


def craft(path, content):
    """Put a state into the last snapshot, and make all digests fit: the chain has no key."""
    journal = Journal(str(path))
    journal.open(writing=False)
    config = live_config(journal.market()["configuration"])
    rows = list(journal.rows())
    changes, digest = [], ""
    for row in rows:
        if row.event == "snapshot":
            row.body |= {"digest": digest_of(content), "made_by": made_by(config)}
        digest = journal.seal(row, digest)
        changes.append((json.dumps(row.body), digest, row.seq))
    journal.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("update journal set body = ?, digest = ? where seq = ?", changes)
        connection.execute("update snapshots set state = ?", (content,))


def test_a_crafted_chain_is_read_as_one_that_was_written(written, tmp_path):
    """The negative control: a state that is one goes through the same hands, and is read."""
    path = shutil.copy(written, tmp_path / "m.db")
    market = LiveMarket(live_config(PLAIN))
    market.usable = 1
    craft(path, frozen(market))
    journal = Journal(str(path))
    journal.open(writing=False)
    config = live_config(journal.market()["configuration"])
    error = refused(JournalError, play_journal, config, journal)  # of other accounts than the ledger's
    journal.close()
    assert "ledger: " in str(error)


def test_the_pickles_do_run_what_they_say(tmp_path):
    """The other one: `pickle` runs them."""
    for n, kind in enumerate(pickles("")):
        canary = tmp_path / str(n)
        pickle.loads(pickles(f"touch {canary}")[kind])
        assert canary.exists()


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("kind", KINDS)
def test_a_crafted_snapshot_runs_nothing(kind, written, tmp_path):
    path, canary = shutil.copy(written, tmp_path / "m.db"), tmp_path / "canary"
    touch = f"touch {canary}"
    form, _, name = kind.partition(": ")
    content = pickles(touch)[name] if form == "pickle" else data(touch)[name].encode()
    craft(path, zlib.compress(content))
    assert check_market(str(path)).seq > 3  # which reads no snapshot
    error = refused(JournalError, LiveService, str(path))
    sealing = LiveService(str(path), key_file=tmp_path / "key")  # passes it over
    sealing.stop()
    assert sealing.walk.last == 0 and sealing.last_seq > 3
    refused(JournalError, thawed, zlib.compress(content), live_config(PLAIN))
    assert "the snapshot cannot be read" in str(error) and "--check-all" in str(error)
    assert not canary.exists()
    again = LiveService(str(path), check_all=True)
    again.stop()
    assert not canary.exists()


def test_a_state_without_the_seal_is_not_read(written, tmp_path, caplog):
    """Not even one that a service wrote: its arrays may have been changed."""
    path, key = shutil.copy(written, tmp_path / "m.db"), tmp_path / "key"

    def begins_from(key_file):
        service = LiveService(str(path), key_file=key_file)
        service.start()
        service.ask(lambda turn: service.take_snapshot()).result(20)
        service.stop()
        return service.walk.last

    assert begins_from(key) == 0 and "has not the seal of this service's key" in caplog.text
    assert key.stat().st_mode & 0o777 == 0o600
    assert begins_from(key) > 0 and begins_from(tmp_path / "other key") == 0 and begins_from(None) > 0
    for content in ("x", "é", "ab" * 31):
        key.write_text(content)
        assert "holds no key" in str(refused(InvalidParameterError, LiveService, str(path), key_file=key))


def test_a_state_that_unpacks_to_no_end_is_refused(monkeypatch):
    monkeypatch.setattr("marketsched.live.snapshots.LARGEST", 1000)
    refused(JournalError, thawed, zlib.compress(b"[" * 100_000), live_config(PLAIN))


@pytest.mark.parametrize("found", [print, len, lambda: 0, open(os.devnull), np.random.MT19937(1), [Calls(print)]])
def test_what_is_no_plain_data_is_not_written(found):
    with pytest.raises((TypeError, ValueError)):
        plain({"x": found}, Classes(), None)


def test_plain_data_comes_back_with_what_it_shares():
    shared, numbers = [1, 2.5, float("inf"), "\ud800", None, True], np.arange(6.0).reshape(2, 3)[:, ::-1]
    frozen_array = np.array([1, 2], dtype="<i4")
    frozen_array.flags.writeable = False
    rng = np.random.default_rng(5)
    rng.spawn(2)
    rng.random(3)
    fields = np.array([(1, 2.5)], dtype=[("a", "<i8"), ("b", "<f8")])
    found = {
        "shared": (shared, shared, frozenset({1, (2, "x")})),
        3: {"numbers": numbers, "one": numbers[0, 1], "fields": fields, "empty": np.empty((0, 3))},
        (1, 2): [frozen_array, {4, 5}, b"x", rng],
        "itself": [],
    }
    found["itself"].append(found)
    back = rebuilt(plain(found, Classes(), None), Classes(), None)
    assert back["itself"][0] is back and back["shared"][0] is back["shared"][1]
    assert back["shared"] == found["shared"] and list(back) == list(found)
    for name in ("numbers", "fields", "empty"):
        assert np.array_equal(back[3][name], found[3][name]) and back[3][name].dtype == found[3][name].dtype
    assert type(back[3]["one"]) is np.float64
    array, *others, again = back[1, 2]
    assert not array.flags.writeable and array.dtype == "<i4"
    assert others == found[1, 2][1:-1]
    assert again.random() == rng.random() and again.spawn(1)[0].random() == rng.spawn(1)[0].random()
