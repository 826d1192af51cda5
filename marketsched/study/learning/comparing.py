"""Mechanisms compared by their owners' learned reports: the small contested market, day by day, seed by seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Annotated, Any

from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.mechanisms.legal import Count, Seed, Whole, legal
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.randomness import checked_seed
from marketsched.mechanisms.registry import name_of
from marketsched.play.kept_results import kept_for
from marketsched.play.parallel import Where
from marketsched.play.workers import cores
from marketsched.results.result import Result
from marketsched.study.learning.curves import Progress, learning_curves
from marketsched.study.learning.learning_owner import SHORT
from marketsched.study.learning.markets import contested_market
from marketsched.study.learning.repeated_market import RepeatedMarket

LEARNERS = ("adahedge", "hedge", "exp3", "ucb", "best-response")
FEWEST_DAYS = 4  # the last quarter, learned play, is one of them
POINTS = 20  # of a curve, at most
MOST_APART = 5  # days between two that are compared with the best schedule, at most


@legal
def compare_learning(
    mechanisms: Sequence[str | Callable[..., Any]] = ("exponential", "pay-as-bid"),
    learner: str = "adahedge",
    *,
    owners: int = 6,
    nodes: int = 3,
    days: Annotated[int, Whole(FEWEST_DAYS)] = 100,
    runs: Annotated[int, Whole(2)] = 20,
    seed: Seed = 0,
    workers: Count | None = 1,
    executor: Where | None = None,
    keep: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> Result:
    """Let owners learn under several mechanisms, on the same days.

    Parameters
    ----------
    mechanisms : sequence of str or class
        As of `contested_market`.
    learner : str
        adahedge, hedge, exp3, ucb (or ucb1), best-response (or best-responding): how all owners report.
    owners, nodes : int
        Sizes of :func:`~marketsched.study.learning.markets.contested_market`.
    days : int
        Rounds of learning in each run, at least 4.
    runs, seed : int
        Paired runs, at least 2, with the seeds from ``seed`` on.
    workers : int, optional
        Processes; None: one per processor.
    executor, keep
        Where runs are made, and where finished ones are kept; as for `marketsched.compare`.
    progress : function of (str, int, int), optional
        Called after each run.
    keep_interrupted : bool
        On Ctrl-C return the seeds that are finished (at least two) instead of raising.

    Raises
    ------
    InvalidParameterError
        If a mechanism is malformed, named twice, or does not suit the market.
    UnknownNameError
        If there is no such mechanism or learner.

    Examples
    --------
    >>> result = compare_learning(["first-come", "pay-as-bid"], owners=3, nodes=1, days=4, runs=2)
    >>> sorted(set(result.tables["runs"]["mechanism"]))
    ['first-come', 'pay-as-bid']
    """
    rule = SHORT.get(learner, learner)
    if rule not in [SHORT.get(each, each) for each in LEARNERS]:
        raise UnknownNameError(f"learner {learner!r} is unknown: expected one of {', '.join(LEARNERS)}")
    seed, begin = checked_seed(seed, runs), time.perf_counter()
    check_memory(f"{runs} runs of {days} days", 500.0 * runs * len(mechanisms) * min(days, POINTS), "fewer runs")
    workers = cores() if workers is None else workers
    markets = _markets(mechanisms, owners, nodes)
    question = {"mechanisms": list(markets), "learner": rule, "owners": owners, "nodes": nodes, "days": days}
    found = learning_curves(
        markets,
        (rule,),
        episodes=days,
        seeds=range(seed, seed + runs),
        bound_every=min(MOST_APART, days // FEWEST_DAYS),
        window=-(-days // POINTS),
        workers=workers,
        executor=executor,
        kept=kept_for(keep if all(isinstance(each, str) for each in mechanisms) else None, {"learn": question}),
        progress=progress,
        keep_interrupted=keep_interrupted,
    )
    about = {"mechanisms": list(markets), "learner": rule, "owners": owners, "nodes": nodes}
    return replace(found, meta={**about, **found.meta, "seconds": round(time.perf_counter() - begin, 1)})


def _markets(tokens: Sequence[str | Callable[..., Any]], owners: int, nodes: int) -> dict[str, RepeatedMarket]:
    """Return the market of each mechanism, opened once, so that faults show before anything is played."""
    if isinstance(tokens, str) or callable(tokens) or not tokens:
        raise InvalidParameterError(f"mechanisms = {tokens!r}: expected at least one name, in a list")
    markets: dict[str, RepeatedMarket] = {}
    for token in map(name_of, tokens):
        if token in markets:
            raise InvalidParameterError(f"mechanism {token!r} is named twice: expected different ones")
        markets[token] = contested_market(token, n_owners=owners, capacity=nodes)
    return markets
