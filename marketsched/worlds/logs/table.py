"""The market of a log that is a data frame."""

from __future__ import annotations

import numpy as np
import pandas as pd

from marketsched.mechanisms.legal import Positive, legal
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.market import Window, market_of
from marketsched.worlds.logs.rule import LogRule
from marketsched.worlds.workload import Workload


@legal
def workload_of_log(
    log: pd.DataFrame,
    *,
    rng: np.random.Generator | int | None = None,
    name: str = "log",
    days: Positive = 1.0,
    load: Positive = 1.2,
    rule: LogRule | None = None,
) -> Workload:
    """Return the market of the last ``days`` of a log.

    Parameters
    ----------
    log : DataFrame
        One row per run: ``submit_s, run_s`` (seconds) and ``processors``; where known ``requested_s``, ``user``,
        ``executable``, ``queue``, ``urgency``, ``status`` (-1 or NaN: not known). Runs without length or
        processors do not count.
    rng : Generator or int, optional
        Draws values that the log does not record; see `marketsched.worlds.logs.rule`.
    name : str
        The name of the workload.
    days, load : float
        Length of the market, and its work as a share of what its nodes can do; at least the nodes of the widest job.
    rule : LogRule, optional
        The rule for drawn and announced values and the length of a round.

    Raises
    ------
    InvalidParameterError
        If a column is missing, or no run is in these days.

    Examples
    --------
    >>> log = pd.DataFrame({"submit_s": [0.0, 600.0, 900.0], "run_s": [600.0, 300.0, 300.0], "processors": [1, 2, 1]})
    >>> len(workload_of_log(log, rng=1).jobs)
    3
    """
    return market_of(JobLog.of(log), Window(days=days, load=load), rule or LogRule(), rng=rng, name=name)
