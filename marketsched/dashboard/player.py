"""Plays one visitor's market in threads of its own: start, pause, step, and other settings meanwhile.

A new market is built while the current one is shown, and replaces it when it is ready. Rounds requested in the
meantime are rounds of the new market; other settings make the older order void. Errors are shown and never stop the
player: settings that cannot be built leave the market that is there as it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike

from marketsched.config.scenario import Scenario
from marketsched.dashboard.session import Session, Story
from marketsched.dashboard.settings import Settings
from marketsched.dashboard.view import MarketView
from marketsched.mechanisms.errors import MarketschedError

FRAME_SECONDS = 0.15  # between two pictures while playing, so that a browser keeps up
PLAYED_SECONDS = 0.5  # of rounds without a picture: a page should not stand still
PLAYED_SHARE = 2.0  # but where pictures are slow, rounds get this much longer than the last picture took
MOST_BUILDS = 2  # at once: an order that became void cannot be stopped, only forgotten
# Beside its own errors, what a fault in the package could raise: it is shown, and the page still answers.
_FAULTS = (OSError, MemoryError, ArithmeticError, LookupError, TypeError, ValueError, RuntimeError, AttributeError)


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The content of a page: the market, and the state of the player.

    Attributes
    ----------
    view : View or None
        None: nothing was built yet.
    building, bounding : bool
        Whether a market, or the bound of the one there is, is still being computed.
    playing : bool
        Whether rounds go on by themselves.
    stepping : bool
        Whether some rounds of a step are still to come.
    error : str
        Why the last request came to nothing; empty: it did not.
    story : Story or None
        Of the chosen job, or of the newest there is something to say about.
    missing : str
        The chosen job, if there is no such job yet.
    settings : Settings or None
        Of the market that is looked at.
    """

    view: MarketView | None = None
    building: bool = False
    bounding: bool = False
    playing: bool = False
    error: str = ""
    story: Story | None = None
    missing: str = ""
    settings: Settings | None = None
    stepping: bool = False


