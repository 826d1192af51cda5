"""A repeated market as a Mesa model: one step is one day, agents are the owners that learn which report pays.

The owners choose before the day, so that its reports are known when it is played, and a day is played by the market's
loop; a `marketsched.Market` with the same reports gives the same utilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.mesa_agent import OwnersModel
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from marketsched.mechanisms.legal import Count, Seed, legal
from marketsched.study.learning.learning_owner import LearningOwner, Rule
from marketsched.study.learning.repeated_market import Day, RepeatedMarket

DAYS, CHOICES = range(2)  # streams of a seed
PLAYS = ["episode", "owner", "rule", "choice", "factor", "truth_probability", "utility"]
EPISODES = ["episode", "day", "welfare", "revenue", "truth_share", "factor", "truthful_welfare", "bound", "bound_low"]


class LearningMarket(OwnersModel):
    """Owners that learn in a repeated market, as a Mesa model.

    Parameters are those of `marketsched.study.learning.runs.learn`, which steps this model; ``episodes`` are days at
    most. ``episode`` is the number of days played, ``running`` says whether days are left; ``owners`` are in the order
    of the market; ``welfare`` and ``revenue`` are those of the last day, credits; NaN before.

    Examples
    --------
    >>> from marketsched import contested_market
    >>> model = LearningMarket(contested_market("pay-as-bid", n_owners=3, capacity=1), "exp3", episodes=5, seed=1)
    >>> model.step()
    >>> model.episode, [owner.choice for owner in model.owners]
    (1, ['value x 0.2', 'value x 0.8', 'value x 0.8'])
    """

    @legal
    def __init__(
        self,
        market: RepeatedMarket,
        rules: Rule | Mapping[str, Rule] | Sequence[Rule] = "adahedge",
        *,
        episodes: Count = 500,
        seed: Seed = 0,
        measure_every: Count = 1,
        bound_every: int | None = None,
        known_horizon: bool = False,
    ) -> None:
        choices = np.random.default_rng([seed, CHOICES])
        streams = choices.spawn(len(market.owners))
        super().__init__(choices)
        self.market, self.measure_every, self.bound_every = market, measure_every, bound_every
        horizon = episodes if known_horizon else None
        named = enumerate(zip(_rules_of(rules, market.owners), streams, strict=True))
        self.owners = [LearningOwner(self, self.market, place, rule, rng, horizon) for place, (rule, rng) in named]
        days: Iterator[Day] = market.schedule(episodes, np.random.default_rng([seed, DAYS]))
        self._days, self._last = islice(days, episodes), episodes
        self.episode, self.welfare, self.revenue = 0, np.nan, np.nan
        self._plays: list[tuple[Any, ...]] = []
        self._episodes: list[tuple[Any, ...]] = []
        self._gains: list[NDArray[np.float64]] = []
        self._measured: list[int] = []

    def step(self) -> None:
        """Play one day: owners choose, the day is played, owners learn, and all is noted.

        EventError after the last day; InvalidReportError or MechanismFault if a report is refused, or the mechanism at
        fault.
        """
        if self.episode >= self._last:
            raise EventError(f"day {self.episode + 1} lies beyond the last, {self._last}: the run is over")
        day, episode, market = next(self._days), self.episode + 1, self.market
        strategies = {owner.owner: owner.choose() for owner in self.owners}
        played = market.play(day, market.reports(day, strategies), turns=True)
        utilities, measure = played.outcome.utilities.tolist(), episode % self.measure_every == 0
        otherwise = {
            place: market.counterfactuals(played, owner.owner)
            for place, owner in enumerate(self.owners)
            if measure or owner.sees_all
        }
        for place, owner in enumerate(self.owners):
            owner.learn(played, utilities[place], otherwise[place] if owner.sees_all else None)
        if measure:
            self._gains.append(np.array([otherwise[i] - utilities[i] for i in range(len(self.owners))]))
            self._measured.append(episode)
        self.welfare, self.revenue = played.outcome.welfare, played.outcome.revenue
        self._plays += [
            (episode, o.owner, o.rule, o.choice, o.factor, o.truth_probability, o.utility) for o in self.owners
        ]
        means = (self.truth_share, self.factor)
        self._episodes.append((episode, day.number, self.welfare, self.revenue, *means, *self._bounds(episode, day)))
        self.episode, self.running = episode, episode < self._last

    @property
    def truth_share(self) -> float:
        """How likely the owners were to tell the truth on the last day, on average."""
        return float(np.mean([owner.truth_probability for owner in self.owners]))

    @property
    def factor(self) -> float:
        """By what those owners that scale values multiplied them on the last day, on average."""
        known = [owner.factor for owner in self.owners if not np.isnan(owner.factor)]
        return float(np.mean(known)) if known else np.nan

    def plays(self) -> pd.DataFrame:
        """Return one row per day and owner, as `LearningRun` has them."""
        return pd.DataFrame(self._plays[: self.episode * len(self.owners)], columns=PLAYS)

    def episodes(self) -> pd.DataFrame:
        """Return one row per day, as `LearningRun` has them."""
        return pd.DataFrame(self._episodes[: self.episode], columns=EPISODES)

    def gains(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return what each report would have earned more on measured days, and which days these are."""
        kept = sum(episode <= self.episode for episode in self._measured)
        shape = (-1, len(self.owners), len(self.market.menu))
        return np.array(self._gains[:kept]).reshape(shape), np.array(self._measured[:kept], dtype=np.int64)

    def _bounds(self, episode: int, day: Day) -> tuple[float, float, float]:
        if self.bound_every is None or episode % self.bound_every:
            return np.nan, np.nan, np.nan
        truthful = self.market.play(day, self.market.reports(day, {}))
        bracket = self.market.bound(day)
        return truthful.outcome.welfare, bracket.high, bracket.low


def _rules_of(rules: Rule | Mapping[str, Rule] | Sequence[Rule], owners: Sequence[str]) -> list[Rule]:
    """Return the rule of every owner, in order."""
    if isinstance(rules, Mapping):
        unknown = [name for name in rules if name not in owners]
        if unknown:
            raise InvalidParameterError(f"rules are given for {unknown[0]!r}: expected owners of the market")
        return [rules.get(owner, "truthful") for owner in owners]
    if isinstance(rules, Sequence) and not isinstance(rules, str):
        if len(rules) != len(owners):
            raise InvalidParameterError(f"{len(rules)} rules for {len(owners)} owners: expected one for each")
        return list(rules)
    return [rules] * len(owners)
