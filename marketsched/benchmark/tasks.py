"""The markets of the benchmark: fixed jobs, fixed loads, and seeds that are the hash of a public string.

Nothing was tuned on these seeds: the string was written down before any of them was drawn. Who changes a task changes
the string, too, so that scores of different tasks are never compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import read_scenario

PUBLIC = "marketsched benchmark 1"
LOADS = (0.7, 1.0, 1.5)
LOG_JOBS = 2000  # of a log, its last ones
_PRICES = {
    "name": "posted-price",
    "epsilon": 0.05,
    "threshold": 0.05,
    "pricing": {"kind": "exponential", "floor": 0.02, "ceiling": 20},
    "oracle": {"kind": "monte-carlo", "samples": 200, "refresh": 0.1, "probe_every": 500},
    "eviction": "all",
}
_RECURRING = {"kind": "synthetic-pipelines", "recurring_jobs": 40, "birth_rounds": 96}


@dataclass(frozen=True)
class Task:
    """A market of the benchmark.

    Parameters
    ----------
    name : str
        What its seeds are made of, beside `PUBLIC`.
    scenario : Scenario
        Jobs, and the rules that a contestant does not set itself.
    loads : tuple of float
        At which it is played; nodes make them, of a log the gaps between arrivals.
    is_log : bool
        Whether the machine is given.

    Examples
    --------
    >>> own_tasks()[0].loads == LOADS, own_tasks()[0].is_log
    (True, False)
    """

    name: str
    scenario: Scenario = field(repr=False)
    loads: tuple[float, ...] = LOADS
    is_log: bool = False

    def seed(self, number: int) -> int:
        """Return the seed of a run, below 2**32.

        Examples
        --------
        >>> [task.seed(0) for task in own_tasks()]
        [4007572453, 3224200118, 3146783254]
        """
        digest = hashlib.sha256(f"{PUBLIC}/{self.name}/{number}".encode()).digest()
        return int.from_bytes(digest[:4], "big")


def own_tasks() -> tuple[Task, ...]:
    """Return the tasks that ship: recurring jobs, the same with hidden durations, and jobs drawn from mixtures.

    Examples
    --------
    >>> [task.name for task in own_tasks()]
    ['recurring', 'recurring-hidden', 'mixture']
    """
    hidden = _RECURRING | {"durations": "hidden"}
    made: dict[str, Any] = {
        "recurring": {"workload": _RECURRING, "mechanism": _PRICES},
        "recurring-hidden": {"workload": hidden, "mechanism": _PRICES},
    }
    tasks = [Task(name, Scenario.from_dict({"name": name, **content})) for name, content in made.items()]
    mixture = Scenario.of("stochastic-mix").with_changes("mechanism.oracle.samples=200")
    return (*tasks, Task("mixture", mixture))


def log_tasks(paths: Sequence[str | PathLike[str]]) -> tuple[Task, ...]:
    """Return a task for each log: its last 2,000 jobs. Its name is that of the file.

    Raises
    ------
    MarketschedError
        If a log is not there or cannot be read.

    Examples
    --------
    >>> log_tasks([])
    ()
    """
    tasks = []
    for path in paths:
        content, source = read_scenario(str(path))
        content["workload"] = {**content["workload"], "most_jobs": LOG_JOBS}
        tasks.append(Task(Path(path).name, Scenario.from_dict(content, source=source), is_log=True))
    return tuple(tasks)
