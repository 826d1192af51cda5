"""The largest gain from lying that is confirmed: a lie is chosen on some seeds, and measured on others.

In each task, at its highest load, owners who are drawn play fixed conducts one at a time, everything else being true:
other wall times, other values, a fresh account, several accounts (`marketsched.truthfulness.conduct`). On the first
half of the seeds the conduct with the largest mean gain is chosen, of all tasks together; on the second half it alone
is measured. So the reported gain is one measurement on fresh seeds, for any number of lies tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, cast

import numpy as np
import pandas as pd

from marketsched.benchmark.tasks import Task
from marketsched.config.named_mechanisms import named_mechanisms
from marketsched.results.paired_statistics import spread
from marketsched.truthfulness.conduct.conduct_gains import play_conducts
from marketsched.worlds.workload import Workload

FAMILIES = ("estimate", "value", "account", "split")
FEWEST = 8  # owners who can play a conduct, for it to be chosen
LEAST_GAIN = 1e-9  # of the highest value: less is rounding
_DRAWN = 0xBE7C  # keeps who is looked at apart from the run's own randomness


@dataclass(frozen=True)
class Lying:
    """The gain of one lie on seeds on which it was not chosen, as a share of the highest value of the owner's job.

    Attributes
    ----------
    gain, low, high : float
        Mean over owners, with a 95 % interval; 0 where no lie gained on the seeds of the choice, or fewer than two
        owners could play it on the others.
    task, conduct : str
        Where, and which; empty: none.
    owners : int
        How many are in the mean.
    reason : str
        Why nothing could be measured; empty: it could.
    """

    gain: float = 0.0
    low: float = 0.0
    high: float = 0.0
    task: str = ""
    conduct: str = ""
    owners: int = 0
    reason: str = ""


def largest_gain(
    label: str,
    tasks: Sequence[tuple[Task, float, Sequence[tuple[int, Workload]]]],
    owners: int,
    data: str | PathLike[str] | None,
    tell: Callable[[str], None],
) -> Lying:
    """Choose a lie on the first half of the seeds and measure it on the second.

    Parameters
    ----------
    label : str
        The contestant.
    tasks : sequence of (Task, load, sequence of (seed, Workload))
        Markets as they are at that load; two seeds at least.
    owners : int
        Jobs that are looked at in each market.
    data : path, optional
        Folder of recorded traces.
    tell : function of str
        Called with what comes now.
    """
    chosen: list[pd.DataFrame] = []
    for task, load, worlds in tasks:
        for seed, workload in worlds[: len(worlds) // 2]:
            tell(f"{label}: lies, {task.name}, seed {seed}")
            chosen.append(_gains(label, task, load, seed, workload, owners, FAMILIES, data))
    found = pd.concat(chosen, ignore_index=True)
    tried = found.groupby(["task", "family", "conduct"], sort=True)["gain"]
    screened = tried.mean()[tried.size() >= FEWEST]
    if screened.empty:
        return Lying(
            reason=f"at most {tried.size().max()} owners could play a lie: {FEWEST} wanted, more owners or runs"
        )
    if not float(screened.max()) > LEAST_GAIN:
        return Lying()
    name, family, conduct = cast("tuple[str, str, str]", screened.idxmax())
    task, load, worlds = next(each for each in tasks if each[0].name == name)
    measured = []
    for seed, workload in worlds[len(worlds) // 2 :]:
        tell(f"{label}: {conduct}, {task.name}, seed {seed}")
        rows = _gains(label, task, load, seed, workload, owners, (family,), data)
        measured.append(rows[rows["conduct"] == conduct])
    gain = pd.concat(measured)["gain"]
    if len(gain) < 2:
        return Lying(task=name, conduct=f"{family}: {conduct}", owners=len(gain))
    over = spread(gain.to_numpy())
    return Lying(over.mean, over.low, over.high, name, f"{family}: {conduct}", len(gain))


def _gains(
    label: str,
    task: Task,
    load: float,
    seed: int,
    workload: Workload,
    owners: int,
    families: Sequence[str],
    data: str | PathLike[str] | None,
) -> pd.DataFrame:
    """Return what each conduct gains each owner in one market, as a share of its job's highest value."""
    scenario = named_mechanisms(task.scenario, [label])[0].scenario
    if not task.is_log:
        scenario = scenario.with_capacity(workload.capacity_at(load))
    setup = scenario.setup(np.random.default_rng(np.random.SeedSequence(seed)), data=data, workload=workload)
    arriving = [job.name for job in workload.jobs if job.arrival is not None]
    order = np.random.default_rng([_DRAWN, seed]).permutation(len(arriving))[:owners]
    rows: list[dict[str, Any]] = play_conducts(setup, [arriving[i] for i in order], families=families).rows
    table = pd.DataFrame(rows, columns=["job", "family", "conduct", "truth", "utility", "highest_value"])
    table["gain"] = (table["utility"] - table["truth"]) / table["highest_value"]
    return table.assign(task=task.name, seed=seed)
