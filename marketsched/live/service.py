"""One market at work: requests go in one by one, and are answered once the journal holds what follows from them.

A single thread owns the market and the database. It takes the requests that have come in, lets each of them change
the market in memory, writes all that follows in one transaction, and only then answers. If that transaction
fails, memory is ahead of the database: nothing of the group is answered but "unavailable", and before anything
else is taken the market is made anew from the journal. So what was answered is in the journal, and what the next
request sees is in it, too.
"""

from __future__ import annotations

import errno
import hmac
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from marketsched import __version__
from marketsched.live.clock import Clock
from marketsched.live.configuration import BEFORE_FEES, LiveConfig, live_config, stored_config, utc_text
from marketsched.live.database import JournalError
from marketsched.live.fairness import FairQueue
from marketsched.live.journal import Journal
from marketsched.live.machine import LiveMarket
from marketsched.live.market_view import market_view
from marketsched.live.playing import play_journal, rehearse
from marketsched.live.rows import Batch, Row
from marketsched.live.turn import Turn, Work, token_digest
from marketsched.mechanisms.errors import EventError, InvalidParameterError, MarketschedError

MOST_TOGETHER = 256  # requests answered by one transaction
RECENT = 5000  # rows kept in memory, for streams
SLICE_SECONDS = 0.05  # for which rounds are cleared before requests have their turn
TOGETHER_SECONDS = 0.02  # for which requests are taken into one transaction
NOBODY = ""  # the account of what no account asked for
RETRY_SECONDS = 1.0  # between attempts to reach a database that went away
OPERATOR = "operator"  # the account that a new market begins with
CLOCK = "clock"  # who ends rounds on the clock, in the journal

log = logging.getLogger(__name__)


class UnavailableError(MarketschedError, OSError):
    """The market cannot be changed or looked at now: its database is away, or it is being made anew."""


@dataclass(frozen=True, slots=True)
class Repeatable:
    """A request that may be sent again: its key, and the digest of what it asks for."""

    account: str
    key: str
    request: str


@dataclass(slots=True)
class _Request:
    work: Work
    future: Future[Any]
    repeatable: Repeatable | None


