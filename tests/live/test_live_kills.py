"""A service that is killed at any moment under load loses nothing that it answered, and charges nobody twice."""

import os
import random
import time

import pytest

from live_databases import database
from live_served import PATIENCE_S, SNAPSHOT_ROWS, LoadOfCalls, Served, check_both_ways, written_rows
from live_tools import check_journal, sow
from marketsched.live.client import LiveClient, LiveError

KILLS = int(os.environ.get("MARKETSCHED_KILLS", "5"))
CLIENTS = 8
FEE = 1.0  # of an announcement of one node that does not come as it said
WHOLE_EVERY = max(1, KILLS // 5)  # kills between two plays of the whole journal, which grows
RULES = {
    "mechanism": "posted-price",
    "capacity": 40,
    "max_concurrency": 2,
    "max_duration": 3,
    "max_value": 9,
    "max_delay": 12,
    "oracle": {"kind": "monte-carlo", "samples": 50},
    "requests_per_second": 1000000,
    "announced_nodes": "unlimited",
    "no_show_share": 0.0,  # the fee is FEE
}


class Load(LoadOfCalls):
    """Eight owners that submit and report arrivals, and an operator that clears rounds and reports completions."""

    def __init__(self, url, token):
        super().__init__()
        operator = LiveClient(url, token, patience=PATIENCE_S)
        self.tokens = {f"o{n}": operator.create_owner(f"o{n}")["token"] for n in range(CLIENTS)}
        self.charged = {}
        self.announced, self.came = {}, {}  # rounds of each job
        self.operator, self.rounds = operator, 0
        works = [(self._owner, LiveClient(url, each, patience=PATIENCE_S)) for each in self.tokens.values()]
        self.begin([*works, (self._operator, operator)])

    def _owner(self, client):
        while not self.over:
            now = client.market(rounds=0)["round"]
            try:
                job = client.submit(sow(now + 1, 1, value=9.0))["job"]
                self.announced[job] = now + 1
                self.answered.append(("submit", job))
                answer = client.arrive(job, signal=1)
                if answer["state"] == "arrived":  # else it came too late, and nothing happened
                    self.came[job] = answer["arrived"]
                    self.answered.append(("arrive", job))
            except LiveError as error:
                assert error.status == 422, error  # the round has gone on meanwhile

    def _operator(self, client):
        while not self.over:
            time.sleep(0.05)
            self.clear(client)

    def clear(self, client):
        """Clear a round, and report what starts as complete."""
        self.rounds += 1
        for decision in client.advance(key=f"round-{self.rounds}")["decisions"]:
            if decision["event"] == "start":
                done = client.complete(decision["job"], exit_code=0, key=f"done-{decision['job']}")
                self.charged[decision["job"]] = done["charge"]
                self.answered.append(("complete", decision["job"]))


def check_accounts(url, load):
    """What owners see is what the clients noted: every job, what it cost, and the balances.

    A job that came in the round that was announced costs what its completion said, or nothing; another costs the fee.
    """
    finished = {job for event, job in load.answered if event == "complete"}
    for owner, token in load.tokens.items():
        client = LiveClient(url, token, patience=PATIENCE_S)
        jobs = {job["job"]: job for job in client.jobs()}
        assert jobs.keys() == {job for job in load.announced if job.startswith(f"{owner}.")}
        noted = {name: load.charged.get(name, 0.0) for name in jobs}
        noted |= {name: FEE for name in jobs if load.came.get(name) != load.announced[name]}
        assert {name: job["charge"] or 0.0 for name, job in jobs.items()} == noted
        assert {name for name, job in jobs.items() if job["state"] == "completed"} == finished & jobs.keys()
        micro = sum(round(charge * 1_000_000) for charge in noted.values())
        assert round(client.account()["balance"] * 1_000_000) == -micro


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.long_after(1)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_killed_under_load(kind, tmp_path):
    moments = random.Random(KILLS)
    with database(kind, tmp_path) as url:
        service = Served(url, tmp_path, RULES)
        service.start()
        load = Load(service.url, (tmp_path / "operator.token").read_text().strip())
        try:
            for kill in range(KILLS):
                load.wait(moments.randint(50, 300))
                time.sleep(moments.uniform(0.0, 0.3))
                service.kill()
                answered = list(load.answered)
                assert not set(answered) - {(row.event, row.job) for row in written_rows(url)}
                if kill % WHOLE_EVERY == 0:
                    rows = check_journal(url)  # export = replay, the ledger adds up, each is charged once
                    if len(rows) > 10 * SNAPSHOT_ROWS:
                        check_both_ways(url)
                service.start()
                print(f"{kind}: kill {kill + 1}, {len(answered)} answered", flush=True)
            load.stop()
            for _ in range(4):
                load.clear(load.operator)  # until all that was announced has come, or is known not to
            check_accounts(service.url, load)
        finally:
            try:
                load.stop()
            finally:
                service.stop()
        rows = check_journal(url)
        check_both_ways(url)
        events = [(row.event, row.job) for row in rows if row.event in ("submit", "arrive", "complete")]
        assert sorted(events) == sorted(load.answered)  # and nothing happened twice
        for row in rows:
            if row.event == "complete":
                assert row.postings[-1].micro == round(load.charged[row.job] * 1_000_000)
        assert len(load.charged) > 10 * KILLS
        print(f"{kind}: {KILLS} kills, {len(load.answered)} answered events, {len(load.charged)} charges")
