"""The owner of a repeated market as a Mesa agent: day after day it chooses a report, and learns from what it earned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.learners import LEARNERS, Draw
from marketsched.agents.learning import TRUTH, Learning, ReportMenu
from marketsched.agents.lies import ScaleValue, Strategy, Truthful
from marketsched.agents.mesa_agent import MarketAgent, OwnersModel
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.study.learning.best_response import BestResponding
from marketsched.study.learning.repeated_market import PlayedDay, RepeatedMarket

Rule = str | Strategy | Callable[[np.random.Generator], "Learning | BestResponding"]
RULES = ("truthful", "best-responding", *LEARNERS)
SHORT = {"ucb": "ucb1", "best-response": "best-responding"}  # as commands call them; either is taken everywhere


class LearningOwner(MarketAgent):
    """An owner with jobs on many days."""

    def __init__(
        self,
        model: OwnersModel,
        market: RepeatedMarket,
        place: int,
        rule: Rule,
        rng: np.random.Generator,
        horizon: int | None,
    ) -> None:
        super().__init__(model, place + 1)
        self._market = market
        self.owner = market.owners[place]
        self.rule, self.mind = _mind(rule, market.menu, rng, horizon)
        self.strategy: Strategy = Truthful()  # of the current day
        # The strategy's name in the menu, or what it is; by which it multiplies values (NaN if it lies about something
        # else); how likely it was to tell the truth that day.
        self.choice, self.factor, self.truth_probability = TRUTH, 1.0, 1.0
        self.utility = self.total_utility = 0.0  # of the last day and of all days, credits
        self._draw: Draw | None = None

    @property
    def sees_all(self) -> bool:
        """Whether it learns from what every report of the menu would have earned."""
        return isinstance(self.mind, Learning) and self.mind.learner(self._market.public).sees == "all"

    def choose(self) -> Strategy:
        """Choose how to report today."""
        mind, menu, public = self.mind, self._market.menu, self._market.public
        if isinstance(mind, Learning):
            probabilities = mind.learner(public).probabilities
            self._draw = mind.choose(public)
            self.strategy, self.choice = menu.strategies[self._draw.action], menu.names[self._draw.action]
            self.truth_probability = float(probabilities[menu.truth])
        else:
            self.strategy = mind.strategy if isinstance(mind, BestResponding) else mind
            self.choice = name_of(self.strategy)
            self.truth_probability = float(isinstance(self.strategy, Truthful))
        self.factor = _factor(self.strategy)
        return self.strategy

    def learn(self, played: PlayedDay, utility: float, otherwise: NDArray[np.float64] | None) -> None:
        """Learn from a day on which it earned ``utility`` credits, and see nothing but what an owner may see.

        ``otherwise``, shape (n_actions,): what each report of the menu would have earned; None: it may not see that.
        """
        self.utility = utility
        self.total_utility += utility
        if isinstance(self.mind, Learning) and self._draw is not None:
            self.mind.learn(self._draw, utility if otherwise is None else otherwise.copy())
        elif isinstance(self.mind, BestResponding):
            self.mind.look(self._market, played, self.owner)


def _mind(
    rule: Rule, menu: ReportMenu, rng: np.random.Generator, horizon: int | None
) -> tuple[str, Learning | BestResponding | Strategy]:
    """Return the name of a rule, and what chooses by it."""
    if isinstance(rule, str):
        rule = SHORT.get(rule, rule)
        if rule not in RULES:
            raise UnknownNameError(f"rule {rule!r} is unknown: expected one of {', '.join(RULES)}")
        if rule == "truthful":
            return rule, Truthful()
        if rule == "best-responding":
            return rule, BestResponding(rng=rng)
        return rule, Learning(menu, rule, rng=rng, horizon=horizon)
    if isinstance(rule, Strategy):
        return name_of(rule), rule
    mind = rule(rng) if callable(rule) else rule
    if not isinstance(mind, (Learning, BestResponding)):
        raise InvalidParameterError(f"rule {rule!r}: expected a name, a strategy, or what makes a learning owner")
    if isinstance(mind, Learning) and mind.menu != menu:
        raise InvalidParameterError(f"rule {rule!r} has the menu {mind.menu.names}: expected that of the market")
    return type(mind).__name__.lower(), mind


def name_of(strategy: Strategy) -> str:
    """Return "truth", or what a strategy is."""
    return TRUTH if isinstance(strategy, Truthful) else repr(strategy)


def _factor(strategy: Strategy) -> float:
    """Return by what a strategy multiplies values; NaN if it does something else."""
    if isinstance(strategy, Truthful):
        return 1.0
    misreport = getattr(strategy, "misreport", strategy)  # of a best response
    lie = getattr(misreport, "lie", misreport)
    return lie.f if isinstance(lie, ScaleValue) else np.nan
