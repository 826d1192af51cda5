"""A market from its journal: events played through the mechanism, from a snapshot or from the first, and compared.

A market never goes on from a state that it did not have: a changed row, another version of a library that decides
otherwise, or a lost row stops the start and is named.
"""

from __future__ import annotations

import json
import logging
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from marketsched.config.strict_yaml import dump_yaml
from marketsched.live.accounts import DEPOSITS, MARKET
from marketsched.live.configuration import LiveConfig, live_config
from marketsched.live.database import JournalError
from marketsched.live.journal import Journal
from marketsched.live.machine import Applied, LiveMarket
from marketsched.live.rows import Row, beside_of_ended
from marketsched.live.snapshots import digest_of, made_by, sealed, thawed
from marketsched.live.statements import smallest
from marketsched.mechanisms.errors import MarketschedError, shown

log = logging.getLogger(__name__)


@dataclass(slots=True)
class PlayedJournal:
    """A market as its journal leaves it."""

    market: LiveMarket
    seq: int = 0  # this and ``digest``: of the last row
    digest: str = ""
    # how many rows the journal has, and the tables that hang on it
    counts: Counter[str] = field(default_factory=Counter)
    snapshot: int = 0  # the row behind which it was played from a snapshot; 0: from the first row
    counts_then: Mapping[str, int] = field(default_factory=dict)  # what ``counts`` was behind that row


def play_journal(
    config: LiveConfig,
    journal: Journal,
    recent: deque[Row] | None = None,
    *,
    whole: bool = False,
    key: bytes | None = None,
) -> PlayedJournal:
    """Play a journal from its last snapshot if the present code made that snapshot, else from its first row.

    ``recent`` gets the rows that are played, and keeps the last ones of them. ``whole``: a snapshot is not used.
    A snapshot without the seal of ``key`` is passed over. Raises JournalError if a row does not
    follow from the rows before it; the message names the first such row.
    """
    played = None if whole else _from_snapshot(config, journal, key)
    played = played or PlayedJournal(LiveMarket(config))
    for row in journal.rows(played.seq):
        applied = _applied(played, row)
        gone = [beside_of_ended(job.kept()) for job in applied.ended]
        _compare(row, "ended job", sorted(row.beside["ended"]), sorted(gone))
        journal.check_seal(row, played.digest)
        played.seq, played.digest = row.seq, row.digest
        played.counts += row.counts
        if recent is not None:
            recent.append(row)
    _check_balances(played.market, journal)
    check_counts(journal.counts(), played.counts)
    return played


def _applied(played: PlayedJournal, row: Row) -> Applied:
    """Let a market take a row, and compare what follows."""
    if row.seq != played.seq + 1:
        raise JournalError(f"journal row {played.seq + 1} is missing: the next one is {row.seq}")
    try:
        applied = played.market.apply(row.fields, row.seq)
    except (MarketschedError, KeyError, TypeError, AttributeError) as error:
        raise JournalError(f"journal row {row.seq} ({row.event}) cannot be played: {error}") from error
    if row.decisions != applied.decisions:
        _compare(row, "decision", row.decisions, json.loads(json.dumps(applied.decisions)))
    _compare(row, "posting", row.postings, applied.postings)
    return applied


def _from_snapshot(config: LiveConfig, journal: Journal, key: bytes | None = None) -> PlayedJournal | None:
    """Return the market of the last snapshot; None: there is none that this code made and this key has sealed.

    Raises JournalError if it is not what was written.
    """
    found = journal.snapshot()
    if found is None:
        return None
    row, digest, state = found
    if digest_of(state) != row.body["digest"]:
        legal = "what was written; --check-all plays all rows in its place"
        raise JournalError(f"the snapshot of journal row {row.seq} is damaged", legal=legal)
    if row.body["made_by"] != made_by(config):
        return None
    if not sealed(state, row.body.get("seal"), key):
        log.warning(
            "the snapshot of journal row %d has not the seal of this service's key: all rows are played", row.seq
        )
        return None
    market = thawed(state, config)
    after, counts = row.body["after"], row.body["counts"]
    return PlayedJournal(market, after, digest, Counter(counts), after, counts)


