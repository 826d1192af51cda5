"""Kills under several mechanisms, with runs that are evicted and taken back: nothing is lost, nothing happens twice."""

import os
import random
import time
from collections import Counter

import numpy as np
import pytest

from live_databases import database
from live_served import PATIENCE_S, LoadOfCalls, Served, check_both_ways, written_rows
from live_tools import check_journal
from marketsched.live.client import LiveClient, LiveError
from marketsched.live.configuration import live_config
from marketsched.live.journal import Journal
from marketsched.live.playing import play_journal

KILLS = int(os.environ.get("MARKETSCHED_KILLS", "2"))  # of each mechanism on each database
OWNERS = 4
AHEAD = 8  # rounds between an unlikely announcement and the job that comes all the same
ROUND_S = 0.03
RULES = {
    "capacity": 8,
    "max_concurrency": 4,
    "max_duration": 12,
    "max_value": 90,
    "max_delay": 40,
    "requests_per_second": 1000000,
    "announced_nodes": "unlimited",
    "surprise_limit": 0,  # the unlikely case always comes here
}
POSTED = {"oracle": {"kind": "monte-carlo", "samples": 50}, "pricing": {"kind": "posted", "prices": [0.1]}}
MECHANISMS = {
    "posted-price": POSTED,  # evicts
    "two-offers": {"mechanism": "two-offers"},  # takes runs back, whose jobs start again, and evicts
    "bid-price": {"mechanism": "bid-price"},
    "first-come": {"mechanism": "first-come"},
    "credits": {  # takes runs back, evicts, and books purses; o3 has no share, and o9 no account
        "mechanism": "credits",
        "parameters": {"shares": {"lab/": 2, "lab/o0": 1, "lab/o1": 3, "o2": 1, "o9": 1}, "carry_rounds": 24.0},
    },
}


class Load(LoadOfCalls):
    """Owners that submit and report arrivals, and an operator that clears rounds and reports what has run."""

    def __init__(self, url, token, mechanism):
        super().__init__()
        self.pays = mechanism != "credits"  # for the rounds of a job, when it is complete
        self.hidden, self.ahead = mechanism != "posted-price", AHEAD if mechanism == "posted-price" else 0
        self.operator = LiveClient(url, token, patience=PATIENCE_S)
        self.decided, self.charged = [], {}
        self.length, self.running, self.round, self.cleared = {}, {}, 1, 0
        deposit = 1e6 if self.pays else 0.0
        tokens = [self.operator.create_owner(f"o{n}", deposit=deposit)["token"] for n in range(OWNERS)]
        works = [(self._owner, n, LiveClient(url, each, patience=PATIENCE_S)) for n, each in enumerate(tokens)]
        self.begin([*works, (self._operator,)])

    def _statement(self, rng, now):
        """Draw a report: half of the jobs are wide, short and worth much; return it with ready round and duration."""
        wide = rng.random() < 0.5
        ahead = self.ahead if wide else 0
        d = int(rng.integers(1, 4)) if wide else int(rng.integers(4, 9))
        share, hidden = (0.005 if ahead else 0.3), {"signal": None} if self.hidden else {}
        rows = [{"arrival": now + ahead + k, "duration": d, "probability": share, **hidden} for k in range(3)]
        worth = float(rng.uniform(30, 90) if wide else rng.uniform(5, 30))
        curve = {"kind": "deadline", "value": worth, "deadline": now + ahead + d + (5 if wide else 22)}
        return {"concurrency": 2 if wide else 1, "value": curve, "requirements": rows}, now + ahead, d

    def _owner(self, n, client):
        rng, due, seen = np.random.default_rng(n), [], 0
        while not self.over:
            if (now := self.round) == seen:
                time.sleep(0.002)
                continue
            seen = now
            if rng.random() < 0.5:
                report, ready, d = self._statement(rng, now)
                try:
                    job = client.submit(report)["job"]
                except LiveError as error:
                    assert error.status == 422, error  # the round has gone on meanwhile
                    continue
                self.length[job] = d
                self.answered.append(("submit", job))
                due.append((ready, job, d))
            for ready, job, d in [each for each in due if each[0] <= self.round]:
                due.remove((ready, job, d))
                answer = client.arrive(job, signal=None if self.hidden else d)
                if answer["arrived"] is not None:  # else it came too late, and nothing happened
                    self.answered.append(("arrive", job))

    def _operator(self):
        while not self.over:
            time.sleep(ROUND_S)
            self.cleared += 1
            answer = self.operator.advance(key=f"round-{self.cleared}")
            self._note(answer["decisions"])
            self.round = answer["round"]
            for job, start in list(self.running.items()):
                if start + self.length[job] <= self.round:
                    self._complete(job, start)

    def _note(self, decisions):
        for each in decisions:
            self.decided.append((each["round"], each["event"], each["job"]))
            if each["event"] == "start":
                self.running[each["job"]] = each["round"]
            else:
                self.running.pop(each["job"], None)

    def _complete(self, job, start):
        done = self.operator.complete(job, exit_code=0, key=f"done-{job}-{start}")
        self.charged[job] = round((done["charge"] or 0.0) * 1_000_000)
        self.answered.append(("complete", job))
        del self.running[job]


