"""Which lies pay an owner over an allocation core, and how much: search, then confirmation on fresh worlds.

A *world* is a function from a seed to a game (:mod:`marketsched.cores.agents.games`): truth and lie are always compared
in the same world, and gains are paired.

1. A race over the coarse grid of lies: all on the same worlds, the worse half drops out whenever worlds
   double; of every family one stays.
2. The factors of the best of each family are refined on all search worlds, and the best families combined.
3. The best of every family, and the best of all, are scored on *fresh* worlds that no choice has seen. Gains, and their
   share of the truthful utility, have Fieller's intervals over worlds. Each interval holds by itself; the confidence
   that a lie pays holds for all scored lies together.

What the search finds is a lower bound of what lying can bring; what it does not find proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from marketsched.cores.agents.games import CoreGame, OwnersSlot, play_out
from marketsched.cores.agents.reports import Honest, Several, Strategy, lies_for, refined
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Natural, OpenShare, Seed, Whole, legal
from marketsched.results.paired_statistics import Estimate, ratio_of_means

World = Callable[[int], CoreGame]
Progress = Callable[[str, int], object]

FIRST = 4  # worlds of the first heat
RATIOS = (2.0**0.5, 2.0**0.25)  # of the factors tried around the best, both ways, one after the other
FEWEST_FRESH = 20
ROUNDING = 1e-9  # of the truthful utility: what two ways of adding up may differ by


@dataclass(frozen=True, slots=True)
class ScoredLie:
    """A lie on fresh worlds."""

    lie: Strategy
    searched_gain: float  # mean gain on the worlds of the search, credits: biased upwards
    gain: Estimate  # mean gain on fresh worlds, credits
    # the same as a share of the mean truthful utility; None if that is not positive with confidence
    gain_share: Estimate | None
    # the same as a share of the mean truthful value, payments not counted: on one base whatever is paid
    value_share: Estimate | None
    # change of all others' value (payments not counted), as a share of their truthful value
    others_share: Estimate | None
    truthful: float  # mean truthful utility and value on fresh worlds, credits
    value: float
    worlds: int  # how many fresh worlds
    pays: bool  # whether the gain is above 0 with the confidence that this one has left when all scored lies share it
    best: bool  # whether the search took this for the best lie of all

    @property
    def seems_to_pay(self) -> bool:
        """Whether it does not pay, though the interval of ``gain`` lies above 0: more worlds may decide."""
        return not self.pays and self.gain.low > 0.0


@dataclass(slots=True)
class _Candidate:
    """A lie and its gains on the first search worlds."""

    lie: Strategy
    gains: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return float(np.mean(self.gains))


class _Plays:
    """Games of the worlds of some seeds: truth and lies of an owner in the same ones."""

    def __init__(self, world: World, owner: int, seeds: Sequence[int], progress: Progress | None) -> None:
        self._world, self.owner, self._seeds, self._progress = world, owner, seeds, progress
        self._known: dict[int, tuple[CoreGame, OwnersSlot]] = {}
        self._plays = 0

    def truth(self, place: int) -> tuple[CoreGame, OwnersSlot]:
        """Return the game of a world, and what the truth brings in it."""
        if place not in self._known:
            game = self._world(self._seeds[place])
            Whole(0, game.n_owners - 1).check("owner", self.owner)
            self._known[place] = game, self._play(game, None)
        return self._known[place]

    def lie(self, place: int, lie: Strategy) -> OwnersSlot:
        """Return what a lie brings in a world."""
        return self._play(self.truth(place)[0], lie)

    def gain(self, place: int, lie: Strategy) -> float:
        """Return what a lie gains in a world."""
        return gain_of(self.truth(place)[1], self.lie(place, lie), self.owner)

    def _play(self, game: CoreGame, lie: Strategy | None) -> OwnersSlot:
        told = {} if lie is None else {self.owner: lie.report(game.truth(self.owner), game.public)}
        total = play_out(game, told)
        self._plays += 1
        if self._progress is not None:
            self._progress("play", self._plays)
        return total


def gain_of(truth: OwnersSlot, lie: OwnersSlot, owner: int) -> float:
    """Return an owner's utility of a lie less that of the truth; what rounding alone may bring is none."""
    honest, gained = float(truth.utilities[owner]), float(lie.utilities[owner] - truth.utilities[owner])
    return 0.0 if abs(gained) <= ROUNDING * max(1.0, abs(honest)) else gained


