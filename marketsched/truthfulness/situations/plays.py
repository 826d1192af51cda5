"""How a situation is played: worlds from seeds, the market at the owner's turn, and on to the owner's end.

The rounds before the owner's turn do not depend on its report. They are played once per world (once
in all, where there is a history); the market is then kept as a pickle, and each report is played on
a copy, until the owner's last statement has left the market. A mechanism that cannot be pickled is
played from round 1 each time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from marketsched.agents.conduct import Attempt, Conduct
from marketsched.agents.loop import NEVER, Entry, Fate, MarketLoop
from marketsched.agents.playing import play
from marketsched.agents.resubmission import second_statement
from marketsched.mechanisms.mechanism import Event, EventKind
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.situations.described import Described
from marketsched.truthfulness.situations.guarded_market import (
    GuardedMarket,
    Snapshot,
    no_collection,
    snapshot,
)
from marketsched.truthfulness.situations.lotteries import (
    Lottery,
    LotteryOutcome,
    as_job,
    of_arrived,
    of_law,
    of_statement,
    of_waiting,
)
from marketsched.truthfulness.situations.streams import MECHANISM, OTHERS, OWNER, stream, stream_of_run

KEPT_TURNS = 256  # the last ones, of worlds without a history
TOLD_APART = 4096  # worlds: if there are more, it is not asked whether two of them are the same


class Played(NamedTuple):
    """How a play ended for the owner."""

    value: float  # credits
    payment: float  # credits
    completion: int | None
    drew: bool  # the mechanism drew from its stream: in the same world it may end otherwise

    @property
    def utility(self) -> float:
        """Value minus payment, credits."""
        return self.value - self.payment


@dataclass(frozen=True)
class World:
    """What happens to all jobs.

    ``picks`` (by number of the lottery) wins over ``numbers``. ``key`` is equal for worlds in which
    the same happens to all jobs; None: too many to tell.
    """

    seed: int
    owner: Fate
    numbers: Sequence[float] = ()
    picks: Mapping[int, int] | None = None
    key: tuple[int, ...] | None = None

    def outcome(self, number: int, lottery: Lottery) -> LotteryOutcome:
        """Return what comes out of lottery ``number``."""
        pick = lottery.pick(self.numbers[number]) if self.picks is None else self.picks.get(number, 0)
        return lottery.outcomes[pick]


@dataclass(frozen=True)
class _Turn:
    """A market at the beginning of a round, or at the owner's turn in it."""

    market: Snapshot | None  # None: it cannot be pickled
    lotteries: Mapping[str, Lottery]  # what may still happen to those in it; empty where there is no history


