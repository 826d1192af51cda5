"""Bounds on the best schedule of the actual outcomes, and other benchmarks of a run.

* the dual bound (29): no schedule in hindsight is worth more;
* the certificate (22), from the reports alone: valid without hindsight, but loose;
* first-come-first-served at a flat price, with durations known: at price 0 and at the price that is
  best in hindsight.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from marketsched.agents.market_run import MarketRun
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.auctions.flat_price import best_first_come, first_come_welfare
from marketsched.mechanisms.promises import printed_promises
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.play.on_clusters import cluster_bounds, resource_load
from marketsched.relaxed_lp.duality import STEPS, dual_bound

MOST_LOOKS = 600_000_000  # starts that a dual bound looks at, over all its steps
MOST_SERVED = 50_000_000  # jobs that first come, first served goes through, over all prices tried
FEWEST_STEPS = 100  # of it, however many starts there are: .2 % above 600 of them in an overloaded market


def realised(setup: MarketSetup) -> RealisedJobs:
    """Return the jobs of a market as they really turn out."""
    horizon, max_delay, longest = setup.horizon, setup.max_delay, setup.mechanism.max_duration
    columns = setup.table.columns(max_delay)
    if columns is not None:
        return RealisedJobs.of_columns(columns, horizon=horizon, max_delay=max_delay, max_duration=longest)
    rows = ((job.truth, job.arrival, job.duration) for job in setup.jobs)
    return RealisedJobs.build(rows, horizon=horizon, max_delay=max_delay, max_duration=longest)


def bounds_of(market: MarketRun) -> dict[str, Any]:
    """Return the bounds of the module's docstring for a market that was played to its end.

    ``bounds`` holds the dual bound and the certificate, ``first_come`` what first-come-first-served earns.
    """
    setup = market.setup
    cluster = setup.cluster
    if cluster is not None:
        return cluster_bounds(setup, cluster)
    jobs = realised(setup)
    prices = _final_prices(market)
    # Any number of steps gives a valid bound; with a hundred thousand jobs 600 of them take as long as the market.
    steps = max(FEWEST_STEPS, min(STEPS, MOST_LOOKS // max(int(jobs.offsets[-1]), 1)))
    bound = dual_bound(jobs, setup.capacity, setup.horizon, start_prices=prices, steps=steps)
    bounds: dict[str, Any] = {"dual": bound.value}
    found = setup.mechanism.certificate()
    if found is not None:
        bounds |= {
            "certificate": found.bound,
            "certificate_valid": found.valid,
            "certificate_reason": found.reason,
            "certificate_jobs": found.in_j_prime,
            "certificate_of": found.n_jobs,
        }
    free = first_come_welfare(jobs, setup.capacity, setup.horizon, 0.0)
    # Above 384,000 jobs the best price is looked for less closely: it is a search in any case.
    close = jobs.n_jobs * 130 <= MOST_SERVED
    grid, rounds, within = (32, None, None) if close else (16, 0, 1.02)
    best = best_first_come(jobs, setup.capacity, setup.horizon, grid=grid, rounds=rounds, within=within)
    first_come: dict[str, Any] = {
        "welfare_at_zero": free.welfare,
        "welfare_at_best": best.welfare,
        "best_price": best.price,
        "revenue_at_best": best.revenue,
        "completed_at_zero": int((free.starts > 0).sum()),
        "completed_at_best": int((best.starts > 0).sum()),
    }
    if not setup.table.revealed:
        first_come["knows_durations"] = True  # which the market does not
    return {"bounds": bounds, "first_come": first_come}


def _final_prices(market: MarketRun) -> Any:
    """Return the final slot prices as a start for the bound, if there are finite ones."""
    found = market.mechanism.slot_prices(1, market.setup.horizon)
    if found is None:
        return None
    prices = np.asarray(found, dtype=np.float64)
    return prices if np.isfinite(prices).all() else None


def shares(summary: Mapping[str, Any], best: Mapping[str, Any], *, on_cluster: bool = False) -> dict[str, float]:
    """Return the figures that runs of different size can be compared by.

    ``on_cluster``: jobs request tasks, several of which may share a node, so that no sum of them is a share of nodes.
    """
    found: dict[str, float] = {}

    def add(name: str, part: float | None, whole: float | None) -> None:
        if part is not None and whole:
            found[name] = part / whole

    welfare, counts = summary["welfare"], summary.get("mechanism", {})
    add("completed_share", summary["completed"], summary["jobs"])
    add("revenue_share", summary["revenue"], welfare)
    if not on_cluster:
        add("peak_demand_share", summary["peak_demand"], summary["capacity"])
    add("estimates_positive_share", counts.get("estimates_positive"), counts.get("estimates"))
    add("estimates_zeroed_share", counts.get("estimates_zeroed"), counts.get("estimates_positive"))
    bounds, first_come = best.get("bounds", {}), best.get("first_come", {})
    add("share_of_best", welfare, bounds.get("dual"))
    add("certificate_over_welfare", bounds.get("certificate"), welfare)
    add("first_come_share", first_come.get("welfare_at_zero"), bounds.get("dual"))
    add("first_come_best_share", first_come.get("welfare_at_best"), bounds.get("dual"))
    return found


def load_asked(setup: MarketSetup) -> float:
    """Return the node-rounds that jobs really need, as a share of those there are until the last birth.

    On a cluster: their requests for the scarcest resource.
    """
    cluster = setup.cluster
    if cluster is not None:
        return resource_load(setup, cluster)
    jobs = setup.table
    return jobs.work / (setup.capacity * jobs.last_birth)


def proven(setup: MarketSetup) -> str:
    """Say which promises the theorems make for a market like this one."""
    theorems = setup.mechanism.theorems(revealed=setup.table.revealed)
    if theorems is not None:
        return theorems
    standing = setup.mechanism.standing
    if standing.status != "not stated":
        promises = printed_promises(setup.mechanism, setup.table.disclosure)
        return f"what this mechanism promises ({standing.status}): {promises}"
    return "no ratio to the best schedule is proven for this mechanism"
