"""What one request does to a market: events are taken, rows are prepared, tokens are made; nothing is written yet."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from marketsched.live.clock import Clock
from marketsched.live.configuration import utc_text
from marketsched.live.job import LiveJob
from marketsched.live.journal import Journal
from marketsched.live.machine import LiveMarket
from marketsched.live.rows import Batch, Row


class Host(Protocol):
    """What a turn reads and moves on of the service whose request it answers."""

    market: LiveMarket
    journal: Journal
    clock: Clock
    last_seq: int
    tokens: Mapping[str, str]


class Turn:
    """What one request does to the market; for the thread of the service only."""

    def __init__(self, service: Host, batch: Batch) -> None:
        self._service, self._batch = service, batch
        self.market = service.market
        self.journal = service.journal
        self.recorded: Row | None = None

    def record(self, event: Mapping[str, Any], by: str) -> Row:
        """Take an event into the market, and its row into the journal.

        Raises
        ------
        MarketschedError
            If the event does not fit; nothing is changed then.
        """
        service = self._service
        seq, now, opened = service.last_seq + 1, utc_text(service.clock.now()), self.market.round
        applied = self.market.apply(event, seq)
        body = {key: value for key, value in event.items() if key not in ("event", "owner", "job")}
        row = Row(seq, now, opened, event["event"], by, event.get("owner"), event.get("job"), body)
        row.decisions, row.postings = applied.decisions, list(applied.postings)
        service.last_seq = seq  # its digest follows when all that stands beside it is known
        self._batch.rows.append(row)
        for account, *_ in applied.postings:
            if account in self.market.accounts.known:
                self._batch.balances[account] = self.market.accounts.known[account].balance
        self.recorded = row
        return row

    def clear_round(self, by: str, **more: Any) -> list[Row]:
        """Clear the open round, and before it what its end brings with it; return the rows."""
        rows = [self.record(event, by) for event in list(self.market.due())]
        return [*rows, self.record({"event": "advance", **more}, by)]

    def rows(self, seqs: Sequence[int]) -> list[Row]:
        """Return rows of the journal, those too that the transaction at hand will write."""
        unwritten = {row.seq: row for row in self._batch.rows}
        written = self.journal.row([seq for seq in seqs if seq not in unwritten])
        return written + [unwritten[seq] for seq in seqs if seq in unwritten]

    def shown(self, jobs: Sequence[LiveJob]) -> list[dict[str, Any]]:
        """Return jobs as plain data; the plans of those that have gone are in the journal."""
        gone = {job.rows[0] for job in jobs if job.plan is None}
        unwritten = {row.seq: row.decisions[-1]["starts"] for row in self._batch.rows if row.seq in gone}
        plans = self.journal.plans(sorted(gone - unwritten.keys())) | unwritten if gone else {}
        return [job.shown(plans.get(job.rows[0])) for job in jobs]

    @property
    def clock(self) -> Clock:
        """The clock of the market."""
        return self._service.clock

    @property
    def last_seq(self) -> int:
        """The last row that was recorded."""
        return self._service.last_seq

    def has_token(self, account: str) -> bool:
        """Tell whether an account has a token that is good."""
        return account in self._service.tokens.values()

    def enter_account(self, name: str) -> None:
        """Write a new account, whose event has been recorded, beside the journal."""
        account = self.market.accounts.get(name)
        entry = {"name": name, "role": account.role, "limit_micro": account.limit, "balance_micro": 0}
        self._batch.new_accounts.append(entry)

    def new_token(self, account: str, seq: int) -> str:
        """Make a token for an account, by event ``seq``, and return it: it is nowhere written down."""
        token = secrets.token_urlsafe(32)  # 256 bits
        digest = token_digest(token)
        self._batch.new_tokens.append({"digest": digest, "account": account, "made": seq, "revoked": None})
        self._service.tokens = {**self._service.tokens, digest: account}
        return token

    def revoke_tokens(self, account: str, seq: int) -> None:
        """Let no token of an account be good any more, by event ``seq``."""
        kept = {digest: who for digest, who in self._service.tokens.items() if who != account}
        self._batch.revoked += [(digest, seq) for digest in self._service.tokens if digest not in kept]
        self._service.tokens = kept


Work = Callable[[Turn], Any]


def token_digest(token: str) -> str:
    """Return what the database keeps of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
