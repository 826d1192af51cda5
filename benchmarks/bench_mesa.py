"""Mesa's share: 1,000 owners for 1,000 rounds, what the mechanism takes of it, and what is left for agents.

Three markets. ``exponential``: every owner has one job, so that the mechanism does much and agents
little. ``first-come``: every owner has a new job every 20 rounds, 50,000 in all, so that all owners are
in the market all the time and the mechanism does next to nothing. ``ogasched``: the owners of 1,000 ports
over the allocation core.

*Mechanism* is the time inside its calls, taken by a clock around each. *Mesa* is the time of a model of
plain Mesa that has as many agents, created and removed in the same rounds, and as many steps, all of
which do nothing: no model could spend less. *Agents* is the rest: owners, calendars, the log, the tables,
and the clocks (two readings per call of the mechanism).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import mesa
import numpy as np

from harness import Row, benchmark
from marketsched.agents.job import Job
from marketsched.agents.market import Market
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import DeadlineValue, Mechanism, StatementOfWork, get_mechanism

OWNERS, ROUNDS = 1000, 1000
EVERY = 20  # rounds between two jobs of an owner of ``first-come``
CALLS = ("submit", "arrive", "advance", "complete", "close", "slot_prices", "committed")
REPEATS = 1
PLAYED: set[str] = set()
SECONDS = 10.0  # at most, outside the mechanism


class Watched:
    """A mechanism, and the seconds spent inside its calls."""

    def __init__(self, mechanism: Any) -> None:
        self._mechanism = mechanism
        self.seconds = 0.0
        for name in CALLS:
            if hasattr(mechanism, name):
                setattr(self, name, self._timed(getattr(mechanism, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mechanism, name)

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            begin = time.perf_counter()
            try:
                return call(*arguments)
            finally:
                self.seconds += time.perf_counter() - begin

        return timed


class BareModel(mesa.Model):
    """Plain Mesa: agents come and go, and nothing else happens."""

    def __init__(self, comings: Mapping[int, int], goings: Mapping[int, int]) -> None:
        super().__init__(rng=0)
        self.comings, self.goings = comings, goings
        self.round = 0
        self.there: list[mesa.Agent] = []

    def step(self) -> None:
        """Play one round."""
        self.round += 1
        self.there += [mesa.Agent(self) for _ in range(self.comings.get(self.round, 0))]
        leaving = self.goings.get(self.round, 0)
        for agent in self.there[:leaving]:
            agent.remove()
        del self.there[:leaving]

    def seconds(self, rounds: int) -> float:
        """Return how long so many rounds take."""
        begin = time.perf_counter()
        for _ in range(rounds):
            self.step()
        return time.perf_counter() - begin  # Mesa 3.3 keeps this model alive for ever: a benchmark may


class Measured(NamedTuple):
    """Seconds of one market: in all, inside the mechanism, and of plain Mesa."""

    total: float
    mechanism: float
    bare: float


def jobs(n_owners: int, births: Sequence[int], wait: int, rng: np.random.Generator) -> list[Job]:
    """Return a job of one node for every owner and birth, ready ``wait`` rounds later for one or two rounds."""
    made = []
    for birth, owner in sorted((birth + k % EVERY, k) for birth in births for k in range(n_owners)):
        arrival, value = birth + wait, float(rng.uniform(1, 10))
        law = [(arrival, 1, 0.5), (arrival, 2, 0.5)]
        truth = StatementOfWork(birth, 1, DeadlineValue(value, arrival + 3), law)
        made.append(Job(f"{owner}-{birth}", f"owner-{owner}", truth, arrival, 1 + owner % 2, 1 + owner % 2))
    return made


def one_job_each(rng: np.random.Generator) -> list[Job]:
    """Return a job for each owner, born all over the rounds."""
    births = np.sort(rng.integers(1, ROUNDS - EVERY, size=OWNERS)).tolist()
    return [job for birth in births for job in jobs(1, [birth], 6, rng)]


def renamed(made: Sequence[Job]) -> list[Job]:
    """Return the jobs with an owner of its own for each."""
    return [Job(f"job-{i}", f"owner-{i}", j.truth, j.arrival, j.duration, j.signal) for i, j in enumerate(made)]


def market_seconds(name: str, made: Sequence[Job], capacity: int) -> Measured:
    """Play a market to its end, tables included."""
    limits = {"max_concurrency": 1, "max_duration": 2, "max_value": 10.0, "max_delay": EVERY}
    watched = Watched(get_mechanism(name, capacity=capacity, horizon=ROUNDS, rng=np.random.default_rng(0), **limits))
    setup = MarketSetup(name, made, cast("Mechanism", watched), capacity, ROUNDS, EVERY)
    begin = time.perf_counter()
    market = Market(setup)
    result = market.run()
    total = time.perf_counter() - begin
    if result.outcome["submitted"] != len(made) or market.round != ROUNDS:
        raise RuntimeError(f"{name}: {result.outcome['submitted']} of {len(made)} jobs were submitted")
    left = result.jobs["completion"].fillna(result.jobs["removed"]).fillna(ROUNDS).clip(upper=ROUNDS)
    comings, goings = (np.bincount(x.to_numpy(dtype=np.int64)) for x in (result.jobs["submitted"], left))
    bare = BareModel(dict(enumerate(comings.tolist())), dict(enumerate(goings.tolist())))
    return Measured(total, watched.seconds, bare.seconds(ROUNDS))


def rows(name: str, play: Callable[[], Measured]) -> Iterator[Row]:
    """Yield what a market takes, medians of a few plays, and how its time is shared out."""
    if name not in PLAYED:
        PLAYED.add(name)
        play()  # compiles
    total, mechanism, bare = (statistics.median(x) for x in zip(*(play() for _ in range(REPEATS)), strict=True))
    yield Row(f"mesa.{name}.total_s", total, "s")
    yield Row(f"mesa.{name}.mechanism_s", mechanism, "s")
    yield Row(f"mesa.{name}.outside_s", total - mechanism, "s", at_most=SECONDS)
    yield Row(f"mesa.{name}.mesa_s", bare, "s")
    yield Row(f"mesa.{name}.mechanism_share", 100 * mechanism / total, "%")
    yield Row(f"mesa.{name}.mesa_share", 100 * bare / total, "%")
    yield Row(f"mesa.{name}.agents_share", 100 * (total - mechanism - bare) / total, "%")


@benchmark
def thousand_owners() -> Iterator[Row]:
    """1,000 owners for 1,000 rounds: total, mechanism, and the shares of Mesa and of our agents."""
    rng = np.random.default_rng(7)
    single, recurring = renamed(one_job_each(rng)), jobs(OWNERS, range(1, ROUNDS - 2 * EVERY, EVERY), 15, rng)
    yield from rows("exponential", lambda: market_seconds("exponential", single, 4))
    yield from rows("first-come", lambda: market_seconds("first-come", recurring, 60))


def idle_seconds(n_owners: int) -> float:
    """Return the seconds outside the mechanism of a market in which all owners wait until the end."""
    law, horizon = [(ROUNDS, 1, 1.0)], ROUNDS
    truth = StatementOfWork(1, 1, DeadlineValue(1.0, ROUNDS + 1), law)
    waiting = [Job(f"job-{i}", f"owner-{i}", truth, ROUNDS, 1, 1) for i in range(n_owners)]
    limits = {"max_concurrency": 1, "max_duration": 1, "max_value": 10.0, "max_delay": ROUNDS}
    watched = Watched(get_mechanism("first-come", capacity=n_owners, horizon=horizon, **limits))
    market = Market(MarketSetup("waiting", waiting, cast("Mechanism", watched), n_owners, horizon, ROUNDS))
    market.step()
    before, begin = watched.seconds, time.perf_counter()
    for _ in range(ROUNDS - 2):
        market.step()
    elapsed = time.perf_counter() - begin - (watched.seconds - before)
    return elapsed / (ROUNDS - 2)


@benchmark
def agents_that_wait_cost_nothing() -> Iterator[Row]:
    """A round in which 1,000 owners have nothing to do, against one in which 10 have nothing to do."""
    idle_seconds(10)
    samples = [(idle_seconds(OWNERS), idle_seconds(10)) for _ in range(7)]
    many, few = (statistics.median(x) for x in zip(*samples, strict=True))
    yield Row("mesa.idle_round.1000_owners_us", 1e6 * many, "us")
    yield Row("mesa.idle_round.1000_over_10_owners", many / few, "", at_most=1.5)