class Player:
    """Plays markets of one scenario.

    Parameters
    ----------
    base : Scenario
        The scenario that the settings change.
    settings : Settings
        Of the first market.
    show : function of Frame
        Called, from the player's threads but never from two at once, whenever there is something to see.
    data : path, optional
        Folder of recorded traces.
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
        self._wake = threading.Condition()
        self._order = 0  # number of the newest market ordered
        self._builds = 0  # threads that build, void orders included
        self._builders: list[threading.Thread] = []
        self._building = False  # the newest order is not there yet
        self._waiting: Settings | None = None  # the newest order, where too much is being built already
        self._fresh: Session | None = None  # built, not yet shown
        self._session: Session | None = None
        self._steps = 0  # rounds that are still to be played
        self._rounds = settings.rounds
        self._job = ""
        self._playing = False
        self._changed = True
        self._picture_seconds = 0.0  # that the last picture took
        self._closed = False
        self._error = ""
        self._thread = threading.Thread(target=self._work, name="dashboard player", daemon=True)
        self._thread.start()
        self.restart(settings)

    def restart(self, settings: Settings) -> None:
        """Begin anew with other settings, at round 0 and paused."""
        with self._wake:
            self._steps, self._rounds, self._playing, self._changed = 0, settings.rounds, False, True
            self._order += 1
            self._building, self._error, self._waiting = True, "", settings
            self._begin_build()
            self._wake.notify()

    def step(self, rounds: int) -> None:
        """Play some rounds and pause."""
        with self._wake:
            self._playing, self._steps, self._error = False, self._steps + rounds, ""
            self._wake.notify()

    def play(self, rounds: int) -> None:
        """Continue, with ``rounds`` rounds a picture, until paused or over."""
        with self._wake:
            self._playing, self._steps, self._rounds, self._error = True, 0, rounds, ""
            self._wake.notify()

    def pause(self) -> None:
        """Stop after the round that is being played."""
        with self._wake:
            self._playing, self._steps, self._changed = False, 0, True
            self._wake.notify()

    def choose(self, job: str) -> None:
        """Explain this job from now on; '': the newest there is something to say about."""
        with self._wake:
            self._job, self._changed = job.strip(), True
            self._wake.notify()

    def close(self) -> None:
        """End the thread, and let go of the market."""
        with self._wake:
            self._closed = True
            self._order += 1  # whatever is being built is void
            self._waiting = None
            self._wake.notify()

    def join(self, timeout: float | None = None) -> bool:
        """Wait, so long for each thread at most, until all have ended after `close`; return whether they have."""
        threads = [self._thread, *self._builders]
        for thread in threads:
            thread.join(timeout)
        return not any(thread.is_alive() for thread in threads)

    # -- the thread that builds ------------------------------------------------------------------

    def _begin_build(self) -> None:
        """Build the newest order in a thread of its own, unless that would be one thread too many."""
        if self._waiting is None or self._builds >= MOST_BUILDS:
            return
        order, self._waiting = (self._order, self._waiting), None
        self._builds += 1
        builder = threading.Thread(target=self._build, args=order, name="dashboard builder", daemon=True)
        self._builders = [*(x for x in self._builders if x.is_alive()), builder]
        builder.start()

    def _build(self, order: int, settings: Settings) -> None:
        session, error = None, ""
        try:
            session = Session(self._base, settings, data=self._data)
            if not self._hand_over(order, session):
                return
            session.compute_bound()
        except MarketschedError as fault:
            error = str(fault)
        except _FAULTS as fault:
            error = f"{type(fault).__name__}: {fault}"
        finally:
            with self._wake:
                self._builds -= 1
                if order == self._order:
                    if error and self._building:  # rounds were meant for the market that came to nothing
                        self._steps, self._playing = 0, False
                    self._building, self._changed = False, True
                    self._error = error or self._error
                self._begin_build()
                self._wake.notify()

    def _hand_over(self, order: int, session: Session) -> bool:
        """Offer a market to the player; return whether it is still wanted."""
        with self._wake:
            if order != self._order:
                return False
            self._fresh, self._building, self._changed = session, False, True
            self._wake.notify()
            return True

    # -- the thread that plays -------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._closed or self._changed or self._asked())
                if self._closed:
                    break
                self._take_over()
            try:
                self._play_on()
                begin = time.monotonic()
                self._tell()
                self._picture_seconds = time.monotonic() - begin
            except MarketschedError as fault:
                self._stop(str(fault))
            except _FAULTS as fault:
                self._stop(f"{type(fault).__name__}: {fault}")
            with self._wake:  # pictures do not pile up; closing and pausing end the wait
                if self._playing:
                    self._wake.wait_for(lambda: self._closed or self._changed, FRAME_SECONDS)

    def _asked(self) -> bool:
        """Return whether a round is to be played now; one of a market that is being built has to wait."""
        return (self._playing or self._steps > 0) and not self._building

    def _take_over(self) -> None:
        """Look at the new market, if there is one."""
        self._changed = False
        if self._fresh is not None:
            self._session, self._fresh = self._fresh, None

    def _play_on(self) -> None:
        """Play what is asked for, until there is something else to do or it is time for a picture."""
        session, played = self._session, 0
        end = time.monotonic() + max(PLAYED_SECONDS, PLAYED_SHARE * self._picture_seconds)
        while session is not None and session.market.running:
            with self._wake:
                enough = (played > 0 and time.monotonic() > end) or (self._playing and played >= self._rounds)
                if self._closed or self._changed or enough or not self._asked():
                    return
                self._steps = max(0, self._steps - 1)
            session.step(1)
            played += 1

    def _stop(self, error: str) -> None:
        """Say what went wrong, beside the market as far as it got."""
        with self._wake:
            self._playing, self._steps, self._error = False, 0, error
        with suppress(MarketschedError, *_FAULTS):  # as when showing was the fault: the visitor has gone
            self._tell()

    def _tell(self) -> None:
        """Show what there is now."""
        session = self._session
        with self._wake:
            if not self._building and self._fresh is None and not (session is not None and session.market.running):
                self._playing, self._steps = False, 0
            building, playing, stepping = self._building, self._playing, self._steps > 0
            error, job = self._error, self._job
        if session is None:
            self._show(Frame(building=building, playing=playing, error=error, stepping=stepping))
            return
        view = session.view()
        story = session.story(job) if job else _newest_story(session, view)
        missing = job if job and story is None else ""
        bounding = view.bound is None and not error
        self._show(Frame(view, building, bounding, playing, error, story, missing, session.settings, stepping))


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