@legal
def search_core_lies(
    world: World,
    lies: Iterable[Strategy] | None = None,
    *,
    owner: Natural = 0,
    search_worlds: Annotated[int, Whole(FIRST)] = 16,
    fresh_worlds: Annotated[int, Whole(FEWEST_FRESH)] = 40,
    confidence: OpenShare = 0.95,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> list[ScoredLie]:
    """Search for lies that pay an owner, and score the best of every family on fresh worlds; the best of all first.

    ``world`` is the game of a seed, the same for the same seed; ``lies`` are those to begin with, by default the grid
    of the game's core; ``owner`` lies, and all others tell the truth. ``confidence`` is that of each interval, and of
    all answers whether a lie pays together. ``progress`` is called with ``("play", number of games played)``. The best
    of all (marked ``best``) is so by the search, not by these scores; other families follow in the order of the search.
    """
    plays = _Plays(world, owner, _seeds(seed, search_worlds + fresh_worlds), progress)
    grid = lies_for(plays.truth(0)[0].core.name) if lies is None else list(lies)
    if not grid or any(isinstance(lie, Honest) for lie in grid):
        raise InvalidParameterError("lies is empty or has the truth among them: expected at least one lie")
    heads = _chosen(plays, grid, search_worlds)
    shared = 1.0 - (1.0 - confidence) / len(heads)
    fresh = range(search_worlds, search_worlds + fresh_worlds)
    return [_scored(plays, head, fresh, (confidence, shared), head is heads[0]) for head in heads]


@legal
def score_lie(
    world: World,
    lie: Strategy,
    *,
    owner: Natural = 0,
    worlds: Annotated[int, Whole(FEWEST_FRESH)] = 40,
    confidence: OpenShare = 0.95,
    seed: Seed = 0,
) -> ScoredLie:
    """Score one lie that was chosen beforehand; parameters as in `search_core_lies`."""
    plays = _Plays(world, owner, _seeds(seed, worlds), None)
    return _scored(plays, _Candidate(lie, [0.0]), range(worlds), (confidence, confidence), False)


def _seeds(seed: int, count: int) -> list[int]:
    return [int(child.generate_state(1, np.uint64)[0] >> 1) for child in np.random.SeedSequence(seed).spawn(count)]


def _chosen(plays: _Plays, grid: Sequence[Strategy], worlds: int) -> list[_Candidate]:
    """Return the best candidate of all, and of every other family, after race, refinement and combination."""
    alive = [_Candidate(lie) for lie in grid]
    n = FIRST
    while True:
        for candidate in alive:
            _play_up_to(plays, candidate, n)
        if n == worlds:
            break
        kept = _heads(alive)
        half = sorted(alive, key=_order)[: (len(alive) + 1) // 2]
        alive = kept + [candidate for candidate in half if candidate not in kept]
        n = min(2 * n, worlds)
    heads = [_refined(plays, head, worlds) for head in _heads(alive)]
    paying = [head for head in heads if head.mean > 0.0][:3]
    pairs = [_Candidate(Several((a.lie, b.lie))) for a, b in combinations(paying, 2)]
    for pair in pairs:
        _play_up_to(plays, pair, worlds)
    return sorted([*heads, *sorted(pairs, key=_order)[:1]], key=_order)


def _play_up_to(plays: _Plays, candidate: _Candidate, worlds: int) -> None:
    for place in range(len(candidate.gains), worlds):
        candidate.gains.append(plays.gain(place, candidate.lie))


def _order(candidate: _Candidate) -> tuple[float, bool]:
    """Best mean first; of equals the single lie."""
    return -candidate.mean, isinstance(candidate.lie, Several)


def _heads(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Return the best of every family, best first."""
    heads: dict[str, _Candidate] = {}
    for candidate in sorted(candidates, key=_order):
        heads.setdefault(candidate.lie.family, candidate)
    return list(heads.values())


def _refined(plays: _Plays, head: _Candidate, worlds: int) -> _Candidate:
    """Return the best of a lie and of its neighbours in the factor, nearer and nearer."""
    best = head
    for ratio in RATIOS:
        for step in (ratio, 1.0 / ratio):
            lie = refined(best.lie, step)
            if lie is not None:
                candidate = _Candidate(lie)
                _play_up_to(plays, candidate, worlds)
                if candidate.mean > best.mean:
                    best = candidate
                    break
    return best


def _scored(
    plays: _Plays, head: _Candidate, places: Sequence[int], confidences: tuple[float, float], best: bool
) -> ScoredLie:
    """Return a candidate's score on some worlds; of the confidences the second decides whether it pays."""
    (confidence, shared), owner, rows = confidences, plays.owner, []
    for place in places:
        (_, truth), lie = plays.truth(place), plays.lie(place, head.lie)
        others = (float(np.delete(total.values, owner).sum()) for total in (truth, lie))
        rows.append((gain_of(truth, lie, owner), truth.utilities[owner], truth.values[owner], *others))
    gains, honest, valued, before, after = np.array(rows).T
    ones = np.ones(gains.size)
    return ScoredLie(
        head.lie,
        head.mean,
        ratio_of_means(gains, ones, confidence=confidence),
        _share(gains, honest, confidence),
        _share(gains, valued, confidence),
        _share(after - before, before, confidence),
        float(honest.mean()),
        float(valued.mean()),
        gains.size,
        ratio_of_means(gains, ones, confidence=shared).low > 0.0,
        best,
    )


def _share(part: NDArray[np.float64], whole: NDArray[np.float64], confidence: float) -> Estimate | None:
    """Return the ratio of means, or None if the mean below may be 0 or negative: then it has no interval."""
    if whole.mean() <= 0.0 or ratio_of_means(whole, np.ones(whole.size), confidence=confidence).low <= 0.0:
        return None
    ratio = ratio_of_means(part, whole, confidence=confidence)
    return ratio if np.isfinite(ratio).all() else None
