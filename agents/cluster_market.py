"""An allocation core as a Mesa model: one step is one slot; owners decide what to report, arrays compute.

The cores take their cluster, channels or jobs when they are set up, so owners report once, before the first slot
and without seeing each other's reports. From then on nothing is decided by agents: the game
(:mod:`marketsched.agents.cluster_games`) plays the slot in arrays, and agents read off what it brought them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mesa
import numpy as np
import pandas as pd

from marketsched.agents.cluster_games import CoreGame
from marketsched.agents.cluster_reports import CoreLie, Honest
from marketsched.agents.mesa_agent import MarketAgent
from marketsched.mechanisms.checks import whole_parameter
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from marketsched.mechanisms.randomness import generator_of

OWNER_COLUMNS = ("owner", "strategy", "value", "payment", "utility")


@dataclass(frozen=True)
class ClusterResult:
    """Tables of a finished or interrupted game.

    Attributes
    ----------
    owners : DataFrame
        One row per owner: ``owner``, ``strategy`` (in words), ``value``, ``payment`` and ``utility`` so far, credits.
    slots : DataFrame
        One row per slot played: ``slot``, ``welfare`` (all owners' value) and ``revenue`` (all payments) of the slot.
    summary : dict
        ``core``, ``complete``, ``slots``, ``owners``, ``liars``, ``welfare``, ``revenue``, ``utility``.

    Examples
    --------
    >>> from marketsched.agents.cluster_ports import PortGame
    >>> from marketsched.mechanisms.allocation import BipartiteCluster, Fairness, RecordedArrivals
    >>> cluster = BipartiteCluster([[1.0], [1.0]], [[1.0]], [[True], [True]], "linear", 1.0, 0.25)
    >>> game = PortGame(cluster, RecordedArrivals([[1, 1]]), 1, lambda believed, horizon: Fairness(believed))
    >>> result = ClusterMarket(game).run()
    >>> result.owners["utility"].tolist(), result.summary["welfare"]
    ([0.375, 0.375], 0.75)
    """

    owners: pd.DataFrame
    slots: pd.DataFrame
    summary: dict[str, Any]


class _ClusterOwner(MarketAgent):
    """Owner of a port or of jobs.

    Attributes
    ----------
    index : int
        Its number in the game.
    truth : report
        What is true of it.
    strategy : CoreLie
        How it reports.
    report : report or None
        What it said; None before it decided.
    """

    def __init__(self, model: ClusterMarket, index: int, strategy: CoreLie) -> None:
        super().__init__(model, index + 1)
        self.index, self.strategy = index, strategy
        self.truth = model.game.truth(index)
        self.report: Any = None

    def decide(self) -> None:
        """Report to the core."""
        self.report = self.strategy.report(self.truth, self.model.game.public)

    @property
    def value(self) -> float:
        """True value so far, credits."""
        return float(self.model.values[self.index])

    @property
    def payment(self) -> float:
        """Paid so far, credits."""
        return float(self.model.payments[self.index])

    @property
    def utility(self) -> float:
        """Value less payment."""
        return self.value - self.payment


class ClusterMarket(mesa.Model):
    """Owners over an allocation core.

    Parameters
    ----------
    game : CoreGame
        A `PortGame`, `ChannelGame` or `JobGame`.
    strategies : mapping of int to CoreLie, optional
        Of owners who may lie; all others tell the truth.
    rng : Generator, int or None
        Mesa's own; nothing in a game depends on it.

    Attributes
    ----------
    game : CoreGame
    slot : int
        Slots played so far.
    values, payments : ndarray of float, shape (n_owners,)
        So far, credits.

    Raises
    ------
    InvalidParameterError
        If there is no such owner, or a strategy is none.
    InvalidReportError
        If a strategy does not fit the core.

    Examples
    --------
    >>> from marketsched.agents.cluster_ports import PortGame
    >>> from marketsched.agents.cluster_reports import ScaledRequirements
    >>> from marketsched.mechanisms.allocation import BipartiteCluster, Fairness, RecordedArrivals
    >>> cluster = BipartiteCluster([[1.0], [1.0]], [[1.0]], [[True], [True]], "linear", 1.0, 0.25)
    >>> game = PortGame(cluster, RecordedArrivals([[1, 1]] * 2), 2, lambda believed, horizon: Fairness(believed))
    >>> market = ClusterMarket(game, {0: ScaledRequirements(3.0)})
    >>> market.run().owners["utility"].tolist()
    [1.125, 0.375]
    """

    def __init__(
        self,
        game: CoreGame,
        strategies: Mapping[int, CoreLie] | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        chosen = dict(strategies or {})
        for owner, strategy in chosen.items():
            whole_parameter("owner", owner, 0, game.n_owners - 1)
            if not isinstance(strategy, CoreLie):
                raise InvalidParameterError(f"strategies[{owner}] = {strategy!r}: expected a CoreLie")
        super().__init__(rng=int(generator_of(rng).integers(2**31)))
        self.game = game
        self.slot = 0
        self.values, self.payments = np.zeros(game.n_owners), np.zeros(game.n_owners)
        self._welfare, self._revenue = np.zeros(game.slots), np.zeros(game.slots)
        self.owners = [_ClusterOwner(self, i, chosen.get(i, Honest())) for i in range(game.n_owners)]
        self.agents.shuffle_do("decide")
        told = {owner.index: owner.report for owner in self.owners if owner.report is not owner.truth}
        self._play = game.play(told)

    def step(self) -> None:
        """Play one slot.

        Raises
        ------
        EventError
            If the last slot was played.
        """
        if self.slot == self.game.slots:
            raise EventError(f"slot {self.slot + 1}: the game has {self.game.slots} slots and is over")
        outcome = next(self._play)
        self.values += outcome.values
        self.payments += outcome.payments
        self._welfare[self.slot] = outcome.values.sum()
        self._revenue[self.slot] = outcome.payments.sum()
        self.slot += 1
        self.running = self.slot < self.game.slots

    def run(self, progress: Callable[[int], None] | None = None) -> ClusterResult:
        """Play all slots that are left and return the tables.

        Parameters
        ----------
        progress : function of int, optional
            Called after each slot with its number.
        """
        while self.running:
            self.step()
            if progress is not None:
                progress(self.slot)
        return self.result()

    def result(self) -> ClusterResult:
        """Return the tables of all slots played so far."""
        rows = [(o.index, o.strategy.words(), o.value, o.payment, o.utility) for o in self.owners]
        slots = pd.DataFrame(
            {
                "slot": np.arange(1, self.slot + 1),
                "welfare": self._welfare[: self.slot],
                "revenue": self._revenue[: self.slot],
            }
        )
        welfare, revenue = float(self.values.sum()), float(self.payments.sum())
        summary = {
            "core": self.game.core,
            "complete": self.slot == self.game.slots,
            "slots": self.slot,
            "owners": self.game.n_owners,
            "liars": sum(not isinstance(owner.strategy, Honest) for owner in self.owners),
            "welfare": welfare,
            "revenue": revenue,
            "utility": welfare - revenue,
        }
        return ClusterResult(pd.DataFrame(rows, columns=list(OWNER_COLUMNS)), slots, summary)
