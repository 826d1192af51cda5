"""One visitor's market: built from settings, played round by round, looked at in between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.agents.lies import Truthful
from marketsched.agents.market import Market
from marketsched.agents.result import RunResult
from marketsched.agents.setup import MarketSetup
from marketsched.config.scenario import Scenario
from marketsched.dashboard.reasons import Reason, WatchedMechanism
from marketsched.dashboard.settings import Settings, apply
from marketsched.dashboard.view import TRUTHFUL, MarketView, view_of
from marketsched.mechanisms.legal import Positive, legal
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.play.hindsight import load_asked
from marketsched.relaxed_lp.duality import dual_bound


def bound_by_round(jobs: RealisedJobs, capacity: int, prices: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return the bound on the welfare of all that is done by the end of rounds 1 .. T, credits, shape (T,).

    For any prices :math:`\lambda \ge 0`, (29) of the jobs bounds every schedule in hindsight; of schedules that are
    done by the end of round t, the same weak duality gives

    .. math:: D_t(\lambda) = C \sum_{u \le t} \lambda_u
       + \sum_j \max\Big(0, \max_{s + d_j - 1 \le t} V_j(s + d_j) - c_j \sum_{u=s}^{s+d_j-1} \lambda_u\Big)

    ``capacity`` is C, nodes; wider jobs are left out, for no schedule runs them. ``prices`` are credits per node and
    round, >= 0, of shape (T,), round 1 first.
    """
    before = np.concatenate([[0.0], np.cumsum(prices)])  # before[t]: of rounds 1 .. t
    growth = np.zeros(jobs.horizon + 1)
    for j in np.flatnonzero(jobs.useful & (jobs.concurrency <= capacity)).tolist():
        values = jobs.values[jobs.offsets[j] : jobs.offsets[j + 1]]
        first, d = int(jobs.arrivals[j]) - 1, int(jobs.durations[j])  # rounds before the start, and of the run
        ends = before[first + d : first + d + values.size]
        surplus = values - jobs.concurrency[j] * (ends - before[first : first + values.size])
        best = np.maximum.accumulate(np.maximum(surplus, 0.0))
        growth[first + d : first + d + values.size] += np.diff(best, prepend=0.0)
    bound: NDArray[np.float64] = capacity * before[1:] + np.cumsum(growth)[1:]
    return bound


_LOAD_STREAM = 0x10AD  # of the draws that decide which jobs are there once more


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """A job, why it was placed where it was, and what became of it.

    ``outcome`` is its row of the jobs table so far; ``truth_values`` what each start of the reason
    is really worth to the owner.
    """

    reason: Reason
    owner: str
    strategy: str
    outcome: dict[str, Any]
    truth_values: NDArray[np.float64]


class Session:
    """A market of the dashboard, as `marketsched run` would play it with the same settings.

    Parameters are those of `Player`. Raises MarketschedError if the scenario cannot be built with these settings.
    """

    def __init__(self, base: Scenario, settings: Settings, *, data: str | PathLike[str] | None = None) -> None:
        self.settings = settings
        rng = np.random.default_rng(np.random.SeedSequence(settings.seed))
        setup = apply(settings, base).setup(rng, data=data)
        if settings.load != 100.0:
            stream = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(_LOAD_STREAM,)))
            setup = replace(setup, jobs=scaled_jobs(setup.jobs, settings.load / 100, stream))
        happens = {job.name: (job.arrival, job.signal) for job in setup.jobs}
        self._watched = WatchedMechanism(setup.mechanism, setup.max_delay, happens)
        self.market = Market(replace(setup, mechanism=self._watched), rng)
        self._asked = load_asked(setup)
        self._strategies = _strategies(setup, settings)
        self._places = {job.name: i for i, job in enumerate(setup.jobs)}
        self._bound: NDArray[np.float64] | None = None
        self._tables: RunResult | None = None

    def step(self, rounds: int = 1) -> None:
        """Play up to ``rounds`` rounds; nothing happens after the last one."""
        for _ in range(rounds):
            if not self.market.running:
                return
            self._tables = None
            self.market.step()

    def compute_bound(self) -> None:
        """Bound the welfare of every schedule, by round; takes seconds with thousands of jobs."""
        setup = self.market.setup
        jobs = RealisedJobs.build(
            ((job.truth, job.arrival, job.duration) for job in setup.jobs),
            horizon=setup.horizon,
            max_delay=setup.max_delay,
            max_duration=setup.public.max_duration,
        )
        prices = dual_bound(jobs, setup.capacity, setup.horizon).prices
        self._bound = bound_by_round(jobs, setup.capacity, prices)

    def view(self) -> MarketView:
        """Return what there is to see now."""
        return view_of(
            self.market,
            self._result(),
            mechanism=self.settings.mechanism,
            asked=self._asked,
            strategies=self._strategies,
            bound=self._bound,
        )

    def story(self, name: str) -> Story | None:
        """Return why the job called ``name`` was placed where it was; None: no such job was submitted yet."""
        reason = self._watched.reasons.get(name)
        if reason is None:
            return None
        place = self._places[name if name in self._places else name[:-1]]
        job = self.market.setup.jobs[place]
        row = self._result().jobs.iloc[place]
        durations = reason.report.law.durations
        known = job.duration if reason.foreseen else int(durations.min())
        ends = reason.starts + known
        useful = ends < job.truth.birth + self.market.setup.max_delay
        values = np.array([float(job.truth.value(end)) for end in ends.tolist()])
        return Story(
            reason=reason,
            owner=job.owner,
            strategy=self._strategies[job.owner],
            outcome={str(key): None if pd.isna(value) else value for key, value in row.items()},
            truth_values=np.where(useful, values, 0.0),
        )

    def _result(self) -> RunResult:
        if self._tables is None:
            self._tables = self.market.result()
        return self._tables


def _strategies(setup: MarketSetup, settings: Settings) -> dict[str, str]:
    """Return what each owner's strategy is called."""
    name = f"{settings.lie} {settings.amount:g}"
    return {job.owner: TRUTHFUL if isinstance(setup.strategy_of(job), Truthful) else name for job in setup.jobs}


@legal
def scaled_jobs(jobs: Sequence[Job], load: Positive, rng: np.random.Generator) -> list[Job]:
    """Return ``jobs``, which are in order of submission, with about ``load`` times as many.

    Each job is there ``floor(load)`` times, and a share of them, drawn by ``rng`` without replacement, once more, so
    that the number of jobs is ``round(load * n_jobs)`` up to one. A copy is a job of the same owner that turns out the
    same; it stands behind its original, and is called ``"<name>~2"``.
    """
    whole = math.floor(load)
    chosen = np.zeros(len(jobs), dtype=np.int64)
    chosen[rng.permutation(len(jobs))[: round((load - whole) * len(jobs))]] = 1
    names = {job.name for job in jobs}
    scaled: list[Job] = []
    for job, more in zip(jobs, chosen.tolist(), strict=True):
        for copy in range(whole + more):
            if copy == 0:
                scaled.append(job)
                continue
            name = f"{job.name}~{copy + 1}"
            while name in names:  # a trace may name its jobs as it likes
                name += "~"
            names.add(name)
            scaled.append(replace(job, name=name))
    return scaled