def check_events(rows, load):
    """The journal holds what was answered, once, and nothing else; return how often each thing happened."""
    reported = [row for row in rows if row.event in ("submit", "arrive", "complete")]
    own = [(row.event, row.job) for row in reported if row.by != "clock"]
    assert sorted(own) == sorted(load.answered)
    decided = [
        (each["round"], each["event"], each["job"]) for row in rows if row.event == "advance" for each in row.decisions
    ]
    assert decided == load.decided
    for row in reported:
        if row.event == "complete" and load.pays:
            assert (
                sum(posting.micro for posting in row.postings if posting.account == "market") == load.charged[row.job]
            )
    return Counter(event for event, _ in own) + Counter(event for _, event, _ in decided)


def check_purses(url):
    """The ledger has every purse as the rule has it, and what jobs paid is what is booked; count what was."""
    journal = Journal(url)
    journal.open(writing=False)
    market = play_journal(live_config(journal.market()["configuration"]), journal, whole=True).market
    balances, gone = journal.balances(), journal.ended_jobs(0, 10**9)
    journal.close()
    purses = market.mechanism.purses
    assert {str(name): int(held) for name, held in zip(purses.names, purses.held, strict=True)} == {
        str(name): balances.get(name, 0) for name in purses.names
    }
    assert sum(balances.values()) == 0 and balances["market"] == purses.spent.sum()
    assert sum(job.charge or 0 for job in (*gone, *market.jobs.values())) == purses.spent.sum()
    assert (purses.spent > 0).sum() == 3
    return {"regular credits": int(purses.spent.sum()) // 10**6, "owners with a purse": len(purses.names)}


@pytest.mark.slow
@pytest.mark.long_after(1)
@pytest.mark.timeout(6000)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_killed_with_evictions_and_requeues(name, kind, tmp_path):
    moments = random.Random(f"{name} {kind}")
    with database(kind, tmp_path) as url:
        service = Served(url, tmp_path, RULES | MECHANISMS[name])
        service.start()
        load = Load(service.url, (tmp_path / "operator.token").read_text().strip(), name)
        try:
            for _ in range(KILLS):
                load.wait(moments.randint(100, 360))
                time.sleep(moments.uniform(0.0, 0.2))
                service.kill()
                answered = list(load.answered)
                assert not set(answered) - {(row.event, row.job) for row in written_rows(url)}
                service.start()
            load.wait(30)
        finally:
            try:
                load.stop()
            finally:
                service.stop()
        rows = check_journal(url)  # export = replay, the ledger adds up, each is charged once
        check_both_ways(url, tmp_path / "snapshot.key")
        found = check_events(rows, load)
        if name == "credits":
            found |= check_purses(url)
    print(f"{name}, {kind}: {KILLS} kills, {dict(found)}", flush=True)
    assert found["complete"] > 10 * KILLS
