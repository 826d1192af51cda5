"""The table of known traces: the content, origin and columns of each file."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from marketsched.mechanisms.errors import UnknownNameError
from marketsched.mechanisms.registry import get, names, register
from marketsched.worlds.traces.columns import MINUTES, Column, seconds, whole
from marketsched.worlds.traces.trace import Source, Trace

if TYPE_CHECKING:
    import pandas as pd

_GOOGLE = ("CC BY 4.0", "Google cluster data 2011-2 (J. Wilkes, C. Reiss); names replaced by numbers")
_OPENB = ("Apache-2.0", "Alibaba cluster-trace-gpu-v2023, openb; Weng et al., USENIX ATC 2023")
_PAI = ("CC BY 4.0", "Alibaba cluster-trace-gpu-v2020; Weng et al., NSDI 2022")
_ARCHIVE = "Parallel Workloads Archive, D. Feitelson, Hebrew University; with thanks to"

# What the Google files share. Times are seconds of the trace's own clock, which starts 600 s before the first event;
# (user, group) is one recurring job: the group stands for the program's logical name. sched_class 3 is the most
# sensitive to latency; priority 0-1 is "free", 9-11 "production", the rest between. end_event: 2 evicted, 3 failed,
# 4 finished, 5 killed, 6 lost, 0 had not ended. Requests are those of one task, in shares of the largest machine.
_USER, _GROUP = whole("user"), whole("group")
_CLASS = Column("sched_class", "int8", low=0, high=3)
_PRIORITY = Column("priority", "int8", low=0, high=11)
_END = Column("end_event", "int8", low=0, high=6)
_TIMES = (seconds("wait_s", required=False), seconds("run_s", required=False))
_CPU = Column("cpu_req", "float64", low=0, high=1)
_MEMORY = Column("mem_req", "float64", low=0, high=1)


def _text(name: str, required: bool = False) -> Column:
    return Column(name, "str", required=required)


def _amount(name: str) -> Column:
    return Column(name, "float64", required=False, low=0.0)


_QUOTED = re.compile(rb',"([^"\n]*)"(?=\r?$)', re.M)


def _without_quotes(line: bytes) -> bytes:
    """Return a line with semicolons for the commas of a last field in quotes, which are dropped."""
    return _QUOTED.sub(lambda found: b"," + found[1].replace(b",", b";"), line) if b'"' in line else line


# Pods of openb, in two files that differ in gpu_spec alone.
_POD = (
    _text("name", True), whole("cpu_milli"), whole("memory_mib"), Column("num_gpu", "int8", low=0, high=8),
    Column("gpu_milli", "int16", low=0, high=1000), _text("gpu_spec"), _text("qos", True), _text("pod_phase", True),
    seconds("creation_time"), seconds("deletion_time"), seconds("scheduled_time", required=False),
)  # fmt: skip
_ABOUT_PODS = (
    "In order of creation. cpu_milli 1000 = one core; gpu_milli is the share of one GPU where num_gpu is 1, 1000 = "
    "whole. Times in seconds; scheduled_time is not known of pods that were never placed; deletion - scheduled is "
    "the duration, of running pods, too."
)
_SPOT = (
    "research and study",
    "Alibaba cluster-trace-v2026-spot-gpu; Duan et al., ASPLOS 2026",
)


def _read_series(path: Path) -> pd.DataFrame:
    from marketsched.worlds.traces.spot_series import read_spot_series  # pandas, which a list of the traces needs not

    return read_spot_series(path)


def _read_log(path: Path) -> pd.DataFrame:
    from marketsched.worlds.traces.swf import read_swf  # pandas, as above

    return read_swf(path)


_KNOWN = (
    Trace(
        "google-jobs",
        "every job of one Google cell in 29 days, with user and recurring-job name",
        ("google2011_jobs_29d.csv.gz",),
        *_GOOGLE,
        (_USER, _GROUP, _CLASS, seconds("submit_s"), *_TIMES, _END),
        "In order of submission. Jobs with submit_s 0 were there before the trace starts: their times are not their "
        "true ones.",
    ),
    Trace(
        "google-demand",
        "jobs of the first 19.3 h with task count, CPU, memory, priority",
        ("google2011_jobs_demand_19h.csv",),
        *_GOOGLE,
        (
            whole("job_id", 64), _USER, _GROUP, _CLASS, _PRIORITY, seconds("submit_s"), *_TIMES, _END,
            whole("n_tasks", low=1), _CPU, _MEMORY, Column("disk_req", "float64", low=0, high=1),
            Column("spread", "int8", low=0, high=1),
        ),
        "In order of submission. job_id is Google's own; a request of 0 occurs; spread 1: tasks on different machines.",
    ),
    Trace(
        "google-tasks",
        "each start of a task on a machine within 3 h, its run time and how it ended",
        ("google2011_task_runs_3h.csv.gz",),
        *_GOOGLE,
        (
            seconds("sched_s"), *_TIMES, _END, whole("job_id", 64), _USER, _GROUP, whole("task"), whole("machine", 64),
            _CLASS, _PRIORITY, _CPU, _MEMORY,
        ),
        "In order of start, sched_s. task is its index in the job; a task that was evicted has one row per start.",
    ),
    Trace(
        "openb-pods",
        "Alibaba GPU cluster: pods with CPU, memory, GPU, QoS, times",
        ("openb2023_pods.csv", "openb_pod_list_default.csv"),
        *_OPENB,
        _POD,
        _ABOUT_PODS,
    ),
    Trace(
        "openb-pods-kinds",
        "the same pods; a third of those with a GPU name the models they accept",
        ("openb2023_pods_gpuspec33.csv", "openb_pod_list_gpuspec33.csv"),
        *_OPENB,
        _POD,
        f"{_ABOUT_PODS} gpu_spec holds the models of GPU that a pod accepts, joined by |; empty: any.",
    ),
    Trace(
        "openb-nodes",
        "Alibaba GPU cluster: machines",
        ("openb2023_nodes.csv", "openb_node_list_all_node.csv"),
        *_OPENB,
        (
            _text("sn", True), whole("cpu_milli"), whole("memory_mib"), Column("gpu", "int8", low=0, high=64),
            _text("model"),
        ),
        "sn is the name, gpu the number of GPUs, an empty model: no GPU.",
    ),
    Trace(
        "pai-machines",
        "Alibaba PAI GPU cluster 2020: machines",
        ("pai2020_machines.csv",),
        *_PAI,
        (
            _text("machine", True), _text("gpu_type", True), whole("cap_cpu"), whole("cap_mem"),
            Column("cap_gpu", "int8", low=0, high=64),
        ),
        "machine is a hashed name; gpu_type CPU: none; cap_cpu in cores, cap_mem in GB, cap_gpu in GPUs.",
    ),
    Trace(
        "pai-minibatches",
        "Alibaba PAI: mini-batch time per worker and iteration, 4 training jobs",
        ("pai2020_minibatch_jobs.csv",),
        *_PAI,
        (whole("job"), whole("worker"), whole("gpu"), whole("time"), Column("batch_time_norm", "float64", low=0.0)),
        "job 1 to 4, worker 0 to 9, gpu in per cent of one GPU for each worker, time is the iteration; batch_time_norm "
        "is scaled to 0 .. 1000 within the job: only ratios mean something. Not every worker has every iteration.",
    ),
    Trace(
        "philly-jobs",
        "Microsoft Philly deep-learning jobs: time, duration, GPUs, virtual cluster",
        ("philly2017_jobs.csv.gz",),
        "CC BY 4.0",
        "Microsoft philly-traces, extract of ElasticFlow; Jeon et al., USENIX ATC 2019",
        (
            Column("timestamp", "datetime64[s]"), seconds("duration"), whole("num_gpus", low=1), seconds("gpu_time"),
            _text("cluster", True),
        ),
        "Not in order of time. timestamp is the submission, its zone is not stated; duration in seconds, gpu_time in "
        "GPU-seconds; cluster is the tenant, the finest owner there is. Few rows before 2017-10; 65 rows occur twice.",
    ),
    Trace(
        "nasa-ipsc",
        "NASA Ames iPSC/860 log with user and application number, 128 processors",
        ("nasa_ipsc_1993.swf.gz", "NASA-iPSC-1993-3.1-cln.swf.gz"),
        "free use, acknowledge",
        f"{_ARCHIVE} Bill Nitzberg",
        about="Columns as in swf.FIELDS. No waits (submissions are really starts) and no requested times are recorded. "
        "(user, executable) is the recurring job.",
        reader=_read_log,
    ),
    Trace(
        "hpc2n",
        "HPC2N (Seth) log with waits and requested run times, first 3,170 jobs, 240 processors",
        ("hpc2n_2002_excerpt.swf",),
        "free use, acknowledge",
        f"{_ARCHIVE} Ake Sandgren",
        about="Columns as in swf.FIELDS. 25 jobs never ran (status -1, run_s not known).",
        reader=_read_log,
    ),
    Trace(
        "lanl-outages",
        "node outages of 23 systems of Los Alamos National Laboratory, 1996 to 2005",
        ("lanl_outages_1996_2005.csv.gz",),
        "public release, recognise LANL",
        "Los Alamos National Laboratory, LA-UR-05-7318, which we recognise for providing these data",
        (
            whole("system", low=1), Column("node", "float64", required=False, low=0),
            Column("sys_nodes", "float64", required=False, low=1),
            Column("procs_per_node", "float64", required=False, low=1), _text("node_prod"), _text("node_decom"),
            _text("purpose"), Column("fail_start", "datetime64[s]", time_format=MINUTES),
            Column("fail_fixed", "datetime64[s]", time_format=MINUTES), _text("cause"), _text("detail"),
        ),
        "In order of system and node (from 0). Times are local, to the minute; commas in detail are semicolons here. "
        "The nodes of system 17 are not known; a node that never failed has no row; outages of one node may overlap.",
        _without_quotes,
    ),
    Trace(
        "spot-nodes",
        "spot machines on Amazon joining and leaving two GPU fleets, about 11 h each",
        ("spot_nodes_aws.csv",),
        "MIT",
        "uclasystem/bamboo; Thorpe et al., NSDI 2023",
        (_text("trace", True), whole("time_ms", 64), _text("event", True), _text("node", True)),
        "Fleet by fleet in order of time. trace is the fleet (p3 or g4dn), time_ms counts from its start, event is add "
        "or remove. A node is added once and removed at most once; what is left at the end is cut off.",
    ),
    Trace(
        "spot-gpu-nodes",
        "Alibaba GPU cluster with spot jobs: machines",
        ("node_info_df.csv",),
        *_SPOT,
        (
            whole("node_name"), _text("gpu_model", True), Column("gpu_capacity_num", "int16", low=1, high=64),
            whole("cpu_num", low=1),
        ),
        "gpu_capacity_num is the number of GPUs, cpu_num that of vCPUs. The file names its columns in another order "
        "than its description; any order is read.",
        any_order=True,
    ),
    Trace(
        "spot-gpu-jobs",
        "Alibaba GPU cluster with spot jobs: jobs of high priority and spot jobs, with organization and GPUs",
        ("job_info_df.csv",),
        *_SPOT,
        (
            _text("job_name", True), _text("organization"), _text("gpu_model"),
            _amount("cpu_request"), _amount("gpu_request"), _amount("worker_num"),
            seconds("submit_time"), seconds("duration", required=False),
            _text("job_type", True),
        ),
        "submit_time in seconds from the first submission, duration in seconds; gpu_request of each worker, below 1: a "
        "share of a GPU; cpu_request in vCPUs; worker_num workers; job_type HP or Spot. No user, and no request of "
        "time, is published. Columns in any order.",
        any_order=True,
    ),
    Trace(
        "spot-series",
        "how many spot machines a zone would give, and their price: a file of skypilot-org/spot-traces",
        ("us-west-2c_v100_1.json",),
        "not stated",
        "skypilot-org/spot-traces; Wu et al., NSDI 2024",
        about="time_s from the first entry on, available machines, price in dollars per machine and hour (NaN: not "
        "recorded). Files of other zones are read by their path.",
        reader=_read_series,
    ),
)  # fmt: skip

TRACES: dict[str, Trace] = {trace.name: trace for trace in _KNOWN}


DIGESTS = {  # SHA-256 of the unpacked file, as published or as docs/traces.md says it was made
    "google-jobs": "a47f0a559f786aaa65c875d1d8c2b7f25d0e1f4cc16b10ed1f74a0681b8b539b",
    "google-demand": "1d6c0c0ad00c662b2e1f388549f7ed5e5ae7bad508fe4180212fb47fe41f6b54",
    "google-tasks": "c386cab1f08c25a0a17a2b1b0d8f0fd5091a44e6ae79a19be80ea70c9984fdec",
    "hpc2n": "eaaccb339ef0f313d1b975cf02cc518b7cc012fb0c609ef2af2dbd0291aa74ba",
    "lanl-outages": "54c71ecf7b4f9b6254b856a99ec6199ddeb62c069eba42fc49e778a735d28fdd",
    "nasa-ipsc": "9d997a2c20a7f7b0b6d81638d756ce8b2c524c4f2e9ec78da36001743ca33d76",
    "openb-nodes": "5a85c2af79c66a1efff8bbcbda430400aae56d8431370d738480967e1a9c6b15",
    "openb-pods": "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
    "openb-pods-kinds": "eca4f746db1e5b25864ad021b55ece3943e101a3ebd4574d09dcb95c46117652",
    "pai-machines": "8e9bbe4a597b1cb644df45438b173d2d0ea811aa33800d73fd3f66fc3250f4d9",
    "pai-minibatches": "b00c940ec97b52bcf0b4e1d41f15a350fb49a2d777060a1d4aaf18a9b7cc9f12",
    "philly-jobs": "ebffb3dd1589bdf4e7bcd74496201c5ded1d557d498ee14f560463f37ec353da",
    "spot-nodes": "138d871cdb93de694fc1d0fd0918b67ada4ff5e4a105c9915e60cd7014dec227",
}

for _each in TRACES.values():
    register("trace", _each.name)(_each)


def get_trace(name: str) -> Trace:
    """Return a trace by name.

    Raises
    ------
    UnknownNameError
        If there is none of that name; the message lists those there are.

    Examples
    --------
    >>> get_trace("hpc2n").title
    'HPC2N (Seth) log with waits and requested run times, first 3,170 jobs, 240 processors'
    """
    found = get("trace", name)
    if isinstance(found, Trace):
        return found
    title = (found.__doc__ or "a reader without a docstring").strip().splitlines()[0].rstrip(".")
    return Trace(name, title, (f"{name}.csv",), "not stated", "not stated", reader=found)


def known_traces() -> list[Trace]:
    """Return the traces of the package, and those of users and plug-ins.

    Examples
    --------
    >>> "hpc2n" in [trace.name for trace in known_traces()]
    True
    """
    return [get_trace(name) for name in names("trace")]


def verify(name: str, source: Source = None) -> bool:
    """Return True if a trace file, unpacked, is the published one byte for byte.

    Parameters
    ----------
    name : str
        A key of :data:`DIGESTS`.
    source : path, optional
        Data folder or file; None: the folder named by ``MARKETSCHED_DATA``.

    Raises
    ------
    UnknownNameError
        If there is no such trace, or its published file is not known.
    MissingDataError, TraceError
        If the file is not there or damaged.

    Examples
    --------
    >>> verify("hpc2n", "DATA")  # doctest: +SKIP
    True
    """
    from marketsched.worlds.traces.tables import open_lines  # pandas, as above

    trace = get_trace(name)
    if name not in DIGESTS:
        raise UnknownNameError(
            f"the published file of trace {name!r} is not known: expected one of {', '.join(DIGESTS)}"
        )
    digest = hashlib.sha256()
    with open_lines(trace.path(source)) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == DIGESTS[name]