def check_snapshot(journal: Journal) -> None:
    """Raise JournalError unless the last snapshot is what its event says; it is not read, which a check needs not."""
    found = journal.snapshot()
    if found is not None and digest_of(found[2]) != found[0].body["digest"]:
        raise JournalError(f"the snapshot of journal row {found[0].seq} is damaged", legal="what was written")


def check_counts(there: Mapping[str, int], made: Mapping[str, int]) -> None:
    """Raise JournalError unless the tables have as many rows as the journal made."""
    for name, count in there.items():
        if count != made.get(name, 0):
            raise JournalError(f"{name} has {count} rows, and the journal made {made.get(name, 0)}")


@contextmanager
def _read_alone(url: str) -> Iterator[tuple[Journal, LiveConfig]]:
    """Open the journal of a market to read it, and give it with the market's configuration.

    Raises JournalError if the database cannot be read or holds no market.
    """
    journal = Journal(url)
    journal.open(writing=False)
    try:
        known = journal.market()
        if known is None:
            raise JournalError("the database holds no market")
        yield journal, live_config(known["configuration"])
    finally:
        journal.close()


def check_market(url: str) -> PlayedJournal:
    """Play the whole journal of a market through a fresh mechanism, as it is now, and compare all that the tables hold.

    Another service may write meanwhile. Raises JournalError if the database cannot be read or holds no market, or if a
    row does not follow from those before it.
    """
    with _read_alone(url) as (journal, config), journal.still():
        played = play_journal(config, journal, whole=True)
        check_snapshot(journal)
    return played


def rehearse(config: LiveConfig) -> None:
    """Play one job through a market that is thrown away: kernels are compiled now."""
    market, job = LiveMarket(config), {"owner": "x", "job": "x.1"}
    with suppress(Exception):  # a mechanism that takes no such job will say so when one is submitted
        market.apply({"event": "owner", "owner": "x", "role": "owner"}, 1)
        market.quote(market.accounts.get("x"), "x.1", smallest(1, config))
        market.apply({"event": "submit", "sow": smallest(1, config), **job}, 2)
        market.apply({"event": "arrive", "signal": 1, **job}, 3)
        market.apply({"event": "advance"}, 4)
        market.quote(market.accounts.get("x"), "x.2", smallest(2, config))
        market.apply({"event": "submit", "sow": smallest(2, config), "owner": "x", "job": "x.2"}, 5)
        market.apply({"event": "arrive", "signal": 2, "owner": "x", "job": "x.2"}, 6)  # not as announced: a drop
        market.apply({"event": "complete", **job}, 7)
        market.apply({"event": "advance"}, 8)


def _compare(row: Row, what: str, written: list[Any], played: list[Any]) -> None:
    """Raise JournalError at the first difference between what is written and what was played."""
    for n in range(max(len(written), len(played))):
        before = written[n] if n < len(written) else None
        now = played[n] if n < len(played) else None
        if before != now:
            place = f"journal row {row.seq} ({row.event}), {what} {n + 1}"
            raise JournalError(f"{place}: written is {shown(before)}, played is {shown(now)}")


def _check_balances(market: LiveMarket, journal: Journal) -> None:
    """Raise JournalError unless the ledger adds up to the balances that the events lead to."""
    sums, accounts = journal.balances(), market.accounts
    expected = {name: account.balance for name, account in accounts.known.items()}
    expected |= {MARKET: accounts.market, DEPOSITS: -accounts.deposited, **accounts.unopened}
    for name in {*sums, *expected}:
        if sums.get(name, 0) != expected.get(name, 0):
            raise JournalError(f"ledger: {name} has {sums.get(name, 0)} millionths, played {expected.get(name, 0)}")
    written = journal.accounts()
    played = {name: (each.role, each.limit, each.balance) for name, each in accounts.known.items()}
    for name in {*written, *played}:
        if written.get(name) != played.get(name):
            place = f"accounts, {name}"
            raise JournalError(f"{place}: written is {shown(written.get(name))}, played is {shown(played.get(name))}")


