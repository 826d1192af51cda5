"""What is proven of credits, counted on logs: increasing maps of one owner's values, and waits against their bound.

    python benchmarks/credits_proofs.py                      # four logs, 160 maps, more than 10^5 regular jobs
    python benchmarks/credits_proofs.py --clusters openb dlrm --dlrm disaggregated_DLRM_trace.csv --owners 4

Maps: on four logs the values of each of the ten busiest owners, a node and mean round, are multiplied by 1024, raised
exponentially, replaced by ranks, and mapped at random, always increasing. Every event, every upgrade and every purse
has to be equal bit for bit. Waits: each regular job starts within the bound that was known when it became regular, also
where all purses are full at the start, where little is carried over, and where less of the machine is sold; and where
all owners hold their jobs back and save, to spend everything at once (``--gather`` rounds at a time).

With ``--clusters`` the same is counted of `cluster-credits` on the markets of `benchmarks/cluster_owners.py` at load
1.3, with purses by pool and with one purse; values are mapped over the largest share of the cluster and the mean.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

import cluster_owners
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import DeadlineValue
from marketsched.mechanisms.credits.credits import Credits
from marketsched.worlds.workload import Workload
from owners_table import CELLS, market_at, waited_beyond

LOGS, OWNERS = ("hpc2n", "nasa", "openb", "lublin"), 10
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"start": 1.0},
    {"income": 0.5, "carry_rounds": 96.0},
    {"income": 0.5, "carry_rounds": 96.0, "start": 1.0, "margin": 4.0},
    {"income": 0.3, "patience": 0, "margin": 4.0},
)

SAVED: dict[str, Any] = {"income": 0.5, "carry_rounds": 336.0, "start": 1.0, "margin": 8.0, "patience": 0}


def played(
    workload: Workload, jobs: list[Job], highest: float, *, later: int = 0, **rules: Any
) -> tuple[list[Any], Credits]:
    """Play credits, for ``later`` more rounds than the log has; return the events and the mechanism."""
    horizon = workload.horizon + later
    sizes = ("max_concurrency", "max_duration", "max_delay")
    market = Credits(
        workload.capacity,
        horizon,
        owners=workload.owners,
        max_value=highest,
        **{name: getattr(workload, name) for name in sizes},
        **rules,
    )
    return play(MarketLoop(market), TruthfulOwners(jobs), horizon), market


def work_of(job: Job) -> float:
    """Return nodes times announced mean rounds."""
    law = job.truth.law
    return job.truth.concurrency * float(law.probabilities @ law.durations / law.probabilities.sum())


def maps(densities: NDArray[np.float64], rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Yield increasing maps of rising densities."""
    yield densities * 1024
    yield np.expm1(densities / densities.max() * 5)
    yield np.arange(1.0, densities.size + 1)
    yield np.cumsum(rng.exponential(1.0, densities.size) ** 4 + 1e-6)


def mapped(
    jobs: list[Job], works: NDArray[np.float64], owners: int, rng: np.random.Generator
) -> Iterator[tuple[list[Job], bool]]:
    """Yield the jobs with values of one of the busiest owners mapped, and whether rounding kept the map increasing.

    Mapped are values over ``works``, of the jobs in order.
    """
    for owner, _ in Counter(job.owner for job in jobs).most_common(owners):
        mine = [i for i, job in enumerate(jobs) if job.owner == owner]
        own = np.array([jobs[i].truth.value.highest for i in mine]) / works[mine]
        levels, place = np.unique(own, return_inverse=True)
        for levelled in maps(levels, rng):
            values = levelled[place] * works[mine]
            lied = list(jobs)
            for i, value in zip(mine, values.tolist(), strict=True):
                truth = jobs[i].truth
                curve = DeadlineValue(value, truth.value.last)
                lied[i] = replace(jobs[i], truth=truth.moved(truth.birth, curve))
            order = np.argsort(values / works[mine], kind="stable")
            yield lied, bool((order == np.argsort(own, kind="stable")).all())


def changed_by_maps(name: str, seed: int, owners: int) -> tuple[int, int, int]:
    """Return maps tried, those that changed anything, and those that rounding made no increasing map."""
    workload = market_at(name, 1.0, seed, 0)
    jobs, rng = list(workload.jobs), np.random.default_rng(seed)
    before = state_of(*played(workload, jobs, 1e15))
    tried = changed = broken = 0
    for lied, increasing in mapped(jobs, np.array([work_of(job) for job in jobs]), owners, rng):
        tried += 1
        broken += not increasing
        changed += state_of(*played(workload, lied, 1e15)) != before
    return tried, changed, broken


