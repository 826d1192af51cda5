"""Live markets for tests: configurations, statements, and traffic drawn at random."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np

from marketsched.live import calls
from marketsched.live.clock import Clock
from marketsched.live.configuration import live_config
from marketsched.live.journal import Journal
from marketsched.live.market_view import market_view, shown_at
from marketsched.live.playing import exported
from marketsched.live.principal import Principal
from marketsched.live.rows import Row
from marketsched.live.service import LiveService, Repeatable
from marketsched.mechanisms.errors import MarketschedError
from marketsched.play.replaying import replay

SIZES = {"capacity": 6, "max_concurrency": 3, "max_duration": 6, "max_value": 50, "max_delay": 20, "seed": 3}
SIZES["announced_nodes"] = "unlimited"  # owners that act at random announce more than one may by default
PLAIN = {
    "capacity": 2,
    "max_concurrency": 2,
    "max_duration": 3,
    "max_value": 9,
    "max_delay": 12,
    "pricing": {"kind": "posted", "prices": [0.5]},
    "threshold": 1.0,
    "announced_nodes": "unlimited",
}
CLUSTER = {  # of six nodes
    "resources": {"cpu": {"parts": 1000}, "gpu": {"device": True, "parts": 1000}},
    "groups": [
        {"name": "a", "kind": "a100", "nodes": 2, "each": {"cpu": 16, "gpu": 2}},
        {"name": "v", "kind": "v100", "nodes": 4, "each": {"cpu": 8, "gpu": 1}},
    ],
}
MECHANISMS = {
    "posted-price": {"oracle": {"kind": "monte-carlo", "samples": 60}},
    "paths of each submission": {"oracle": {"kind": "monte-carlo", "samples": 60, "refresh": "submission"}},
    "paths of each round": {
        "oracle": {"kind": "monte-carlo", "samples": 60, "refresh": "round"},
        "eviction": "running",
        "epsilon": -0.3,
    },
    "bid-price": {"mechanism": "bid-price"},
    "bid-price with parameters": {
        "mechanism": "bid-price",
        "parameters": {"ahead": 12, "lag_hours": [0.05, 0.1], "buckets": 2},
        "clock": {"kind": "wall", "round_seconds": 60},
    },
    "first-come": {"mechanism": "first-come"},
    "vcg": {"mechanism": "vcg"},
    "fair-share": {"mechanism": "fair-share"},
    "cluster-bid-price": {"mechanism": "cluster-bid-price", "cluster": CLUSTER, "parameters": {"ahead": 12}},
    "cluster-queue": {"mechanism": "cluster-queue", "cluster": CLUSTER},
}


def config(name="posted-price", **changes):
    """Return the configuration of a market of `MECHANISMS`."""
    return live_config({**SIZES, **MECHANISMS[name], **changes})


def sow(arrival=1, duration=1, *, nodes=1, value=4.0, deadline=None, **more):
    """Return a statement of one case."""
    deadline = arrival + duration + 4 if deadline is None else deadline
    row = {"arrival": arrival, "duration": duration, "probability": 1.0, **more}
    curve = {"kind": "deadline", "value": value, "deadline": deadline}
    return {"concurrency": nodes, "value": curve, "requirements": [row]}


class Owners:
    """Owners, and a world, that act at random, through ``act(event)`` and ``market()``.

    Every choice is drawn before it is known what the market says, so that two markets meet the same traffic.
    """

    def __init__(self, rng, *, owners=("ann", "ben", "cid"), hidden=0.3):
        self.rng, self.owners, self.hidden = rng, owners, hidden
        self.ready, self.length, self.n = {}, {}, 0

    def statement(self, t, shaped=False):
        """Draw a report born in round ``t``; return it with what will happen: arrival, duration, and if it is seen."""
        if shaped:
            return self.statement_of_shapes(t)
        rng = self.rng
        arrival, hidden = t + int(rng.integers(0, 6)), rng.random() < self.hidden
        durations = sorted({int(d) for d in rng.integers(1, SIZES["max_duration"] + 1, size=2)})
        more = {"signal": None} if hidden else {}
        share = round(0.9 / (2 * len(durations)), 3)
        rows = [
            {"arrival": a, "duration": d, "probability": share, **more}
            for a in (arrival, arrival + 2)
            for d in durations
        ]
        value = {"kind": "deadline", "value": float(rng.uniform(1, 50)), "deadline": arrival + 12}
        report = {"concurrency": int(rng.integers(1, 4)), "value": value, "requirements": rows}
        return report, arrival + 2 * int(rng.integers(0, 2)), int(rng.choice(durations)), not hidden

    def statement_of_shapes(self, t):
        """Draw a report for `CLUSTER`."""
        rng = self.rng
        arrival, hidden = t + int(rng.integers(0, 6)), rng.random() < self.hidden
        short, long = sorted(int(d) for d in rng.choice(np.arange(1, SIZES["max_duration"]), size=2, replace=False))
        wide = {"each": {"cpu": 4, "gpu": float(rng.choice([0.5, 1, 2]))}, "on": {"a100": [short, long]}}
        narrow = {"each": {"gpu": 0.25}, "tasks": 3, "per_node": 1, "on": {"v100": [short, long + 1]}, "worth": 0.9}
        shapes = [{**each, "law": [0.5, 0.4]} for each in ([wide], [wide, narrow], [narrow, wide])[rng.integers(3)]]
        value = {"kind": "deadline", "value": float(rng.uniform(1, 50)), "deadline": arrival + 9}
        report = {"value": value, "arrival": arrival, "shapes": shapes, "revealed": not hidden}
        kind = next(iter(shapes[0]["on"]))
        return report, arrival, int(rng.choice(shapes[0]["on"][kind])), not hidden

    def round(self, market, act, quote=None):
        """Play one round: submissions and arrivals as they come, the end of the round, completions."""
        t, todo = market.round, []
        for _ in range(int(self.rng.integers(0, 5))):
            self.n += 1
            owner, (report, arrival, duration, seen) = (
                str(self.rng.choice(self.owners)),
                self.statement(t, market.config.cluster is not None),
            )
            name = f"{owner}.{self.n}"
            self.ready.setdefault(arrival, []).append((name, owner, duration, seen))
            todo.append({"event": "submit", "owner": owner, "job": name, "sow": report})
        for name, owner, duration, seen in self.ready.pop(t, ()):
            self.length[name] = (owner, duration)
            if seen:
                todo.append({"event": "arrive", "owner": owner, "job": name, "signal": duration})
            else:
                todo.append({"event": "arrive", "owner": owner, "job": name})
        # Some of what completed in the round before is reported only when this one has begun.
        ended = [
            {"event": "complete", "owner": owner, "job": name}
            for name, (owner, duration) in self.length.items()
            if name in market.jobs and market.jobs[name].state == "running" and market.jobs[name].start + duration == t
        ]
        order = self.rng.permutation(len(todo) + len(ended)).tolist()
        events = [([*ended, *todo])[i] for i in order]
        known = {event["job"] for event in events if event["event"] == "submit"}
        late = [each for each in events if each["event"] == "arrive" and each["job"] in known]
        events = [each for each in events if each not in late] + late  # nobody arrives before it is submitted
        for event in events:
            if quote is not None:
                quote(market, t)
            act(event)
        act({"event": "advance"})


def play(market, rounds, seed, quote=None, rows=None):
    """Play rounds of `Owners` in a `LiveMarket`; return all decisions and, in ``rows``, the journal."""
    decisions, rows = [], [] if rows is None else rows

    def act(event):
        opened = market.round
        applied = market.apply(event, len(rows) + 1)
        body = {key: value for key, value in event.items() if key not in ("event", "owner", "job")}
        rows.append(Row(len(rows) + 1, "", opened, event["event"], "x", event.get("owner"), event.get("job"), body))
        rows[-1].decisions = json.loads(json.dumps(applied.decisions))
        decisions.extend(rows[-1].decisions)

    owners = Owners(np.random.default_rng(seed))
    for name in owners.owners:
        act({"event": "owner", "owner": name, "role": "owner"})
    for _ in range(rounds):
        owners.round(market, act, quote)
    return decisions


def random_quote(rng):
    """Return a function that asks for the quote of a random statement, now and then."""
    owners = Owners(rng)

    def quote(market, t):
        if rng.random() < 0.5:
            report, *_ = owners.statement(t, market.config.cluster is not None)
            market.quote(market.accounts.get("ann"), "ann.quoted", report)

    return quote


OPERATOR, ANN = Principal("operator", "operator"), Principal("ann", "owner")


def ask(service, work, key=None, request="r" * 64):
    """Return the answer of a running service."""
    return service.ask(work, None if key is None else Repeatable("ann", key, request)).result(20)


def look(turn):
    """Return the market as an operator sees it, by the thread of the service."""
    return shown_at(market_view(turn.market, turn.last_seq), turn.clock, 5, OPERATOR)


class ServedMarket:
    """A running service, and what owners and the operator do there; every owner has so many credits, and no limit."""

    def __init__(self, url, rules, owners, credits):
        self.service, self.credits = LiveService(str(url), rules), credits
        self.service.start()
        for name, more in owners.items():
            self.ask(calls.create_owner(OPERATOR, {"owner": name, "deposit": credits, "limit": None, **more}))

    def ask(self, work):
        return self.service.ask(work).result(20)

    def submit(self, owner, report, name=None):
        said = {"sow": report, **({} if name is None else {"name": name})}
        return self.ask(calls.submit(Principal(owner, "owner"), said))

    def arrive(self, job, signal):
        return self.ask(calls.arrive(Principal(job.partition(".")[0], "owner"), job, {"signal": signal}))

    def advance(self, rounds=1):
        return self.ask(calls.advance(OPERATOR, {"rounds": rounds}))["decisions"]

    def job(self, name):
        return self.ask(calls.job(OPERATOR, name))

    def paid(self, owner):
        return self.credits - self.ask(calls.account(OPERATOR, owner))["balance"]


def replayed(config_, rows):
    """Return the decisions of `replay` on the exported rows."""
    return list(replay(config_.for_replay(), exported(iter(rows), config_.horizon)))


def check_journal(url):
    """Check a database as it lies on the disk: its export replayed gives its decisions, and its ledger adds up."""
    journal = Journal(url)
    journal.open(writing=False)
    try:
        found = live_config(journal.market()["configuration"])
        rows = list(journal.rows())
        balances = journal.balances()
    finally:
        journal.close()
    written = [decision for row in rows for decision in row.decisions]
    assert replayed(found, rows) == written
    assert sum(balances.values()) == 0
    charged = [
        posting.job for row in rows for posting in row.postings if posting.what == "charge" and posting.micro > 0
    ]
    assert len(charged) == len(set(charged))
    return rows


def state(market):
    """Return all that a market says of itself."""
    accounts = {name: account.balance for name, account in market.accounts.known.items()}
    jobs = {name: {**job.shown(), "rows": list(job.rows)} for name, job in market.jobs.items()}
    jobs |= {"states": dict(market.tally), "owed": market.owed}
    return {"round": market.round, "jobs": jobs, "accounts": accounts, "prices": market.prices(20), "load": market.load}


def refused(error, call, *arguments, **options):
    """Return the error of a call that has to fail."""
    try:
        call(*arguments, **options)
    except error as found:
        return found
    except MarketschedError as found:
        raise AssertionError(f"{type(found).__name__}: {found}") from found
    raise AssertionError("it was taken")


class Hands:
    """Clocks that tests set: the system's, and the one that only runs forwards."""

    def __init__(self):
        self.system, self.elapsed = datetime(2026, 11, 22, 6, tzinfo=UTC), 100.0

    def clock(self, config_, made):
        return Clock(config_, made, system=lambda: self.system, elapsed=lambda: self.elapsed)

    def pass_(self, seconds):
        self.system += timedelta(seconds=seconds)
        self.elapsed += seconds
