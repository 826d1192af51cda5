"""Logs of jobs as markets: any table of runs, from any file."""

KINDS = (
    "swf",
    "csv",
    "sacct",
    "pbs",
    "philly",
    "google-jobs",
    "google-demand",
    "google-tasks",
    "openb-pods",
    "spot-gpu",
)  # of workloads, by format
