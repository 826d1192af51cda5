"""What bid prices on a cluster cost: processor seconds of a run, and of serving one job among many nodes.

    python benchmarks/cluster_cost.py [--jobs 12000] [--load 1.3] [--ahead 144] [--forecast history] [--nodes 1500]

The first part plays openb's pods on its kinds of nodes (MARKETSCHED_DATA). The second serves jobs at price 0 on so many
nodes of the same kinds until every pool is congested, and counts those served from then on.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import EventKind
from marketsched.mechanisms.resources.bid_price import ClusterBidPrice
from marketsched.mechanisms.resources.posted import ClusterFirstCome
from marketsched.worlds.openb import OpenbCluster
from marketsched.worlds.workload import Workload

SERVED = 36  # rounds in which jobs arrive to be served; what is asked for is 1.3 times what there is
SIZES = ("capacity", "horizon", "max_concurrency", "max_duration", "max_value", "max_delay", "cluster")


def sizes_of(workload: Workload) -> dict[str, Any]:
    """Return the sizes that mechanisms take."""
    return {name: getattr(workload, name) for name in SIZES}


def whole_run(jobs: int, load: float, ahead: int, forecast: str, seed: int) -> None:
    """Play a market once to compile, and once more to measure."""
    parameters = OpenbCluster(jobs=jobs, load=load)
    small = OpenbCluster(jobs=300, load=load, rounds=60)
    for each in (small, parameters):
        workload = each.build(np.random.default_rng(seed), None)
        more: dict[str, Any] = {
            "forecast": "laws",
            "laws": each.statement_laws(workload, np.random.default_rng(seed), None),
        }
        market = ClusterBidPrice(**sizes_of(workload), ahead=ahead, **(more if forecast == "laws" else {}), rng=seed)
        prices, place = 0.0, market._prices.announce

        def timed(now: int, calendars: Any, place: Any = place) -> None:
            nonlocal prices
            began = time.process_time()
            place(now, calendars)
            prices += time.process_time() - began

        market._prices.announce = timed  # type: ignore[method-assign]
        began = time.process_time()
        events = play(MarketLoop(market), TruthfulOwners(workload.jobs), workload.horizon)
        seconds = time.process_time() - began
    cluster, started = workload.cluster, sum(event.kind is EventKind.START for event in events)
    assert cluster is not None
    held = sum(each.nbytes for each in market._calendars.free)
    print(
        f"{jobs} jobs, {len(cluster.pool_names)} pools, {len(cluster.resources)} resources, {cluster.nodes} nodes, "
        f"{ahead} rounds ahead, {forecast}: {seconds:.2f} s of processor time ({1000 * seconds / jobs:.2f} ms a job), "
        f"{prices / seconds:.0%} of it prices; {started} jobs served; calendars {held / 1e6:.1f} MB"
    )


def serving(nodes: int, seed: int) -> None:
    """Serve jobs that arrive at once, at price 0, and measure the second half: by then much is taken."""
    parameters = OpenbCluster(jobs=round(6_000 * nodes / 22 * SERVED / 432), load=1.3, rounds=SERVED)
    workload = parameters.build(np.random.default_rng(seed), None)
    assert workload.cluster is not None
    market = ClusterFirstCome(**sizes_of(workload))
    seconds: list[float] = []
    serve = market._serve_one

    def timed(x: Any, known: Any) -> float:
        began = time.process_time()
        lost = serve(x, known)
        seconds.append(time.process_time() - began)
        return lost

    market._serve_one = timed  # type: ignore[method-assign]
    last = workload.birth_rounds
    began = time.process_time()
    play(MarketLoop(market), TruthfulOwners(workload.jobs), last)
    whole = time.process_time() - began
    gpus = market.cluster.layout.pool_size[:, 2]
    free = float(market._calendars.pool_free(last, 1)[:, 2, 0].sum() / gpus.sum())
    late = 1e6 * np.array(seconds[len(seconds) // 2 :])
    print(
        f"{workload.cluster.nodes} nodes, {len(seconds)} jobs at price 0, {1 - free:.0%} of the GPUs taken at the end: "
        f"to serve one of the later half takes {np.median(late):.0f} us (median), {late.mean():.0f} (mean), "
        f"{np.quantile(late, 0.99):.0f} (99 %) of processor time; "
        f"the whole market {1000 * whole / len(seconds):.2f} ms a job"
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=12_000)
    parser.add_argument("--load", type=float, default=1.3)
    parser.add_argument("--ahead", type=int, default=144)
    parser.add_argument("--forecast", choices=("history", "laws"), default="history")
    parser.add_argument("--nodes", type=int, default=1_500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    whole_run(given.jobs, given.load, given.ahead, given.forecast, given.seed)
    serving(given.nodes, given.seed)


if __name__ == "__main__":
    main()
