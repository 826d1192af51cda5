"""The effect of one request on a market: events are taken, rows prepared, tokens made; nothing is written yet."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from marketsched.live.accounts import Account
from marketsched.live.announcements import too_long
from marketsched.live.clock import Clock
from marketsched.live.configuration import utc_text
from marketsched.live.job import AWAY, GONE, OVERRUN, LiveJob
from marketsched.live.machine import LiveMarket
from marketsched.live.owner_view import Cursors
from marketsched.live.principal import Principal
from marketsched.live.rows import Batch, Row
from marketsched.live.tokens import Tokens, token_digest
from marketsched.mechanisms.errors import EventError, UnknownNameError

if TYPE_CHECKING:
    from marketsched.live.kept_market import KeptMarket


def due(market: LiveMarket, *, away: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the events that the end of the open round brings with it, to be taken before it is cleared.

    A job that ran for as long as it booked is complete, whether its work is done or not, and pays for what it booked:
    the paper's rule, by which evicted jobs pay nothing, is for those that the mechanism evicts. So is one that would go
    on for an unlikely duration once too often (`announcements`). A job that did not come in a round, or not with a
    signal, that it announced costs its owner the fee. Neither costs anything if no service ran (``away``): nobody could
    report.
    """
    for name in market.bookings_end.get(market.round, ()):
        job = market.jobs.get(name)
        if job is None:
            continue
        used = job.state == "running" and job.start is not None and market.round - job.start >= job.may_run
        if used and not job.ends_itself:
            outcome = job.outcome or (AWAY if away else OVERRUN)
            yield {"event": "complete", "owner": job.owner, "job": name, "outcome": outcome, "exit_code": None}
    for job in () if away else too_long(market):
        more = {"refused": "surprise", "outcome": OVERRUN, "exit_code": None}
        yield {"event": "complete", "owner": job.owner, "job": job.name, **more}
    for name in market.expected.get(market.round, ()):
        job = market.jobs.get(name)
        if job is not None and job.state == "submitted":
            yield _missed(job, away)
    for line in market.reported:
        job = market.jobs.get(line["job"])
        if job is not None and job.state == "arrived" and job.reason is not None and job.charge is None:
            yield _missed(job, False)


def _missed(job: LiveJob, away: bool) -> dict[str, Any]:
    more = {"micro": 0, "away": True} if away else {"micro": job.fee}
    return {"event": "missed", "owner": job.owner, "job": job.name, **more}


class Turn:
    """The effect of one request on the market; for the thread of the service only."""

    def __init__(self, service: KeptMarket, batch: Batch) -> None:
        self._service, self._batch = service, batch
        self.market = service.market
        self.journal = service.journal
        self.recorded: Row | None = None

    def whose(self, who: Principal, owner: str | None) -> Account:
        """Return the account that a caller asks about: its own; another one for an operator alone."""
        if who.role == "owner" and owner not in (None, who.name):
            raise UnknownNameError(place="owner", value=owner, legal="your own name, or none")
        return self.market.accounts.get(who.name if owner is None else owner)

    def one_or_all(self, who: Principal, owner: str | None) -> str | None:
        """Return whose rows a caller asks for; None: everybody's, as an operator who names nobody."""
        return None if who.role == "operator" and owner is None else self.whose(who, owner).name

    def record(self, event: Mapping[str, Any], by: str) -> Row:
        """Take an event into the market, and its row into the journal.

        Raises MarketschedError if the event does not fit; nothing is changed then.
        """
        service = self._service
        seq, now, opened = service.last_seq + 1, utc_text(service.clock.now()), self.market.round
        applied = self.market.apply(event, seq)
        body = {key: value for key, value in event.items() if key not in ("event", "owner", "job")}
        row = Row(seq, now, opened, event["event"], by, event.get("owner"), event.get("job"), body)
        row.decisions, row.postings = applied.decisions, list(applied.postings)
        service.last_seq = seq  # its digest follows when all that stands beside it is known
        self._batch.rows.append(row)
        self._batch.ended.update((job.name, job) for job in applied.ended)
        for account, *_ in applied.postings:
            if account in self.market.accounts.known:
                self._batch.balances[account] = self.market.accounts.known[account].balance
        self.recorded = row
        return row

    def clear_round(self, by: str, *, away: bool = False, **more: Any) -> list[Row]:
        """Clear the open round, and before it what its end brings with it (see `due` for ``away``); return the rows.

        After the last round it is cleared once more, which removes the remaining jobs. ``more`` goes into the body of
        the event.
        """
        rows = [self.record(event, by) for event in list(due(self.market, away=away))]
        more |= {"away": True} if away else {}
        if self.market.round == self.market.config.horizon:
            more["more"] = True  # completions of the last round are reported after it
        return [*rows, self.record({"event": "advance", **more}, by)]

    def job(self, name: object) -> LiveJob:
        """Return a job, open or gone; UnknownNameError if there is none of that name."""
        found = self._found(name) if isinstance(name, str) else None
        if found is None:
            raise UnknownNameError(place="job", value=name, legal="a job that was submitted")
        return found

    def check_new(self, name: str) -> None:
        """Raise EventError if a job of this name was submitted before."""
        if self._found(name) is not None:
            raise EventError(f"job = {name!r} was submitted before", legal="a new name")

    def _found(self, name: str) -> LiveJob | None:
        return self.market.jobs.get(name) or self._batch.ended.get(name) or self.journal.ended_job(name)

    def jobs(self, after: int, most: int, owner: str | None, state: str | None) -> list[LiveJob]:
        """Return at most ``most`` jobs submitted behind event ``after``, in order of submission."""
        among = [] if state in GONE else list(self.market.jobs.values())
        if state is None or state in GONE:
            among += [*self._batch.ended.values(), *self.journal.ended_jobs(after, most, owner, state)]
        fits = (
            job for job in among if job.rows[0] > after and owner in (None, job.owner) and state in (None, job.state)
        )
        return sorted(fits, key=lambda job: job.rows[0])[:most]

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
    def cursors(self) -> Cursors:
        """The numbers of rows as owners see them."""
        return self._service.cursors

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
        entry = {"name": name, "role": account.role, "limit_micro": account.limit, "balance_micro": account.balance}
        self._batch.new_accounts.append(entry)

    def new_token(self, account: str, seq: int) -> str:
        """Make a token for an account, by event ``seq``, and return it: it is nowhere written down."""
        token = secrets.token_urlsafe(32)  # 256 bits
        digest = token_digest(token)
        self._batch.new_tokens.append({"digest": digest, "account": account, "made": seq, "revoked": None})
        self._service.tokens = Tokens({**self._service.tokens, digest: account})
        return token

    def revoke_tokens(self, account: str, seq: int) -> None:
        """Let no token of an account be good any more, by event ``seq``."""
        kept = {digest: who for digest, who in self._service.tokens.items() if who != account}
        self._batch.revoked += [(digest, seq) for digest in self._service.tokens if digest not in kept]
        self._service.tokens = Tokens(kept)


Work = Callable[[Turn], Any]
