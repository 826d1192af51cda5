"""The connection of a market's database: the writer and its locks.

One service writes at a time: a lock on the SQLite file itself, or an advisory lock held by the very connection that
writes; both end when their holder ends, for any reason. Where a file system keeps no locks the table ``market`` still
says who writes: a service that finds another name there writes nothing.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, create_engine, event, inspect, select, text, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from marketsched.live import tables
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError

LOCK_SECONDS = 2.0  # how long a predecessor that was killed may take to be noticed
_FENCE = (  # made once: it is a part of every transaction
    update(tables.market).where(tables.market.c.writer == bindparam("me")).values(checked=tables.market.c.checked + 1)
)
_ADVISORY = 0x6D61726B65747331  # "markets1": the number of the lock in a PostgreSQL database


class JournalError(MarketschedError, OSError):
    """The database cannot be used: it is unreachable, full, locked by another service, or damaged."""


class Database:
    """One connection to a database, which one service at a time may write by.

    ``url`` is an SQLAlchemy URL (``sqlite:///market.db``, ``postgresql://user@host/name``), or the path of an SQLite
    file; InvalidParameterError if it is neither.
    """

    def __init__(self, url: str) -> None:
        self.url = database_url(url)
        self._connection: Connection | None = None
        self._lock: int | None = None  # a descriptor of the database's file
        self._file: tuple[int, int] | None = None  # the file that this service began with
        self._writer = ""  # what this service writes its name with
        self.writing = False
        self._engine = self._make_engine()

    def open(self, *, writing: bool = True) -> None:
        """Connect, and to write take the lock and make tables that are not there.

        Raises JournalError if the database cannot be reached, or another service writes to it.
        """
        self.close()
        self.writing = writing
        with self._errors("the database cannot be opened"):
            try:
                if writing:
                    self._check_ours(self._tables_of_file())
                    self._lock_file()
                elif not self.file_is_there:
                    raise JournalError(f"{self.url.database} is not there", legal="the database of a market")
                self._connection = self._engine.connect()
                if writing:
                    self._advisory_lock(self._connection)
                    self._check_ours(inspect(self._connection).get_table_names())
                    self._connection.rollback()
                    tables.metadata.create_all(self._connection)
                    self._connection.commit()
                    self._take_over(self._connection)
            except BaseException:
                self.close()
                raise

    def _tables_of_file(self) -> list[str]:
        """Return the names of the tables in an SQLite file; read alone: `_durable` would change a foreign one."""
        if self.url.get_backend_name() != "sqlite" or not self.file_is_there:
            return []
        file = f"{Path(self.url.database).absolute().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(file, uri=True)) as connection:
                return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        except sqlite3.Error:  # said where it is opened to write
            return []

    @staticmethod
    def _check_ours(there: list[str]) -> None:
        """Raise JournalError if there are tables, and none of a market: before any is made beside them."""
        if there and tables.market.name not in there:
            raise JournalError(f"the database has tables of something else ({there[0]})", legal="one of its own")

    @property
    def file_is_there(self) -> bool:
        """Whether there is a database to open, as far as files tell."""
        return self.url.get_backend_name() != "sqlite" or Path(self.url.database).is_file()

    @property
    def folder(self) -> Path:
        """Where the file of the database is; of a server's database the working directory."""
        return Path(self.url.database).parent if self.url.get_backend_name() == "sqlite" else Path()

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
            os.close(self._lock)
            self._lock = None

    @property
    def connection(self) -> Connection:
        """The one connection that writes."""
        if self._connection is None:
            raise JournalError("the database is not open")
        return self._connection

    def _pass_fence(self) -> None:
        """Raise JournalError if another service has taken the market over; in a transaction."""
        self.check_place()
        if self.connection.execute(_FENCE, {"me": self._writer}).rowcount != 1:
            raise JournalError("another service has taken this market over", legal="one at a time")

    def _take_over(self, connection: Connection) -> None:
        """Write who writes; a service that was there before, and finds another one now, is refused."""
        found = connection.execute(select(tables.market.c.writer)).scalar()
        if self._writer and found not in (None, self._writer):
            connection.rollback()
            raise JournalError("another service has taken this market over", legal="one at a time")
        self._writer = self._writer or secrets.token_hex(16)
        connection.execute(update(tables.market).values(writer=self._writer))
        connection.commit()

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
        """Lock the file itself, by whatever name it is reached; the lock ends with its holder."""
        if self.url.get_backend_name() != "sqlite":
            return
        # A new file is readable by its owner alone: reports and names are private. None is made in the place of one
        # that this service had.
        self.check_place()
        lock = os.open(self.url.database, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise JournalError(f"{self.url.database}: another service writes to it", legal="one at a time") from None
        self._lock = lock
        self._file = _identity(os.fstat(lock))

    def check_place(self) -> None:
        """Raise JournalError if the file of this service is not where it was: its rows would be found by nobody."""
        if self._file is None:
            return
        try:
            same = _identity(os.stat(self.url.database)) == self._file
        except OSError:
            same = False
        if not same:
            raise JournalError(f"{self.url.database}: the file was moved, removed or replaced", legal="the same file")

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
    def still(self) -> Iterator[None]:
        """Read everything as it is now, whatever another service writes meanwhile."""
        with self._errors("the database cannot be read"), self.connection.begin():
            kind = self.url.get_backend_name()
            begin = "BEGIN" if kind == "sqlite" else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
            self.connection.exec_driver_sql(begin)
            yield

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Read in a transaction: the one at hand, or a new one."""
        begun = self.connection.in_transaction()
        with self._errors(what), nullcontext() if begun else self.connection.begin():
            yield

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn what a database driver raises into one error of the package."""
        try:
            yield
        except (SQLAlchemyError, OSError, OverflowError, ValueError, TypeError) as error:
            if isinstance(error, MarketschedError):
                raise
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()
            raise JournalError(f"{what}: {reason[0] if reason else type(error).__name__}") from error


def database_url(text_: str) -> Any:
    """Return the URL of a database; a path stands for an SQLite file.

    Raises InvalidParameterError if it is neither, or of a database that is not SQLite or PostgreSQL.
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
    if url.get_backend_name() == "sqlite":
        file = url.database or ""
        if file in ("", ":memory:") or file.startswith("file:") or "\0" in file or Path(file).is_dir():
            raise InvalidParameterError(place="db", value=text_, legal="a file on a disk, such as market.db")
    return url


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _durable(connection: Any, _: object) -> None:
    """Make every commit of an SQLite connection reach the disk; a schema that somebody made up calls nothing."""
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "trusted_schema=OFF"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
