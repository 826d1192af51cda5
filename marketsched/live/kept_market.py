"""A market and the database that keeps it: found or made, played, written, and now and then written down as a whole."""

from __future__ import annotations

import logging
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from marketsched import __version__
from marketsched.live.clock import Clock
from marketsched.live.configuration import LiveConfig, live_config, utc_text
from marketsched.live.journal import Journal
from marketsched.live.machine import LiveMarket
from marketsched.live.market_view import market_view
from marketsched.live.owner_view import Cursors
from marketsched.live.playing import Walk, play_journal
from marketsched.live.rows import Batch, Row
from marketsched.live.snapshots import EVERY_ROWS, Schedule, digest_of, frozen, key_in, made_by, seal_of
from marketsched.live.tokens import Tokens, check_new_file, new_private_file
from marketsched.live.turn import Turn
from marketsched.mechanisms.errors import InvalidParameterError

RECENT = 5000  # rows kept in memory, for streams
NO_MARKET, NEW_MARKET = "the database holds no market", "a configuration to make one"
OPERATOR = "operator"  # the account that a new market begins with
SERVICE = "service"  # who takes snapshots, in the journal

log = logging.getLogger(__name__)


class KeptMarket:
    """A market, its journal and its clock; one thread at a time may use it.

    ``url`` is the database, as for `Journal`; ``config`` may be left out if it holds a market. The token of a new
    market's operator goes into the new file ``operator_token_file``, which its owner alone can read. ``make_clock``
    makes the clock of a configuration and of the moment at which the market was made. ``snapshot_rows`` rows of the
    journal lie between two snapshots (0: none is taken), sealed by the key in ``key_file``: it is made if it is not
    there, and None is ``snapshot.key`` beside an SQLite file, else in the working directory. ``check_all`` plays the
    whole journal at the start; ``catch_up`` clears the rounds that ended while no service ran, however many.
    InvalidParameterError if the configuration is at fault or not the market's; JournalError if the database cannot be
    used, or its content does not follow from its events.
    """

    def __init__(
        self,
        url: str,
        config: LiveConfig | Mapping[str, Any] | str | Path | None = None,
        *,
        operator_token_file: str | Path | None = None,
        make_clock: Callable[[LiveConfig, str], Clock] = Clock,
        snapshot_rows: int = EVERY_ROWS,
        check_all: bool = False,
        key_file: str | Path | None = None,
        catch_up: bool = False,
    ) -> None:
        self.journal = Journal(url)
        self.tokens = Tokens()  # replaced as a whole: the guard reads it from another thread
        self.recent: deque[Row] = deque(maxlen=RECENT)
        self.last_seq, self.last_digest = 0, ""
        self.published = 0  # the last row that is written, for streams
        self.snapshots = Schedule(snapshot_rows)
        self._check_all = check_all
        asked = None if config is None else live_config(config)
        if not self.journal.file_is_there:  # opening would make an empty one
            if asked is None:
                raise InvalidParameterError(NO_MARKET, legal=NEW_MARKET)
            try:
                self._check_new(asked, make_clock, operator_token_file)
            except InvalidParameterError as error:
                raise error.within(str(config)) if isinstance(config, (str, Path)) else error from None
        self._key = key_in(Path(key_file) if key_file else self.journal.folder / "snapshot.key")
        self.journal.open()
        try:
            new = self._enter(asked, make_clock, operator_token_file)
            self.load()
            self.clock.check_plausible(self.market.round, catch_up=catch_up or new)
            if new and operator_token_file is not None:
                self.write_operator_token(Path(operator_token_file))
        except BaseException:
            self.journal.close()
            raise

    @staticmethod
    def _check_new(
        config: LiveConfig, make_clock: Callable[[LiveConfig, str], Clock], token_file: str | Path | None
    ) -> Clock:
        """Return the clock of a new market, or raise what its mechanism refuses, before anything is written."""
        LiveMarket(config)
        clock = make_clock(config, utc_text_now())
        clock.check_plausible(1, catch_up=True)
        check_new_file(token_file)
        return clock

    def _enter(
        self, config: LiveConfig | None, make_clock: Callable[[LiveConfig, str], Clock], token_file: str | Path | None
    ) -> bool:
        """Find the market of the database, or make it; return True if it is new."""
        known = self.journal.market()
        if known is None:
            if config is None:
                raise InvalidParameterError(NO_MARKET, legal=NEW_MARKET)
            clock = self._check_new(config, make_clock, token_file)
            made = utc_text(clock.now())
            self.journal.make_market(config.name, config.stored(), made, __version__)
            self.config, self.created = config, made
        else:
            stored = live_config(known["configuration"])
            if config is not None:
                config.check_same(stored.stored())
            self.config, self.created = config or stored, known["created"]
        self.clock = make_clock(self.config, self.created)
        return known is None

    def load(self) -> None:
        """Make the market from its journal."""
        self.recent.clear()
        played = play_journal(self.config, self.journal, self.recent, whole=self._check_all, key=self._key)
        self.market: LiveMarket = played.market
        self.last_seq, self.last_digest, self._counts = played.seq, played.digest, played.counts
        self.snapshots.last = played.snapshot
        self.walk = Walk(self.journal, played.snapshot, played.counts_then)
        self.tokens = Tokens(self.journal.tokens())
        self.cursors = Cursors(self.journal.secret())
        self.published = self.last_seq
        self.view = market_view(self.market, self.last_seq)

    def write(self, batch: Batch) -> None:
        """Write a batch; errors as of `Journal.write`."""
        batch.put_beside()
        for row in batch.rows:
            self.last_digest = row.digest = self.journal.seal(row, self.last_digest)
        self.journal.write(batch)

    def publish(self, batch: Batch) -> None:
        """Publish the written rows."""
        self.recent.extend(batch.rows)
        for row in batch.rows:
            self._counts.update(row.counts)
        self.published = self.last_seq
        self.view = market_view(self.market, self.last_seq)

    def take_snapshot(self) -> None:
        """Write the market down, and its state into the journal; a market that cannot be written down goes on."""
        began, after = time.monotonic(), self.last_seq
        try:
            state = frozen(self.market)
        except Exception:
            why = traceback.format_exc()
            log.error("this market cannot be written down: a restart will play its whole journal\n%s", why)
            self.snapshots.every = 0
            return
        said = {"after": after, "digest": digest_of(state), "made_by": made_by(self.config)}
        said |= {"counts": dict(self._counts), "seal": seal_of(state, self._key)}
        batch = Batch()
        batch.snapshot = Turn(self, batch).record({"event": "snapshot", **said}, SERVICE).seq, state
        self.write(batch)
        self.publish(batch)
        self.snapshots.taken(after, time.monotonic() - began)

    def write_operator_token(self, path: Path) -> None:
        """Make a token for the first operator and write it to a new file that only its owner can read.

        Raises FileExistsError if the file is there.
        """
        with new_private_file(path) as file:
            batch = Batch()
            turn = Turn(self, batch)
            if OPERATOR not in self.market.accounts.known:
                turn.record({"event": "owner", "owner": OPERATOR, "role": "operator"}, OPERATOR)
                turn.enter_account(OPERATOR)
            row = turn.record({"event": "token", "owner": OPERATOR, "action": "new"}, OPERATOR)
            token = turn.new_token(OPERATOR, row.seq)
            file.write(token + "\n")
            self.write(batch)
            self.publish(batch)


def utc_text_now() -> str:
    """Return the system's time as the journal writes it."""
    return utc_text(datetime.now(UTC))
