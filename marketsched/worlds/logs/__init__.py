"""Logs of jobs as markets: any table of runs, whatever file it came from."""

KINDS = (
    "swf",
    "csv",
    "sacct",
    "philly",
    "google-jobs",
    "google-demand",
    "google-tasks",
    "openb-pods",
    "spot-gpu",
)  # of workloads, by format
