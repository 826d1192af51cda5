"""What reports do in `two-offers` on logs: whether any moves a path, and what fixed lies gain.

    python benchmarks/offers_truth.py paths [--logs hpc2n nasa openb lublin] [--jobs 20] [--seeds 30 31 32 33]
    python benchmarks/offers_truth.py gains ...
    python benchmarks/offers_truth.py conduct --logs hpc2n nasa philly openb lublin google29 [--owners 8] ...

``paths``: a job is made to take one entry, spare and regular with patience 0, 8 and 64, whatever it reports. Under each
other value, law or deadline everything that happens until it leaves, to itself and to all others, has to be the same,
event for event. ``gains``: the job chooses, as its report has it, or takes the other class or another patience; printed
is the mean of what it gains over the truth, in percent of the mean utility, with a 95 % interval over jobs. A gain is
clear of 0 where it is so at a confidence of 95 % that is split among all lies. All others report truly, and runs take
what they took. ``conduct``: what `marketsched audit conduct` plays, at the same load: later arrivals, identities,
further jobs, jobs that agree to no wait, and what owners of several jobs do with all of them.
"""

from __future__ import annotations

import argparse
import copy
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from logs_table import LOGS, log_of, made
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import DeadlineValue, Event, EventKind, StatementOfWork, TwoOffers
from marketsched.mechanisms.offers.patience import POSTED
from marketsched.results.paired_statistics import spread
from marketsched.truthfulness.conduct.all_jobs import VALUE
from marketsched.truthfulness.conduct.conduct_audit import conduct_table
from marketsched.truthfulness.conduct.conduct_gains import play_conducts
from marketsched.worlds.logs.market import Window, market_of
from marketsched.worlds.logs.rule import LogRule
from marketsched.worlds.workload import Workload

LOAD = 1.1
LAST = 10**9


Entry = tuple[int, int]  # class and column of the menu
Change = Callable[[Entry], Entry]  # of the entry that a job would choose


class Made(TwoOffers):
    """One job takes another entry than it would choose, whatever it reports."""

    watched: Any = None
    change: Change | None = None

    def _preferred(self, x: Any, values: NDArray[np.float64]) -> Entry | None:
        own = super()._preferred(x, values)
        if x.job != self.watched or self.change is None:
            return own
        return self.change((0, 0) if own is None else own)


def at_half(entry: Entry) -> Entry:
    """Return the entry of half the patience."""
    return entry[0], int(np.searchsorted(POSTED, POSTED[entry[1]] / 2))


ENTRIES: dict[str, Change] = {
    "the other class": lambda entry: (1 - entry[0], entry[1]),
    "no patience": lambda entry: (entry[0], 0),
    "half the patience": at_half,
    "regular without patience": lambda entry: (1, 0),
}
FORCED = [(offer, int(np.searchsorted(POSTED, rounds))) for offer in (0, 1) for rounds in (0, 8, 64)]


class Owners(TruthfulOwners):
    """Truthful owners but one, who reports something else."""

    def __init__(self, jobs: Sequence[Job], reports: Mapping[str, StatementOfWork]) -> None:
        super().__init__(jobs)
        self._reports = reports

    def submit(self, job: Job, market: MarketLoop) -> None:
        """Submit one job."""
        report = self._reports.get(job.name, job.truth)
        market.submit(job.name, report, job, job.truth.concurrency, owner=job.owner)


