"""Repeated markets to learn in: a small contested one, and those of scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.learning import ReportMenu, value_menu
from marketsched.config.mechanism_text import mechanism_in
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.law import Requirement
from marketsched.mechanisms.legal import Count, legal
from marketsched.mechanisms.limits import SIZES
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.registry import get, get_mechanism, mechanism_names, name_of
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue
from marketsched.study.learning.repeated_market import RepeatedMarket

if TYPE_CHECKING:
    from marketsched.config.scenario import Scenario
    from marketsched.worlds.workload import Workload

HIGHEST, LOWEST = 10.0, 1.0  # credits, of a job's value
BIRTHS, PATIENCE, LONGEST = 2, 3, 3  # rounds
LIFO = ("exponential", "posted-price", "stochastic")  # a later job never changes an earlier one


@legal
def contested_market(
    mechanism: str | Callable[..., Any] = "exponential",
    *,
    n_owners: Count = 8,
    capacity: int = 3,
    days: int | None = None,
    menu: ReportMenu | None = None,
    **parameters: Any,
) -> RepeatedMarket:
    """Return a market of a few owners with one recurring job each, and too few nodes for all.

    Each day an owner's job is born in one of the first two rounds and is ready then; it takes one node
    for one, two or three rounds, equally likely, and is worth between 1 and 10 credits (uniform) if it is
    done 3 rounds after its birth at the latest. Jobs born together submit in an order that is drawn.

    Parameters
    ----------
    mechanism : str or class
        A name, or ``name:key=value:key=value`` with parameters of the mechanism (values are YAML), as in
        ``posted-price:price=2``, which has that flat posted price; or a class of one's own.
    n_owners, capacity : int
        Owners; C, nodes.
    days, menu
        As for `RepeatedMarket`.
    **parameters
        What else the mechanism takes.

    Raises
    ------
    InvalidParameterError
        If the mechanism is malformed, or refuses a parameter or this capacity.

    Examples
    --------
    >>> contested_market("pay-as-bid", n_owners=3, capacity=1).menu.names
    ('value x 0.2', 'value x 0.4', 'value x 0.6', 'value x 0.8', 'truth')
    """
    token = name_of(mechanism)
    name, changes = (token, {}) if token in mechanism_names() else mechanism_in(token)
    get("mechanism", name)  # a slip is named here, and not when the first market opens
    if name == "stochastic":
        legal = "one without, such as exponential"
        raise InvalidParameterError(f"mechanism {token!r} needs the laws of the jobs of a day", legal=legal)
    parameters = {**_parameters(token, changes), **parameters}
    check_memory(f"jobs of {n_owners} owners", 6000.0 * n_owners, "fewer owners")
    owners = tuple(f"owner-{i + 1}" for i in range(n_owners))
    horizon, max_delay = BIRTHS + PATIENCE, PATIENCE + 1
    sizes = {
        "capacity": capacity,
        "horizon": horizon,
        "max_concurrency": 1,
        "max_duration": LONGEST,
        "max_value": HIGHEST,
        "max_delay": max_delay,
    }
    market = RepeatedMarket(
        f"{n_owners} owners, {capacity} nodes, {token}",
        RegisteredMechanism(name, {**sizes, **parameters}),
        _ContestedDay(owners),
        owners,
        capacity=capacity,
        horizon=horizon,
        max_delay=max_delay,
        menu=value_menu() if menu is None else menu,
        days=days,
        nobody_later=name in LIFO and "eviction" not in parameters,
    )
    try:
        _ = market.public
    except InvalidParameterError as error:
        what = str(error).removeprefix(f"mechanism {name!r} ")
        raise InvalidParameterError(f"mechanism {token!r} on {capacity} nodes: {what}") from None
    return market


def _parameters(token: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a token changes as parameters of the mechanism."""
    for key in changes:
        if key.removeprefix("parameters.") in ("n_owners", "days", "menu", *SIZES):
            raise InvalidParameterError(f"mechanism {token!r} changes {key}: expected the same market for all")
    return {key.removeprefix("parameters."): value for key, value in changes.items()}


@dataclass(frozen=True)
class RegisteredMechanism:
    """Builds a mechanism of the registry again and again."""

    name: str
    parameters: Mapping[str, Any]

    def __call__(self, rng: np.random.Generator) -> Mechanism:
        """Return a fresh mechanism."""
        return get_mechanism(self.name, **{"rng": rng, **self.parameters})


@dataclass(frozen=True)
class _ContestedDay:
    """Draws the jobs of a day of `contested_market`."""

    owners: tuple[str, ...]

    def __call__(self, rng: np.random.Generator) -> list[Job]:
        order = rng.permutation(len(self.owners))
        births = rng.integers(1, BIRTHS + 1, size=order.size)
        values = rng.uniform(LOWEST, HIGHEST, size=order.size)
        durations = rng.integers(1, LONGEST + 1, size=order.size)
        return [
            _job(self.owners[i], int(births[i]), float(values[i]), int(durations[i]))
            for i in sorted(order.tolist(), key=lambda i: births[i])
        ]


def _job(owner: str, birth: int, value: float, duration: int) -> Job:
    cases = [Requirement(birth, d, 1 / LONGEST) for d in range(1, LONGEST + 1)]
    truth = StatementOfWork(birth, 1, DeadlineValue(value, birth + PATIENCE), cases)
    return Job(owner, owner, truth, birth, duration, duration)


def repeated_scenario(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    *,
    menu: ReportMenu | None = None,
    days: int | None = None,
    nobody_later: bool = False,
    data: str | PathLike[str] | None = None,
) -> RepeatedMarket:
    """Return the market of a scenario, held day after day with its workload drawn anew.

    The scenario's ``owners`` and ``resubmit`` are ignored. The sizes of the market are
    those of the first workload drawn.

    Parameters
    ----------
    scenario : Scenario, name, path or mapping
        Its prices must not need the laws of a day's jobs (stochastic prices).
    menu, days, nobody_later
        As for `RepeatedMarket`.
    data : path, optional
        Folder of recorded traces.

    Raises
    ------
    InvalidParameterError
        If the scenario is at fault.

    Examples
    --------
    >>> repeated_scenario("stochastic-mix").owners
    ('alarm', 'build', 'month-end', 'release', 'report', 'training')
    """
    chosen = Scenario.of(scenario, kind="market")
    draw = _ScenarioDay(chosen, data)
    first = draw.workload(np.random.default_rng(0))
    choice = chosen.mechanism
    return RepeatedMarket(
        chosen.name,
        _ScenarioFactory(chosen, first),
        draw,
        tuple(sorted({job.owner for job in first.jobs})),
        capacity=choice.capacity or first.capacity,
        horizon=choice.horizon or first.horizon,
        max_delay=choice.max_delay or first.max_delay,
        menu=value_menu() if menu is None else menu,
        days=days,
        nobody_later=nobody_later,
    )


@dataclass(frozen=True)
class _ScenarioDay:
    """Draws the workload of a scenario."""

    scenario: Scenario
    data: str | PathLike[str] | None = None

    def __call__(self, rng: np.random.Generator) -> Sequence[Job]:
        return self.workload(rng).jobs

    def workload(self, rng: np.random.Generator) -> Workload:
        """Return the workload of a day."""
        found: Workload = self.scenario.workload.build(rng, self.data)
        return found


@dataclass(frozen=True)
class _ScenarioFactory:
    """Builds the mechanism of a scenario, for a workload of its kind."""

    scenario: Scenario
    workload: Workload

    def __call__(self, rng: np.random.Generator) -> Mechanism:
        return self.scenario.mechanism.build(self.workload, rng)
