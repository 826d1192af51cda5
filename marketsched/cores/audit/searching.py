"""Which lies pay an owner over an allocation core, and how much: search, then confirmation on fresh worlds.

A *world* is a function from a seed to a game (:mod:`marketsched.cores.agents.games`): everything random in it comes
from the seed, so truth and lie are always compared in the same world, and gains are paired.

1. A race over the coarse grid of lies: all on the same worlds, the worse half drops out whenever worlds
   double; of every family one stays.
2. The factors of the best of each family are refined on all search worlds, and the best families combined.
3. The best of every family, and the best of all, are scored on *fresh* worlds that no choice has seen: the best of
   many looks better than it is. Gains, and their share of the truthful utility, have Fieller's intervals over worlds
   (:mod:`marketsched.results.paired_statistics`). Each interval holds by itself; the confidence that a lie pays holds
   for all scored lies together; the rest of it is shared among them.

What the search finds is a lower bound of what lying can bring; what it does not find proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from marketsched.cores.agents.games import CoreGame, OwnersTotal, play_out
from marketsched.cores.agents.reports import CoreLie, Honest, Several, lies_for, refined
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
    """A lie on fresh worlds.

    Attributes
    ----------
    lie : CoreLie
    family, words : str
        What kind of lie, and with which numbers.
    searched_gain : float
        Mean gain on the worlds of the search, credits: biased upwards.
    gain : Estimate
        Mean gain on fresh worlds, credits.
    gain_share : Estimate or None
        The same as a share of the mean truthful utility; None if that is not positive with confidence.
    value_share : Estimate or None
        The same as a share of the mean truthful value, payments not counted: on one base whatever is paid.
    others_share : Estimate or None
        Change of all others' value (payments not counted), as a share of their truthful value.
    truthful, value : float
        Mean truthful utility and value on fresh worlds, credits.
    worlds : int
        How many fresh worlds.
    pays : bool
        Whether the gain is above 0 with the confidence that this one has left when all scored lies share it.
    best : bool
        Whether the search took this for the best lie of all.
    """

    lie: CoreLie
    family: str
    words: str
    searched_gain: float
    gain: Estimate
    gain_share: Estimate | None
    value_share: Estimate | None
    others_share: Estimate | None
    truthful: float
    value: float
    worlds: int
    pays: bool
    best: bool

    @property
    def seems_to_pay(self) -> bool:
        """Whether it does not pay, though the interval of ``gain`` lies above 0: more worlds may decide."""
        return not self.pays and self.gain.low > 0.0


@dataclass(slots=True)
class _Candidate:
    """A lie and its gains on the first search worlds."""

    lie: CoreLie
    gains: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return float(np.mean(self.gains))


class _Plays:
    """Games played so far: truth and lies in the same worlds."""

    def __init__(self, world: World, owner: int, seeds: Sequence[int], progress: Progress | None) -> None:
        self._world, self._owner, self._seeds, self._progress = world, owner, seeds, progress
        self._truths: dict[int, OwnersTotal] = {}
        self._games: dict[int, CoreGame] = {}
        self.plays = 0

    def game(self, place: int) -> CoreGame:
        """Return the game of a world."""
        if place not in self._games:
            self._games[place] = self._world(self._seeds[place])
            Whole(0, self._games[place].n_owners - 1).check("owner", self._owner)
        return self._games[place]

    def truth(self, place: int) -> OwnersTotal:
        """Return what the truth brings in a world."""
        if place not in self._truths:
            self._truths[place] = self._play(place, {})
        return self._truths[place]

    def lie(self, place: int, lie: CoreLie) -> OwnersTotal:
        """Return what a lie brings in a world."""
        game = self.game(place)
        return self._play(place, {self._owner: lie.report(game.truth(self._owner), game.public)})

    def gain(self, place: int, lie: CoreLie) -> float:
        """Return what a lie gains in a world."""
        return gain_of(self.truth(place), self.lie(place, lie), self._owner)

    def _play(self, place: int, reports: dict[int, Any]) -> OwnersTotal:
        total = play_out(self.game(place), reports)
        self.plays += 1
        if self._progress is not None:
            self._progress("play", self.plays)
        return total


def gain_of(truth: OwnersTotal, lie: OwnersTotal, owner: int) -> float:
    """Return an owner's utility of a lie less that of the truth; what rounding alone may bring is none."""
    honest, gained = float(truth.utilities[owner]), float(lie.utilities[owner] - truth.utilities[owner])
    return 0.0 if abs(gained) <= ROUNDING * max(1.0, abs(honest)) else gained