def reports_of(job: Job, horizon: int, widest: int) -> Iterator[tuple[str, StatementOfWork]]:
    """Yield other reports of a job, and what they are called."""
    truth, birth = job.truth, job.truth.birth
    value, deadline = truth.value.highest, truth.value.last
    days, weights = truth.law.durations, truth.law.probabilities
    window = deadline - birth

    def stated(
        value: float = value, deadline: int = deadline, days: Any = days, weights: Any = weights, more: int = 0
    ) -> StatementOfWork:
        births = np.full(len(days), birth)
        curve = DeadlineValue(value, deadline)
        return StatementOfWork.from_arrays(
            birth, truth.concurrency + more, curve, births, days, weights, revealed=False
        )

    for factor in (0.3, 0.6, 0.8, 1.25, 2.0, 10.0):
        yield f"value x {factor:g}", stated(value=value * factor)
    for factor in (0.5, 0.8, 1.3, 2.0):
        yield f"law x {factor:g}", stated(days=np.maximum(1, np.rint(days * factor)).astype(np.int64))
    for name, d in (("duration as it will be", job.duration), ("longest", days.max()), ("shortest", days.min())):
        yield name, stated(days=np.array([d]), weights=np.ones(1))
    yield "deadline two rounds later", stated(deadline=min(horizon, deadline + 2))
    yield "deadline later by half", stated(deadline=deadline + window // 2 + 1)
    yield "deadline 10 times", stated(deadline=min(horizon, deadline + 9 * window))
    yield "deadline a quarter earlier", stated(deadline=max(birth + 1, deadline - window // 4))
    if truth.concurrency < widest:
        yield "one node more", stated(more=1)
    if 2 * truth.concurrency <= widest:
        yield "twice the nodes", stated(more=truth.concurrency)


class World:
    """A market, kept as it is before each of some rounds."""

    def __init__(self, workload: Workload, rounds: set[int]) -> None:
        self.jobs = workload.jobs
        sizes = ("capacity", "horizon", "max_concurrency", "max_duration", "max_delay")
        limits = {name: getattr(workload, name) for name in sizes}
        limits["max_duration"] *= 2  # laws that are twice as long are legal
        self.widest = limits["max_concurrency"]
        market, owners = MarketLoop(Made(**limits, max_value=20 * workload.max_value)), TruthfulOwners(self.jobs)
        self.kept: dict[int, MarketLoop] = {}
        while market.now <= max(rounds):
            if market.now in rounds:
                self.kept[market.now] = copy.deepcopy(market)
            owners.act(market)
            market.clear()

    def until_it_leaves(
        self, job: Job, report: StatementOfWork | None, change: Change | None
    ) -> tuple[list[Event], int]:
        """Return what happens from the job's birth until it leaves, and the round of that."""
        market = copy.deepcopy(self.kept[job.truth.birth])
        mechanism: Any = market.mechanism
        mechanism.watched, mechanism.change = job.name, change
        owners, events = Owners(self.jobs, {} if report is None else {job.name: report}), list[Event]()
        while market.now <= mechanism.horizon:
            owners.act(market)
            events += market.clear()
            if job.name not in market.entries:
                return events, market.now - 1
        return events, LAST


def moved_paths(world: World, job: Job, horizon: int) -> tuple[int, int]:
    """Return how many reports were made, and how many moved anything."""
    made = moved = 0
    for entry in FORCED:

        def change(_: Entry, entry: Entry = entry) -> Entry:
            return entry

        told, left = world.until_it_leaves(job, None, change)
        for name, report in reports_of(job, horizon, world.widest):
            if "node" in name:
                continue
            said, gone = world.until_it_leaves(job, report, change)
            until = min(left, gone)
            made += 1
            moved += [e for e in told if e.round < until] != [e for e in said if e.round < until]
    return made, moved


def utility(events: Sequence[Event], job: Job) -> float:
    """Return true value less payment."""
    done = [e for e in events if e.job == job.name and e.kind is EventKind.COMPLETE]
    return sum(float(job.truth.value(e.completion or 0)) - e.payment for e in done)


def workload_of(name: str, runs: int, seed: int) -> Workload:
    """Return the market of the last runs of a log, at the load of these figures."""
    window = Window(most_jobs=runs, capacity=LOGS[name][1])
    stretch = market_of(log_of(name, 0), window, LogRule(), rng=seed).load / LOAD
    return market_of(log_of(name, 0), replace(window, stretch=stretch), LogRule(), rng=seed)


def conducts(name: str, workloads: Mapping[int, Workload], jobs: int, owners: int) -> pd.DataFrame:
    """Return a row for each conduct: looked_at, gain, gain_low, gain_high, paying, pays."""
    found = []
    for seed, workload in workloads.items():
        sizes = {size: getattr(workload, size) for size in ("capacity", "horizon", "max_delay", "round_seconds")}
        setup = MarketSetup(name, workload.jobs, made("two-offers", workload), **sizes)
        rng = np.random.default_rng(seed)
        looked_at = [workload.jobs[i].name for i in rng.choice(len(workload.jobs), jobs, False)]
        several = pd.Series([job.owner for job in workload.jobs]).value_counts()
        past = rng.permutation(sorted(several[several > 1].index))[:owners].tolist()
        families = ("delay", "split", "ghost", "hurry", *VALUE)
        rows = play_conducts(setup, looked_at, past, delays=(1, 3, 6), families=families).rows
        found.append(pd.DataFrame(rows).assign(mechanism=name, seed=seed))
    gains = pd.concat(found, ignore_index=True)
    return conduct_table(gains.assign(gain=gains["utility"] - gains["truth"]), [name])


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["paths", "gains", "conduct"])
    parser.add_argument("--logs", nargs="+", default=["hpc2n", "nasa", "openb", "lublin"], choices=list(LOGS))
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--runs", type=int, default=700, help="last jobs of a log")
    parser.add_argument("--seeds", nargs="+", type=int, default=[30, 31, 32, 33])
    parser.add_argument("--owners", type=int, default=8, help="of several jobs, whose conduct is played")
    arguments = parser.parse_args()
    for name in arguments.logs:
        if arguments.what == "conduct":
            played = {seed: workload_of(name, arguments.runs, seed) for seed in arguments.seeds}
            for row in conducts(name, played, arguments.jobs, arguments.owners).to_dict("records"):
                half = 100 * (row["gain_high"] - row["gain"])
                print(
                    f"{name}: {row['family']}: {row['conduct']}: {100 * row['gain']:+.1f} ± {half:.1f} % of "
                    f"{row['looked_at']} ({100 * row['paying']:.0f} % gain){' PAYS' if row['pays'] else ''}",
                    flush=True,
                )
            continue
        forced = moved = 0
        truths, gains = list[float](), defaultdict[str, list[float]](list)
        for seed in arguments.seeds:
            workload = workload_of(name, arguments.runs, seed)
            rng = np.random.default_rng(seed)
            looked_at = [workload.jobs[i] for i in rng.choice(np.arange(60, arguments.runs), arguments.jobs, False)]
            world = World(workload, {job.truth.birth for job in looked_at})
            for job in looked_at:
                if arguments.what == "paths":
                    found = moved_paths(world, job, workload.horizon)
                    forced, moved = forced + found[0], moved + found[1]
                    continue
                truth = utility(world.until_it_leaves(job, None, None)[0], job)
                truths.append(truth)
                for lie, report in reports_of(job, workload.horizon, world.widest):
                    gains[lie].append(utility(world.until_it_leaves(job, report, None)[0], job) - truth)
                for lie, change in ENTRIES.items():
                    gains[lie].append(utility(world.until_it_leaves(job, None, change)[0], job) - truth)
        if arguments.what == "paths":
            print(f"{name}: {forced:,} reports, {moved} moved a path, or another job before the job left", flush=True)
            continue
        mean = float(np.mean(truths))
        print(f"{name}: {len(truths)} jobs, mean utility {mean:.1f}")
        for lie, found_gains in gains.items():
            x = np.array(found_gains)
            half = 100 * (spread(x).high - x.mean()) / mean
            clear = spread(x, 1.0 - 0.05 / len(gains)).low > 0
            ups = f"{(x > 1e-9).sum()} up, {(x < -1e-9).sum()} down{', CLEAR OF 0' if clear else ''}"
            print(f"  {lie}: {100 * x.mean() / mean:+.2f} ± {half:.2f} % ({ups})", flush=True)


if __name__ == "__main__":
    main()
