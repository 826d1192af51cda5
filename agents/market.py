"""The market as a Mesa model: one step is one round; owners decide, the mechanism clears.

A thin model around :mod:`marketsched.agents.market_run`, which plays the rounds. Owners enter the market
when they submit and leave it when their job is done, so the live agents of a model are the owners of
active jobs. It is what plays scenarios whose owners look at the market before they report, or learn from it; where all
reports are known beforehand, `MarketRun` gives the same tables faster (`marketsched.agents.referee`).
"""

from __future__ import annotations

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.lies import Strategy
from marketsched.agents.market_run import MarketRun
from marketsched.agents.mesa_agent import OwnersModel
from marketsched.agents.owner import JobOwner
from marketsched.agents.setup import MarketSetup, SetupSource
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.randomness import generator_of


class Market(MarketRun, OwnersModel):
    """A market of job owners over one mechanism.

    Parameters
    ----------
    scenario : MarketSetup or SetupSource
        A setup, or a scenario whose ``setup(rng)`` makes one.
    rng : Generator, int or None
        Source of the scenario's randomness; a ready setup has none left.
    lookahead : int, optional
        Slots ahead whose prices are kept each round; by default ``max_delay``, at most 288.

    Attributes
    ----------
    setup : MarketSetup
    mechanism : Mechanism
    round : int
        The last round that was played; 0 at the start.
    load : int
        Nodes busy in that round.

    Raises
    ------
    InvalidParameterError
        If the setup is invalid, or ``lookahead`` negative.
    TooLargeError
        If the log of all rounds does not fit into memory.

    Examples
    --------
    >>> from marketsched import Scenario
    >>> market = Market(Scenario.load("stochastic-mix"), 7)
    >>> for _ in range(24):
    ...     market.step()
    >>> market.round, market.load <= market.setup.capacity
    (24, True)
    >>> result = market.run()  # to the end
    """

    def __init__(
        self,
        scenario: MarketSetup | SetupSource,
        rng: np.random.Generator | int | None = None,
        *,
        lookahead: int | None = None,
    ) -> None:
        generator = generator_of(rng)
        setup = _as_setup(scenario, generator)
        OwnersModel.__init__(self, generator)  # after the setup is made: moves nothing in it
        # Owners are agents of the model, and there to be looked at in every round.
        MarketRun.__init__(self, setup, lookahead=lookahead, by_rounds=True)

    def _owner(self, job: Job, index: int, strategy: Strategy) -> JobOwner:
        return JobOwner(self, job, index, strategy, self.setup.max_delay)


def _as_setup(scenario: object, rng: np.random.Generator) -> MarketSetup:
    """Return the setup itself, or the one a scenario makes."""
    if isinstance(scenario, MarketSetup):
        return scenario
    if isinstance(scenario, SetupSource):
        return scenario.setup(rng)
    legal = "a Scenario (Scenario.load, Scenario.from_dict), a MarketSetup, or another object with setup(rng)"
    raise InvalidParameterError(place="scenario", value=scenario, legal=legal)
