"""Mechanisms on the same jobs at several loads: nodes vary; of a log, whose machine is given, gaps between arrivals.

The load is the work that jobs really need over the nodes there are until the last birth. The capacity of a
seed is the whole number of nodes that comes closest (`Workload.capacity_at`); of a log the nodes stay, and submissions
come closer together or farther apart (``stretch``). What each mechanism earns is a share of
the bounds on the best schedules at that load, of all seeds together; all differences are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from marketsched.agents.lies import count_of
from marketsched.comparisons.contest import Found, Tell
from marketsched.comparisons.flat_prices import bound_share, bounded_runs, flat_shares, paired_differences
from marketsched.comparisons.mechanisms import MechanismContest, owners_means
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Finite
from marketsched.results.paired_statistics import CONFIDENCE
from marketsched.results.windows import by_window
from marketsched.worlds.workload import Workload

BY_LOAD = ("owners", "against", "waits")  # tables that are kept


class LoadContest:
    """Mechanisms of one market at several loads; see `marketsched.comparisons.comparing.Contest`."""

    compared: ClassVar[str] = "mechanisms"
    kind: ClassVar[str] = "loads"
    summed_only: ClassVar[tuple[str, ...]] = ("notes", "lengths")

    def __init__(
        self,
        base: Scenario,
        mechanisms: Sequence[str | Callable[..., Any]],
        loads: Sequence[float],
        data: str | PathLike[str] | None,
        seconds: float,
        against: str | None = None,
        windows: int = 1,
        resample: bool = False,
    ) -> None:
        self._base, self._data = base, data
        self._contest = MechanismContest(base, mechanisms, data, seconds, None, against, windows, resample)
        self._loads = _checked_loads(loads)
        self.labels = self._contest.labels
        self.parts = tuple(f"load {load:g}" for load in self._loads)
        self.steps = self._contest.steps
        self._drawn: tuple[int, Workload] | None = None  # the last seed that was played here, and its jobs

    def play(self, seed: int, part: int, tell: Tell) -> Found:
        """Return one row per mechanism for the jobs of one seed at one load; no figures where nodes are too few."""
        if self._drawn is None or self._drawn[0] != seed:
            self._drawn = seed, self._contest.workload_of(seed)
        load, (_, drawn) = self._loads[part], self._drawn
        if drawn.cluster is not None:
            legal = "identical nodes, or a log; else set a key of the workload (load, per_round)"
            raise InvalidParameterError(f"loads = {load:g}: the nodes of a cluster with pools are given", legal=legal)
        workload, capacity = self._at_load(drawn, load, seed)
        widest = self._base.mechanism.max_concurrency or workload.max_concurrency
        about = {"load": load, "capacity": capacity, "refused": ""}
        both: Found = {"notes": [dict(drawn.notes)], "lengths": [drawn.round_seconds]}
        if capacity < widest and "rule" not in drawn.notes:
            few = f"{count_of(capacity, 'node')}, and jobs may be {widest} wide"
            why = few + _way_out(workload, widest, capacity)
            refused = {**about, "scenario": self._base.name, "seed": seed, "welfare": np.nan, "refused": why}
            return {"runs": [{**refused, "mechanism": label} for label in self.labels], **both}
        found = self._contest.play_on(workload, capacity, seed, lambda what: tell(f"{self.parts[part]}, {what}"))
        tables = {name: [table.assign(load=load) for table in found[name]] for name in BY_LOAD if name in found}
        return {"runs": [{**about, **row} for row in found["runs"]], **both, **tables}

    def _at_load(self, drawn: Workload, load: float, seed: int) -> tuple[Workload, int]:
        """Return jobs and nodes that make a load: nodes vary, or arrivals on the nodes of a log."""
        if "rule" not in drawn.notes:
            return drawn, drawn.capacity_at(load)
        base = self._contest.base_of(seed)
        section, capacity = base.workload, base.mechanism.capacity or drawn.capacity
        stretched = section.model_copy(update={"stretch": section.stretch * drawn.load_at(capacity) / load})
        return base.model_copy(update={"workload": stretched}).workload_of(seed, self._data), capacity

    def summary(self, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        """Return one row per load and mechanism.

        Raises
        ------
        InvalidParameterError
            If no load leaves as many nodes as the widest job may need.
        """
        runs = tables["runs"]
        if runs["welfare"].isna().all():
            row = runs.sort_values("capacity").iloc[-1]
            raise InvalidParameterError(
                f"loads = {', '.join(f'{load:g}' for load in self._loads)}: at {row['load']:g}, {row['mechanism']}: "
                f"{row['refused']}: expected lower loads"
            )
        runs = by_window(runs, self._contest.windows, ["load", "mechanism"])
        return load_table(runs, self.labels, CONFIDENCE, self._contest.rival)

    def about(self, found: Found) -> dict[str, Any]:
        """Return the loads, and how long the exact optimum of a seed was allowed to take."""
        return {"loads": list(self._loads), **self._contest.about(found)}


def _way_out(workload: Workload, widest: int, capacity: int) -> str:
    """Say which loads leave nodes for the widest job, and how the jobs of a log can be made narrower."""
    most = np.floor(100 * workload.load_at(widest)) / 100
    ways = [f"loads up to {most:g} leave enough"] if most > 0 else []
    if "rule" in workload.notes:
        ways.append(f"--set workload.max_concurrency={capacity} leaves wider jobs out")
    return f" ({'; '.join(ways)})" if ways else ""


def _checked_loads(loads: Sequence[float]) -> tuple[float, ...]:
    """Return loads as numbers, in order.

    Raises
    ------
    InvalidParameterError
        If there is none, one is not above 0, or two are equal.
    """
    listed = [loads] if isinstance(loads, (str, int, float)) else list(loads)
    found = [Finite("(0, inf)").check(f"loads[{i}]", load) for i, load in enumerate(listed)]
    if not found or len(set(found)) < len(found):
        raise InvalidParameterError(place="loads", value=listed, legal="at least one number above 0, each once")
    return tuple(sorted(found))


def load_table(
    runs: pd.DataFrame, mechanisms: Sequence[str], confidence: float, rival: str | None = None
) -> pd.DataFrame:
    """Return one row per load and mechanism.

    ``share`` is the mean welfare over the mean bound on OPT, of all seeds at that load, ``share_low`` and
    ``share_high`` its interval (`share_of_means`); ``over_first_come``, ``over_best_flat`` and, where durations are
    hidden, ``over_best_flat_known`` are paired differences in the same unit, with intervals, and ``first_come_share``
    and so on what those earn. ``refused`` counts the seeds at which there were fewer nodes than the widest job
    may need, or than the mechanism takes: they are in no other figure, and ``why`` says it of one of them.

    Parameters
    ----------
    runs : DataFrame
        One row per seed, load and mechanism.
    mechanisms : sequence of str
        In the order of the rows.
    confidence : float
        Of every interval.
    rival : str, optional
        The mechanism that all are compared with, beside first-come: ``over_rival``.
    """
    rows = []
    for load in sorted(runs["load"].unique().tolist()):
        at_load = runs[runs["load"] == load].sort_values("seed")
        other = None if rival is None else at_load[at_load["mechanism"] == rival]
        for name in mechanisms:
            own = at_load[at_load["mechanism"] == name]
            rows.append({"load": load, "mechanism": name, **_row(own, confidence, other)})
    return pd.DataFrame(rows)


def _row(runs: pd.DataFrame, confidence: float, rival: pd.DataFrame | None) -> dict[str, Any]:
    played = runs[runs["welfare"].notna()]
    row: dict[str, Any] = {"runs": len(played), "refused": len(runs) - len(played), "nodes": runs["capacity"].mean()}
    row["why"] = runs["refused"].max()
    if played.empty:
        return row
    row["bounded_runs"] = bounded_runs(played)
    row |= bound_share("share", played["welfare"], played, confidence)
    row |= paired_differences(played, confidence, rival) | flat_shares(played, confidence)
    row["best_flat_price"] = played["best_flat_price"].mean()
    row["revenue_share"] = bound_share("share", played["revenue"], played, confidence)["share"]
    row["completed_share"] = played["completed"].sum() / max(played["jobs"].sum(), 1)
    for name in ("utilisation", "utilisation_open"):
        row[name] = played[name].mean()
    row |= owners_means(played, confidence)
    row["evicted"] = played["evicted"].mean()
    row["exact_optima"] = int((played["opt_kind"] == "exact").sum())
    row["seconds"] = played["seconds"].mean()
    return row
