"""Alibaba PAI GPU cluster 2020 (cluster-trace-gpu-v2020): the machines, and mini-batch times of four training jobs.

Source: CC BY 4.0; Weng et al., "MLaaS in the Wild", NSDI 2022.
"""

from __future__ import annotations

import pandas as pd

from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.folder import Source
from marketsched.worlds.traces.tables import Column, read_table, whole

MACHINES = (
    Column("machine", "str"),
    Column("gpu_type", "str"),
    whole("cap_cpu"),
    whole("cap_mem"),
    Column("cap_gpu", "int8", low=0, high=64),
)


MINIBATCHES = (
    whole("job"),
    whole("worker"),
    whole("gpu"),
    whole("time"),
    Column("batch_time_norm", "float64", low=0.0),
)


def read_machines(source: Source = None) -> pd.DataFrame:
    """Return the machines.

    Parameters
    ----------
    source : path, optional
        Data folder or file; None: the folder named by ``MARKETSCHED_DATA``.

    Returns
    -------
    DataFrame
        ``machine`` (hashed name), ``gpu_type`` (text; CPU: none), ``cap_cpu`` (int32, cores),
        ``cap_mem`` (int32, GB), ``cap_gpu`` (int8, GPUs).

    Raises
    ------
    MissingDataError
        If the folder or the file is not there.
    TraceError
        If the file is damaged or malformed; the message names file and line.
    """
    return read_table(TRACES["pai-machines"].path(source), MACHINES)


def read_minibatches(source: Source = None) -> pd.DataFrame:
    """Return the time of every mini-batch of four training jobs.

    Parameters
    ----------
    source : path, optional
        Data folder or file; None: the folder named by ``MARKETSCHED_DATA``.

    Returns
    -------
    DataFrame
        ``job`` (1 to 4), ``worker`` (0 to 9), ``gpu`` (per cent of one GPU for each worker), ``time``
        (iteration; int32 all of them), ``batch_time_norm`` (float64, time scaled to 0 .. 1000 within the
        job: only ratios mean something). Not every worker has every iteration.

    Raises
    ------
    MissingDataError, TraceError
        As :func:`read_machines`.
    """
    return read_table(TRACES["pai-minibatches"].path(source), MINIBATCHES)