class LiveService:
    """A market, its journal and its clock.

    Parameters
    ----------
    url : str
        The database, as for `Journal`.
    config : LiveConfig, mapping or path, optional
        Of the market; may be left out if the database holds one.
    operator_token_file : path, optional
        Where the operator's token of a new market is written, readable by its owner alone.
    make_clock : function, optional
        Returns the clock of a configuration and the moment at which the market was made.

    Raises
    ------
    InvalidParameterError
        If the configuration is at fault, or is not the one that the market was made with.
    JournalError
        If the database cannot be used, or what it holds does not follow from its own events.
    """

    def __init__(
        self,
        url: str,
        config: LiveConfig | Mapping[str, Any] | str | Path | None = None,
        *,
        operator_token_file: str | Path | None = None,
        make_clock: Callable[[LiveConfig, str], Clock] = Clock,
    ) -> None:
        self.journal = Journal(url)
        self.tokens = {}  # replaced as a whole, never changed: the guard reads it from another thread
        self.recent: deque[Row] = deque(maxlen=RECENT)
        self.last_seq, self.last_digest = 0, ""
        self.published = 0  # the last row that is written, for streams
        self.on_rows: Callable[[], None] = lambda: None  # called by the thread of the service
        self.restarts = 0  # how often the market was made anew since the start
        self._queue: FairQueue[_Request | None] = FairQueue()
        self._thread: threading.Thread | None = None
        self._down = ""  # why nothing is taken; empty: it is
        self._last_try = 0.0
        asked = None if config is None else live_config(config)
        self.journal.open()
        try:
            new = self._enter(asked, make_clock, operator_token_file)
            self._load()
            self.clock.check_plausible(self.market.round)
            if new and operator_token_file is not None:
                self.write_operator_token(Path(operator_token_file))
        except BaseException:
            self.journal.close()
            raise

    # -- life ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to take requests."""
        rehearse(self.config)
        self._thread = threading.Thread(target=self._run, name="market", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Answer what has come in, and let go of the database."""
        if self._thread is not None:
            self._queue.put(NOBODY, None)
            self._thread.join()
            self._thread = None
        self.journal.close()

    def ask(self, work: Work, repeatable: Repeatable | None = None, *, account: str = NOBODY) -> Future[Any]:
        """Let the thread of the service do something; return what will hold its answer.

        Accounts take turns: each that waits has the same share of the thread (`FairQueue`).

        Work that records events is answered once they are in the journal. It raises a `MarketschedError` before it
        changes anything, or not at all.
        """
        future: Future[Any] = Future()
        self._queue.put(account, _Request(work, future, repeatable))
        return future

    @property
    def down(self) -> str:
        """Why nothing is taken now; empty: it is."""
        return self._down

    def account_of(self, token: str) -> str | None:
        """Return whose token this is, if it is good.

        A token is looked up by the beginning of its SHA-256, and the rest is compared in constant time.
        """
        digest = token_digest(token)
        for known, account in self._by_beginning.get(digest[:16], ()):
            if hmac.compare_digest(known, digest):
                return account
        return None

    @property
    def tokens(self) -> Mapping[str, str]:
        """Whose each good token is, by its digest."""
        return self._tokens

    @tokens.setter
    def tokens(self, tokens: Mapping[str, str]) -> None:
        beginnings: dict[str, list[tuple[str, str]]] = {}
        for digest, account in tokens.items():
            beginnings.setdefault(digest[:16], []).append((digest, account))
        self._tokens, self._by_beginning = tokens, beginnings

    def write_operator_token(self, path: Path) -> None:
        """Make a token for the first operator and write it to a new file that only its owner can read.

        Raises
        ------
        FileExistsError
            If the file is there.
        """
        with open(path, "x", opener=_private) as file:
            batch = Batch()
            turn = Turn(self, batch)
            if OPERATOR not in self.market.accounts.known:
                turn.record({"event": "owner", "owner": OPERATOR, "role": "operator"}, OPERATOR)
                turn.enter_account(OPERATOR)
            row = turn.record({"event": "token", "owner": OPERATOR, "action": "new"}, OPERATOR)
            token = turn.new_token(OPERATOR, row.seq)
            file.write(token + "\n")
            self._seal_and_write(batch)
            self._publish(batch)

    # -- the thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        stopping = False
        while not stopping:
            first = self._queue.get(self._patience())
            if self._down:
                self._recover()
            if not self._down:
                self._end_rounds()
            if first is not None:
                stopping = self._serve(*first)

    def _patience(self) -> float | None:
        """Return for how many seconds nothing is to be done but what is asked for; None: for ever."""
        if self._down:
            return RETRY_SECONDS
        overdue = None if self.market.over else self.clock.overdue(self.market.round)
        return None if overdue is None else max(0.0, min(-overdue, 60.0))

    def _end_rounds(self) -> None:
        """Clear rounds whose end has passed, one by one, for a short while: requests are looked at in between."""
        batch, until = Batch(), time.monotonic() + SLICE_SECONDS
        while not self.market.over and time.monotonic() < until:
            overdue = self.clock.overdue(self.market.round)
            if overdue is None or overdue < 0:
                break
            late = {"late_seconds": round(overdue, 3)} if self.clock.late(overdue) else {}
            try:
                Turn(self, batch).clear_round(CLOCK, **late)
            except Exception:  # a fault of the mechanism: the journal does not hold the round, so it is tried again
                log.exception("round %d cannot be cleared", self.market.round)
                self._fall("a round cannot be cleared: see the log")
                return
        if batch.rows:
            self._write(batch)

    def _serve(self, account: str, request: _Request | None) -> bool:
        """Answer a request, and those that come with it for a short while; return True if the last one says stop."""
        batch, answers, until = Batch(), list[tuple[_Request, Any]](), time.monotonic() + TOGETHER_SECONDS
        while request is not None:
            began = time.monotonic()
            if request.future.set_running_or_notify_cancel():  # else who asked has gone: nothing happens
                down = UnavailableError(f"unavailable: {self._down}") if self._down else None
                answers.append((request, down or self._answer(request, batch)))
            now = time.monotonic()
            self._queue.spent(account, now - began)
            found = None if now > until or len(answers) >= MOST_TOGETHER else self._queue.get(0.0)
            if found is None:
                break
            account, request = found
        if batch.rows and not self._down:
            self._write(batch)
        for each, answer in answers:
            if self._down and not isinstance(answer, _Fault):
                answer = UnavailableError(f"unavailable: {self._down}")
            if isinstance(answer, _Fault):
                each.future.set_exception(answer.error)
            elif isinstance(answer, MarketschedError):
                each.future.set_exception(answer)
            else:
                each.future.set_result(answer)
        return request is None

    def _answer(self, request: _Request, batch: Batch) -> Any:
        """Return the answer to a request, or the error that is its answer."""
        asked = request.repeatable
        turn = Turn(self, batch)
        try:
            if asked is not None:
                before = batch.answers.get((asked.account, asked.key)) or self.journal.answer(asked.account, asked.key)
                if before is not None:
                    if before["request"] != asked.request:
                        legal = "a new key for another request"
                        raise EventError(f"Idempotency-Key = {asked.key!r} was used before", legal=legal)
                    return before["answer"]
            answer = request.work(turn)
            if asked is not None and turn.recorded is not None:
                kept = {**answer, "token": None} if isinstance(answer, dict) and "token" in answer else answer
                entry = {"request": asked.request, "answer": kept, "seq": turn.recorded.seq}
                batch.answers[asked.account, asked.key] = entry
            return answer
        except JournalError as error:
            self._fall(str(error))
            return UnavailableError(f"unavailable: {error}")
        except MarketschedError as error:
            return error
        except Exception as error:  # a fault of ours: the market may be half changed
            log.exception("a request failed")
            self._fall("a request failed: see the log")
            return _Fault(error)

    def _write(self, batch: Batch) -> bool:
        """Write a batch; return False, and take nothing more, if that fails."""
        try:
            self._seal_and_write(batch)
        except JournalError as error:
            self._fall(str(error))
            return False
        self._publish(batch)
        return True

    def _seal_and_write(self, batch: Batch) -> None:
        batch.put_beside()
        for row in batch.rows:
            self.last_digest = row.digest = self.journal.seal(row, self.last_digest)
        self.journal.write(batch)

    def _publish(self, batch: Batch) -> None:
        self.recent.extend(batch.rows)
        self.published = self.last_seq
        self.view = market_view(self.market, self.last_seq)
        self.on_rows()

    def _fall(self, why: str) -> None:
        """Take nothing until the market has been made anew from the journal."""
        self._down = self._down or why
        self._last_try = 0.0

    def _recover(self) -> None:
        """Try to reach the database again, and make the market anew."""
        if time.monotonic() - self._last_try < RETRY_SECONDS and self._last_try:
            return
        self._last_try = time.monotonic()
        try:
            self.journal.open()
            self.journal.check_writable()
            self._load()
        except MarketschedError as error:
            self._down = str(error)
            return
        except Exception:
            log.exception("the market cannot be made anew")
            return
        self.restarts += 1
        self._down, self._last_try = "", 0.0

    # -- the journal --------------------------------------------------------------------------------------

    def _enter(
        self, config: LiveConfig | None, make_clock: Callable[[LiveConfig, str], Clock], token_file: str | Path | None
    ) -> bool:
        """Find the market of the database, or make it; return True if it is new."""
        known = self.journal.market()
        if known is None:
            if config is None:
                raise InvalidParameterError("the database holds no market", legal="a configuration to make one")
            LiveMarket(config)  # what its mechanism refuses is said before anything is written
            clock = make_clock(config, utc_text_now())
            clock.check_plausible(1)
            made = utc_text(clock.now())
            _check_new_file(token_file)
            self.journal.make_market(config.name, config.stored(), made, __version__)
            self.config, self.created = config, made
        else:
            stored = stored_config(known["configuration"])
            if config is not None:
                config.check_same(stored.stored())
                kept = {key: getattr(stored, key) for key in BEFORE_FEES}
                config = config.model_copy(update=kept)
            self.config, self.created = config or stored, known["created"]
        self.clock = make_clock(self.config, self.created)
        return known is None

    def _load(self) -> None:
        """Make the market from its journal."""
        self.recent.clear()
        played = play_journal(self.config, self.journal, self.recent)
        self.market: LiveMarket = played.market
        self.last_seq, self.last_digest = played.seq, played.digest
        self.tokens = self.journal.tokens()
        self.published = self.last_seq
        self.view = market_view(self.market, self.last_seq)


class _Fault:
    """An exception that is a fault of the package, not of the request."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _check_new_file(path: str | Path | None) -> None:
    """Raise OSError unless a file can be made there: a market without its first token would have no operator."""
    if path is None:
        return
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "the first operator's token needs a new file", str(path))
    if not os.access(Path(path).absolute().parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "the operator's token cannot be written there", str(path))


def utc_text_now() -> str:
    """Return the system's time as the journal writes it."""
    return utc_text(datetime.now(UTC))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
