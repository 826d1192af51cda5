"""Run a scenario: build the market, play it, and say how far from the best it can be.

The summary of a run gets, beside what the market itself counts, three yardsticks over the jobs as
they really turned out:

* the dual bound (29): no schedule in hindsight is worth more;
* the certificate (22), from the reports alone: valid without hindsight, but loose;
* first-come-first-served at a flat price, with durations known: at price 0 and at the price that is
  best in hindsight.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from marketsched.config.scenario import Scenario
from marketsched.mechanisms.checks import whole_parameter
from marketsched.results.result import Result

if TYPE_CHECKING:
    from marketsched.agents.market import Market
    from marketsched.agents.setup import MarketSetup

PACKAGES = ("marketsched", "numpy", "numba", "scipy", "pandas", "pyarrow", "Mesa", "pydantic")

Progress = Callable[[int, int], None]  # rounds played, rounds in all


def run(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    seed: int = 0,
    *,
    data: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> Result:
    """Run ``scenario`` once.

    Parameters
    ----------
    scenario : Scenario, name, path or mapping
        What to run: a scenario, the name of a built-in one, a YAML file, or its content.
    seed : int
        Root of all randomness, >= 0: equal seeds give equal results.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    progress : function of (int, int), optional
        Called after each round with the rounds played and the rounds in all.
    keep_interrupted : bool
        On Ctrl-C return the result of all finished rounds (``summary["complete"]`` is then False,
        and there are no yardsticks) instead of raising ``KeyboardInterrupt``.

    Returns
    -------
    Result
        Of kind ``market``: tables ``events``, ``jobs`` and ``rounds`` (see
        `marketsched.agents.result.RunResult`) and ``prices`` hours ahead where they moved; a summary with
        the yardsticks under ``bounds`` and ``first_come``, and what is proven for this run under ``proven``.

    Raises
    ------
    InvalidParameterError
        If the scenario or the seed is at fault.
    MissingDataError, TraceError
        If the scenario needs a trace that is not there or damaged.

    Examples
    --------
    >>> result = run({"name": "one job", "workload": {"kind": "jobs", "capacity": 2, "horizon": 6,
    ...     "max_concurrency": 1, "max_duration": 2, "max_value": 4, "max_delay": 6, "jobs": [
    ...         {"name": "A", "birth": 1, "concurrency": 1, "value": {"kind": "deadline", "value": 4, "deadline": 5},
    ...          "requirements": [{"arrival": 2, "duration": 2, "probability": 1}], "arrival": 2, "duration": 2}]},
    ...     "mechanism": {"pricing": {"kind": "posted", "prices": [0.5]}}})
    >>> result.summary["welfare"], result.summary["revenue"]
    (4.0, 1.0)
    """
    from marketsched.agents.market import Market
    from marketsched.results.market_kind import prices_table

    scenario = Scenario.of(scenario)
    clock = _Stopwatch()
    rng = np.random.default_rng(np.random.SeedSequence(checked_seed(seed)))
    with clock.of("setup"):
        setup = scenario.setup(rng, data=data)
    market = Market(setup, rng)
    interrupted = False
    try:
        with clock.of("market"):
            result = market.run(None if progress is None else lambda played: progress(played, setup.horizon))
        with clock.of("bounds"):
            yardsticks = _yardsticks(market, result.summary)
    except KeyboardInterrupt:
        if not keep_interrupted:
            raise
        interrupted, yardsticks, result = True, {}, market.result()
    complete = bool(result.summary["complete"]) and not interrupted
    summary = {
        **result.summary,
        **yardsticks,
        **shares(result.summary, yardsticks),
        "load": load_asked(setup),
        "complete": complete,
        "proven": proven(setup),
    }
    meta = {
        "scenario": scenario.name,
        "seed": seed,
        "round_seconds": setup.round_seconds,
        "rounds": summary["rounds"],
        "expected": scenario.expected,
        "versions": versions(),
        "seconds": clock.seconds,
        "complete": complete,
    }
    tables = {"events": result.events, "jobs": result.jobs, "rounds": result.rounds}
    tables |= prices_table(result.price_surface)
    return Result("market", tables, summary, meta, {"scenario.yaml": scenario.to_yaml()})


def checked_seed(seed: object) -> int:
    """Return ``seed``, or raise ``InvalidParameterError`` unless it is a whole number >= 0."""
    return whole_parameter("seed", seed, 0)


def versions() -> dict[str, str]:
    """Return the versions that a result may depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name.lower()] = version(name)
        except PackageNotFoundError:  # run from a source tree that was never installed
            found[name.lower()] = "unknown"
    return found


