"""One owner in the market at hand: its reports, what each of them brings, and what may happen to its job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.conduct import Conduct, plain
from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation
from marketsched.agents.loop import Fate
from marketsched.mechanisms.errors import MechanismFault
from marketsched.mechanisms.limits import check_report
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.situations.guarded_market import GuardedMarket, Snapshot, no_collection
from marketsched.truthfulness.situations.lotteries import fate_of, of_statement
from marketsched.truthfulness.situations.promises import promise_of
from marketsched.truthfulness.situations.short_ways import ByPlan, PlaysOfOne, looked, only_statement
from marketsched.truthfulness.situations.true_owners import NOTHING, Played, worth

if TYPE_CHECKING:
    from marketsched.truthfulness.situations.market_at_hand import MarketAtHand  # which keeps owners at their turns

ANNOUNCED = 3  # laws of others that an owner may copy
PLAYED_WHOLE = 1 / 32  # of the plays that a short way answers
SAME = 1e-9  # of a utility, and 1 credit: what two ways to play one market may differ by

PLAYED_OTHERWISE = (
    "played again from the owner's turn, the market ends otherwise: the mechanism keeps state outside of itself, or "
    "draws from a source of its own"
)


class Fated(NamedTuple):
    """One case of an owner's own law: what happens to the job, and how likely that is."""

    fate: Fate
    probability: float


