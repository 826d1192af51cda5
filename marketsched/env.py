"""Environments for reinforcement learning over any market (``pip install marketsched[rl]``).

`parallel_env` is a PettingZoo ``ParallelEnv``: its agents are job owners, a step is a turn, an action a way to
report. In `OwnerEnv`, a Gymnasium environment, one owner decides and all others report as the scenario says. What an
owner observes is `OBSERVED`; its reward is its true utility, in credits, paid when a job has left the market: value of
the real completion less payment.

Where the mechanism is truthful the best policy is to tell the truth; where it is not, a learner finds what pays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from marketsched.agents.learning import Menu, value_menu
from marketsched.agents.result import RunResult
from marketsched.agents.setup import MarketSetup, SetupSource
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from marketsched.mechanisms.randomness import checked_seed
from marketsched.study.learning.turns import OBSERVED, OwnersTurns

__all__ = ["OBSERVED", "MarketEnv", "OwnerEnv", "parallel_env"]

Source = SetupSource | Scenario | str | PathLike[str] | Mapping[str, Any]


class _Markets:
    """Markets of one source: a scenario, or anything with ``setup(rng)``, as a `RepeatedMarket`."""

    def __init__(self, source: Source, data: str | PathLike[str] | None) -> None:
        self._source: Any = source
        self._more: dict[str, Any] = {}
        if isinstance(source, (str, PathLike, Mapping, Scenario)):
            self._source, self._more = Scenario.of(source, kind="market"), {"data": data}

    def setup(self, seed: int) -> MarketSetup:
        """Return the market that `marketsched.run` plays with this seed."""
        found: MarketSetup = self._source.setup(np.random.default_rng(np.random.SeedSequence(seed)), **self._more)
        return found

    @classmethod
    def of(cls, source: Source | _Markets, data: str | PathLike[str] | None) -> _Markets:
        """Return the markets of a source, or those that are given."""
        return source if isinstance(source, _Markets) else cls(source, data)

    @cached_property
    def owners(self) -> frozenset[str]:
        """Who has a job in one of the first four markets: in one of them somebody may have none."""
        return frozenset(job.owner for seed in range(4) for job in self.setup(seed).jobs)


def _spaces(menu: Menu) -> tuple[Box, Discrete]:
    return Box(-1.0, 1.0, (len(OBSERVED),), np.float32), Discrete(len(menu))


class MarketEnv(ParallelEnv):
    """A market whose owners decide what they report, as a PettingZoo ``ParallelEnv``.

    A step is a turn: all rounds up to the next in which one of the owners has a job to report. Everybody gives an
    action each time; it counts for those whose first observed number is 1. An owner's episode ends when its last job
    has left the market, or with the market. A seed given to ``reset`` is that of `marketsched.run`; without one every
    episode is a new market.

    Parameters
    ----------
    source : scenario, name, path, mapping, or object with ``setup(rng)``
        The market; a `RepeatedMarket` has ``setup``, too.
    owners : sequence of str, optional
        Who decides; all others report as the scenario says. None: all owners of the markets of the first four seeds.
    menu : Menu or mapping of str to Strategy, optional
        The actions; by default `value_menu`.
    data : path, optional
        Folder of recorded traces.
    render_mode : None
        There is nothing to render.

    Raises
    ------
    InvalidParameterError
        If ``owners`` is empty or names somebody who is in none of these markets, or the source is at fault.

    Examples
    --------
    >>> from marketsched import contested_market
    >>> env = MarketEnv(contested_market("pay-as-bid", n_owners=2, capacity=1))
    >>> observations, infos = env.reset(seed=1)
    >>> truth = env.menu.truth
    >>> while env.agents:
    ...     observations, rewards, *ends, infos = env.step({owner: truth for owner in env.agents})
    >>> env.possible_agents
    ['owner-1', 'owner-2']
    """

    metadata = {"name": "marketsched_v0", "render_modes": []}  # noqa: RUF012 - PettingZoo's attribute

    def __init__(
        self,
        source: Source | _Markets,
        owners: Sequence[str] | None = None,
        *,
        menu: Menu | Mapping[str, Any] | None = None,
        data: str | PathLike[str] | None = None,
        render_mode: None = None,
    ) -> None:
        self._markets = _Markets.of(source, data)
        self.menu = menu if isinstance(menu, Menu) else value_menu() if menu is None else Menu(menu)
        there = self._markets.owners
        chosen = sorted(there) if owners is None else list(owners)
        if not chosen or len(set(chosen)) < len(chosen) or not there.issuperset(chosen):
            raise InvalidParameterError(
                place="owners", value=chosen, legal=f"distinct owners, some of {', '.join(sorted(there)[:8])} ..."
            )
        self.render_mode = render_mode
        self.possible_agents = chosen
        self.agents: list[str] = []
        seen, done = _spaces(self.menu)
        self.observation_spaces = dict.fromkeys(chosen, seen)
        self.action_spaces = dict.fromkeys(chosen, done)
        self._seeds = np.random.default_rng()
        self._turns: OwnersTurns | None = None

    def observation_space(self, agent: str) -> Box:
        """Return the space of what an owner observes: `OBSERVED`, each in [-1, 1]."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Return the space of an owner's actions: places in the menu."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, dict[str, Any]]]:
        """Begin a new market; return observations and infos by owner."""
        if seed is not None:
            self._seeds = np.random.default_rng(checked_seed(seed))
        number = int(self._seeds.integers(2**31)) if seed is None else seed
        self._turns = OwnersTurns(self._markets.setup(number), self.possible_agents, self.menu)
        self.agents = self._turns.owners
        return self._observations(self.agents), {owner: {} for owner in self.agents}

    def step(self, actions: Mapping[str, int]) -> tuple[dict[str, Any], ...]:
        """Play a turn; return observations, rewards, terminations, truncations and infos by owner.

        Raises
        ------
        EventError
            If the market is over or was never begun.
        InvalidParameterError
            If an action is no place in the menu.
        """
        if self._turns is None or not self.agents:
            raise EventError("step: the market is over or was not begun; expected reset()")
        playing = self.agents
        for owner in playing:
            if owner in actions and not self.action_spaces[owner].contains(actions[owner]):
                raise InvalidParameterError(
                    place=f"action of {owner}", value=actions[owner], legal=f"0 .. {len(self.menu) - 1}"
                )
        earned = self._turns.act({owner: int(action) for owner, action in actions.items()})
        self.agents = self._turns.owners
        still = set(self.agents)
        return (
            self._observations(playing),
            {owner: earned.get(owner, 0.0) for owner in playing},
            {owner: owner not in still for owner in playing},
            dict.fromkeys(playing, False),
            {owner: {} for owner in playing},
        )

    def result(self) -> RunResult:
        """Return the tables of the market so far, as of a run.

        Raises
        ------
        EventError
            If no market was begun.
        """
        if self._turns is None:
            raise EventError("result: no market was begun; expected reset()")
        return self._turns.result()

    def _observations(self, owners: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        assert self._turns is not None
        return dict(zip(owners, self._turns.observations(owners), strict=True)) if owners else {}

    def render(self) -> None:
        """Nothing to render."""

    def close(self) -> None:
        """Nothing to close."""


def parallel_env(source: Source, owners: Sequence[str] | None = None, **options: Any) -> MarketEnv:
    """Return a `MarketEnv`, which says what can be given; PettingZoo's usual name for this function."""
    return MarketEnv(source, owners, **options)


class OwnerEnv(gymnasium.Env):
    """One owner's market as a Gymnasium environment: a step reports its next job, an episode is a market.

    Parameters
    ----------
    source, menu, data
        As for `MarketEnv`.
    owner : str, optional
        Who decides; None: the first owner by name.
    render_mode : None
        There is nothing to render.

    Raises
    ------
    InvalidParameterError
        As for `MarketEnv`.

    Examples
    --------
    >>> from marketsched import contested_market
    >>> env = OwnerEnv(contested_market("posted-price", n_owners=4))
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(env.menu.truth)
    >>> terminated
    True
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium's attribute

    def __init__(
        self,
        source: Source,
        owner: str | None = None,
        *,
        menu: Menu | Mapping[str, Any] | None = None,
        data: str | PathLike[str] | None = None,
        render_mode: None = None,
    ) -> None:
        markets = _Markets.of(source, data)
        owner = min(markets.owners, default="") if owner is None else owner
        self._env = MarketEnv(markets, [owner], menu=menu)
        self.owner = owner
        self.menu = self._env.menu
        self.render_mode = render_mode
        self.observation_space, self.action_space = _spaces(self.menu)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin a new market in which the owner has a job; return its observation and an empty info."""
        super().reset(seed=seed)
        number = int(self.np_random.integers(2**31)) if seed is None else seed
        observations, _ = self._env.reset(seed=number)
        while not observations:  # no job of this owner: the next market of the stream
            observations, _ = self._env.reset(seed=int(self.np_random.integers(2**31)))
        return observations[self.owner], {}

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Report the job that is due; return observation, reward, terminated, truncated and an empty info."""
        observations, rewards, ended, _, _ = self._env.step({self.owner: action})
        return observations[self.owner], float(rewards[self.owner]), ended[self.owner], False, {}

    def result(self) -> RunResult:
        """Return the tables of the market so far, as of a run."""
        return self._env.result()
