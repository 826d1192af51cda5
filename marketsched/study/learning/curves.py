"""Learning curves over many seeds, with intervals: whether owners learn the truth, or to shade it.

One row per mechanism, rule of the owners and episode for the curves; one row per mechanism, rule and
figure for the summary. Every seed is a run of its own, and runs of one seed see the same days under
all mechanisms. Intervals are Student's, over the seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, OpenShare, Whole, legal
from marketsched.mechanisms.randomness import LARGEST_SEED
from marketsched.play.kept_results import KeptResults
from marketsched.play.parallel import Where, run_many
from marketsched.results.result import Result, versions
from marketsched.study.learning.markets import contested_market
from marketsched.study.learning.repeated_market import RepeatedMarket
from marketsched.study.learning.runs import LearningRun, learn

Progress = Callable[[str, int, int], None]  # what was run, runs done, runs in all

TAIL = 0.25  # share of episodes, the last ones, that "learned play" is
CURVES = ("truth_share", "factor")
SUMMARY = (
    "truth_share",
    "factor",
    "distance",
    "distance_all",
    "gain_of_truth",
    "welfare_share",
    "truthful_welfare_share",
    "revenue_share",
)


@legal
def learning_curves(
    markets: Mapping[str, RepeatedMarket] | None = None,
    rules: Sequence[str] = ("adahedge",),
    *,
    episodes: Count = 400,
    seeds: Sequence[int] = tuple(range(20)),
    measure_every: int = 1,
    bound_every: int = 10,
    window: Count = 10,
    confidence: OpenShare = 0.95,
    workers: Count = 1,
    executor: Where | None = None,
    kept: KeptResults | None = None,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> Result:
    """Let owners learn in several markets (by the name that tables show; by default `default_markets`), once per seed.

    Each of the ``rules`` is tried, for all owners together; ``episodes``, ``measure_every`` and ``bound_every`` are
    those of `learn`, ``window`` the episodes that one point of a curve averages. More than one of ``workers`` asks that
    markets pickle, as those of this package do; ``executor``, an executor or the address of a Dask scheduler, takes
    their place. Finished runs, of these markets and sizes, are kept in ``kept``; ``progress`` is called after each. On
    Ctrl-C, ``keep_interrupted`` returns the seeds that are finished (at least two) instead of raising.

    Returns a result of kind ``learning``. ``curves``: one row per ``mechanism``, ``rule`` and ``episode``, the last of
    a window: means over seeds of ``truth_share`` (how likely owners are to tell the truth) and ``factor`` (what they
    multiply values by), with the ends ``.._low`` and ``.._high`` of their intervals. ``summary``: one row per
    ``mechanism``, ``rule`` and ``figure``, with ``mean``, ``low``, ``high``, ``n_seeds``: truth_share; factor; distance
    (to a coarse correlated equilibrium, credits per owner and episode); gain_of_truth (what always telling the truth
    would have earned more, mean over owners); welfare_share and revenue_share (over the bound); truthful_welfare_share
    (had all told the truth on the same days). Figures are of the last quarter of the episodes; distance_all is distance
    over all of them. ``runs``: these figures seed by seed. If it was interrupted, ``meta["seeds"]`` are those that all
    mechanisms and rules have.
    """
    chosen = default_markets() if markets is None else dict(markets)
    seeds = [Whole(0, LARGEST_SEED).check(f"seeds[{i}]", seed) for i, seed in enumerate(seeds)]
    if len(seeds) < 2 or len(set(seeds)) < len(seeds):
        raise InvalidParameterError(
            f"seeds = {seeds!r}: expected at least two, all different: intervals are over seeds"
        )
    learned = episodes - round((1 - TAIL) * episodes)
    if not (measure_every <= learned and bound_every <= learned):
        raise InvalidParameterError(
            f"measure_every = {measure_every}, bound_every = {bound_every}: expected at most {learned}, "
            f"the episodes of learned play of {episodes}"
        )
    tasks = [(i, name, rule, seed) for i, (seed, name, rule) in enumerate(product(seeds, chosen, rules))]
    play = partial(
        _one, markets=chosen, episodes=episodes, measure_every=measure_every, bound_every=bound_every, window=window
    )
    played: dict[int, tuple[dict[str, Any], pd.DataFrame]] = {}
    stream = run_many(play, tasks, workers, executor, kept)
    per_seed = len(chosen) * len(rules)
    try:
        with closing(stream):
            for (i, name, rule, seed), found in stream:
                played[i] = found
                if progress is not None:
                    progress(f"{name}, {rule}, seed {seed}", len(played), len(tasks))
    except KeyboardInterrupt:
        if not keep_interrupted or _seeds_played(played, per_seed) < 2:
            raise
    done = _seeds_played(played, per_seed)
    keys: list[dict[str, Any]] = [
        {"mechanism": name, "rule": rule, "seed": seed} for _, name, rule, seed in tasks[: done * per_seed]
    ]
    runs = pd.DataFrame([{**key, **played[i][0]} for i, key in enumerate(keys)])
    curves = pd.concat([played[i][1].assign(**key) for i, key in enumerate(keys)])
    meta = {
        "name": "what owners learn",
        "episodes": episodes,
        "seeds": list(seeds[:done]),
        "seeds_asked_for": len(seeds),
        "confidence": confidence,
        "learned": TAIL,
        "window": window,
        "versions": versions(),
        "complete": done == len(seeds),
    }
    tables = {"curves": _curves(curves, confidence), "runs": runs}
    return Result("learning", tables, _summary(runs, confidence), meta, kept=() if kept is None else (kept,))


def default_markets(**parameters: Any) -> dict[str, RepeatedMarket]:
    """Return `contested_market`, with these parameters, at exponential prices, at a posted price, and as pay-as-bid."""
    posted = {"kind": "posted", "prices": [2.0] * contested_market(**parameters).horizon}
    return {
        "exponential": contested_market("exponential", **parameters),
        "posted-price, price 2": contested_market("posted-price", pricing=posted, **parameters),
        "pay-as-bid": contested_market("pay-as-bid", **parameters),
    }


def figures_of(run: LearningRun, tail: float = TAIL) -> dict[str, float]:
    """Return the figures of one run; see `learning_curves`. ``tail``: the share that is learned play."""
    table = run.episodes
    first = round((1 - tail) * len(table)) + 1
    late = table[table["episode"] >= first]
    looked = late.dropna(subset=["bound"])
    bound = float(looked["bound"].sum())
    gains = run.average_gains(first)
    return {
        "truth_share": float(late["truth_share"].mean()),
        "factor": float(late["factor"].mean()),
        "distance": run.equilibrium_distance(first),
        "distance_all": run.equilibrium_distance(),
        "gain_of_truth": float(gains.loc[gains["report"] == "truth", "gain"].mean()),
        "welfare_share": float(looked["welfare"].sum()) / bound if bound > 0 else np.nan,
        "truthful_welfare_share": float(looked["truthful_welfare"].sum()) / bound if bound > 0 else np.nan,
        "revenue_share": float(looked["revenue"].sum()) / bound if bound > 0 else np.nan,
    }


def interval_of_mean(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return mean, and Student's interval of the mean over independent runs.

    Raises InvalidParameterError if there are fewer than two values.
    """
    array: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    if array.size < 2:
        raise InvalidParameterError(f"{array.size} runs: expected at least two for an interval")
    mean, error = float(array.mean()), float(array.std(ddof=1) / np.sqrt(array.size))
    reach = float(special.stdtrit(array.size - 1, (1 + confidence) / 2)) * error
    return mean, mean - reach, mean + reach


