"""Environments for reinforcement learning over any market (``pip install marketsched[rl]``).

`parallel_env` is a PettingZoo ``ParallelEnv``: its agents are job owners, a step is a turn, an action a way to
report. In `OwnerEnv`, a Gymnasium environment, one owner decides and all others report as the scenario says. What an
owner observes is `OBSERVED`; its reward is its true utility, in credits, paid when a job has left the market: value of
the real completion less payment.

Where the mechanism is truthful the best policy is to tell the truth; where it is not, a learner finds what pays.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import gymnasium
    from gymnasium.spaces import Box, Discrete
    from pettingzoo import ParallelEnv
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"marketsched.env needs {error.name}: pip install 'marketsched[rl]'", name=error.name
    ) from None

from marketsched.agents.learning import Bids, ReportMenu, value_menu
from marketsched.agents.result import RunResult
from marketsched.agents.setup import MarketSetup, SetupSource
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from marketsched.mechanisms.randomness import checked_seed
from marketsched.mechanisms.registry import get
from marketsched.mechanisms.signatures import parameters_of
from marketsched.study.learning.turns import OBSERVED, OUTCOME, OwnersTurns

__all__ = ["OBSERVED", "OUTCOME", "Bids", "MarketEnv", "OwnerEnv", "OwnersVectorEnv", "parallel_env"]

MANY_JOBS = 500  # of a market, from which on its episodes are slow under sampled prices

Source = SetupSource | Scenario | str | PathLike[str] | Mapping[str, Any]


class _Markets:
    """Markets of one source: a scenario, or anything with ``setup(rng)``, as a `RepeatedMarket`."""

    def __init__(self, source: Source, data: str | PathLike[str] | None) -> None:
        self._source: Any = source
        self._more: dict[str, Any] = {}
        if isinstance(source, Scenario) or not hasattr(source, "setup"):
            self._source, self._more = Scenario.of(source, kind="market"), {"data": data}

    def setup(self, seed: int) -> MarketSetup:
        """Return the market that `marketsched.run` plays with this seed."""
        found: MarketSetup = self._source.setup(np.random.default_rng(np.random.SeedSequence(seed)), **self._more)
        return found

    @classmethod
    def of(cls, source: Source | _Markets, data: str | PathLike[str] | None) -> _Markets:
        """Return the markets of a source, or those that are given."""
        return source if isinstance(source, _Markets) else cls(source, data)

    def warn_if_slow(self) -> None:
        """Say before the first step that an episode takes long: each of many jobs is priced by sample paths."""
        choice = self._source.mechanism if isinstance(self._source, Scenario) else None
        if choice is None or choice.oracle.kind != "monte-carlo":
            return
        takes = parameters_of(get("mechanism", choice.name))
        if "oracle" in takes and (n := len(self.setup(0).table)) >= MANY_JOBS:
            said = f"{self._source.name}: an episode takes seconds: {n:,} jobs under prices that draw sample paths"
            quick = "first-come, workload.recurring_jobs=40 or contested_market(...) take a tenth"
            warnings.warn(f"{said}; {quick} (docs/environments.md)", stacklevel=4)

    @cached_property
    def owners(self) -> frozenset[str]:
        """Owners with a job in one of the first four markets: in a single market an owner may have none."""
        return frozenset(job.owner for seed in range(4) for job in self.setup(seed).jobs)


def _spaces(menu: ReportMenu | Bids) -> tuple[Box, Box | Discrete]:
    seen = Box(-1.0, 1.0, (len(OBSERVED),), np.float32)
    return seen, Box(0.0, menu.highest, (1,), np.float32) if isinstance(menu, Bids) else Discrete(len(menu))


def _menu_of(menu: ReportMenu | Bids | Mapping[str, Any] | None) -> ReportMenu | Bids:
    if menu is not None and not isinstance(menu, (ReportMenu, Bids, Mapping)):
        raise InvalidParameterError(place="menu", value=menu, legal="a ReportMenu, Bids, or strategies by name")
    return value_menu() if menu is None else menu if isinstance(menu, (ReportMenu, Bids)) else ReportMenu(menu)


def _check_render_mode(mode: object) -> None:
    if mode is not None:
        raise InvalidParameterError(place="render_mode", value=mode, legal="None: there is nothing to render")


class MarketEnv(ParallelEnv):
    """A market whose owners choose their reports, as a PettingZoo ``ParallelEnv``.

    A step is a turn: all rounds up to the next in which one of the owners has a job to report. Every owner gives an
    action each time (one without an action tells the truth); it counts for those whose first observed number is 1. An
    owner's episode ends when its last job has left the market, or with the market. A seed given to ``reset`` is that of
    `marketsched.run`; without one every episode is a new market.

    Parameters
    ----------
    source : scenario, name, path, mapping, or object with ``setup(rng)``
        The market; a `RepeatedMarket` has ``setup``, too.
    owners : sequence of str, optional
        Who decides; all others report as the scenario says. None: all owners of the markets of the first four seeds.
    menu : ReportMenu, Bids or mapping of str to Strategy, optional
        The actions; by default `value_menu`. With `Bids` an action is an array of one number, the factor of the true
        value that is declared (1: the truth).
    data : path, optional
        Folder of recorded traces.
    regret : bool
        Whether infos of the market's last step have ``regret``; each agent costs one more play. Those of an agent that
        ended before have none, as it is not known yet: `regrets` returns it of all.
    render_mode : None
        There is nothing to render.

    Raises
    ------
    InvalidParameterError
        If ``owners`` is empty or names an owner who is in none of these markets, or the source is at fault.

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
        menu: ReportMenu | Bids | Mapping[str, Any] | None = None,
        data: str | PathLike[str] | None = None,
        regret: bool = False,
        render_mode: None = None,
    ) -> None:
        self._markets = _Markets.of(source, data)
        self.menu = _menu_of(menu)
        self._regret = regret
        self._markets.warn_if_slow()
        there = self._markets.owners
        chosen = sorted(there) if owners is None else [owners] if isinstance(owners, str) else list(owners)
        if not chosen or len(set(chosen)) < len(chosen) or not there.issuperset(chosen):
            some = ", ".join(sorted(there)[:8]) + (", ..." if len(there) > 8 else "")
            raise InvalidParameterError(place="owners", value=chosen, legal=f"distinct owners, some of {some}")
        _check_render_mode(render_mode)
        self.render_mode = render_mode
        self.possible_agents = chosen
        self.agents: list[str] = []
        seen, done = _spaces(self.menu)
        self.observation_spaces = dict.fromkeys(chosen, seen)
        self.action_spaces = dict.fromkeys(chosen, done)
        self._seeds = np.random.default_rng()
        self._turns: OwnersTurns | None = None
        self._number = 0  # seed of the market
        self._acted: list[dict[str, float]] = []  # actions of each turn
        self._earned: dict[str, float] = {}  # in all turns

    def observation_space(self, agent: str) -> Box:
        """Return the space of an owner's observations: `OBSERVED`, each in [-1, 1]."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Box | Discrete:
        """Return the space of an owner's actions: places in the menu, or factors of the value."""
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
        self._number, self._acted, self._earned = number, [], dict.fromkeys(self.agents, 0.0)
        return self._observations(self.agents), self._infos(self.agents)

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Play a turn; return observations, rewards, terminations, truncations and infos by owner.

        Raises
        ------
        EventError
            If the market is over or was never begun.
        InvalidParameterError
            If an action is no place in the menu, is missing, or is of an owner who is not one of the agents.
        """
        if self._turns is None or not self.agents:
            raise EventError("step: the market is over or was not begun; expected reset()")
        playing = self.agents
        if not isinstance(actions, Mapping):
            raise InvalidParameterError(place="actions", value=actions, legal="an action by owner")
        for owner in actions:
            if owner not in self.possible_agents:
                legal = f"one of {', '.join(self.possible_agents)}"
                raise InvalidParameterError(place="owner", value=owner, legal=legal)
        for owner in playing:
            if owner in actions and not self._legal(owner, actions[owner]):
                raise _not_legal(owner, actions[owner], self.menu)
        missing = [owner for owner in playing if owner not in actions]
        if missing:
            raise InvalidParameterError("is missing", place=f"action of {missing[0]}", legal="one of each agent")
        asked = {owner: float(np.asarray(each).item()) for owner, each in actions.items()}
        earned = self._play(self._turns, asked)
        still = set(self.agents)
        return (
            self._observations(playing),
            {owner: earned.get(owner, 0.0) for owner in playing},
            {owner: owner not in still for owner in playing},
            dict.fromkeys(playing, False),
            self._with_regret(self._infos(playing)),
        )

    def regrets(self) -> dict[str, float]:
        """Return by owner what the truth in all its turns would have earned more, others as they were, credits.

        Negative: its actions were worth more. 0 of a report that changes nothing: under posted menus most do, so that
        a learner whose regret is 0 need not be truthful. Each owner costs one more play of the market.

        Raises
        ------
        EventError
            If the market is not over.
        """
        if self._turns is None or self.agents:
            raise EventError("regrets: the market is not over; expected steps until no agent is left")
        return {owner: self._truth_earns(owner) - earned for owner, earned in self._earned.items()}

    def _truth_earns(self, owner: str) -> float:
        """Return what an owner that tells the truth earns in this market, all other actions as they were."""
        turns = OwnersTurns(self._markets.setup(self._number), self.possible_agents, self.menu)
        truth, total = {owner: float(self.menu.truth)}, 0.0
        acted = iter(self._acted)
        while turns.owners:
            total += turns.act({**next(acted, {}), **truth}).get(owner, 0.0)
        return total

    def _with_regret(self, infos: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        if not self._regret or self.agents:
            return infos
        found = self.regrets()
        return {owner: {**info, "regret": found.get(owner, 0.0)} for owner, info in infos.items()}

    def act(self, actions: NDArray[Any], place: Mapping[str, int]) -> OwnersTurns:
        """Play a turn in which the owners that are due act as an array says, at their places; return the market."""
        if self._turns is None or not self.agents:
            raise EventError("step: the market is over or was not begun; expected reset()")
        self._play(self._turns, {owner: float(actions[place[owner]]) for owner in self._turns.due})
        return self._turns

    def _play(self, turns: OwnersTurns, actions: dict[str, float]) -> dict[str, float]:
        """Play a turn, and note its actions and what each owner has earned; return the latter."""
        earned = turns.act(actions)
        self.agents = turns.owners
        self._acted.append(actions)
        for owner, utility in earned.items():
            self._earned[owner] = self._earned.get(owner, 0.0) + utility
        return earned

    def _legal(self, owner: str, action: Any) -> bool:
        asked = action
        if isinstance(self.menu, Bids):
            try:
                asked = np.asarray(action, dtype=np.float32).reshape(1)
            except (TypeError, ValueError):  # no number, or not one alone
                return False
        return bool(self.action_spaces[owner].contains(asked))

    def _infos(self, owners: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return by owner what became of its jobs that left in this turn, and the price of a node in the next round."""
        assert self._turns is not None
        price = self._turns.price() if owners else 0.0
        found = self._turns.outcomes
        return {owner: {**dict.fromkeys(OUTCOME, 0.0), **found.get(owner, {}), "price": price} for owner in owners}

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
    """Return a `MarketEnv`, with its parameters; PettingZoo's usual name for this function."""
    return MarketEnv(source, owners, **options)


