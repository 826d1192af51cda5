"""Recorded traces read as logs: Philly, Google, Alibaba."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from marketsched.worlds.demand import nodes_of
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.traces.catalogue import TRACES

WIDEST_GOOGLE_JOB = 64  # nodes
_URGENCY_OF_QOS = {"BE": 0, "Burstable": 1, "Guaranteed": 1, "LS": 2}


def philly_log(path: Path) -> JobLog:
    """Return the Philly log: GPUs as processors, the virtual cluster as user."""
    table = TRACES["philly-jobs"].read(path)
    seconds = (table["timestamp"] - table["timestamp"].min()).dt.total_seconds()
    runs = {"submit_s": seconds, "run_s": table["duration"], "processors": table["num_gpus"], "user": table["cluster"]}
    return JobLog.of(pd.DataFrame(runs), TRACES["philly-jobs"].source)


def google_jobs_log(path: Path) -> JobLog:
    """Return Google's jobs of 29 days: one node each, as no width is recorded; those of time 0 are left out."""
    table = TRACES["google-jobs"].read(path)
    table = table[table["submit_s"] > 0].rename(columns={"group": "executable"})
    table["processors"], table["urgency"] = 1, table["sched_class"].clip(upper=2)
    return JobLog.of(table, TRACES["google-jobs"].source)


def google_demand_log(path: Path) -> JobLog:
    """Return Google's jobs of 19 hours: nodes by their tasks and processors, at most `WIDEST_GOOGLE_JOB`."""
    table = TRACES["google-demand"].read(path).rename(columns={"group": "executable"})
    table["processors"] = nodes_of(table["n_tasks"].to_numpy(), table["cpu_req"].to_numpy(), WIDEST_GOOGLE_JOB)
    table["urgency"] = table["sched_class"].clip(upper=2)
    return JobLog.of(table, TRACES["google-demand"].source)


def google_tasks_log(path: Path) -> JobLog:
    """Return Google's starts of tasks within 3 h: one node each, submitted when they began to wait."""
    table = TRACES["google-tasks"].read(path).rename(columns={"group": "executable"})
    table["submit_s"], table["start_s"] = table["sched_s"] - table["wait_s"].fillna(0.0), table["sched_s"]
    table["processors"], table["urgency"] = 1, table["sched_class"].clip(upper=2)
    return JobLog.of(table, TRACES["google-tasks"].source)


def openb_log(path: Path) -> JobLog:
    """Return the pods of openb: GPUs as nodes (a pod without one, or with a share of one, takes one)."""
    table = TRACES["openb-pods"].read(path)
    runs = {
        "submit_s": table["creation_time"],
        "start_s": table["scheduled_time"],
        "run_s": table["deletion_time"] - table["scheduled_time"],
        "processors": np.maximum(table["num_gpu"].to_numpy(), 1),
        "urgency": table["qos"].map(_URGENCY_OF_QOS).fillna(1),
        "queue": table["qos"],
    }
    return JobLog.of(pd.DataFrame(runs), TRACES["openb-pods"].source)


def spot_gpu_log(path: Path) -> JobLog:
    """Return the jobs of Alibaba's cluster with spot GPUs: GPUs as nodes (a worker with a share of one takes one).

    The organization stands for the user; jobs of high priority are urgent, spot jobs patient; GPUs of all models
    are one pool, the model is the queue.
    """
    table = TRACES["spot-gpu-jobs"].read(path)
    runs = {
        "submit_s": table["submit_time"],
        "run_s": table["duration"],
        "processors": np.maximum(np.ceil(table["gpu_request"]), 1) * table["worker_num"],
        "user": table["organization"],
        "urgency": table["job_type"].map({"Spot": 0, "HP": 2}).fillna(1),
        "queue": table["gpu_model"],
    }
    return JobLog.of(pd.DataFrame(runs), TRACES["spot-gpu-jobs"].source)
