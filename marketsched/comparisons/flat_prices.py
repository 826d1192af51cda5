"""The baselines of comparisons: first-come-first-served at price 0, and at the best flat price in hindsight.

The best price is looked for once in each world, on jobs as the market reveals their durations; first-come
then runs at it like the other contestants. Where durations are hidden, first-come that knows them all is noted as
well, under a name that says so: it is a bound and cannot be run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from marketsched.agents.setup import MarketSetup
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.auctions.flat_price import best_first_come, best_first_come_served
from marketsched.mechanisms.limits import LAST_ROUND, MarketLimits
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.play.hindsight import realised
from marketsched.play.on_clusters import cluster_bound, first_come_at_zero
from marketsched.play.optimum import Bracket, optimum_bracket
from marketsched.results.paired_statistics import share_of_means

# Columns of `runs` with the welfare of each, credits.
FLAT = ("first_come", "best_flat", "best_flat_known")


class FlatPrices:
    """First-come at flat prices in one world.

    Parameters
    ----------
    scenario : Scenario
        The market.
    setup : function of a Scenario
        Builds the setup of this world with a mechanism of its own.
    play : function of a MarketSetup
        Plays it to its end and returns its welfare, credits.

    Attributes
    ----------
    jobs : RealisedJobs
        As they really turn out in this world.
    capacity : int
        C, nodes.
    """

    def __init__(
        self,
        scenario: Scenario,
        setup: Callable[[Scenario], MarketSetup],
        play: Callable[[MarketSetup], float],
    ) -> None:
        self._scenario, self._setup, self._play = scenario, setup, play
        self._earned: dict[float, float] = {}  # by price
        self._at_zero = self._at(0.0)
        self.jobs = realised(self._at_zero)
        self.capacity = self._at_zero.capacity

    def note(self, setup: MarketSetup, welfare: float) -> None:
        """Record the welfare of a contestant: it need not run again if it was first-come at a flat price."""
        if type(setup.mechanism) is FirstCome:
            self._earned[setup.mechanism.price] = welfare

    def figures(self) -> dict[str, float]:
        """Return the columns of `runs` beside each contestant's own: welfare in credits, prices per node and round."""
        setup = self._at_zero
        limits: MarketLimits = setup.mechanism.limits  # type: ignore[attr-defined]
        found = {"first_come": self._welfare(0.0, setup), "best_flat": np.nan, "best_flat_price": np.nan}
        if not _never_end(setup):
            price = self._best_price(setup, limits)
            found |= {"best_flat": self._welfare(price), "best_flat_price": price}
        if all(job.truth.revealed for job in setup.jobs):
            return found | {"best_flat_known": np.nan, "best_flat_known_price": np.nan}
        best = best_first_come(self.jobs, self.capacity, limits.horizon)
        return found | {"best_flat_known": best.welfare, "best_flat_known_price": best.price}

    def bracket(self, seconds: float) -> Bracket:
        """Return what encloses the best schedule in hindsight; ``seconds`` as of `optimum_bracket`."""
        return optimum_bracket(self.jobs, self.capacity, seconds=seconds)

    def _best_price(self, setup: MarketSetup, limits: MarketLimits) -> float:
        """Return the best flat price in hindsight on the jobs of a market, owners reporting truly.

        Of jobs that do not fit into columns it is the one that is best if all durations are known.
        """
        jobs = setup.table.columns(setup.max_delay)
        if jobs is None:
            return best_first_come(self.jobs, self.capacity, limits.horizon).price
        return best_first_come_served(jobs, limits).price

    def _at(self, price: float) -> MarketSetup:
        choice = {"pricing": {"kind": "posted", "prices": [price]}}
        return self._setup(self._scenario.with_mechanism("first-come", choice))

    def _welfare(self, price: float, setup: MarketSetup | None = None) -> float:
        if price not in self._earned:
            self._earned[price] = self._play(self._at(price) if setup is None else setup)
        return self._earned[price]


def _never_end(setup: MarketSetup) -> bool:
    """Tell whether values never end and durations are hidden, where a best flat price is not searched.

    At a price above 0 a run that the horizon cuts is not charged, so that jobs may like to wait for the end of the
    market: plays then take minutes, and the price means nothing.
    """
    jobs = setup.table.columns(setup.max_delay)
    return jobs is not None and not jobs.revealed.all() and bool(jobs.ends.max(initial=0) >= LAST_ROUND)


class FirstComeOnCluster:
    """First come at price 0 in one world of jobs with shapes, and the dual bound with pools.

    There is no one best price where several resources have one. Members are as those of `FlatPrices`.

    Parameters
    ----------
    cluster : Cluster
        Of the workload.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self.capacity = cluster, cluster.nodes
        self._setup: MarketSetup | None = None

    def note(self, setup: MarketSetup, welfare: float) -> None:
        """Note a setup of this world: its jobs and sizes are those of all."""
        self._setup = setup

    def figures(self) -> dict[str, float]:
        """Return the columns of `runs` beside each contestant's own."""
        earned = np.nan if self._setup is None else first_come_at_zero(self._setup, self._cluster)["welfare_at_zero"]
        unknown = ("best_flat", "best_flat_price", "best_flat_known", "best_flat_known_price")
        return {"first_come": earned, **dict.fromkeys(unknown, np.nan)}

    def bracket(self, seconds: float) -> Bracket:
        """Return 0 and the dual bound, whatever ``seconds`` are allowed."""
        return Bracket(0.0, np.inf if self._setup is None else cluster_bound(self._setup, self._cluster), "dual")


def paired_differences(runs: pd.DataFrame, confidence: float, rival: pd.DataFrame | None = None) -> dict[str, float]:
    """Return the welfare of one mechanism minus that of first-come at flat prices, paired seed by seed.

    Parameters
    ----------
    runs : DataFrame
        Of one mechanism, one row per seed: ``welfare``, ``opt_high``, and the columns `FLAT`.
    confidence : float
        Of the interval of each difference, `share_of_means`.
    rival : DataFrame, optional
        The same of another mechanism, which is compared with, too.

    Returns
    -------
    dict
        ``over_NAME`` with ``_low`` and ``_high`` for each of `FLAT`: the mean difference over seeds as a share
        of the mean bound on OPT; NaN where there is none. ``over_rival`` is that to the rival.
    """
    found: dict[str, float] = {}
    for name, flat in runs.reindex(columns=FLAT).items():
        found |= bound_share(f"over_{name}", runs["welfare"] - flat, runs, confidence)
    if rival is not None:
        other = rival.set_index("seed")["welfare"].reindex(runs["seed"]).to_numpy()
        found |= bound_share("over_rival", runs["welfare"] - other, runs, confidence)
    return found


def flat_shares(runs: pd.DataFrame, confidence: float) -> dict[str, float]:
    """Return what first-come at flat prices earned as a share of the bound on OPT: ``NAME_share`` with its interval."""
    found: dict[str, float] = {}
    for name, flat in runs.reindex(columns=FLAT).items():
        found |= bound_share(f"{name}_share", flat, runs, confidence)
    return found


def bound_share(name: str, part: ArrayLike, runs: pd.DataFrame, confidence: float) -> dict[str, float]:
    """Return figures of some seeds, credits, as a share of the bound on OPT: ``name`` with its interval."""
    found = share_of_means(part, runs["opt_high"], confidence)
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def bounded_runs(runs: pd.DataFrame) -> int:
    """Return in how many seeds the bound on OPT is above 0: in the others nothing can be earned."""
    return int((runs["opt_high"] > 0).sum())