@dataclass(eq=False)
class OwnerAtHand:
    """One owner at its turn to submit, in a market in which all chance is fixed.

    ``entered`` of the jobs born in its round are in the market, or its own. ``kept`` is None if the mechanism does
    not pickle: each play then begins in round 1.
    """

    market: MarketAtHand
    job: Job
    entered: int
    kept: Snapshot | None

    def __post_init__(self) -> None:
        market = self.market
        self.plays = PlaysOfOne(market.setup, market.born, self.entered, self.job)
        self._asked = np.random.default_rng([0xA5CED, market.seed, market.place_of[self.name]])

    @property
    def name(self) -> str:
        """That of its job."""
        return self.job.name

    @property
    def truth(self) -> StatementOfWork:
        """Its true statement."""
        return self.job.truth

    @cached_property
    def public(self) -> PublicInformation:
        """Public information of owners, and what others have announced before: a few, of laws that differ."""
        place, found = self.market.place_of[self.name], dict[Any, StatementOfWork]()
        for job in reversed(self.market.setup.jobs[:place]):
            if not job.truth.shapes:
                found.setdefault(_from_birth(job.truth), job.truth)
            if len(found) > ANNOUNCED:
                break
        found.pop(_from_birth(self.truth), None)
        return replace(self.market.public, others=tuple(found.values())[:ANNOUNCED])

    @cached_property
    def promise(self) -> str:
        """The mechanism's promise to jobs like this one, see `promise_of`."""
        return promise_of(self.market.setup.mechanism, self.truth, self.market.setup.table.disclosure)

    def check(self, report: StatementOfWork) -> None:
        """Raise InvalidReportError if a report breaks the mechanism's limits."""
        public, now = self.public, report.birth if isinstance(report, StatementOfWork) else 0
        longest = public.horizon if public.max_duration is None else public.max_duration
        highest = float("inf") if public.max_value is None else public.max_value
        cluster = public.cluster if isinstance(report, StatementOfWork) and report.shapes else None
        check_report(self.name, report, now, public.widest, longest, highest, cluster)

    @cached_property
    def truthful(self) -> Played:
        """How the truth ends, which the whole run has to confirm.

        Raises MechanismFault if the mechanism is at fault, or the market ends otherwise than in the whole run.
        """
        conduct, known = plain(self.truth, self.truth.concurrency), self.market.outcomes[self.name]
        played = self.play(conduct)
        if self.market.shortens and not _same(played, known):
            self.market.shortens = False
            short, played = played, self.play(conduct)
            self.market.shortens = short[:3] == played[:3]  # it was not the way
        if self.market.settles and not _same(played, known):
            self.market.settles = False  # what it calls booked is not
            played = self.play(conduct)
        if not _same(played, known):
            raise MechanismFault(PLAYED_OTHERWISE)
        return played

    def play(self, conduct: Conduct, fate: Fate | None = None, *, noted: bool = False) -> Played:
        """Play a conduct of the owner, with what really happens to its job, or with another fate.

        A short way to the end is taken where there is one (see `short_ways`). A share, drawn at random, is played whole
        as well; should the two end differently, no short way is taken any more, and the audit says so. ``noted`` tells
        whether the rule's comparisons are noted, so that the mechanism itself has to meet the report; those of later
        jobs are not, where these change nothing.

        Raises InvalidReportError if the mechanism refuses a report, MechanismFault if it is at fault.
        """
        fate = fate_of(self.job) if fate is None else fate
        if fate.arrival is None and not conduct.withdraws:
            return NOTHING
        ended = self.market.ended.pop((self.name, conduct.key, fate, self.market.settles), None)
        if isinstance(ended, Exception):
            raise ended
        return ended or self._play(conduct, fate, noted)

    def play_ended(self, conduct: Conduct, fate: Fate | None, ended: Played | Exception) -> None:
        """Take the result of a play made elsewhere, or its error: the next `play` of it is not made again."""
        fate = fate_of(self.job) if fate is None else fate
        self.market.ended[self.name, conduct.key, fate, self.market.settles] = ended

    def answers(self, conduct: Conduct, fate: Fate | None = None) -> bool:
        """Tell whether a look answers a conduct, so that no play of it has to be made elsewhere."""
        return self._looked(conduct, fate_of(self.job) if fate is None else fate) is not None

    def _play(self, conduct: Conduct, fate: Fate, noted: bool) -> Played:
        with no_collection():
            short = self._shortly(conduct, fate, noted) if self.market.shortens else None
            # What is noted has to come from one play, whoever makes it: others are compared with the whole play.
            if short is not None and (noted or not self.plays_whole()):
                return short
            whole = self.plays.whole(self.at_turn(), conduct, fate, settles=self.market.settles)
        if short is not None and short[:3] != whole[:3]:
            self.market.shortens = False
        return whole

    def plays_whole(self) -> bool:
        """Draw whether a play that a short way answers is made as well."""
        return bool(self._asked.random() < PLAYED_WHOLE)

    def _shortly(self, conduct: Conduct, fate: Fate, noted: bool) -> Played | None:
        """Return the end of a play by a short way; None: there is none."""
        found = None if noted else self._looked(conduct, fate)
        if found is not None:
            return found
        settles, statement = self.market.settles, only_statement(conduct, self.truth)
        comes_later = self.truth.birth < (fate.arrival or 0) <= self.market.setup.horizon
        as_it_comes = comes_later and fate.arrival == self.job.arrival
        if statement is not None and as_it_comes and self._arrived is not None:
            return self.plays.from_arrival(self._arrived, conduct, statement, fate, settles=settles)
        planned = None if noted else self.planned(conduct, fate, self._wanted)
        if planned is not None:
            return planned
        if self.market.alone:
            return self.plays.whole(self.at_turn(), conduct, fate, settles=settles, alone=True)
        return None

    def _looked(self, conduct: Conduct, fate: Fate) -> Played | None:
        turn, statement = self.market.turns.get(self.name), only_statement(conduct, self.truth)
        if turn is None or statement is None or not (self.market.shortens and self.market.settles):
            return None
        self.check(statement.report)
        return looked(self.market.setup, self.job, turn, statement, fate)

    def planned(self, conduct: Conduct, fate: Fate, wanted: NDArray[np.int64] | None) -> Played | None:
        """Return the end that follows from the plan of one statement; None: it does not.

        ``wanted`` is what others want while ``fate`` happens to the job, see `ByPlan.wanted`. Errors as of `play`.
        """
        statement = only_statement(conduct, self.truth)
        if self.ways is None or wanted is None or statement is None or not self.market.shortens:
            return None
        ends = self.ways.ends(statement, fate, conduct.key, wanted)
        return (
            None if ends is None else Played(worth(self.job, ends[0], self.market.setup), ends[1], ends[0], drew=False)
        )

    @cached_property
    def ways(self) -> ByPlan | None:
        """What plans are looked up in; None: they do not tell how a play ends."""
        if not self.market.by_plan or self.kept is None:
            return None
        return ByPlan(self.at_turn(), self.name, self.market.setup.horizon, self.market.setup.max_delay)

    @cached_property
    def _wanted(self) -> NDArray[np.int64] | None:
        """What the others want in this market, whatever it reports."""
        return None if self.ways is None else self.ways.wanted({})

    @cached_property
    def _arrived(self) -> Snapshot | None:
        """The market in the round of its arrival; None: plays do not begin there."""
        return self.plays.at_arrival(self.at_turn()) if self.market.restates and self.kept is not None else None

    def at_turn(self) -> GuardedMarket:
        """Return a copy of the market at its turn to submit."""
        return self.market.at_turn(self.name) if self.kept is None else self.kept.copy()

    @cached_property
    def menu(self) -> object:
        """What its job faces at arrival under the truth; None: nothing."""
        return self.market.menus.get(self.name)

    @cached_property
    def own_law(self) -> list[Fated]:
        """All that may happen to the job by its true law, seen from its birth."""
        lottery = of_statement(self.truth)
        return [Fated(fate, p) for (_, fate), p in zip(lottery.outcomes, lottery.weights, strict=True)]

    @property
    def certain(self) -> bool:
        """Whether what happened is all that could."""
        return len(self.own_law) == 1 and self.own_law[0].fate == fate_of(self.job)


def _from_birth(sow: StatementOfWork) -> tuple[tuple[int, int, float], ...]:
    """Return the law of a statement, with arrivals counted from its birth."""
    return tuple((arrival - sow.birth, duration, p) for arrival, duration, p, _ in sow.law.points())


def _same(one: Played, other: Played) -> bool:
    near = abs(one.utility - other.utility) <= SAME * (1 + abs(other.utility))
    return one.completion == other.completion and near
