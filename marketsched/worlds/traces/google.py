"""Google cluster data 2011: jobs of 29 days, jobs with their demand, and single task runs.

Times are seconds of the trace's own clock, which starts 600 s before the first event. ``(user,
group)`` is one recurring job: the group stands for the program's logical name. ``sched_class``
0..3 is Google's latency-sensitivity class (3 = most sensitive); ``priority`` 0-1 is "free", 9-11
"production", the rest between. ``end_event``: 2 evicted, 3 failed, 4 finished, 5 killed, 6 lost,
0 had not ended. Requests are those of one task, scaled so that the largest machine has 1.0.

Source: ClusterData2011_2 traces, John Wilkes and Charles Reiss, Google; CC BY 4.0; hashed names
replaced by small numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.folder import Source
from marketsched.worlds.traces.tables import BLOCK_ROWS, Column, read_table, seconds, stream_table, whole

_CLASS = Column("sched_class", "int8", low=0, high=3)
_PRIORITY = Column("priority", "int8", low=0, high=11)
_END = Column("end_event", "int8", low=0, high=6)
_CPU = Column("cpu_req", "float64", low=0, high=1)
_MEMORY = Column("mem_req", "float64", low=0, high=1)

JOBS = (
    whole("user"),
    whole("group"),
    _CLASS,
    seconds("submit_s"),
    seconds("wait_s", required=False),
    seconds("run_s", required=False),
    _END,
)
DEMAND = (
    whole("job_id", 64),
    whole("user"),
    whole("group"),
    _CLASS,
    _PRIORITY,
    seconds("submit_s"),
    seconds("wait_s", required=False),
    seconds("run_s", required=False),
    _END,
    whole("n_tasks", low=1),
    _CPU,
    _MEMORY,
    Column("disk_req", "float64", low=0, high=1),
    Column("spread", "int8", low=0, high=1),
)
TASKS = (
    seconds("sched_s"),
    seconds("wait_s", required=False),
    seconds("run_s", required=False),
    _END,
    whole("job_id", 64),
    whole("user"),
    whole("group"),
    whole("task"),
    whole("machine", 64),
    _CLASS,
    _PRIORITY,
    _CPU,
    _MEMORY,
)


def read_jobs(source: Source = None) -> pd.DataFrame:
    """Return every job of 29 days, one row each, in order of submission.

    Parameters
    ----------
    source : path, optional
        Data folder or file; None: the folder named by ``MARKETSCHED_DATA``.

    Returns
    -------
    DataFrame
        ``user, group`` (int32 codes), ``sched_class`` (int8), ``submit_s, wait_s, run_s``
        (float64, seconds; NaN: not known), ``end_event`` (int8). Jobs with ``submit_s`` 0 were
        there before the trace starts: their times are not their true ones.

    Raises
    ------
    MissingDataError
        If the folder or the file is not there.
    TraceError
        If the file is cut short, damaged or malformed; the message names file and line.
    """
    return read_table(TRACES["google-jobs"].path(source), JOBS)


def stream_jobs(source: Source = None, rows: int = BLOCK_ROWS) -> Iterator[pd.DataFrame]:
    """Yield the table of :func:`read_jobs` in blocks of at most ``rows`` rows."""
    return stream_table(TRACES["google-jobs"].path(source), JOBS, rows)


def read_demand(source: Source = None) -> pd.DataFrame:
    """Return the jobs of the first 19.3 hours with what they ask for, in order of submission.

    Returns
    -------
    DataFrame
        As :func:`read_jobs`, and ``job_id`` (int64, Google's own), ``priority`` (int8),
        ``n_tasks`` (int32), ``cpu_req, mem_req, disk_req`` (float64, share of the largest
        machine, one task; 0 occurs), ``spread`` (int8; 1: tasks on different machines).

    Raises
    ------
    MissingDataError, TraceError
        As :func:`read_jobs`.
    """
    return read_table(TRACES["google-demand"].path(source), DEMAND)


def read_tasks(source: Source = None) -> pd.DataFrame:
    """Return each start of a task on a machine within three hours, in order of start.

    Returns
    -------
    DataFrame
        ``sched_s`` (start), ``wait_s, run_s`` (float64, seconds), ``end_event``, ``job_id``,
        ``user, group``, ``task`` (int32 index in the job), ``machine`` (int64), ``sched_class``,
        ``priority``, ``cpu_req, mem_req``. A task that was evicted has one row per start.

    Raises
    ------
    MissingDataError, TraceError
        As :func:`read_jobs`.
    """
    return read_table(TRACES["google-tasks"].path(source), TASKS)


def stream_tasks(source: Source = None, rows: int = BLOCK_ROWS) -> Iterator[pd.DataFrame]:
    """Yield the table of :func:`read_tasks` in blocks of at most ``rows`` rows."""
    return stream_table(TRACES["google-tasks"].path(source), TASKS, rows)


def regularity(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return how regularly each recurring job is submitted.

    Jobs with ``submit_s`` 0, which were there before the trace starts, are left out.

    Parameters
    ----------
    jobs : DataFrame
        The table of :func:`read_jobs`.

    Returns
    -------
    DataFrame
        One row per ``(user, group)``, sorted: ``user, group``; ``n_runs`` (int64, submissions);
        ``period_s`` (median gap, seconds); ``regular_share`` (share of gaps within 10 % of the
        period); ``deviation_s`` (median of ``|gap - period|``). NaN with fewer than two runs.
    """
    runs = jobs.loc[jobs["submit_s"] > 0, ["user", "group", "submit_s"]]
    groups = runs.groupby(["user", "group"])
    n_runs = groups.size().rename("n_runs")
    gaps = groups["submit_s"].diff().dropna()
    code = groups.ngroup()[gaps.index]
    period = gaps.groupby(code).median()
    away = (gaps - code.map(period)).abs()
    measures = pd.DataFrame(
        {
            "period_s": period,
            "regular_share": (away <= 0.1 * code.map(period)).groupby(code).mean(),
            "deviation_s": away.groupby(code).median(),
        }
    )
    table = n_runs.reset_index()
    return table.join(measures)
