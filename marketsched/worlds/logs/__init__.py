"""Logs of jobs as markets: any table of runs, from any file. Each format is declared here, once.

A format is a row of `FORMATS` and a function that reads it, a path to a `JobLog`. What `compare` recognises, the kinds
of workloads and the errors that list formats are made from the rows. Functions are named by text, so that nothing is
loaded before a log is read.
"""

from typing import NamedTuple


class LogFormat(NamedTuple):
    """A format of a log.

    Attributes
    ----------
    title : str
        What it is, a sentence.
    read : str
        ``module:function`` of this room; takes the path, with ``text`` also the names of columns, with ``counts`` also
        ``strict``.
    begins : str
        ``module:function`` that tells a file by its first line, in the order of the rows; empty: by its columns alone.
    trace : str
        The trace whose columns it has, which is read if no path is given; empty: none.
    endings : tuple of str
        Of names of files, which alone tell the format.
    text : bool
        A table of text, whose columns may have other names.
    counts : bool
        Malformed rows are left out and counted.
    """

    title: str
    read: str
    begins: str = ""
    trace: str = ""
    endings: tuple[str, ...] = ()
    text: bool = False
    counts: bool = False


FORMATS: dict[str, LogFormat] = {
    "philly": LogFormat("The jobs of Microsoft's Philly cluster.", "trace_logs:philly_log", trace="philly-jobs"),
    "google-jobs": LogFormat(
        "Every job of a Google cell in 29 days.", "trace_logs:google_jobs_log", trace="google-jobs"
    ),
    "google-demand": LogFormat(
        "The jobs of 19 hours, with what they ask for.", "trace_logs:google_demand_log", trace="google-demand"
    ),
    "google-tasks": LogFormat(
        "The starts of tasks within 3 hours.", "trace_logs:google_tasks_log", trace="google-tasks"
    ),
    "openb-pods": LogFormat("The pods of Alibaba's GPU cluster.", "trace_logs:openb_log", trace="openb-pods"),
    "spot-gpu": LogFormat(
        "The jobs of Alibaba's cluster with spot GPUs.", "trace_logs:spot_gpu_log", trace="spot-gpu-jobs"
    ),
    "sacct": LogFormat(
        "The jobs of a Slurm cluster, as ``sacct -P`` prints them.",
        "text_logs:sacct_log",
        "text_logs:is_sacct",
        text=True,
        counts=True,
    ),
    "pbs": LogFormat(
        "The jobs of a PBS cluster, as its accounting files have them.",
        "text_logs:pbs_log",
        "pbs_accounting:is_accounting",
        text=True,
        counts=True,
    ),
    "csv": LogFormat(
        "A table of text with a header, whatever its columns are called.",
        "text_logs:csv_log",
        "text_logs:is_table",
        endings=(".csv", ".tsv"),
        text=True,
        counts=True,
    ),
    "swf": LogFormat(
        "A log in Standard Workload Format, plain or gzip.",
        "swf_logs:swf_log",
        "swf_logs:is_swf",
        endings=(".swf",),
        counts=True,
    ),
}
KINDS = tuple(FORMATS)  # of workloads, by format


def class_name(kind: str) -> str:
    """Return what the workload of a format is called in `marketsched.worlds.logs.kinds`: ``SpotGpuLog``."""
    return "".join(part.capitalize() for part in kind.split("-")) + "Log"


ENTRIES = {"workload": {kind: f"marketsched.worlds.logs.kinds:{class_name(kind)}" for kind in FORMATS}}
