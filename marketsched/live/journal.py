"""The journal on disk: one transaction for each group of accepted events, with all that follows from them.

SQLite (write-ahead log, every commit on the disk before it is answered) and PostgreSQL hold the same tables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Column, ColumnElement, Table, bindparam, delete, func, select, update

from marketsched.live import tables
from marketsched.live.accounts import Posting
from marketsched.live.database import Database, JournalError
from marketsched.live.job import LiveJob
from marketsched.live.rows import BESIDE, Batch, Row, beside_of_ended

READ_AT_ONCE = 2000  # rows
SOUGHT_AT_ONCE = 500  # rows, by their numbers
KEPT_SNAPSHOTS = 2
COLUMNS = ("seq", "time", "round", "event", "by", "owner", "job", "body", "digest")  # of the journal
HANGING = (tables.decisions, tables.ledger, tables.tokens, tables.idempotency, tables.ended)


class Journal(Database):
    """The journal of one market, in its database; parameters and errors as of `Database`."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._base = ""

    # -- the market ---------------------------------------------------------------------------------------

    def market(self) -> dict[str, Any] | None:
        """Return the stored data of the market; None: it is new."""
        with self._reading("the market cannot be read"):
            found = self.connection.execute(select(tables.market.c.format)).scalar()
            if found is None:
                return None
            if found != tables.FORMAT:
                legal = f"format {tables.FORMAT}, or the version of marketsched that made it"
                raise JournalError(f"the database has tables of format {found}", legal=legal)
            row = dict(self.connection.execute(select(tables.market)).mappings().one())
            if not isinstance(row["configuration"], dict):
                raise JournalError("the market's configuration is damaged", legal="what a service wrote")
        self._base = _base(row)
        return row

    def make_market(self, name: str, configuration: Mapping[str, Any], created: str, version: str) -> None:
        """Enter the market itself."""
        row = {"id": 1, "name": name, "configuration": dict(configuration), "created": created, "version": version}
        self._base = _base(row)
        more = {"format": tables.FORMAT, "checked": 0, "writer": self._writer}
        with self._errors("the market cannot be made"), self.connection.begin():
            self.connection.execute(tables.market.insert(), row | more)

    def check_writable(self) -> None:
        """Raise JournalError unless the database takes a write of this service."""
        with self._errors("the database cannot be written"), self.connection.begin():
            self._pass_fence()

    def seal(self, row: Row, before: str) -> str:
        """Return the digest of a row behind another one of digest ``before``; the chain begins with the market."""
        return row.sealed(_digest(self._base) if row.seq == 1 else before)

    def check_seal(self, row: Row, before: str) -> None:
        """Raise JournalError unless a row's digest follows from its content and the digest ``before``."""
        if self.seal(row, before) != row.digest:
            base = ", or the market's configuration," if row.seq == 1 else ""
            raise JournalError(f"journal row {row.seq} ({row.event}){base} is not what was written: its digest differs")

    # -- writing ------------------------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Write all of a batch, or nothing; it is on the disk when this returns.

        Raises JournalError if it was not written; or if the database went away and that is unknown.
        """
        events, decisions, postings = [], [], []
        for row in batch.rows:
            events.append({name: getattr(row, name) for name in COLUMNS})
            for n, each in enumerate(row.decisions):
                said = {key: each[key] for key in ("round", "event", "job")}
                decisions.append({"seq": row.seq, "n": n, **said, "body": each})
            for n, (account, micro, what, job) in enumerate(row.postings):
                known = {"account": account, "micro": micro, "what": what, "job": job}
                postings.append({"seq": row.seq, "n": n, **known})
        answers = [{"account": who, "key": key, **each} for (who, key), each in batch.answers.items()]
        snapshot = [] if batch.snapshot is None else [dict(zip(("seq", "state"), batch.snapshot, strict=True))]
        with self._errors("an event cannot be written"), self.connection.begin():
            self._pass_fence()
            for table, many in (
                (tables.journal, events),
                (tables.decisions, decisions),
                (tables.ledger, postings),
                (tables.accounts, batch.new_accounts),
                (tables.tokens, batch.new_tokens),
                (tables.idempotency, answers),
                (tables.ended, [job.kept() for job in batch.ended.values()]),
                (tables.snapshots, snapshot),
            ):
                if many:
                    self.connection.execute(table.insert(), many)
            self._write_changes(batch)
            if snapshot:
                kept = select(tables.snapshots.c.seq).order_by(tables.snapshots.c.seq.desc()).limit(KEPT_SNAPSHOTS)
                oldest = min(self.connection.execute(kept).scalars())
                self.connection.execute(delete(tables.snapshots).where(tables.snapshots.c.seq < oldest))
        self.check_place()  # before anything is answered

    def _write_changes(self, batch: Batch) -> None:
        if batch.balances:
            account = tables.accounts
            change = update(account).where(account.c.name == bindparam("who")).values(balance_micro=bindparam("micro"))
            self.connection.execute(change, [{"who": who, "micro": micro} for who, micro in batch.balances.items()])
        if batch.revoked:
            token = tables.tokens
            change = update(token).where(token.c.digest == bindparam("which")).values(revoked=bindparam("by"))
            self.connection.execute(change, [{"which": digest, "by": seq} for digest, seq in batch.revoked])

    # -- reading ------------------------------------------------------------------------------------------

    def rows(self, after: int = 0, most: int | None = None) -> Iterator[Row]:
        """Yield at most ``most`` rows behind row ``after``, with their decisions and postings."""
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
        """Return the rows whose numbers fit a condition, with all that follows from them."""
        with self._reading("the journal cannot be read"):
            try:
                return self._selected(which, most)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                numbers = select(tables.journal.c.seq).where(which(tables.journal.c.seq))
                for (seq,) in self.connection.execute(numbers.order_by(tables.journal.c.seq).limit(most)).all():
                    try:
                        self._selected(lambda column, seq=seq: column == seq, 1)  # type: ignore[misc]
                    except (ValueError, TypeError, KeyError, AttributeError):
                        raise JournalError(f"journal row {seq}, or what follows from it, is damaged: {error}") from None
                raise

    def _selected(self, which: Callable[[Column[int]], ColumnElement[bool]], most: int) -> list[Row]:
        journal, decisions, ledger = tables.journal, tables.decisions, tables.ledger
        wanted = select(journal).where(which(journal.c.seq)).order_by(journal.c.seq).limit(most)
        found = {each["seq"]: Row(**each) for each in self.connection.execute(wanted).mappings()}
        if not found:
            return []
        last = max(found)

        def those(table: Table, column: Column[int], *order: Column[Any]) -> Iterator[tuple[Row, Any]]:
            wanted = select(table).where(which(column), column <= last).order_by(column, *order)
            for each in self.connection.execute(wanted):
                if getattr(each, column.name) in found:
                    yield found[getattr(each, column.name)], each

        for row, each in those(decisions, decisions.c.seq, decisions.c.n):
            same = all(getattr(each, key) == each.body[key] for key in ("round", "event", "job"))
            if not same or each.n != len(row.decisions):
                place = f"journal row {row.seq} ({row.event}), decision {len(row.decisions) + 1}"
                raise JournalError(f"{place}: its columns are not what its body says")
            row.decisions.append(each.body)
        for row, each in those(ledger, ledger.c.seq, ledger.c.n):
            if each.n != len(row.postings):
                raise JournalError(f"journal row {row.seq} ({row.event}), posting {each.n} is out of place")
            row.postings.append(Posting(each.account, each.micro, each.what, each.job))
        tokens, answers, ended = tables.tokens, tables.idempotency, tables.ended
        for row in found.values():
            row.beside = {kind: [] for kind in BESIDE}
        for row, each in those(tokens, tokens.c.made):
            row.beside["made"].append([each.digest, each.account])
        for row, each in those(tokens, tokens.c.revoked):
            row.beside["revoked"].append(each.digest)
        for row, each in those(answers, answers.c.seq):
            kept = json.dumps(each.answer, sort_keys=True)
            row.beside["answers"].append([each.account, each.key, each.request, kept])
        for row, each in those(ended, ended.c.seq):
            row.beside["ended"].append(beside_of_ended(each._mapping))
        return list(found.values())

    def plans(self, seqs: Sequence[int]) -> dict[int, list[list[Any]]]:
        """Return the starts that were planned by the submissions with these numbers."""
        table, found = tables.decisions, dict[int, list[list[Any]]]()
        with self._reading("the decisions cannot be read"):
            for part in _parts(seqs):
                wanted = select(table.c.seq, table.c.body).where(table.c.seq.in_(part), table.c.event == "plan")
                found |= {seq: body["starts"] for seq, body in self.connection.execute(wanted)}
        return found

    def last(self) -> tuple[int, str]:
        """Return number and digest of the last row; 0 and nothing if there is none."""
        journal = tables.journal
        with self._reading("the journal cannot be read"):
            wanted = select(journal.c.seq, journal.c.digest).order_by(journal.c.seq.desc()).limit(1)
            row = self.connection.execute(wanted).first()
        return (0, "") if row is None else (row[0], row[1])

    def tokens(self) -> dict[str, str]:
        """Return whose each token is that is not revoked, by its digest."""
        token = tables.tokens
        with self._reading("the tokens cannot be read"):
            wanted = select(token.c.digest, token.c.account).where(token.c.revoked.is_(None))
            return {digest: account for digest, account in self.connection.execute(wanted)}

    def secret(self) -> str:
        """Return what only this database says, and always: the digest of the first token, or else of the market."""
        token = tables.tokens
        with self._reading("the tokens cannot be read"):
            wanted = select(token.c.digest).order_by(token.c.made, token.c.digest).limit(1)
            return str(self.connection.execute(wanted).scalar() or self._base)

    def answer(self, account: str, key: str) -> dict[str, Any] | None:
        """Return the answer to a request with this key: its fingerprint, and the answer."""
        table = tables.idempotency
        with self._reading("the answers cannot be read"):
            wanted = select(table).where((table.c.account == account) & (table.c.key == key))
            row = self.connection.execute(wanted).mappings().first()
        return None if row is None else dict(row)

    def ended_job(self, name: str) -> LiveJob | None:
        """Return a job that has gone; None: there is none of that name."""
        with self._reading("the jobs cannot be read"):
            row = self.connection.execute(select(tables.ended).where(tables.ended.c.job == name)).mappings().first()
            return None if row is None else LiveJob.of_kept(dict(row))

    def ended_jobs(self, after: int, most: int, owner: str | None = None, state: str | None = None) -> list[LiveJob]:
        """Return at most ``most`` jobs that have left and were submitted behind event ``after``, in that order."""
        table = tables.ended
        wanted = select(table).where(table.c.submitted > after).order_by(table.c.submitted).limit(most)
        wanted = wanted if owner is None else wanted.where(table.c.owner == owner)
        wanted = wanted if state is None else wanted.where(table.c.state == state)
        with self._reading("the jobs cannot be read"):
            return [LiveJob.of_kept(dict(row)) for row in self.connection.execute(wanted).mappings()]

    def snapshot(self) -> tuple[Row, str, bytes] | None:
        """Return the event of the last snapshot, the digest of the row behind which the market was so, and the state.

        None: there is no snapshot. Data that no played row contains is compared with its seal here: the event itself,
        and the market's configuration, which the chain begins with. Raises JournalError if there is no such event, or
        it is damaged.
        """
        with self._reading("the snapshot cannot be read"):
            wanted = select(tables.snapshots).order_by(tables.snapshots.c.seq.desc()).limit(1)
            found = self.connection.execute(wanted).first()
            if found is None:
                return None
            rows = self.row([found.seq])
            after = rows[0].body.get("after") if rows and rows[0].event == "snapshot" else None
            if not isinstance(after, int) or not 0 <= after < found.seq:
                raise JournalError(f"the snapshot of journal row {found.seq} has no such row")
            for row in rows + self.row([1]):
                self.check_seal(row, self._digest_of(row.seq - 1))
            return rows[0], self._digest_of(after), bytes(found.state)

    def _digest_of(self, seq: int) -> str:
        """Return the digest of a row; nothing: there is no such row."""
        wanted = select(tables.journal.c.digest).where(tables.journal.c.seq == seq)
        return self.connection.execute(wanted).scalar() or ""

    def entries(self, account: str | None, after: int, most: int) -> tuple[list[dict[str, Any]], bool]:
        """Return entries of the ledger behind event ``after``, of one account or of all, and whether more follow.

        Those of one event come together, so that the next page begins behind it: at most ``most`` of several events, or
        all of a single one.
        """
        table, events = tables.ledger, tables.journal
        wanted = select(table, events.c.time).join(events, events.c.seq == table.c.seq).order_by(table.c.seq, table.c.n)
        wanted = wanted if account is None else wanted.where(table.c.account == account)

        def those(condition: Any, limit: int | None = None) -> list[dict[str, Any]]:
            found = self.connection.execute(wanted.where(condition).limit(limit)).mappings()
            return [dict(each) for each in found]

        with self._reading("the ledger cannot be read"):
            found = those(table.c.seq > after, most + 1)
            if len(found) <= most:
                return found, False
            last = found[-1]["seq"]
            whole = [each for each in found if each["seq"] < last]
            if whole:
                return whole, True
            return those(table.c.seq == last), bool(those(table.c.seq > last, 1))

    def counts(self) -> dict[str, int]:
        """Return how many rows the journal has, and the tables that hang on it."""
        there = (tables.journal, *HANGING)
        with self._reading("the tables cannot be read"):
            counted = {table.name: select(func.count()).select_from(table) for table in there}
            return {name: self.connection.execute(count).scalar_one() for name, count in counted.items()}

    def accounts(self) -> dict[str, tuple[str, int | None, int]]:
        """Return role, limit and balance (millionths) of every account."""
        table = tables.accounts
        with self._reading("the accounts cannot be read"):
            return {
                each.name: (each.role, each.limit_micro, each.balance_micro)
                for each in self.connection.execute(select(table))
            }

    def balances(self) -> dict[str, int]:
        """Return the sum of each account's postings, millionths of a credit."""
        table = tables.ledger
        with self._reading("the ledger cannot be read"):
            wanted = select(table.c.account, func.sum(table.c.micro)).group_by(table.c.account)
            return {account: int(micro) for account, micro in self.connection.execute(wanted)}


def _base(market: Mapping[str, Any]) -> str:
    """Return the digest that the chain begins with: that of the market itself."""
    return _digest(json.dumps([market[key] for key in ("name", "configuration", "created", "version")], sort_keys=True))


def _digest(text_: str) -> str:
    return hashlib.sha256(text_.encode()).hexdigest()


def _parts(seqs: Sequence[int]) -> Iterator[Sequence[int]]:
    """Cut a list of numbers into parts that one query takes."""
    return (seqs[i : i + SOUGHT_AT_ONCE] for i in range(0, len(seqs), SOUGHT_AT_ONCE))


def _among(seqs: Sequence[int], column: Column[int]) -> ColumnElement[bool]:
    return column.in_(seqs)
