"""Alibaba GPU cluster 2023 (openb): pods with their requests and times, and the machines.

No user or job name is recorded: the request itself (:data:`JOB_TYPE`) is the job type. Rows thin
out backwards in time, so arrival rates are those of the last 30 days (:func:`last_days`).

Source: cluster-trace-gpu-v2023, Apache-2.0; Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
"""

from __future__ import annotations

import pandas as pd

from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.folder import Source
from marketsched.worlds.traces.tables import Column, read_table, seconds, whole

JOB_TYPE = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos")

PODS = (
    Column("name", "str"),
    whole("cpu_milli"),
    whole("memory_mib"),
    Column("num_gpu", "int8", low=0, high=8),
    Column("gpu_milli", "int16", low=0, high=1000),
    Column("gpu_spec", "str", required=False),
    Column("qos", "str"),
    Column("pod_phase", "str"),
    seconds("creation_time"),
    seconds("deletion_time"),
    seconds("scheduled_time", required=False),
)
NODES = (
    Column("sn", "str"),
    whole("cpu_milli"),
    whole("memory_mib"),
    Column("gpu", "int8", low=0, high=64),
    Column("model", "str", required=False),
)


def read_pods(source: Source = None) -> pd.DataFrame:
    """Return the pods, in order of creation.

    Parameters
    ----------
    source : path, optional
        Data folder or file; None: the folder named by ``MARKETSCHED_DATA``.

    Returns
    -------
    DataFrame
        ``name``; ``cpu_milli`` (int32, 1000 = one core); ``memory_mib`` (int32); ``num_gpu``
        (int8); ``gpu_milli`` (int16, share of one GPU when ``num_gpu`` is 1, 1000 = whole);
        ``gpu_spec, qos, pod_phase`` (text); ``creation_time, deletion_time, scheduled_time``
        (float64, seconds; ``scheduled_time`` is NaN for pods that were never placed). "Running"
        pods have a deletion time too: deletion - scheduled is the duration.

    Raises
    ------
    MissingDataError
        If the folder or the file is not there.
    TraceError
        If the file is damaged or malformed; the message names file and line.
    """
    return read_table(TRACES["openb-pods"].path(source), PODS)


def read_nodes(source: Source = None) -> pd.DataFrame:
    """Return the machines.

    Returns
    -------
    DataFrame
        ``sn`` (name), ``cpu_milli, memory_mib`` (int32), ``gpu`` (int8, number of GPUs),
        ``model`` (text; empty: no GPU).

    Raises
    ------
    MissingDataError, TraceError
        As :func:`read_pods`.
    """
    return read_table(TRACES["openb-nodes"].path(source), NODES)


def last_days(pods: pd.DataFrame, days: float = 30.0) -> pd.DataFrame:
    """Return the pods created in the last ``days`` days of the file."""
    recent: pd.DataFrame = pods.loc[pods["creation_time"] > pods["creation_time"].max() - days * 86_400]
    return recent
