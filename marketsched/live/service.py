"""One market at work: requests are processed one by one, and answered once the journal holds their consequences.

A single thread owns the market and the database. It takes the requests that have come in, lets each of them change
the market in memory, writes all that follows in one transaction, and only then answers. If that transaction
fails, memory is ahead of the database: nothing of the group is answered but "unavailable", and before anything
else is taken the market is made anew from the journal. So what was answered is in the journal, and what the next
request sees is in it, too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from marketsched.live.configuration import LiveConfig
from marketsched.live.database import JournalError
from marketsched.live.kept_market import KeptMarket
from marketsched.live.playing import rehearse
from marketsched.live.rows import Batch
from marketsched.live.turn import Turn, Work
from marketsched.mechanisms.errors import EventError, MarketschedError

MOST_TOGETHER = 256  # requests answered by one transaction
SLICE_SECONDS = 0.05  # for which rounds are cleared before requests have their turn
TOGETHER_SECONDS = 0.02  # for which requests are taken into one transaction
RETRY_SECONDS = 1.0  # between attempts to reach a database that went away
CLOCK = "clock"  # who ends rounds on the clock, in the journal
WALK_SECONDS = 1.0  # after which some old rows are read, also if there is always something else to do

log = logging.getLogger(__name__)


class UnavailableError(MarketschedError, OSError):
    """The market cannot be changed or looked at now: its database is away, or it is being made anew."""


@dataclass(frozen=True, slots=True)
class Repeatable:
    """A request that may be sent again: its key, and the digest of its content."""

    account: str
    key: str
    request: str


@dataclass(slots=True)
class _Request:
    work: Work
    future: Future[Any]
    repeatable: Repeatable | None = None


_STOP = _Request(lambda turn: None, Future())  # the last one of a service


class LiveService(KeptMarket):
    """A market, its journal and its clock; parameters and errors are those of `KeptMarket`."""

    def __init__(
        self, url: str, config: LiveConfig | Mapping[str, Any] | str | Path | None = None, **options: Any
    ) -> None:
        self.on_rows: Callable[[], None] = lambda: None  # called by the thread of the service
        self.restarts = 0  # how often the market was made anew since the start
        self._queue: SimpleQueue[_Request] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._down = ""  # why nothing is taken; empty: it is
        self._damaged = ""  # what was found in the database that nothing but another database mends
        self._last_try = self._walked = 0.0
        super().__init__(url, config, **options)
        self.up_since = self.clock.now()  # from when on requests are taken

    # -- life ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to take requests."""
        rehearse(self.config)
        self.up_since = self.clock.now()
        self._thread = threading.Thread(target=self._run, name="market", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Answer the received requests, and release the database."""
        if self._thread is not None:
            self._queue.put(_STOP)
            self._thread.join()
            self._thread = None
            if not self._down and self.snapshots.worth_while(self.last_seq):
                self._keep_snapshot()
        self.journal.close()

    def ask(self, work: Work, repeatable: Repeatable | None = None) -> Future[Any]:
        """Let the thread of the service do something; return what will hold its answer.

        Work that records events is answered once they are in the journal. It raises a `MarketschedError` before it
        changes anything, or not at all.
        """
        future: Future[Any] = Future()
        self._queue.put(_Request(work, future, repeatable))
        return future

    @property
    def warning(self) -> str:
        """What an operator should look at, though requests are taken; empty: nothing."""
        behind = self.clock.behind(self.market.round)
        if not behind:
            return ""
        return f"the clock is behind the journal: round {self.market.round} begins by it in {behind:.0f} s"

    @property
    def down(self) -> str:
        """Why nothing is taken now; empty: it is."""
        return self._down

    def account_of(self, token: str) -> str | None:
        """Return whose token this is, if it is good; from any thread."""
        return self.tokens.account_of(token)

    # -- the thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        stopping = False
        while not stopping:
            first = self._next(self._patience())
            if self._down:
                self._recover()
            if not self._down:
                self._end_rounds()
                if first is None or time.monotonic() - self._walked > WALK_SECONDS:
                    self._walk_on()
            if first is not None:
                stopping = self._serve(first)
            if not self._down and self.snapshots.due(self.last_seq):  # everybody has been answered
                self._keep_snapshot()

    def _next(self, seconds: float | None) -> _Request | None:
        """Return the next request; None: none came in time."""
        try:
            return self._queue.get(timeout=seconds)
        except Empty:
            return None

    def _patience(self) -> float | None:
        """Return for how many seconds only requests have to be processed; None: for ever."""
        if self._down:
            return RETRY_SECONDS
        overdue = None if not self.market.rounds_left else self.clock.overdue(self.market.round)
        walk = None if self.walk.over else 0.0
        return walk if overdue is None else max(0.0, min(-overdue, 60.0 if walk is None else walk))

    def _walk_on(self) -> None:
        """Check some more of what stands before the last snapshot; what is damaged there ends the service's work."""
        self._walked = time.monotonic()
        try:
            self.walk.step()
        except JournalError as error:
            log.error("%s", error)
            self._damaged = str(error)
            self._fall(self._damaged)

    def _end_rounds(self) -> None:
        """Clear rounds whose end has passed, one by one, for a short while: requests are looked at in between."""
        batch, until = Batch(), time.monotonic() + SLICE_SECONDS
        while self.market.rounds_left and time.monotonic() < until:
            overdue = self.clock.overdue(self.market.round)
            if overdue is None or overdue < 0:
                break
            late = {"late_seconds": round(overdue, 3)} if self.clock.late(overdue) else {}
            try:
                away = self.clock.unreportable(self.market.round, self.up_since)
                Turn(self, batch).clear_round(CLOCK, away=away, **late)
            except Exception:  # a fault of the mechanism: the journal does not hold the round, so it is tried again
                log.exception("round %d cannot be cleared", self.market.round)
                self._fall("a round cannot be cleared: see the log")
                return
        if batch.rows:
            self._write(batch)

    def _serve(self, request: _Request | None) -> bool:
        """Answer a request, and those that come with it for a short while; return True if the last one says stop."""
        batch, answers, until = Batch(), list[tuple[_Request, Any]](), time.monotonic() + TOGETHER_SECONDS
        while request is not None and request is not _STOP:
            if request.future.set_running_or_notify_cancel():  # else who asked has gone: nothing happens
                down = UnavailableError(f"unavailable: {self._down}") if self._down else None
                answers.append((request, down or self._answer(request, batch)))
            enough = time.monotonic() > until or len(answers) >= MOST_TOGETHER
            request = None if enough else self._next(0.0)
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
        return request is _STOP

    def _answer(self, request: _Request, batch: Batch) -> Any:
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
            self.write(batch)
        except JournalError as error:
            self._fall(str(error))
            return False
        self.publish(batch)
        self.on_rows()
        return True

    def _keep_snapshot(self) -> None:
        try:
            self.take_snapshot()
        except JournalError as error:
            log.error("%s", error)
            self._fall(str(error))
        self.on_rows()

    def _fall(self, why: str) -> None:
        """Take nothing until the market has been made anew from the journal."""
        self._down = self._down or why
        self._last_try = 0.0

    def _recover(self) -> None:
        if self._damaged:
            return
        if time.monotonic() - self._last_try < RETRY_SECONDS and self._last_try:
            return
        self._last_try = time.monotonic()
        try:
            self.journal.open()
            self.journal.check_writable()
            self.load()
        except MarketschedError as error:
            self._down = str(error)
            return
        except Exception:
            log.exception("the market cannot be made anew")
            return
        self.restarts += 1
        self.up_since = self.clock.now()
        self._down, self._last_try = "", 0.0


class _Fault:
    """An exception that is a fault of the package, not of the request."""

    def __init__(self, error: Exception) -> None:
        self.error = error
