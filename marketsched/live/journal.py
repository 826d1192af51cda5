"""The journal on disk: one transaction for each group of accepted events, with all that follows from them.

SQLite (write-ahead log, every commit on the disk before it is answered) and PostgreSQL hold the same tables. One
service writes at a time: a lock on a file beside the SQLite database, or an advisory lock held by the very
connection that writes; both end with their holder, whatever ended it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    bindparam,
    create_engine,
    event,
    func,
    select,
    text,
    update,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from marketsched.live import tables
from marketsched.live.accounts import Posting
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError

READ_AT_ONCE = 2000  # rows
SOUGHT_AT_ONCE = 500  # rows, by their numbers
LOCK_SECONDS = 2.0  # how long a predecessor that was killed may take to be noticed
_ADVISORY = 0x6D61726B65747331  # "markets1": the number of the lock in a PostgreSQL database


class JournalError(MarketschedError, OSError):
    """The database cannot be used: it is away, full, locked by another service, or not what was written."""


@dataclass(slots=True)
class Row:
    """An accepted event and what follows from it."""

    seq: int
    time: str  # UTC
    round: int
    event: str
    by: str
    owner: str | None
    job: str | None
    body: dict[str, Any]
    decisions: list[dict[str, Any]] = field(default_factory=list)
    postings: list[Posting] = field(default_factory=list)
    digest: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The event as the market takes it."""
        known = {"event": self.event, "owner": self.owner, "job": self.job}
        return {**self.body, **{key: value for key, value in known.items() if value is not None}}

    def sealed(self, before: str) -> str:
        """Return the digest of this row behind a row of digest ``before``."""
        head = [self.seq, self.time, self.round, self.event, self.by, self.owner, self.job]
        whole = [before, *head, self.body, self.decisions, [list(posting) for posting in self.postings]]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


@dataclass(slots=True)
class Batch:
    """What one transaction writes."""

    rows: list[Row] = field(default_factory=list)
    new_accounts: list[dict[str, Any]] = field(default_factory=list)
    balances: dict[str, int] = field(default_factory=dict)
    new_tokens: list[dict[str, Any]] = field(default_factory=list)
    revoked: list[tuple[str, int]] = field(default_factory=list)  # account, and the event that revokes its tokens
    answers: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)


