"""The owners of an allocation core as Mesa agents: one step is one slot.

The owners of ports (OgaSched, ESDP) or of jobs (OPM) report once, before the first slot, the truth or a lie; the core
then allocates slot by slot, and every owner counts what it really gets and pays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from marketsched.agents.mesa_agent import MarketAgent, OwnersModel
from marketsched.config.scenario import Scenario
from marketsched.cores.agents.games import CoreGame, OwnersSlot
from marketsched.cores.agents.reports import Honest, Strategy
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from marketsched.mechanisms.legal import Whole

COLUMNS = ("owner", "strategy", "value", "payment", "utility")


class CoreOwner(MarketAgent):
    """Owner of a port or of jobs: number ``owner`` in the game, from 0 (``unique_id``: one more), with a ``strategy``.

    ``truth`` and ``report`` are of the core's kind, ``report`` None until the first slot; ``gained`` is the true gain
    less the true overhead of the last slot; ``value``, ``payment`` and ``utility`` are sums so far; all in credits.
    """

    def __init__(self, model: CoreMarket, owner: int, strategy: Strategy) -> None:
        super().__init__(model, owner + 1)
        self.owner, self.strategy = owner, strategy
        self.truth: Any = model.game.truth(owner)
        self.report: Any = None
        self.gained = self.value = self.payment = 0.0

    @property
    def utility(self) -> float:
        """Value less payment so far, credits."""
        return self.value - self.payment

    def declare(self) -> Any:
        """Decide what to report, and remember it."""
        self.report = self.strategy.report(self.truth, self.model.game.public)
        return self.report

    def observe(self, value: float, payment: float) -> None:
        """Take note of what a slot brought."""
        self.gained = value
        self.value += value
        self.payment += payment


class CoreMarket(OwnersModel):
    """A cluster under an allocation core whose ports or jobs have owners, as a Mesa model.

    ``game`` is a `PortGame`, `ChannelGame` or `JobGame`, or that of a scenario (`of`); owners whom ``strategies`` does
    not name are truthful. ``slot`` is the last slot that was played, 0 at the start, and ``running`` says whether slots
    are left; ``owners`` are in the order of the game.

    Examples
    --------
    >>> from marketsched.cores.agents.reports import CoreLie
    >>> market = CoreMarket.of("esdp-default", 7, lies={0: CoreLie("utility", 2.0)})
    >>> for _ in range(100):
    ...     market.step()
    >>> market.slot, market.owners[0].report.worth, len(market.agents)
    (100, 2.0, 8)
    """

    def __init__(self, game: CoreGame, strategies: Mapping[int, Strategy] | None = None) -> None:
        super().__init__(np.random.default_rng(0))  # all randomness is the game's
        self.game = game
        chosen = dict(strategies or {})
        for owner in chosen:
            Whole(0, game.n_owners - 1).check("owner", owner)
        self.owners = [CoreOwner(self, owner, chosen.get(owner, Honest())) for owner in range(game.n_owners)]
        self.slot = 0
        self._play: Iterator[OwnersSlot] | None = None

    @classmethod
    def of(
        cls,
        scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
        seed: int = 0,
        *,
        policy: str | None = None,
        payment: str = "none",
        lies: Mapping[int, Strategy] | None = None,
        data: str | PathLike[str] | None = None,
    ) -> CoreMarket:
        """Return the owners of a cluster scenario (as for `marketsched.run`) in the world of a seed.

        ``policy`` is written as ``"ogasched:step=25"``, None: the first of the scenario; ``payment`` is one that the
        policy has (`CoreWorld.payments`); ``lies`` are those of owners that lie; ``data`` is the folder of recorded
        traces.
        """
        base = Scenario.of(scenario)
        if base.kind == "market":
            raise InvalidParameterError(place="scenario", value=base.name, legal="a cluster; `Market` plays markets")
        choice = base.cluster.choices(None if policy is None else [policy])[0]
        return cls(base.cluster.world(seed, data=data).game(choice, payment), lies)

    @property
    def value(self) -> float:
        """Sum of all owners' values so far, credits."""
        return sum(owner.value for owner in self.owners)

    def step(self) -> None:
        """Play one slot; in the first, owners report. EventError if the last slot was played."""
        if self.slot >= self.game.slots:
            raise EventError(f"slot {self.slot + 1} lies beyond the last, {self.game.slots}: the market is over")
        if self._play is None:
            self._play = self.game.play({owner.owner: owner.declare() for owner in self.owners})
        values, payments = next(self._play)
        for owner, value, payment in zip(self.owners, values.tolist(), payments.tolist(), strict=True):
            owner.observe(value, payment)
        self.slot += 1
        self.running = self.slot < self.game.slots

    def table(self) -> pd.DataFrame:
        """Return one row per owner: ``owner, strategy, value, payment, utility`` so far, credits."""
        rows = [(o.owner, o.strategy.words(), o.value, o.payment, o.utility) for o in self.owners]
        return pd.DataFrame(rows, columns=list(COLUMNS))