def _seeds_played(played: Mapping[int, Any], per_seed: int) -> int:
    """Return how many seeds, from the first on, all markets and rules have played."""
    gap = next(i for i in range(len(played) + 1) if i not in played)
    return gap // per_seed


def _one(
    task: tuple[int, str, str, int],
    *,
    markets: Mapping[str, RepeatedMarket],
    episodes: int,
    measure_every: int,
    bound_every: int,
    window: int,
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Return figures and curve of one run."""
    _, name, rule, seed = task
    run = learn(markets[name], rule, episodes=episodes, seed=seed, measure_every=measure_every, bound_every=bound_every)
    table = run.episodes
    place = (((table["episode"] - 1) // window + 1) * window).clip(upper=episodes)
    curve = table[list(CURVES)].groupby(place).mean().reset_index()
    return figures_of(run), curve


def _curves(points: pd.DataFrame, confidence: float) -> pd.DataFrame:
    rows = []
    keys = ["mechanism", "rule", "episode"]
    for key, group in points.groupby(keys, sort=False):
        row: dict[str, Any] = dict(zip(keys, key, strict=True))
        for name in CURVES:
            row[name], row[f"{name}_low"], row[f"{name}_high"] = interval_of_mean(group[name], confidence)
        rows.append(row)
    return pd.DataFrame(rows)


def _summary(runs: pd.DataFrame, confidence: float) -> pd.DataFrame:
    rows = []
    for (mechanism, rule), group in runs.groupby(["mechanism", "rule"], sort=False):
        for figure in SUMMARY:
            mean, low, high = interval_of_mean(group[figure], confidence)
            rows.append((mechanism, rule, figure, mean, low, high, len(group)))
    return pd.DataFrame(rows, columns=["mechanism", "rule", "figure", "mean", "low", "high", "n_seeds"])
