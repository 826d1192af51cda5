"""Bounds on the best schedule of the actual outcomes, and other benchmarks of a run.

* the best schedule in hindsight, enclosed between a schedule and a bound (`optimum_bracket`);
* the dual bound (29): no schedule in hindsight is worth more;
* the certificate (22), from the reports alone: valid without hindsight, but loose;
* first-come-first-served at a flat price, with durations known: at price 0 and at the price that is
  best in hindsight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from marketsched.agents.market_run import MarketRun
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.auctions.flat_price import best_first_come, first_come_welfare
from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism
from marketsched.mechanisms.promises import printed_promises
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.play.on_clusters import cluster_bounds, cluster_of, resource_load
from marketsched.relaxed_lp import hindsight_optimum, realised_bound
from marketsched.relaxed_lp.duality import STEPS, dual_bound

OptimumKind = Literal["exact", "milp", "lp", "dual"]

MOST_EXACT = 400_000  # node-rounds of all starts together up to which the exact optimum is tried
MOST_LP = 4_000_000  # the same for the linear program
MOST_LOOKS = 600_000_000  # starts that a dual bound looks at, over all its steps
MOST_SERVED = 50_000_000  # jobs that first come, first served goes through, over all prices tried
FEWEST_STEPS = 100  # of it, however many starts there are: .2 % above 600 of them in an overloaded market


@dataclass(frozen=True, slots=True)
class Bracket:
    """OPT lies in [low, high], credits. ``kind`` says where ``high`` comes from.

    ``exact``: the optimum, proven, and ``low`` the same. ``milp``: the bound of a search that was
    stopped. ``lp``: the linear program (11). ``dual``: the dual bound (29).
    """

    low: float
    high: float
    kind: OptimumKind


def optimum_bracket(jobs: RealisedJobs, capacity: int, *, seconds: float, start_prices: Any = None) -> Bracket:
    """Return an interval that holds the welfare of the best schedule in hindsight.

    Parameters
    ----------
    jobs : RealisedJobs
        What really happened.
    capacity : int
        C, nodes.
    seconds : float
        How long the exact optimum may take, and then the linear program; 0: neither is tried, and
        the dual bound (29) has the word.
    start_prices : array_like of float, shape (horizon,), optional
        Where the dual bound may start, too.
    """
    horizon = jobs.horizon
    low = max(
        best_first_come(jobs, capacity, horizon).welfare, first_come_welfare(jobs, capacity, horizon, 0.0).welfare
    )
    high, kind = dual_bound(jobs, capacity, horizon, start_prices=start_prices).value, "dual"
    size = int((jobs.offsets[1:] - jobs.offsets[:-1]) @ jobs.durations)
    if seconds > 0 and 0 < size <= MOST_EXACT:
        best = hindsight_optimum(jobs, capacity, horizon, time_limit=seconds)
        if best.proven:
            return Bracket(best.value, best.value, "exact")
        low = max(low, best.value)
        if best.bound < high:
            high, kind = best.bound, "milp"
    elif seconds > 0 and 0 < size <= MOST_LP:
        bound = realised_bound(jobs, capacity, horizon, time_limit=seconds)
        if bound.dual_value < high:
            high, kind = bound.dual_value, "lp"
    return Bracket(min(low, high), high, kind)  # type: ignore[arg-type]


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
    cluster = cluster_of(setup)
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
    search = {} if close else {"grid": 16, "rounds": 2}
    best = best_first_come(jobs, setup.capacity, setup.horizon, **search)
    first_come = {
        "welfare_at_zero": free.welfare,
        "welfare_at_best": best.welfare,
        "best_price": best.price,
        "revenue_at_best": best.revenue,
        "completed_at_zero": int((free.starts > 0).sum()),
        "completed_at_best": int((best.starts > 0).sum()),
    }
    return {"bounds": bounds, "first_come": first_come}


def _final_prices(market: MarketRun) -> Any:
    """Return the final slot prices as a start for the bound, if there are finite ones."""
    found = market.mechanism.slot_prices(1, market.setup.horizon)
    if found is None:
        return None
    prices = np.asarray(found, dtype=np.float64)
    return prices if np.isfinite(prices).all() else None


def shares(summary: Mapping[str, Any], best: Mapping[str, Any]) -> dict[str, float]:
    """Return the figures that runs of different size can be compared by."""
    found: dict[str, float] = {}

    def add(name: str, part: float | None, whole: float | None) -> None:
        if part is not None and whole:
            found[name] = part / whole

    welfare, counts = summary["welfare"], summary.get("mechanism", {})
    add("completed_share", summary["completed"], summary["jobs"])
    add("revenue_share", summary["revenue"], welfare)
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
    cluster = cluster_of(setup)
    if cluster is not None:
        return resource_load(setup, cluster)
    jobs = setup.table
    return jobs.work / (setup.capacity * jobs.last_birth)


def proven(setup: MarketSetup) -> str:
    """Say which promises the theorems make for a market like this one."""
    if not isinstance(setup.mechanism, PostedPriceMechanism):
        standing = setup.mechanism.standing
        if standing.status != "not stated":
            return f"what this mechanism promises ({standing.status}): {printed_promises(setup.mechanism)}"
        return "no ratio to the best schedule is proven for this mechanism"
    if setup.table.revealed:
        certificate = setup.mechanism.certificate()
        capped = 0 if certificate is None else certificate.cap_bindings
        return (
            "durations revealed: given that the others report truly, reporting truly is optimal up to twice the "
            "estimates' error times V_max (Theorem T; paths that are kept between submissions are measured, not "
            "proven); the welfare ratio (Theorem 4.1) needs the capacity of (19)"
            + (
                f"; the hard cap kept {capped:,} owners from a launch worth its price: no theorem covers them (G7)"
                if capped
                else ""
            )
        )
    return (
        "durations hidden: truthfulness and the welfare ratio are proven for revealed durations only; here declaring "
        "too many nodes can pay (gap G1), and only bound (8) holds"
    )