def exported(rows: Iterator[Row], horizon: int) -> Iterator[dict[str, Any]]:
    """Yield a journal as the log that ``marketsched replay`` reads.

    Arrivals stand where the mechanism learns of them, at the end of their round; entries that are no events of the
    mechanism (owners, deposits, remarks) is left out. The last line says that its round is open.
    """
    waiting: list[dict[str, Any]] = []
    submitted = 0  # the last round of which something has been submitted: a later complete is late
    opened, closed = 1, False
    for row in rows:
        job = {"job": row.job}
        if row.event == "submit":
            submitted = row.round
            yield {"round": row.round, "event": "submit", **job, "owner": row.owner, "sow": row.body["sow"]}
        elif row.event == "share":
            submitted = row.round
            yield {"round": row.round, "event": "share", **{key: row.body[key] for key in ("place", "share")}}
        elif row.event == "arrive" and "refused" not in row.body:  # else the mechanism does not learn of it
            seen = {key: row.body[key] for key in row.body if key in ("signal", "duration")}
            waiting.append({"round": row.round, "event": "arrive", **job, **seen})
        elif row.event == "advance":
            yield from waiting
            waiting.clear()
            opened = row.round + 1
            more = {"more": True} if row.body.get("more") else {}
            closed = opened > horizon and not more
            yield {"round": min(row.round, horizon), "event": "end", **more}
        elif row.event == "complete":
            late = {"late": True} if submitted == row.round else {}
            yield {"round": row.round - 1, "event": "complete", **job, **late}
    if not closed:
        yield {"round": min(opened, horizon), "event": "end", "open": True}


def export_lines(url: str, what: Literal["events", "decisions", "config"]) -> Iterator[str]:
    """Yield the log of a market, its decisions, or its configuration, line by line as `replay` reads and prints them.

    Raises JournalError if the database cannot be read, or holds no market.
    """
    with _read_alone(url) as (journal, config):
        if what == "config":
            yield dump_yaml(config.for_replay()).rstrip()
        elif what == "events":
            yield from map(json.dumps, exported(journal.rows(), config.horizon))
        else:
            yield from (json.dumps(decision) for row in journal.rows() for decision in row.decisions)


ROWS_AT_ONCE = 100


class Walk:
    """The way from the first row to ``last``, behind which the market of a snapshot was; 0: nothing is to be read.

    ``counts``: how many rows the open journal had then, and the tables that hang on it.
    """

    def __init__(self, journal: Journal, last: int, counts: Mapping[str, int]) -> None:
        self._journal, self.last, self._expected = journal, last, counts
        self._seq, self._digest = 0, ""
        self._counts: Counter[str] = Counter()

    @property
    def over(self) -> bool:
        """True once all rows have been checked."""
        return self._seq >= self.last

    def step(self) -> None:
        """Read some rows. Raises JournalError if one is damaged; the message names it."""
        if self.over:
            return
        rows = list(self._journal.rows(self._seq, min(ROWS_AT_ONCE, self.last - self._seq)))
        for row in rows:
            self._pass(row)
        if not rows:
            raise JournalError(f"journal row {self._seq + 1} is missing")

    def _pass(self, row: Row) -> None:
        if row.seq != self._seq + 1:
            raise JournalError(f"journal row {self._seq + 1} is missing: the next one is {row.seq}")
        self._journal.check_seal(row, self._digest)
        self._counts += row.counts
        if row.seq == self.last:
            check_counts(self._expected, self._counts)
        self._seq, self._digest = row.seq, row.digest
