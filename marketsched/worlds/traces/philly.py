"""Microsoft Philly 2017: deep-learning jobs with submission time, duration, GPUs and tenant.

No user or job name is recorded, so the tenant (virtual cluster) is the finest owner. An extract of
the published jobs; few rows before 2017-10, and 65 rows occur twice.

Source: philly-traces, CC BY 4.0; Jeon et al., USENIX ATC 2019; extract of ElasticFlow, Apache-2.0.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.folder import Source
from marketsched.worlds.traces.tables import BLOCK_ROWS, Column, read_table, seconds, stream_table, whole

JOBS = (
    Column("timestamp", "datetime64[s]"),
    seconds("duration"),
    whole("num_gpus", low=1),
    seconds("gpu_time"),
    Column("cluster", "str"),
)


def read_jobs(source: Source = None) -> pd.DataFrame:
    """Return the jobs, in the file's order, which is not that of time.

    Parameters
    ----------
    source : path, optional
        Data folder or file; None: the folder named by ``MARKETSCHED_DATA``.

    Returns
    -------
    DataFrame
        ``timestamp`` (datetime64[s], submission; zone not stated), ``duration`` (float64,
        seconds), ``num_gpus`` (int32), ``gpu_time`` (float64, GPU-seconds), ``cluster`` (text,
        the tenant).

    Raises
    ------
    MissingDataError
        If the folder or the file is not there.
    TraceError
        If the file is cut short, damaged or malformed; the message names file and line.
    """
    return read_table(TRACES["philly-jobs"].path(source), JOBS)


def stream_jobs(source: Source = None, rows: int = BLOCK_ROWS) -> Iterator[pd.DataFrame]:
    """Yield the table of :func:`read_jobs` in blocks of at most ``rows`` rows."""
    return stream_table(TRACES["philly-jobs"].path(source), JOBS, rows)
