"""Plays one visitor's market in a thread of its own: start, pause, step, and other settings meanwhile.

The page's orders wait in a queue while a market is built, and then hold for the new market. Other settings replace
an order that is not begun. Errors are shown and never stop the player: settings that cannot be built leave the
market that is there as it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from queue import Empty, SimpleQueue

from marketsched.config.scenario import Scenario
from marketsched.dashboard.session import Session, Story
from marketsched.dashboard.settings import Settings
from marketsched.dashboard.view import MarketView
from marketsched.mechanisms.errors import MarketschedError

FRAME_SECONDS = 0.15  # between two pictures while playing, so that a browser keeps up
PLAYED_SECONDS = 0.5  # of rounds without a picture: a page should not stand still
PLAYED_SHARE = 2.0  # but where pictures are slow, rounds get this much longer than the last picture took


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The content of a page: the market, and the state of the player."""

    view: MarketView | None = None  # None: nothing was built yet
    building: bool = False
    bounding: bool = False  # the bound is still being computed
    playing: bool = False  # rounds go on by themselves
    error: str = ""  # why the last request came to nothing
    story: Story | None = None  # of the chosen job, or of the newest there is something to say about
    missing: str = ""  # the chosen job, if there is no such job yet
    settings: Settings | None = None  # of the market that is looked at
    stepping: bool = False  # some rounds of a step are still to come


class Player:
    """Plays markets of one scenario, which ``settings`` change, at first; ``data`` is the folder of recorded traces.

    ``show`` is called from a thread, never from two at once, whenever there is something to see.
    """

    def __init__(
        self,
        base: Scenario,
        settings: Settings,
        show: Callable[[Frame], object],
        *,
        data: str | PathLike[str] | None = None,
    ) -> None:
        self._base, self._show, self._data = base, show, data
        self._orders: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._wanted: Settings | None = settings  # of the newest order for a market
        self._void: Settings | None = None  # that could not be built: neither are rounds meant for it played
        self._session: Session | None = None
        self._steps, self._rounds, self._playing = 0, settings.rounds, False
        self._job, self._error = "", ""
        self._frame = Frame()
        self._picture_seconds = 0.0  # that the last picture took
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="dashboard player", daemon=True)
        self._thread.start()
        self.restart(settings)

    def restart(self, settings: Settings) -> None:
        """Begin anew with other settings, at round 0 and paused."""
        self._wanted = settings
        self._orders.put(partial(self._build, settings))

    def step(self, rounds: int) -> None:
        """Play some rounds and pause."""
        self._order(lambda: self._go(False, self._steps + rounds))

    def play(self, rounds: int) -> None:
        """Continue, with ``rounds`` rounds a picture, until paused or over."""
        self._order(lambda: self._go(True, 0, rounds))

    def pause(self) -> None:
        """Stop after the round that is being played."""
        self._orders.put(lambda: self._go(False, 0, error=self._error))

    def choose(self, job: str) -> None:
        """Explain this job from now on; '': the newest there is something to say about."""
        self._orders.put(lambda: setattr(self, "_job", job.strip()))

    def close(self) -> None:
        """End the thread, and let go of the market."""
        self._closed = True
        self._orders.put(lambda: None)

    def join(self, timeout: float | None = None) -> bool:
        """Wait, at most so long, until the thread has ended after `close`; return whether it has."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _order(self, play: Callable[[], object]) -> None:
        wanted = self._wanted
        self._orders.put(lambda: play() if self._void is None or wanted is not self._void else None)

    # -- in the thread ---------------------------------------------------------------------------

    def _go(self, playing: bool, steps: int, rounds: int | None = None, error: str = "") -> None:
        self._playing, self._steps, self._error = playing, steps, error
        self._rounds = self._rounds if rounds is None else rounds

    def _work(self) -> None:
        while not self._closed:
            try:
                self._obey()
                self._play_on()
                self._tell()
            except Exception as fault:  # also of the package: it is shown, and the page still answers
                said = str(fault) if isinstance(fault, MarketschedError) else f"{type(fault).__name__}: {fault}"
                self._go(False, 0, error=said)
                with suppress(Exception):  # as when showing was the fault: the visitor has gone
                    self._tell()

    def _obey(self) -> None:
        """Carry out the orders that are there; wait for one if nothing is to be played."""
        wait = FRAME_SECONDS if self._playing else 0.0 if self._steps else None
        with suppress(Empty):
            self._orders.get(timeout=wait)()
            while not self._orders.empty():
                self._orders.get()()

    def _build(self, settings: Settings) -> None:
        if settings is not self._wanted or self._closed:
            return
        self._go(False, 0, settings.rounds)
        self._show(replace(self._frame, building=True, playing=False, stepping=False, error=""))
        try:
            session = self._session = Session(self._base, settings, data=self._data)
        except Exception:
            self._void, self._wanted = settings, None if self._session is None else self._session.settings
            raise
        threading.Thread(target=self._bound, args=(session,), name="dashboard bound", daemon=True).start()

    def _bound(self, session: Session) -> None:
        error = ""
        try:
            session.compute_bound()
        except Exception as fault:
            error = f"{type(fault).__name__}: {fault}"
        self._orders.put(lambda: setattr(self, "_error", error or self._error))

    def _play_on(self) -> None:
        """Play until there is something else to do or it is time for a picture."""
        session, played = self._session, 0
        end = time.monotonic() + max(PLAYED_SECONDS, PLAYED_SHARE * self._picture_seconds)
        while session is not None and session.market.running and (self._playing or self._steps):
            enough = (played > 0 and time.monotonic() > end) or (self._playing and played >= self._rounds)
            if self._closed or enough or not self._orders.empty():
                return
            self._steps = max(0, self._steps - 1)
            session.step(1)
            played += 1
        self._go(False, 0, error=self._error)

    def _tell(self) -> None:
        begin, session = time.monotonic(), self._session
        frame = Frame(error=self._error)
        if session is not None:
            view = session.view()
            story = session.story(self._job) if self._job else _newest_story(session, view)
            missing = self._job if self._job and story is None else ""
            bounding = view.bound is None and not self._error
            frame = Frame(
                view, False, bounding, self._playing, self._error, story, missing, session.settings, self._steps > 0
            )
        self._frame = frame
        self._show(frame)
        self._picture_seconds = time.monotonic() - begin


def _newest_story(session: Session, view: MarketView) -> Story | None:
    """Return the newest story there is most to tell of: a start was chosen, in the case that came about."""
    best, highest = None, -1
    for name, _ in view.recent:
        story = session.story(name)
        if story is not None and (worth := 2 * (story.reason.chosen is not None) + story.reason.foreseen) > highest:
            best, highest = story, worth
        if highest == 3:
            break
    return best
