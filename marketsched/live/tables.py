"""The tables of a market's database: plain columns and JSON, to be read with SQL by any program.

======================  =======================================================================================
table                   one row is
======================  =======================================================================================
``market``              the market (one row): configuration, when it was made, and with which version
``journal``             an accepted event: its sender, time (UTC), round and content. ``digest`` is a hash of the
                        digest before and of all that follows from this row: decisions, postings, tokens made and
                        revoked, jobs ended, the answer, and the digest of a snapshot
``decisions``           a decision that follows from the event ``seq``, as `replay` prints it
``ledger``              one side of a booking, in millionths of a credit; those of one ``seq`` add up to 0
``accounts``            an owner, operator or the market itself, with the balance that follows from the ledger
``tokens``              a token: its SHA-256, its account, and the events that made and revoked it
``idempotency``         the answer to a request that had an ``Idempotency-Key``
``ended``               a job that has ended: its outcome, the events that submitted and ended it, and all other
                        events about it
``snapshots``           the state of the market before event ``seq``, from which a restart continues; the last two are
                        kept, in a format that only this package reads
======================  =======================================================================================
"""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, LargeBinary, MetaData, String, Table

FORMAT = 3  # of these tables; a service refuses a database of another one

metadata = MetaData()

market = Table(
    "market",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", String(64), nullable=False),
    Column("configuration", JSON, nullable=False),
    Column("created", String(27), nullable=False),
    Column("version", String(32), nullable=False),
    Column("format", Integer, nullable=False),
    Column("checked", BigInteger, nullable=False),  # how often it was written
    Column("writer", String(32)),  # who writes: a service that finds another one here writes nothing
)
journal = Table(
    "journal",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("time", String(27), nullable=False),
    Column("round", Integer, nullable=False),  # that was open
    Column("event", String(16), nullable=False),
    Column("by", String(32), nullable=False),
    Column("owner", String(32)),
    Column("job", String(128)),
    Column("body", JSON, nullable=False),
    Column("digest", String(64), nullable=False),
)
decisions = Table(
    "decisions",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("round", Integer, nullable=False),
    Column("event", String(16), nullable=False),
    Column("job", String(128), nullable=False),
    Column("body", JSON, nullable=False),
)
ledger = Table(
    "ledger",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("account", String(32), nullable=False),
    Column("micro", BigInteger, nullable=False),
    Column("what", String(16), nullable=False),
    Column("job", String(128)),
    Index("ledger_by_account", "account", "seq"),
)
accounts = Table(
    "accounts",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("limit_micro", BigInteger),
    Column("balance_micro", BigInteger, nullable=False),
)
tokens = Table(
    "tokens",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("account", String(32), nullable=False),
    Column("made", BigInteger, nullable=False),  # seq
    Column("revoked", BigInteger),  # seq
)
idempotency = Table(
    "idempotency",
    metadata,
    Column("account", String(32), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("request", String(64), nullable=False),  # SHA-256 of method, path and body
    Column("answer", JSON, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Index("idempotency_by_seq", "seq"),
)
ended = Table(
    "ended",
    metadata,
    Column("job", String(128), primary_key=True),
    Column("owner", String(32), nullable=False),
    Column("state", String(16), nullable=False),
    Column("submitted", BigInteger, nullable=False),  # seq
    Column("seq", BigInteger, nullable=False),
    Column("body", JSON, nullable=False),
    Index("ended_by_owner", "owner", "submitted"),
    Index("ended_by_submission", "submitted", unique=True),
    Index("ended_by_seq", "seq"),
)
snapshots = Table(
    "snapshots",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("state", LargeBinary, nullable=False),
)
