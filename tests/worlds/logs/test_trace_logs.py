"""Recorded traces read as logs, on small samples made in their formats."""

import gzip

import pytest

from marketsched.worlds.logs.trace_logs import (
    google_demand_log,
    google_jobs_log,
    google_tasks_log,
    openb_log,
    philly_log,
)
from marketsched.worlds.traces import get_trace

SAMPLES = {  # the reader, rows of the columns that it needs (others are 0), and the log by hand
    "philly-jobs": (
        philly_log,
        ["timestamp=2017-10-09 07:01:55,duration=66,num_gpus=2,cluster=b",
         "timestamp=2017-10-09 07:00:55,duration=5,num_gpus=1,cluster=a"],
        {"submit_s": [0, 60], "run_s": [5, 66], "processors": [1, 2], "user": ["a", "b"]},
    ),
    "google-jobs": (
        google_jobs_log,
        ["user=7,group=8,sched_class=3,submit_s=0,run_s=9", "user=7,group=8,sched_class=3,submit_s=0.5,run_s=9",
         "user=5,group=6,sched_class=0,submit_s=1,run_s=4", "user=5,group=6,sched_class=1,submit_s=2,run_s="],
        {"submit_s": [0.5, 1], "run_s": [9, 4], "processors": [1, 1], "user": ["7", "5"], "executable": ["8", "6"],
         "urgency": [2, 0]},
    ),
    # A node has 1/16 of the largest machine's CPU; a task that asks for less than a tenth of it counts as that.
    "google-demand": (
        google_demand_log,
        ["user=7,group=8,sched_class=2,submit_s=0,run_s=9,n_tasks=3,cpu_req=0.125",
         "user=7,group=8,sched_class=3,submit_s=1,run_s=9,n_tasks=21,cpu_req=0",
         "user=5,group=8,sched_class=1,submit_s=2,run_s=9,n_tasks=1000,cpu_req=0.5"],
        {"submit_s": [0, 1, 2], "processors": [6, 3, 64], "user": ["7", "7", "5"], "executable": ["8"] * 3,
         "urgency": [2, 2, 1]},
    ),
    "google-tasks": (
        google_tasks_log,
        ["user=7,group=8,sched_class=3,sched_s=7300,wait_s=40,run_s=9",
         "user=7,group=6,sched_class=1,sched_s=7250,wait_s=,run_s=3"],
        {"submit_s": [7250, 7260], "run_s": [3, 9], "processors": [1, 1], "executable": ["6", "8"], "urgency": [1, 2]},
    ),
    "openb-pods": (
        openb_log,
        [f"name=p,num_gpu={gpus},qos={qos},pod_phase=Running,creation_time={i},scheduled_time={placed},deletion_time=90"
         for i, (gpus, qos, placed) in enumerate(
             [(0, "BE", 10), (1, "LS", 20), (2, "Burstable", 30), (8, "Guaranteed", 40), (1, "New", 50), (1, "LS", "")]
         )],
        {"submit_s": [0, 1, 2, 3, 4], "run_s": [80, 70, 60, 50, 40], "processors": [1, 1, 2, 8, 1],
         "urgency": [0, 2, 1, 1, 1], "queue": ["BE", "LS", "Burstable", "Guaranteed", "New"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_a_recorded_trace_is_a_log(tmp_path, name):
    read, rows, expected = SAMPLES[name]
    trace = get_trace(name)
    columns = [column.name for column in trace.columns]
    fields = [dict(each.split("=") for each in row.split(",")) for row in rows]
    lines = [",".join(columns), *(",".join(row.get(column, "0") for column in columns) for row in fields)]
    text = ("\n".join(lines) + "\n").encode()
    (tmp_path / trace.file).write_bytes(gzip.compress(text) if trace.file.endswith(".gz") else text)
    log = read(tmp_path)
    assert {column: log.table[column].tolist() for column in expected} == expected
    assert log.source == trace.source and log.nodes is None
