"""Run a scenario once: a market and how far from the best it can be, or every policy of a cluster in one world."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from marketsched import agents
from marketsched.agents.market_run import MarketRun
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.from_file import own_files
from marketsched.mechanisms.randomness import checked_seed
from marketsched.mechanisms.registry import get
from marketsched.play.hindsight import bounds_of, load_asked, proven, shares
from marketsched.play.on_clusters import resources_in_use
from marketsched.results.market_kind import prices_table
from marketsched.results.owners import READ, owners_figures, owners_table
from marketsched.results.result import Result, versions
from marketsched.results.tables import Tables

Progress = Callable[[int, int, str], None]  # steps done, steps in all, what comes now


def run(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    seed: int = 0,
    *,
    mechanism: str | Callable[..., Any] | None = None,
    policies: Sequence[str] | None = None,
    data: str | PathLike[str] | None = None,
    optimum: bool = True,
    model: bool = False,
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
    mechanism : str or class, optional
        Of a market: in place of the scenario's, as in ``"bid-price:buckets=4"`` or a class of one's own; see
        `Scenario.with_mechanism`.
    policies : sequence of str, optional
        Of a cluster: in place of the scenario's, as in ``"ogasched:step=25"``. Totals of the first are
        divided by the others'.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    optimum : bool
        Of a cluster: whether to compute the reference of its core (of OgaSched: the best fixed allocation).
    model : bool
        Whether owners are agents of a Mesa model: of a market `marketsched.agents.Market`, which plays it in any case
        if they look at it before they report or learn from it, and gives the same tables; of a cluster
        `marketsched.cores.CoreMarket`, which adds the table ``owners``.
    progress : function of (int, int, str), optional
        Called with the number of rounds or slots done, their total, and the name of the next step.
    keep_interrupted : bool
        On Ctrl-C return the finished rounds of a market, or policies of a cluster, without bounds, instead of
        raising ``KeyboardInterrupt``.

    Returns
    -------
    Result
        Of a market, kind ``market``: tables ``events``, ``jobs`` and ``rounds`` (see
        `marketsched.agents.result.RunResult`), ``owners`` (`marketsched.results.owners.owners_table`), ``prices`` some
        hours ahead if they changed, ``pools`` of a market on kinds of nodes
        (`marketsched.agents.cluster_log.ClusterLog.table`), and the mechanism's own. ``outcome`` holds the figures by
        name: ``welfare``, ``revenue``, ``share_of_best``, the bounds (``bounds``), first come, first served on the same
        jobs (``first_come``), and the guarantees of this run (``proven``); ``summary`` is the same as one row.
        Of a cluster: one row per policy.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If the scenario, a policy or the seed is not legal.
    MissingDataError, TraceError
        If a trace that the scenario needs is missing or damaged.

    Examples
    --------
    >>> result = run({"name": "one job", "workload": {"kind": "jobs", "capacity": 2, "horizon": 6,
    ...     "max_concurrency": 1, "max_duration": 2, "max_value": 4, "max_delay": 6, "jobs": [
    ...         {"name": "A", "birth": 1, "concurrency": 1, "value": {"kind": "deadline", "value": 4, "deadline": 5},
    ...          "requirements": [{"arrival": 2, "duration": 2, "probability": 1}], "arrival": 2, "duration": 2}]},
    ...     "mechanism": {"pricing": {"kind": "posted", "prices": [0.5]}}})
    >>> result.outcome["welfare"], result.outcome["revenue"]
    (4.0, 1.0)
    >>> small = {"name": "small", "cluster": {"slots": 50, "policies": ["ogasched", "fairness"],
    ...     "instance": {"kind": "small-integer"}}}
    >>> run(small).summary[["policy", "observes", "slots"]].values.tolist()
    [['ogasched', 'nothing', 50], ['fairness', 'arrivals', 50]]
    """
    base, first = Scenario.of(scenario), checked_seed(seed)
    own_files(f"{base.to_yaml()} {mechanism} {policies}")  # one that was edited since is run anew
    if base.kind == "market":
        if policies is not None:
            raise InvalidParameterError(place="policies", value=policies, legal=f"none: {base.name} is a market")
        base = base if mechanism is None else base.with_mechanism(mechanism)
        return _run_market(base, first, data, model, progress, keep_interrupted)
    if mechanism is not None:
        legal = f"none: {base.name} is a cluster, and has policies"
        raise InvalidParameterError(place="mechanism", value=mechanism, legal=legal)
    result: Result = get("run", base.section)(base, first, policies, data, optimum, model, progress, keep_interrupted)
    return result


def _run_market(
    scenario: Scenario,
    seed: int,
    data: str | PathLike[str] | None,
    model: bool,
    progress: Progress | None,
    keep_interrupted: bool,
) -> Result:
    clock = _Stopwatch()
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    tell = progress or (lambda done, total, what: None)
    tell(0, 1, "building")
    with clock.of("setup"):
        setup = scenario.setup(rng, data=data)
    played: type[MarketRun] = agents.Market if model or setup.looks else MarketRun  # imports Mesa where it is used
    market, rounds = played(setup), setup.horizon

    def notify(played: int) -> None:
        tell(played, rounds, "bounds" if played == rounds else f"round {played} of {rounds}")

    interrupted = False
    try:
        with clock.of("market"):
            market.play(notify)
        with clock.of("bounds"):
            best = bounds_of(market)
    except KeyboardInterrupt:
        if not keep_interrupted:
            raise
        interrupted, best = True, {}
    with clock.of("tables"):  # after the bounds, which take the most memory
        result = market.result()
    complete = bool(result.outcome["complete"]) and not interrupted
    outcome = {
        **result.outcome,
        **best,
        **shares(result.outcome, best, on_cluster=setup.cluster is not None),
        "load": load_asked(setup),
        "complete": complete,
        "proven": proven(setup),
    }
    meta = {
        "scenario": scenario.name,
        "seed": seed,
        "round_seconds": setup.round_seconds,
        "rounds": outcome["rounds"],
        "expected": scenario.expected,
        "workload": dict(setup.notes),
        "versions": versions(),
        "seconds": clock.seconds,
        "complete": complete,
    }
    tables: dict[str, Any] = {"events": result.event_rows, "jobs": result.job_rows, "rounds": result.rounds}
    tables["owners"] = owners_table(result.job_rows.frame(columns=READ), market.offered())
    outcome |= {name: x if np.isfinite(x) else None for name, x in owners_figures(tables["owners"]).items()}
    tables |= prices_table(result.price_surface)
    pools = market.pools()
    if pools is not None:
        tables["pools"], outcome["in_use"] = pools, resources_in_use(pools, setup.table.last_birth)
    tables |= {name: pd.DataFrame(columns) for name, columns in market.mechanism.tables().items()}
    texts = {"scenario.yaml": scenario.to_yaml()}
    return Result("market", Tables(tables), meta=meta, texts=texts, outcome=outcome)


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