def _yardsticks(market: Market, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the bounds and the comparison of the module's docstring."""
    from marketsched.mechanisms.auctions.flat_price import best_first_come, first_come_welfare
    from marketsched.mechanisms.realised import RealisedJobs
    from marketsched.relaxed_lp.duality import dual_bound

    setup = market.setup
    jobs = RealisedJobs.build(
        ((job.truth, job.arrival, job.duration) for job in setup.jobs),
        horizon=setup.horizon,
        max_delay=setup.max_delay,
        max_duration=getattr(setup.mechanism, "max_duration", None),
    )
    prices = _final_prices(market)
    bound = dual_bound(jobs, setup.capacity, setup.horizon, start_prices=prices)
    bounds: dict[str, Any] = {"dual": bound.value}
    certificate = getattr(setup.mechanism, "certificate", None)
    found = certificate() if callable(certificate) else None
    if found is not None:
        bounds |= {
            "certificate": found.bound,
            "certificate_valid": found.valid,
            "certificate_reason": found.reason,
            "certificate_jobs": found.in_j_prime,
            "certificate_of": found.n_jobs,
        }
    free = first_come_welfare(jobs, setup.capacity, setup.horizon, 0.0)
    best = best_first_come(jobs, setup.capacity, setup.horizon)
    first_come = {
        "welfare_at_zero": free.welfare,
        "welfare_at_best": best.welfare,
        "best_price": best.price,
        "revenue_at_best": best.revenue,
        "completed_at_zero": int((free.starts > 0).sum()),
        "completed_at_best": int((best.starts > 0).sum()),
    }
    return {"bounds": bounds, "first_come": first_come}


def _final_prices(market: Market) -> Any:
    """Return the final slot prices as a start for the bound, if there are finite ones."""
    slot_prices = getattr(market.mechanism, "slot_prices", None)
    if slot_prices is None:
        return None
    prices = np.asarray(slot_prices(1, market.setup.horizon), dtype=np.float64)
    return prices if np.isfinite(prices).all() else None


def shares(summary: Mapping[str, Any], yardsticks: Mapping[str, Any]) -> dict[str, float]:
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
    bounds, first_come = yardsticks.get("bounds", {}), yardsticks.get("first_come", {})
    add("share_of_best", welfare, bounds.get("dual"))
    add("certificate_over_welfare", bounds.get("certificate"), welfare)
    add("first_come_share", first_come.get("welfare_at_zero"), bounds.get("dual"))
    add("first_come_best_share", first_come.get("welfare_at_best"), bounds.get("dual"))
    return found


def load_asked(setup: MarketSetup) -> float:
    """Return the node-rounds that jobs really need, as a share of those there are until the last birth."""
    work = sum(job.truth.concurrency * job.duration for job in setup.jobs if job.arrival is not None)
    return work / (setup.capacity * max((job.truth.birth for job in setup.jobs), default=1))


def proven(setup: MarketSetup) -> str:
    """Say which promises the theorems make for a market like this one."""
    from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism

    if not isinstance(setup.mechanism, PostedPriceMechanism):
        return "no theorem of the posted-price mechanism applies to this mechanism"
    if all(job.truth.revealed for job in setup.jobs):
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


class _Stopwatch:
    """Seconds spent, by what they were spent on."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[what] = round(time.perf_counter() - begin, 3)