class Journal:
    """The database of one market.

    Parameters
    ----------
    url : str
        An SQLAlchemy URL (``sqlite:///market.db``, ``postgresql://user@host/name``), or the path of an SQLite file.

    Raises
    ------
    InvalidParameterError
        If the URL is none.
    """

    def __init__(self, url: str) -> None:
        self.url = database_url(url)
        self._connection: Connection | None = None
        self._lock: IO[str] | None = None
        self._engine = self._make_engine()

    def open(self, *, writing: bool = True) -> None:
        """Connect, and to write take the lock and make tables that are not there.

        Raises
        ------
        JournalError
            If the database cannot be reached, or another service writes to it.
        """
        self.close()
        with self._errors("the database cannot be opened"):
            try:
                if writing:
                    self._lock_file()
                elif self.url.get_backend_name() == "sqlite" and not Path(self.url.database or "").is_file():
                    raise JournalError(f"{self.url.database} is not there", legal="the database of a market")
                self._connection = self._engine.connect()
                if writing:
                    self._advisory_lock(self._connection)
                    tables.metadata.create_all(self._connection)
                    self._connection.commit()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Let go of the database, and of its lock."""
        if self._connection is not None:
            try:
                self._connection.close()
            except SQLAlchemyError:
                self._connection.invalidate()
            self._connection = None
        self._engine.dispose()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def connection(self) -> Connection:
        """The one connection that writes."""
        if self._connection is None:
            raise JournalError("the database is not open")
        return self._connection

    # -- the market ---------------------------------------------------------------------------------------

    def market(self) -> dict[str, Any] | None:
        """Return what is known of the market; None: it is new."""
        with self._errors("the market cannot be read"), self.connection.begin():
            row = self.connection.execute(select(tables.market)).mappings().first()
        if row is not None and row["format"] != tables.FORMAT:
            raise JournalError(f"the database has tables of format {row['format']}", legal=f"format {tables.FORMAT}")
        return None if row is None else dict(row)

    def make_market(self, name: str, configuration: Mapping[str, Any], created: str, version: str) -> None:
        """Enter the market itself."""
        row = {"id": 1, "name": name, "configuration": dict(configuration), "created": created, "version": version}
        with self._errors("the market cannot be made"), self.connection.begin():
            self.connection.execute(tables.market.insert(), row | {"format": tables.FORMAT, "checked": 0})

    def check_writable(self) -> None:
        """Raise JournalError unless the database takes a write."""
        with self._errors("the database cannot be written"), self.connection.begin():
            self.connection.execute(update(tables.market).values(checked=tables.market.c.checked + 1))

    # -- writing ------------------------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Write all of a batch, or nothing; it is on the disk when this returns.

        Raises
        ------
        JournalError
            If it was not written; or if the database went away and nobody can tell.
        """
        events, decisions, postings = [], [], []
        for row in batch.rows:
            names = ("seq", "time", "round", "event", "by", "owner", "job", "body", "digest")
            events.append({name: getattr(row, name) for name in names})
            for n, each in enumerate(row.decisions):
                said = {key: each[key] for key in ("round", "event", "job")}
                decisions.append({"seq": row.seq, "n": n, **said, "body": each})
            for n, (account, micro, what, job) in enumerate(row.postings):
                known = {"account": account, "micro": micro, "what": what, "job": job}
                postings.append({"seq": row.seq, "n": n, **known})
        answers = [{"account": who, "key": key, **each} for (who, key), each in batch.answers.items()]
        with self._errors("an event cannot be written"), self.connection.begin():
            for table, many in (
                (tables.journal, events),
                (tables.decisions, decisions),
                (tables.ledger, postings),
                (tables.accounts, batch.new_accounts),
                (tables.tokens, batch.new_tokens),
                (tables.idempotency, answers),
            ):
                if many:
                    self.connection.execute(table.insert(), many)
            self._write_changes(batch)

    def _write_changes(self, batch: Batch) -> None:
        if batch.balances:
            account = tables.accounts
            change = update(account).where(account.c.name == bindparam("who")).values(balance_micro=bindparam("micro"))
            self.connection.execute(change, [{"who": who, "micro": micro} for who, micro in batch.balances.items()])
        fresh = [each["digest"] for each in batch.new_tokens]
        for who, seq in batch.revoked:
            token = tables.tokens
            old = (token.c.account == who) & token.c.revoked.is_(None) & token.c.digest.not_in(fresh)
            self.connection.execute(update(token).where(old).values(revoked=seq))

    # -- reading ------------------------------------------------------------------------------------------

    def rows(self, after: int = 0, most: int | None = None) -> Iterator[Row]:
        """Yield the rows behind row ``after``, at most so many, with their decisions and postings."""
        left = most
        while left is None or left > 0:
            some = READ_AT_ONCE if left is None else min(READ_AT_ONCE, left)
            found = self._read(after, some)
            yield from found
            if len(found) < some:
                return
            after, left = found[-1].seq, None if left is None else left - len(found)

    def _read(self, after: int, most: int) -> list[Row]:
        found = self._select(lambda seq: seq > after, most)
        if found and found[-1].seq - found[0].seq + 1 != len(found):
            there = {row.seq for row in found}
            lost = next(seq for seq in range(found[0].seq, found[-1].seq) if seq not in there)
            raise JournalError(f"journal row {lost} is missing")
        return found

    def row(self, seqs: Sequence[int]) -> list[Row]:
        """Return some rows, in their order in the journal."""
        return [row for part in _parts(seqs) for row in self._select(partial(_among, part), len(part))]

    def _select(self, which: Callable[[Column[int]], ColumnElement[bool]], most: int) -> list[Row]:
        """Return the rows whose numbers fit a condition, with their decisions and postings."""
        journal, decisions, ledger = tables.journal, tables.decisions, tables.ledger
        with self._errors("the journal cannot be read"), self.connection.begin():
            wanted = select(journal).where(which(journal.c.seq)).order_by(journal.c.seq).limit(most)
            found = {each["seq"]: Row(**each) for each in self.connection.execute(wanted).mappings()}
            if not found:
                return []
            last = max(found)
            here = select(decisions.c.seq, decisions.c.body).where(which(decisions.c.seq), decisions.c.seq <= last)
            for seq, body in self.connection.execute(here.order_by(decisions.c.seq, decisions.c.n)):
                if seq in found:
                    found[seq].decisions.append(body)
            sides = select(ledger.c.seq, ledger.c.account, ledger.c.micro, ledger.c.what, ledger.c.job)
            there = sides.where(which(ledger.c.seq), ledger.c.seq <= last).order_by(ledger.c.seq, ledger.c.n)
            for seq, *posting in self.connection.execute(there):
                if seq in found:
                    found[seq].postings.append(Posting(*posting))
        return list(found.values())

    def plans(self, seqs: Sequence[int]) -> dict[int, list[list[Any]]]:
        """Return the starts that were planned by the submissions with these numbers."""
        table, found = tables.decisions, dict[int, list[list[Any]]]()
        with self._errors("the decisions cannot be read"), self.connection.begin():
            for part in _parts(seqs):
                wanted = select(table.c.seq, table.c.body).where(table.c.seq.in_(part), table.c.event == "plan")
                found |= {seq: body["starts"] for seq, body in self.connection.execute(wanted)}
        return found

    def last(self) -> tuple[int, str]:
        """Return number and digest of the last row; 0 and nothing if there is none."""
        journal = tables.journal
        with self._errors("the journal cannot be read"), self.connection.begin():
            wanted = select(journal.c.seq, journal.c.digest).order_by(journal.c.seq.desc()).limit(1)
            row = self.connection.execute(wanted).first()
        return (0, "") if row is None else (row[0], row[1])

    def tokens(self) -> dict[str, str]:
        """Return whose each token is that is not revoked, by its digest."""
        token = tables.tokens
        with self._errors("the tokens cannot be read"), self.connection.begin():
            wanted = select(token.c.digest, token.c.account).where(token.c.revoked.is_(None))
            return {digest: account for digest, account in self.connection.execute(wanted)}

    def answer(self, account: str, key: str) -> dict[str, Any] | None:
        """Return what was answered to a request with this key: its fingerprint, and the answer."""
        table = tables.idempotency
        with self._errors("the answers cannot be read"), self.connection.begin():
            wanted = select(table).where((table.c.account == account) & (table.c.key == key))
            row = self.connection.execute(wanted).mappings().first()
        return None if row is None else dict(row)

    def entries(self, account: str | None, after: int, most: int) -> list[dict[str, Any]]:
        """Return entries of the ledger behind event ``after``, of one account or of all."""
        table, events = tables.ledger, tables.journal
        wanted = select(table, events.c.time).join(events, events.c.seq == table.c.seq).where(table.c.seq > after)
        wanted = wanted if account is None else wanted.where(table.c.account == account)
        with self._errors("the ledger cannot be read"), self.connection.begin():
            found = self.connection.execute(wanted.order_by(table.c.seq, table.c.n).limit(most)).mappings()
            return [dict(each) for each in found]

    def balances(self) -> dict[str, int]:
        """Return the sum of each account's postings, millionths of a credit."""
        table = tables.ledger
        with self._errors("the ledger cannot be read"), self.connection.begin():
            wanted = select(table.c.account, func.sum(table.c.micro)).group_by(table.c.account)
            return {account: int(micro) for account, micro in self.connection.execute(wanted)}

    # -- connections and locks ----------------------------------------------------------------------------

    def _make_engine(self) -> Engine:
        # One connection, used by one thread at a time; it is made anew when it is lost.
        options: dict[str, Any] = {"pool_size": 1, "max_overflow": 0}
        if self.url.get_backend_name() == "sqlite":
            engine = create_engine(self.url, connect_args={"check_same_thread": False, "timeout": 10}, **options)
            event.listen(engine, "connect", _durable)
            return engine
        return create_engine(self.url, connect_args={"connect_timeout": 5}, **options)

    def _lock_file(self) -> None:
        if self.url.get_backend_name() != "sqlite" or not self.url.database:
            return
        path = Path(self.url.database)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))  # reports and names are nobody else's
        lock = path.with_name(path.name + ".lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise JournalError(f"{path}: another service writes to this market", legal="one at a time") from None
        self._lock = lock

    def _advisory_lock(self, connection: Connection) -> None:
        if self.url.get_backend_name() != "postgresql":
            return
        end = time.monotonic() + LOCK_SECONDS
        while not connection.execute(text("SELECT pg_try_advisory_lock(:n)"), {"n": _ADVISORY}).scalar_one():
            if time.monotonic() > end:
                connection.rollback()
                raise JournalError("another service writes to this market", legal="one at a time")
            time.sleep(0.1)
        connection.execute(text("SET synchronous_commit = on"))
        connection.commit()

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn what a database driver raises into one error of the package."""
        try:
            yield
        except (SQLAlchemyError, OSError, OverflowError) as error:
            if isinstance(error, JournalError):
                raise
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()
            raise JournalError(f"{what}: {reason[0] if reason else type(error).__name__}") from error


def database_url(text_: str) -> Any:
    """Return the URL of a database; a path stands for an SQLite file.

    Raises
    ------
    InvalidParameterError
        If it is neither, or of a database that is not SQLite or PostgreSQL.
    """
    try:
        url = make_url(text_ if "://" in text_ else f"sqlite:///{text_}")
    except (ArgumentError, ValueError):
        legal = "a file, or a URL such as postgresql://user@host/name"
        raise InvalidParameterError(place="db", value=text_, legal=legal) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise InvalidParameterError(place="db", value=url.get_backend_name(), legal="sqlite or postgresql")
    return url


def _parts(seqs: Sequence[int]) -> Iterator[Sequence[int]]:
    """Cut a list of numbers into parts that one query takes."""
    return (seqs[i : i + SOUGHT_AT_ONCE] for i in range(0, len(seqs), SOUGHT_AT_ONCE))


def _among(seqs: Sequence[int], column: Column[int]) -> ColumnElement[bool]:
    return column.in_(seqs)


def _durable(connection: Any, _: object) -> None:
    """Make every commit of an SQLite connection reach the disk."""
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