class Stage:
    """Plays of one situation."""

    def __init__(self, situation: Described) -> None:
        self.situation = situation
        self._number = {other.name: i for i, other in enumerate(situation.others)}
        self.born: dict[int, list[int]] = defaultdict(list)
        for i, other in enumerate(situation.others):
            self.born[other.law.birth].append(i)
        self._known: dict[int, Lottery] = {}
        self._owner = of_statement(situation.truth)
        self._turns: dict[tuple[object, int], _Turn] = {}
        self._open_in: tuple[World, int, Mapping[str, Fate]] | None = None
        self._past = None if situation.history is None else self._draw(situation.history, NEVER)
        self._adopted: Snapshot | None = None

    # -- worlds ------------------------------------------------------------------------------------

    def world(self, seed: int) -> World:
        """Return the world of a seed."""
        u = float(stream(seed, OWNER).random())
        pick = self._owner.pick(u)
        drawn = self._draw(seed, self._owner.outcomes[pick][1])
        open_lotteries = self._told_apart
        if open_lotteries is None:
            return drawn
        key = (pick, *(lottery.pick(drawn.numbers[i]) for i, lottery in open_lotteries))
        return World(seed, drawn.owner, drawn.numbers, key=key)

    def worlds(self, most: int) -> list[tuple[World, float]] | None:
        """Return all worlds and their probabilities; None if there are more than ``most``.

        The mechanism's own draws do not count here.
        """
        open_lotteries = self._open(most)
        if open_lotteries is None:
            return None
        numbers = [i for i, _ in open_lotteries]
        lotteries = [self._owner, *(lottery for _, lottery in open_lotteries)]
        found = []
        for picks in product(*(range(len(lottery.outcomes)) for lottery in lotteries)):
            weight = float(np.prod([lottery.weights[k] for lottery, k in zip(lotteries, picks, strict=True)]))
            owner = self._owner.outcomes[picks[0]][1]
            chosen = dict(zip(numbers, picks[1:], strict=True))
            found.append((World(0, owner, picks=chosen, key=picks), weight))
        return found

    def _draw(self, seed: int, owner: Fate) -> World:
        size = len(self.situation.others) * (2 if self.situation.resubmit else 1)  # the second half: submitted again
        return World(seed, owner, stream(seed, OTHERS).random(size).tolist())

    def _open(self, most: int) -> list[tuple[int, Lottery]] | None:
        """Return the lotteries whose outcomes differ from play to play; None if they have too many."""
        count, found = len(self._owner.outcomes), []
        for number, lottery in self._lotteries():
            if lottery.certain:
                continue
            count *= len(lottery.outcomes)
            if count > most:
                return None
            found.append((number, lottery))
        return found if count <= most else None

    @cached_property
    def _told_apart(self) -> list[tuple[int, Lottery]] | None:
        return self._open(TOLD_APART)

    def _lotteries(self) -> Iterator[tuple[int, Lottery]]:
        """All lotteries that a play draws from, but the owner's."""
        s = self.situation
        if s.history is None:
            yield from ((i, self._lottery(i)) for i in range(len(s.others)))
            return
        assert self._past is not None
        for name, lottery in self._turn(self._past, s.truth.birth).lotteries.items():
            yield self._number_of(name), lottery
        later = [*self.born[s.truth.birth][s.n_ahead :]]
        later += [i for birth, born in self.born.items() if birth > s.truth.birth for i in born]
        yield from ((i, self._lottery(i)) for i in later)

    def _lottery(self, i: int) -> Lottery:
        if i not in self._known:
            self._known[i] = of_law(self.situation.others[i].law)
        return self._known[i]

    def _number_of(self, name: str) -> int:
        """Return the number of a statement's lottery; those submitted again come after all others."""
        return self._number[name] if name in self._number else len(self._number) + self._number[name.removesuffix("+")]

    # -- plays -------------------------------------------------------------------------------------

    def play(self, conduct: Conduct, world: World, owners: Callable[..., Everybody] | None = None) -> Played:
        """Play the owner's conduct in a world, to its end, or to what ``owners``, of the arguments of `Everybody`, see.

        Raises InvalidReportError if the mechanism refuses a report of the owner, MechanismFault if it is at fault.
        """
        if world.owner.arrival is None and not conduct.withdraws:
            return Played(0.0, 0.0, None, drew=False)  # no payment for a job that never comes
        s, birth = self.situation, self.situation.truth.birth
        first = min(conduct.first_round, birth)
        with no_collection():
            market = self._at(world, first)
            attempt = Attempt(conduct, s.name, world.owner, s.owner, s.truth)
            entered = s.n_ahead if first == birth else 0
            play(market, (owners or Everybody)(self, world, attempt, entered), s.horizon)
        return Played(attempt.worth * s.worth(attempt.completion), attempt.payment, attempt.completion, market.drew)

    def adopt(self, turn: Snapshot) -> None:
        """Take the market at the owner's turn from the run that is the history, instead of playing its rounds again."""
        self._adopted = turn

    def at_turn(self, world: World) -> GuardedMarket:
        """Return a copy of the market at the owner's turn."""
        return self._at(world, self.situation.truth.birth)

    def fates(self, world: World) -> Mapping[str, Fate]:
        """Return what a world makes of the jobs in the market at the owner's turn, where there is a history."""
        assert self._past is not None
        birth = self.situation.truth.birth
        return self._left_open(world, birth, self._turn(self._past, birth))

    def _at(self, world: World, first: int) -> GuardedMarket:
        """Return a copy of the market at the owner's turn, or at the beginning of an earlier round."""
        past = world if self._past is None else self._past
        turn = self._turn(past, first)
        market = self._played_until(past, first) if turn.market is None else turn.market.copy()
        if self._past is not None:
            market.foretell(self._left_open(world, first, turn))
            # Else a lie that makes the mechanism draw once more or less would pay, or not, by the luck of one stream.
            market.redraw(stream(world.seed, MECHANISM))
        return market

    def _left_open(self, world: World, first: int, turn: _Turn) -> Mapping[str, Fate]:
        """Return what a world makes of those in the market; that of the last world is kept, for many lies share it."""
        if self._open_in is None or self._open_in[0] is not world or self._open_in[1] != first:
            left = turn.lotteries.items()
            fates = {name: world.outcome(self._number_of(name), lottery)[1] for name, lottery in left}
            self._open_in = world, first, fates
        return self._open_in[2]

    def _turn(self, past: World, first: int) -> _Turn:
        key = (past.seed if past.picks is None else past.key, first)
        if key in self._turns:
            return self._turns[key]
        if self._adopted is not None and first == self.situation.truth.birth:
            turn = _Turn(self._adopted, self._left(self._adopted.copy()))
        else:
            market = self._played_until(past, first)
            turn = _Turn(snapshot(market), {} if self._past is None else self._left(market))
        if len(self._turns) >= KEPT_TURNS:
            del self._turns[next(iter(self._turns))]
        self._turns[key] = turn
        return turn

    def _played_until(self, world: World, first: int) -> GuardedMarket:
        """Play the rounds before ``first``, and the others' submissions up to the owner's turn in it."""
        s = self.situation
        rng = stream(world.seed, MECHANISM) if s.history is None else stream_of_run(s.history)
        market = GuardedMarket(s.factory, rng, s.capacity)
        for now in range(1, first):
            self.enter(market, world, self.born.get(now, []))
            self.enter_again(market, None)
            before = dict(market.entries) if s.resubmit else {}
            for event in market.clear():
                if s.resubmit and event.kind is EventKind.DROP:
                    self._submit_again(market, before[event.job])
        if first == s.truth.birth:
            self.enter(market, world, self.born.get(first, [])[: s.n_ahead])
        return market

    def enter(self, market: MarketLoop, world: World, who: Sequence[int]) -> None:
        """Submit what these others report, truthfully."""
        for i in who:
            other = self.situation.others[i]
            sow, fate = self._known_outcome(i) if world is self._past else (None, None)
            if fate is None:
                sow, fate = world.outcome(i, self._lottery(i))
                if world is self._past and other.happened is not None:
                    fate = other.happened
            if sow is not None:
                market.submit(other.name, sow, fate, sow.concurrency, owner=other.owner or other.name)

    def _known_outcome(self, i: int) -> tuple[StatementOfWork | None, Fate | None]:
        """Return what happened to a job of the history, if nothing is left to be drawn: lotteries take long."""
        other = self.situation.others[i]
        return (other.law.cases[0][0], other.happened) if len(other.law.cases) == 1 else (None, None)

    def _submit_again(self, market: GuardedMarket, entry: Entry) -> None:
        """Let the owner of a dropped job come back, as in `Market`, if its own law excludes what happened."""
        if entry.name.endswith("+"):
            return
        job = as_job(entry.name, entry.sow, entry.fate)
        known = second_statement(job, market.now, self.situation.public)
        if known is not None:
            market.again.append((f"{job.name}+", known, Fate(market.now, job.duration, job.signal)))

    def enter_again(self, market: GuardedMarket, world: World | None) -> None:
        """Submit what comes back in this round; ``world`` None: in the history, where all is known."""
        for name, sow, fate in market.again:
            drawn = fate if world is None else world.outcome(self._number_of(name), of_statement(sow))[1]
            market.submit(name, sow, drawn, sow.concurrency, owner=self._owner_of(name))
        market.again.clear()

    def _owner_of(self, name: str) -> str:
        """Return whose statement it is that is submitted again."""
        job = name.removesuffix("+")
        return next((other.owner or job for other in self.situation.others if other.name == job), job)

    def _left(self, market: GuardedMarket) -> dict[str, Lottery]:
        """Return what may still happen to all jobs in the market, given what was seen."""
        now, longest = market.now, self.situation.public.max_duration or 1
        found = {
            name: of_arrived(entry.sow, entry.fate, entry.start, now, longest)
            if entry.arrived
            else of_waiting(entry.sow, now)
            for name, entry in market.entries.items()
        }
        return found | {name: of_statement(sow) for name, sow, _ in market.again}


class Everybody:
    """The owner that is looked at, and all others, who report truthfully, from the owner's turn on."""

    def __init__(self, stage: Stage, world: World, owner: Attempt, entered: int) -> None:
        self._stage, self._world, self.owner = stage, world, owner
        self._entered = entered  # of those born in the current round, already in the market

    @property
    def over(self) -> bool:
        """True once nothing can change the owner's utility any more."""
        return self.owner.over

    def act(self, market: Any) -> None:
        """Submit: the owner at its place, a late one before those born in that round, as in `Market`."""
        stage, s, now = self._stage, self._stage.situation, market.now
        born = stage.born.get(now, [])
        place = s.n_ahead if now == s.truth.birth else 0 if now > s.truth.birth else len(born)
        stage.enter(market, self._world, born[self._entered : place])
        self.owner.act(market)
        stage.enter(market, self._world, born[place:])
        stage.enter_again(market, self._world)
        self._entered = 0

    def hear(self, events: Sequence[Event], market: MarketLoop) -> None:
        """Tell the owner."""
        self.owner.hear(events, market)
