"""The command `marketsched live serve` in tests that kill it, and what its database then has to be."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import yaml

from live_tools import state
from marketsched.live.client import LiveClient, LiveUnavailableError
from marketsched.live.configuration import live_config
from marketsched.live.journal import Journal
from marketsched.live.playing import play_journal
from marketsched.live.snapshots import key_in

PATIENCE_S = 600.0  # for a start: where other work has the processors it takes minutes
SNAPSHOT_ROWS = 150


class Served:
    """The command `marketsched live serve`, which is killed and started again on the same port."""

    def __init__(self, url, folder, rules, *, snapshot_rows=SNAPSHOT_ROWS):
        self.folder, self.database, self.snapshot_rows = folder, url, snapshot_rows
        (folder / "market.yaml").write_text(yaml.safe_dump(rules))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        command = [sys.executable, "-m", "marketsched", "live", "serve", "market.yaml", "--db", self.database]
        log = (self.folder / "log").open("a")
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), "--snapshot-rows", str(self.snapshot_rows)],
            cwd=self.folder,
            stdout=log,
            stderr=log,
            env={**os.environ},
        )
        log.close()
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                LiveClient(self.url, "none", patience=0).health()
                return
            except LiveUnavailableError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(60) == 0, (self.folder / "log").read_text()


class LoadOfCalls:
    """Threads that call a service until they are stopped; what was ``answered``, and what failed."""

    def __init__(self):
        self.answered, self.faults, self.over, self.threads = [], [], False, []

    def begin(self, works):
        """Start a thread for each (function, arguments...)."""
        self.threads = [threading.Thread(target=self._run, args=work) for work in works]
        for thread in self.threads:
            thread.start()

    def wait(self, answers):
        """Wait until so many more events are answered."""
        wanted, deadline = len(self.answered) + answers, time.monotonic() + PATIENCE_S
        while len(self.answered) < wanted:
            assert time.monotonic() < deadline and not self.faults, self.faults
            time.sleep(0.002)

    def stop(self):
        self.over = True
        for thread in self.threads:
            thread.join()
        assert not self.faults, self.faults

    def _run(self, work, *arguments):
        try:
            work(*arguments)
        except Exception as error:
            self.faults.append(error)


def check_both_ways(url, key_file):
    """A market played from its last snapshot is the one played from its first event."""
    journal = Journal(url)
    journal.open(writing=False)
    rules = live_config(journal.market()["configuration"])
    cut, whole = play_journal(rules, journal, key=key_in(key_file)), play_journal(rules, journal, whole=True)
    journal.close()
    assert cut.snapshot > 0 and whole.snapshot == 0
    assert (cut.seq, cut.digest, cut.counts) == (whole.seq, whole.digest, whole.counts)
    assert state(cut.market) == state(whole.market)


def written_rows(url):
    """The rows of a journal that a killed service left."""
    journal = Journal(url)
    journal.open(writing=False)
    rows = list(journal.rows())
    journal.close()
    return rows