@legal
def search_core_lies(
    world: World,
    lies: Iterable[CoreLie] | None = None,
    *,
    owner: Natural = 0,
    search_worlds: Annotated[int, Whole(FIRST)] = 16,
    fresh_worlds: Annotated[int, Whole(FEWEST_FRESH)] = 40,
    confidence: OpenShare = 0.95,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> list[ScoredLie]:
    """Search for lies that pay an owner, and score the best of every family on fresh worlds.

    Parameters
    ----------
    world : callable
        Game of a seed; the same seed must give the same game.
    lies : iterable of CoreLie, optional
        What to begin with; by default the grid of the game's core.
    owner : int
        Who lies; all others tell the truth.
    search_worlds, fresh_worlds : int
        Worlds to choose on, >= 4, and to score on, >= 20.
    confidence : float
        Of each interval, and of all answers whether a lie pays together, in (0, 1).
    seed : int
        Of the seeds of the worlds.
    progress : callable, optional
        Called with ``("play", number of games played)``.

    Returns
    -------
    list of ScoredLie
        The best of all (marked ``best``; by the search, not by these scores) first, then the best of the
        other families in the order of the search.

    Raises
    ------
    InvalidReportError
        If a lie does not fit the core.
    """
    seeds = _seeds(seed, search_worlds + fresh_worlds)
    plays = _Plays(world, owner, seeds[:search_worlds], progress)
    grid = lies_for(plays.game(0).core) if lies is None else list(lies)
    if not grid or any(isinstance(lie, Honest) for lie in grid):
        raise InvalidParameterError("lies is empty or has the truth among them: expected at least one lie")
    heads = _chosen(plays, grid, search_worlds)
    fresh = _Plays(world, owner, seeds[search_worlds:], progress)
    fresh.plays = plays.plays
    shared = 1.0 - (1.0 - confidence) / len(heads)
    return [_scored(fresh, head, owner, fresh_worlds, (confidence, shared), head is heads[0]) for head in heads]


@legal
def score_lie(
    world: World,
    lie: CoreLie,
    *,
    owner: Natural = 0,
    worlds: Annotated[int, Whole(FEWEST_FRESH)] = 40,
    confidence: OpenShare = 0.95,
    seed: Seed = 0,
) -> ScoredLie:
    """Score one lie that was chosen beforehand; parameters as in `search_core_lies`.

    Raises
    ------
    InvalidParameterError, InvalidReportError
        As there.
    """
    plays = _Plays(world, owner, _seeds(seed, worlds), None)
    return _scored(plays, _Candidate(lie, [0.0]), owner, worlds, (confidence, confidence), False)


def _seeds(seed: int, count: int) -> list[int]:
    """Return different seeds of worlds."""
    return [int(child.generate_state(1, np.uint64)[0] >> 1) for child in np.random.SeedSequence(seed).spawn(count)]


def _chosen(plays: _Plays, grid: Sequence[CoreLie], worlds: int) -> list[_Candidate]:
    """Return the best candidate of all, and of every other family, after race, refinement and combination."""
    alive = [_Candidate(lie) for lie in grid]
    n = FIRST
    while True:
        for candidate in alive:
            _play_up_to(plays, candidate, n)
        if n == worlds:
            break
        alive = _better_half(alive)
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


def _better_half(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the better half, and the best of every family."""
    kept = _heads(candidates)
    ranked = sorted(candidates, key=_order)[: (len(candidates) + 1) // 2]
    return kept + [candidate for candidate in ranked if candidate not in kept]


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
    plays: _Plays, head: _Candidate, owner: int, worlds: int, confidences: tuple[float, float], best: bool
) -> ScoredLie:
    """Return a candidate's score on the worlds of ``plays``; of the confidences the second decides whether it pays."""
    confidence, shared = confidences
    gains, honest, valued, before, after = (np.empty(worlds) for _ in range(5))
    for place in range(worlds):
        truth, lie = plays.truth(place), plays.lie(place, head.lie)
        gains[place], honest[place] = gain_of(truth, lie, owner), truth.utilities[owner]
        valued[place] = truth.values[owner]
        before[place], after[place] = _others(truth, owner), _others(lie, owner)
    gain = ratio_of_means(gains, np.ones(worlds), confidence=confidence)
    return ScoredLie(
        head.lie,
        head.lie.family,
        head.lie.words(),
        head.mean,
        gain,
        _share(gains, honest, confidence),
        _share(gains, valued, confidence),
        _share(after - before, before, confidence),
        float(honest.mean()),
        float(valued.mean()),
        worlds,
        ratio_of_means(gains, np.ones(worlds), confidence=shared).low > 0.0,
        best,
    )


def _others(total: OwnersTotal, owner: int) -> float:
    """Return the value of all others."""
    return float(np.delete(total.values, owner).sum())


def _share(part: NDArray[np.float64], whole: NDArray[np.float64], confidence: float) -> Estimate | None:
    """Return the ratio of means, or None if the mean below may be 0 or negative: then it has no interval."""
    if whole.mean() <= 0.0 or ratio_of_means(whole, np.ones(whole.size), confidence=confidence).low <= 0.0:
        return None
    ratio = ratio_of_means(part, whole, confidence=confidence)
    return ratio if np.isfinite(ratio).all() else None
