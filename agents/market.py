"""The market as a Mesa model: one step is one round; owners decide, the mechanism clears.

A thin model around :mod:`marketsched.agents.market_run`, which plays the rounds. Owners enter the market
when they submit and leave it when their job is done, so the live agents of a model are the owners of
active jobs, and the named owners whose strategies it was given, who stay. It is what plays scenarios whose owners look
at the market before they report, or learn from it; where all reports are known beforehand, `MarketRun` gives the same
tables faster (`marketsched.agents.referee`).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.lies import Strategy
from marketsched.agents.market_run import MarketRun
from marketsched.agents.mesa_agent import OwnersModel
from marketsched.agents.owner import JobOwner, NamedOwner
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
    strategies : mapping of str to Strategy, optional
        How named owners report: any object with ``report(truth, public)``, and perhaps ``watch(market)``, which is
        called before it (`marketsched.agents.lies`). All others report as the scenario says. Each of them is a
        `NamedOwner` for the whole market: ``DataCollector(agenttype_reporters={NamedOwner: {"paid": "payment"}})``.

    Attributes
    ----------
    setup : MarketSetup
        The first market of a setup plays its mechanism, later ones have a fresh copy.
    named : dict of str to NamedOwner
        The owners of ``strategies``.
    mechanism : Mechanism
    round : int
        The last round that was played; 0 at the start.
    load : int
        Nodes busy in that round.

    Raises
    ------
    InvalidParameterError
        If the setup is invalid, ``lookahead`` negative, or a strategy of an owner without a job, or none.
    TooLargeError
        If the log of all rounds does not fit into memory.

    Examples
    --------
    >>> from marketsched import ScaleValue, Scenario
    >>> market = Market(Scenario.load("stochastic-mix"), 7)
    >>> for _ in range(24):
    ...     market.step()
    >>> market.round, market.load <= market.setup.capacity
    (24, True)
    >>> result = market.run()  # to the end

    An owner with a policy of one's own:

    >>> class Half:
    ...     def report(self, truth, public):
    ...         return ScaleValue(0.5).report(truth, public)
    >>> market = Market(Scenario.load("stochastic-mix"), 7, strategies={"alarm": Half()})
    >>> result = market.run()
    >>> bool(market.named["alarm"].value == result.jobs.query("owner == 'alarm'")["value"].sum())
    True
    """

    def __init__(
        self,
        scenario: MarketSetup | SetupSource,
        rng: np.random.Generator | int | None = None,
        *,
        lookahead: int | None = None,
        strategies: Mapping[str, Strategy] | None = None,
    ) -> None:
        generator = generator_of(rng)
        setup = _as_setup(scenario, generator)
        own = dict(strategies or {})
        if own:
            _check_strategies(own, setup)
            others = setup
            setup = replace(setup, strategy=lambda job: own.get(job.owner) or others.strategy_of(job))
        OwnersModel.__init__(self, generator)  # after the setup is made: moves nothing in it
        # Owners are agents of the model, and there to be looked at in every round.
        MarketRun.__init__(self, setup, lookahead=lookahead, by_rounds=True)
        self.named = {name: NamedOwner(self, len(setup.jobs) + i, name) for i, name in enumerate(own, 1)}

    def _owner(self, job: Job, index: int, strategy: Strategy) -> JobOwner:
        owner = JobOwner(self, job, index, strategy, self.setup.max_delay)
        if job.owner in self.named:
            self.named[job.owner].jobs.append(owner)
        return owner


def _check_strategies(own: Mapping[str, Strategy], setup: MarketSetup) -> None:
    known = set(setup.table.owners)
    for name, strategy in own.items():
        if name not in known:
            legal = f"owners with a job, as {', '.join(sorted(known)[:8])}"
            raise InvalidParameterError(place="strategies", value=name, legal=legal)
        if isinstance(strategy, type) or not callable(getattr(strategy, "report", None)):
            legal = "an object with report(truth, public)"
            raise InvalidParameterError(place=f"strategies[{name!r}]", value=strategy, legal=legal)


def _as_setup(scenario: object, rng: np.random.Generator) -> MarketSetup:
    """Return the setup, with a fresh mechanism if another market has played its own; or what a scenario makes."""
    if isinstance(scenario, MarketSetup):
        if not scenario.unplayed:
            scenario.unplayed.append(copy.deepcopy(scenario.mechanism))
            return scenario
        return replace(scenario, mechanism=copy.deepcopy(scenario.unplayed[0]))
    if isinstance(scenario, SetupSource):
        return scenario.setup(rng)
    legal = "a Scenario (Scenario.load, Scenario.from_dict), a MarketSetup, or another object with setup(rng)"
    raise InvalidParameterError(place="scenario", value=scenario, legal=legal)