class OwnerEnv(gymnasium.Env):
    """One owner's market as a Gymnasium environment: a step reports its next job, an episode is a market.

    Parameters
    ----------
    source, menu, data, regret
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
        menu: ReportMenu | Bids | Mapping[str, Any] | None = None,
        data: str | PathLike[str] | None = None,
        regret: bool = False,
        render_mode: None = None,
    ) -> None:
        markets = _Markets.of(source, data)
        owner = min(markets.owners, default="") if owner is None else owner
        self._env = MarketEnv(markets, [owner], menu=menu, regret=regret)
        self.owner = owner
        self.menu = self._env.menu
        _check_render_mode(render_mode)
        self.render_mode = render_mode
        self.observation_space, self.action_space = _spaces(self.menu)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin a new market in which the owner has a job; return its observation and info."""
        super().reset(seed=seed)
        number = int(self.np_random.integers(2**31)) if seed is None else seed
        observations, infos = self._env.reset(seed=number)
        while not observations:  # no job of this owner: the next market of the stream
            observations, infos = self._env.reset(seed=int(self.np_random.integers(2**31)))
        return observations[self.owner], infos[self.owner]

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Report the job that is due; return observation, reward, terminated, truncated and info."""
        observations, rewards, ended, _, infos = self._env.step({self.owner: action})
        return observations[self.owner], float(rewards[self.owner]), ended[self.owner], False, infos[self.owner]

    def regret(self) -> float:
        """Return what the truth would have earned more in this market, credits; see `MarketEnv.regrets`."""
        return self._env.regrets().get(self.owner, 0.0)

    def result(self) -> RunResult:
        """Return the tables of the market so far, as of a run."""
        return self._env.result()


class OwnersVectorEnv(gymnasium.vector.VectorEnv):
    """All owners of one market as a vector of environments in one process: a step is a turn of the market.

    Sub-environment ``i`` is owner ``i``. An action counts for owners whose first observed number is 1; an owner that is
    done waits for the others, and all begin the next market together: ``terminations`` of all are True then, the
    observations are those of the new market, and ``infos`` has the last ones of the old one as ``final_obs`` and what
    became of its last jobs as ``final_info``, as Gymnasium's ``SAME_STEP`` has them. So many jobs are reported in a
    step as fall due, where `OwnerEnv` plays the whole market for the jobs of one owner.

    Parameters
    ----------
    source, owners, menu, data
        As for `MarketEnv`.

    Examples
    --------
    >>> from marketsched import contested_market
    >>> env = OwnersVectorEnv(contested_market("pay-as-bid", n_owners=3, capacity=1))
    >>> observations, infos = env.reset(seed=1)
    >>> observations, rewards, terminations, truncations, infos = env.step(np.full(3, env.menu.truth))
    >>> observations.shape, rewards.shape, sorted(infos)
    ((3, 21), (3,), ['jobs_over', 'paid', 'price', 'started', 'surplus', 'wait'])
    """

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}  # noqa: RUF012 - Gymnasium's attribute

    def __init__(
        self,
        source: Source,
        owners: Sequence[str] | None = None,
        *,
        menu: ReportMenu | Bids | Mapping[str, Any] | None = None,
        data: str | PathLike[str] | None = None,
    ) -> None:
        self._env = MarketEnv(source, owners, menu=menu, data=data)
        self.owners, self.menu = self._env.possible_agents, self._env.menu
        self._place = {owner: i for i, owner in enumerate(self.owners)}
        self.num_envs = len(self.owners)
        self.single_observation_space, self.single_action_space = _spaces(self.menu)
        batch = gymnasium.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, self.num_envs)
        self.action_space = batch(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin a new market; return observations, shape (num_envs, len(OBSERVED)), and infos as arrays."""
        observations, infos = self._env.reset(seed=seed)
        self._last = self._stacked(observations)
        return self._last.copy(), self._arrays(infos)

    def step(
        self, actions: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Play a turn; return observations, rewards, terminations, truncations and infos, an entry for each owner."""
        playing = [self._place[owner] for owner in self._env.agents]
        turns = self._env.act(self._checked(actions, playing), self._place)
        earned, seen = np.zeros(self.num_envs), np.zeros((self.num_envs, len(OBSERVED)), dtype=np.float32)
        for owner, reward in turns.earned.items():
            earned[self._place[owner]] = reward
        found = {name: np.zeros(self.num_envs) for name in (*OUTCOME, "price")}
        for owner, came in turns.outcomes.items():
            for name, x in came.items():
                found[name][self._place[owner]] = x
        found["price"][playing] = turns.price()
        over = not self._env.agents
        seen[playing] = turns.observations([self.owners[i] for i in playing])
        self._last[playing] = seen[playing]  # an owner that is done keeps what it saw last
        ended, infos = np.full(self.num_envs, over), dict[str, Any](found)
        if over:
            final: dict[str, Any] = {"final_obs": self._last, "final_info": dict(found)}
            infos |= final | {f"_{name}": ended.copy() for name in final}
            self._last = self._stacked(self._env.reset()[0])
            seen = self._last.copy()
        return seen, earned, ended, np.zeros(self.num_envs, dtype=bool), infos

    def _checked(self, actions: Any, playing: Sequence[int]) -> NDArray[Any]:
        """Return the actions as an array, if those of owners that still play are legal."""
        asked = np.asarray(actions)
        if asked.shape[:1] != (self.num_envs,):
            raise InvalidParameterError(place="actions", value=actions, legal=f"{self.num_envs} of them, one an owner")
        if isinstance(self.menu, Bids):
            asked = asked.reshape(self.num_envs)
            legal = (asked >= 0) & (asked.astype(np.float32) <= np.float32(self.menu.highest))
        else:
            legal = np.full(self.num_envs, asked.dtype.kind in "iu") & (asked >= 0) & (asked < len(self.menu))
        for i in playing if not legal[playing].all() else ():
            if not legal[i]:
                raise _not_legal(self.owners[i], asked[i], self.menu)
        return asked

    def _stacked(self, observations: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        nothing = np.zeros(len(OBSERVED), dtype=np.float32)
        return np.stack([observations.get(owner, nothing) for owner in self.owners])

    def _arrays(self, infos: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        return {name: np.array([infos.get(o, {}).get(name, 0.0) for o in self.owners]) for name in (*OUTCOME, "price")}


def _not_legal(owner: str, action: Any, menu: ReportMenu | Bids) -> InvalidParameterError:
    last = f"{menu.highest:g}" if isinstance(menu, Bids) else f"{len(menu) - 1}"
    return InvalidParameterError(place=f"action of {owner}", value=action, legal=f"0 .. {last}")


if "marketsched/Owner-v0" not in gymnasium.registry:
    gymnasium.register(id="marketsched/Owner-v0", entry_point="marketsched.env:OwnerEnv")