def changed_on_cluster(world: cluster_owners.World, owners: int, rule: str, rng: np.random.Generator) -> str:
    """Return in words how many maps changed anything on a cluster, and how regular jobs waited."""
    counts, *before = cluster_owners.played(world, rule)
    tried = changed = broken = 0
    for lied, increasing in mapped(world.jobs, cluster_owners.works_of(world), owners, rng):
        tried += 1
        broken += not increasing
        _, *after = cluster_owners.played(world._replace(jobs=lied), rule)
        changed += cluster_state(*after) != cluster_state(*before)
    return (
        f"{tried} maps, {changed} changed anything ({broken} are no increasing map after rounding); "
        f"{counts['regular']:,} regular jobs, {counts['bounded']:,} with a bound, {counts['beyond']} beyond it"
    )


def cluster_state(market: Any, events: list[Any]) -> tuple[Any, ...]:
    """Return all that must not change, but importance itself."""
    upgrades = [replace(each, threshold=0.0) for each in market.upgrades]
    happened = [(each.round, each.kind, each.job, each.completion) for each in events]
    return happened, repr(upgrades), [(each.held.tolist(), each.spent.tolist()) for each in market.pools.every]


def state_of(events: list[Any], market: Credits) -> tuple[Any, ...]:
    """Return all that must not change."""
    upgrades = [(x.job, x.round, x.cost, x.purse, x.bound, x.started, x.unpaid) for x in market.upgrades]
    return events, upgrades, market.purses.held.tolist(), market.purses.spent.tolist()


def gathered(jobs: list[Job], rounds: int) -> list[Job]:
    """Return the jobs as all come in the last of so many rounds, with deadlines that are as much later."""
    found = []
    for job in jobs:
        assert job.arrival is not None
        later = -job.truth.birth % rounds
        curve = DeadlineValue(job.truth.value.highest, job.truth.value.last + later)
        truth = job.truth.moved(job.truth.birth + later, curve)
        found.append(replace(job, truth=truth, arrival=job.arrival + later))
    return sorted(found, key=lambda job: job.truth.birth)


def counted(rules: dict[str, Any], seeds: list[int], gather: int = 0) -> tuple[list[Any], list[Any]]:
    """Play the cells under these rules; return the upgrades, and those that waited beyond their bound."""
    upgrades: list[Any] = []
    late: list[Any] = []
    for name, load in CELLS:
        for seed in seeds:
            workload = market_at(name, load, seed, 0)
            jobs = list(workload.jobs)
            jobs = gathered(jobs, gather) if gather else jobs
            _, market = played(workload, jobs, workload.max_value, later=gather, **rules)
            upgrades += market.upgrades
            late += [each for each in market.upgrades if waited_beyond(each, market.round)]
    return upgrades, late


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[970, 971])
    parser.add_argument(
        "--gather", nargs="*", type=int, default=[96, 336], help="rounds of which all jobs come at once"
    )
    parser.add_argument("--owners", type=int, default=OWNERS, help="whose values are mapped")
    parser.add_argument("--clusters", nargs="+", choices=list(cluster_owners.WORLDS), default=[])
    parser.add_argument("--jobs", type=int, default=0, help="the first so many of a cluster; 0: all")
    parser.add_argument("--dlrm", default="", help="disaggregated_DLRM_trace.csv")
    arguments = parser.parse_args()
    for name in arguments.clusters:
        seed = arguments.seeds[0]
        world = cluster_owners.first_of(cluster_owners.world_at(name, 1.3, seed, arguments.dlrm), arguments.jobs)
        for rule in ("credits, pool", "credits, one"):
            told = changed_on_cluster(world, arguments.owners, rule, np.random.default_rng(seed))
            print(f"{name}, {rule}: {told}", flush=True)
    if arguments.clusters:
        return
    for name in LOGS:
        tried, changed, broken = changed_by_maps(name, arguments.seeds[0], arguments.owners)
        told = f"{changed} changed anything ({broken} are no increasing map after rounding)"
        print(f"{name}: {tried} maps, {told}", flush=True)
    total = bounded = beyond = 0
    plays = [(rules, 0) for rules in SETTINGS] + [(SAVED, rounds) for rounds in arguments.gather]
    for rules, gather in plays:
        upgrades, late = counted(rules, arguments.seeds, gather)
        waits = [each.started - each.round for each in upgrades if each.started]
        with_bound = sum(bool(np.isfinite(each.bound)) for each in upgrades)
        total, bounded, beyond = total + len(upgrades), bounded + with_bound, beyond + len(late)
        told = f"mean {np.mean(waits):.2f}, 99th percentile {np.quantile(waits, 0.99):.0f}, longest {max(waits)}"
        what = f"{rules or 'defaults'}{f', all jobs of {gather} rounds at once' if gather else ''}"
        print(f"{what}: {len(upgrades):,} regular jobs, {with_bound:,} with a bound, {len(late)} beyond")
        print(f"  waits, rounds: {told}", flush=True)
    print(f"together {total:,} regular jobs, {bounded:,} with a bound, {beyond} beyond it")


if __name__ == "__main__":
    main()
