r"""Repeated play of learning owners, and how far it is from an equilibrium.

Owners play a :class:`~marketsched.study.learning.repeated_market.RepeatedMarket` episode by episode, each with a rule
of its own. What comes out are tables, and the *average gains*: for owner :math:`i` and report
:math:`k` of the menu

.. math:: g_{ik} = \frac1N \sum_e \left[ u_i(k, a_{-i}^e) - u_i(a^e) \right],

what always reporting :math:`k` would have earned more per episode, the others playing as they did. The
empirical distribution of play is an :math:`\varepsilon`-coarse correlated equilibrium (over the menu)
exactly if no :math:`g_{ik}` exceeds :math:`\varepsilon`, so its distance from one is
:math:`\max(0, \max_{ik} g_{ik})`.

Randomness comes in streams, one per purpose: the days, and one per owner for its choices. Runs with
the same seed see the same days, under every mechanism and every rule of the owners.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.learners import LEARNERS, Draw
from marketsched.agents.learning import TRUTH, Learning, ReportMenu
from marketsched.agents.lies import ScaleValue, Strategy, Truthful
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.mechanisms.legal import Count, Seed, Whole, legal
from marketsched.mechanisms.memory import check_memory
from marketsched.study.learning.best_response import BestResponding
from marketsched.study.learning.repeated_market import Day, PlayedDay, RepeatedMarket

Rule = str | Strategy | Callable[[np.random.Generator], "Learning | BestResponding"]
Progress = Callable[[int, int], None]  # episodes played, episodes in all

DAYS, CHOICES = range(2)  # streams of a seed
RULES = ("truthful", "best-responding", *LEARNERS)


@dataclass(frozen=True, eq=False)
class LearningRun:
    """Tables of one run; money in credits, episodes count from 1.

    Attributes
    ----------
    plays : DataFrame
        One row per episode and owner: ``episode``; ``owner``; ``rule``; ``choice`` (name in the menu, or
        what the strategy is); ``factor`` (of the value; NaN for other lies); ``truth_probability``
        (how likely the owner was to draw the truth); ``utility``.
    episodes : DataFrame
        One row per episode: ``episode``; ``day``; ``welfare``; ``revenue``; ``truth_share`` (mean of
        ``truth_probability``); ``factor`` (mean over owners that scale values); and, missing in
        episodes in which they were not looked at, ``truthful_welfare`` (had all told the truth on that
        day), ``bound`` and ``bound_low`` (between which the best schedule in hindsight lies).
    gains : ndarray, shape (n_measured, n_owners, n_actions)
        What each report of the menu would have earned more than what was played.
    measured : ndarray of int, shape (n_measured,)
        Episodes of ``gains``.
    owners, reports : tuple of str
        Owners, and names of the menu.
    episodes_planned : int
        The requested number; fewer were played if the run was interrupted.

    Examples
    --------
    >>> from marketsched import contested_market, learn
    >>> played = learn(contested_market("pay-as-bid", n_owners=3, capacity=1), episodes=5, seed=1)
    >>> len(played.plays), played.gains.shape
    (15, (5, 3, 5))
    """

    plays: pd.DataFrame
    episodes: pd.DataFrame
    gains: NDArray[np.float64] = field(repr=False)
    measured: NDArray[np.int64] = field(repr=False)
    owners: tuple[str, ...]
    reports: tuple[str, ...]
    episodes_planned: int

    def average_gains(self, first: int = 1) -> pd.DataFrame:
        """Return :math:`g_{ik}` over measured episodes from ``first`` on: owner, report, gain, episodes.

        Raises
        ------
        InvalidParameterError
            If no episode from ``first`` on was measured.
        """
        chosen = self.measured >= first
        if not chosen.any():
            raise InvalidParameterError(
                f"first = {first!r}: expected an episode with a measured one from there on, "
                f"and the last is {self.measured.max(initial=0)}"
            )
        mean = self.gains[chosen].mean(axis=0)
        rows = [
            (owner, report, float(mean[i, k]), int(chosen.sum()))
            for i, owner in enumerate(self.owners)
            for k, report in enumerate(self.reports)
        ]
        return pd.DataFrame(rows, columns=["owner", "report", "gain", "episodes"])

    def equilibrium_distance(self, first: int = 1) -> float:
        """Return the distance of play from episode ``first`` on to a coarse correlated equilibrium, credits.

        Days differ, so of N measured episodes the largest of many averages is too large by an amount
        that falls with the root of N.
        """
        return max(0.0, float(self.average_gains(first)["gain"].max()))


@legal
def learn(
    market: RepeatedMarket,
    rules: Rule | Mapping[str, Rule] | Sequence[Rule] = "adahedge",
    *,
    episodes: Count = 500,
    seed: Seed = 0,
    measure_every: Count = 1,
    bound_every: int | None = 10,
    known_horizon: bool = False,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> LearningRun:
    """Play a repeated market.

    Parameters
    ----------
    market : RepeatedMarket
        The market to play.
    rules : rule, mapping of owner to rule, or sequence of rules in the order of owners
        How owners report: "truthful", "best-responding", the name of a learner (adahedge, hedge, exp3,
        ucb1), a Strategy, or a function of a Generator that returns a `Learning` or `BestResponding`
        owner. In a mapping, owners that are not named tell the truth.
    episodes : int
        How many.
    seed : int
        Root of all streams.
    measure_every : int
        Counterfactual gains of all owners are measured in every so-manieth episode.
    bound_every : int, optional
        So are the bound and the welfare of truthful reports; None: never.
    known_horizon : bool
        Tell learners how many episodes there will be.
    progress : function of (int, int), optional
        Called after each episode.
    keep_interrupted : bool
        On Ctrl-C return the episodes played so far (at least one) instead of raising.

    Raises
    ------
    InvalidParameterError
        If rules and owners do not match.
    TooLargeError
        If the records of all episodes do not fit into memory.
    UnknownNameError
        If there is no such rule.
    InvalidReportError, MechanismFault
        If a report is refused, or the mechanism at fault.

    Examples
    --------
    >>> from marketsched import contested_market
    >>> played = learn(contested_market("pay-as-bid", n_owners=3, capacity=1), "ucb1", episodes=5, seed=1)
    >>> played.owners
    ('owner-1', 'owner-2', 'owner-3')
    """
    if not isinstance(market, RepeatedMarket):
        raise InvalidParameterError(
            f"market = {market!r}: expected a RepeatedMarket, as contested_market() and repeated_scenario(...) return"
        )
    if bound_every is not None:
        bound_every = Whole(1).check("bound_every", bound_every)
    check_memory(
        f"what {len(market.owners)} owners did in {episodes} episodes",
        episodes * len(market.owners) * (400.0 + 16.0 * len(market.menu)),  # rows of tables, and gains of all reports
        "fewer owners or episodes",
    )
    choices = np.random.default_rng([seed, CHOICES]).spawn(len(market.owners))
    horizon = episodes if known_horizon else None
    players = [
        _player(rule, market.menu, rng, horizon)
        for rule, rng in zip(_rules_of(rules, market.owners), choices, strict=True)
    ]
    record = _Record(market, players, bound_every)
    days = market.schedule(episodes, np.random.default_rng([seed, DAYS]))
    try:
        for episode, day in enumerate(days, start=1):
            record.play(episode, day, episode % measure_every == 0)
            if progress is not None:
                progress(episode, episodes)
    except KeyboardInterrupt:
        if not keep_interrupted or not record.episodes:
            raise
    return record.run(episodes)


@dataclass
class _Player:
    """An owner, and the name of its rule."""

    rule: str
    mind: Learning | BestResponding | Strategy


class _Record:
    """Plays episodes and keeps what happened."""

    def __init__(self, market: RepeatedMarket, players: list[_Player], bound_every: int | None) -> None:
        self.market, self.players, self.bound_every = market, players, bound_every
        self.plays: list[tuple[Any, ...]] = []
        self.episodes: list[tuple[Any, ...]] = []
        self.gains: list[NDArray[np.float64]] = []
        self.measured: list[int] = []

    def play(self, episode: int, day: Day, measure: bool) -> None:
        """Play one episode; owners choose, the day is played, owners learn, and all is noted."""
        market, menu = self.market, self.market.menu
        draws, strategies, truths = self._choices()
        full = {
            i
            for i, player in enumerate(self.players)
            if isinstance(player.mind, Learning) and player.mind.learner(market.public).sees == "all"
        }
        wanted = set(range(len(self.players))) if measure else full
        played = market.play(day, market.reports(day, dict(zip(market.owners, strategies, strict=True))), turns=True)
        utilities = played.outcome.utilities
        otherwise = {i: market.counterfactuals(played, market.owners[i]) for i in sorted(wanted)}
        self._teach(played, draws, otherwise, full)
        if measure:
            self.gains.append(np.array([otherwise[i] - utilities[i] for i in range(len(self.players))]))
            self.measured.append(episode)
        factors = [_factor(strategy) for strategy in strategies]
        for i, owner in enumerate(market.owners):
            draw = draws[i]
            name = _name(strategies[i]) if draw is None else menu.names[draw.action]
            self.plays.append((episode, owner, self.players[i].rule, name, factors[i], truths[i], float(utilities[i])))
        known = [factor for factor in factors if not np.isnan(factor)]
        mean_factor = float(np.mean(known)) if known else np.nan
        measures = (played.outcome.welfare, played.outcome.revenue, float(np.mean(truths)), mean_factor)
        self.episodes.append((episode, day.number, *measures, *self._bounds(episode, day)))

    def _choices(self) -> tuple[list[Draw | None], list[Strategy], list[float]]:
        """Let every owner choose; return draws, strategies and how likely the truth was."""
        menu, public = self.market.menu, self.market.public
        draws: list[Draw | None] = []
        strategies: list[Strategy] = []
        truths: list[float] = []
        for player in self.players:
            mind = player.mind
            if isinstance(mind, Learning):
                probabilities = mind.learner(public).probabilities
                draw = mind.choose(public)
                draws.append(draw)
                strategies.append(menu.strategies[draw.action])
                truths.append(float(probabilities[menu.truth]))
                continue
            strategy = mind.strategy if isinstance(mind, BestResponding) else mind
            draws.append(None)
            strategies.append(strategy)
            truths.append(float(isinstance(strategy, Truthful)))
        return draws, strategies, truths

    def _teach(
        self,
        played: PlayedDay,
        draws: list[Draw | None],
        otherwise: Mapping[int, NDArray[np.float64]],
        full: set[int],
    ) -> None:
        """Show each learner what its owner may see, and nothing more."""
        for i, player in enumerate(self.players):
            draw, mind = draws[i], player.mind
            if isinstance(mind, Learning) and draw is not None:
                mind.learn(draw, otherwise[i].copy() if i in full else float(played.outcome.utilities[i]))
            elif isinstance(mind, BestResponding):
                mind.look(self.market, played, self.market.owners[i])

    def _bounds(self, episode: int, day: Day) -> tuple[float, float, float]:
        if self.bound_every is None or episode % self.bound_every:
            return np.nan, np.nan, np.nan
        truthful = self.market.play(day, self.market.reports(day, {}))
        bracket = self.market.bound(day)
        return truthful.outcome.welfare, bracket.high, bracket.low

    def run(self, planned: int) -> LearningRun:
        """Return the tables of the episodes that were finished."""
        finished = len(self.episodes)
        kept = sum(episode <= finished for episode in self.measured)
        n_owners, n_actions = len(self.market.owners), len(self.market.menu)
        gains = np.array(self.gains[:kept]).reshape(-1, n_owners, n_actions)
        rule_columns = ["episode", "owner", "rule", "choice", "factor", "truth_probability", "utility"]
        columns = ["episode", "day", "welfare", "revenue", "truth_share", "factor"]
        return LearningRun(
            pd.DataFrame(self.plays[: finished * n_owners], columns=rule_columns),
            pd.DataFrame(self.episodes, columns=[*columns, "truthful_welfare", "bound", "bound_low"]),
            gains,
            np.array(self.measured[:kept], dtype=np.int64),
            self.market.owners,
            self.market.menu.names,
            planned,
        )


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


def _player(rule: Rule, menu: ReportMenu, rng: np.random.Generator, horizon: int | None) -> _Player:
    if isinstance(rule, str):
        if rule not in RULES:
            raise UnknownNameError(f"rule {rule!r} is unknown: expected one of {', '.join(RULES)}")
        if rule == "truthful":
            return _Player(rule, Truthful())
        if rule == "best-responding":
            return _Player(rule, BestResponding(rng=rng))
        return _Player(rule, Learning(menu, rule, rng=rng, horizon=horizon))
    if isinstance(rule, Strategy):
        return _Player(_name(rule), rule)
    mind = rule(rng) if callable(rule) else rule
    if not isinstance(mind, (Learning, BestResponding)):
        raise InvalidParameterError(f"rule {rule!r}: expected a name, a strategy, or what makes a learning owner")
    if isinstance(mind, Learning) and mind.menu != menu:
        raise InvalidParameterError(f"rule {rule!r} has the menu {mind.menu.names}: expected that of the market")
    return _Player(type(mind).__name__.lower(), mind)


def _name(strategy: Strategy) -> str:
    return TRUTH if isinstance(strategy, Truthful) else repr(strategy)


def _factor(strategy: Strategy) -> float:
    """Return by what a strategy multiplies values; NaN if it does something else."""
    if isinstance(strategy, Truthful):
        return 1.0
    misreport = getattr(strategy, "misreport", strategy)  # of a best response
    lie = getattr(misreport, "lie", misreport)
    return lie.f if isinstance(lie, ScaleValue) else np.nan
