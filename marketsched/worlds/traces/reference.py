"""Reference statistics of the trace files, each printed value beside how it is found in a table.

Every function yields (quantity, printed value, found value). Quantile rows are those at 5, 25, 50,
75, 90, 95 and 99 %, linear interpolation, unknown values dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from marketsched.worlds.traces.derived import JOB_TYPE, last_days, regularity
from marketsched.worlds.traces.spot_series import spot_statistics

QUANTILES = (0.05, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99)
RECURRING = ["user", "group"]

Statistic = tuple[str, str, float]


def _quantiles(quantity: str, printed: str, values: pd.Series[Any]) -> Iterator[Statistic]:
    """Yield the seven quantiles of a column; ``printed`` has them separated by " / "."""
    found = np.quantile(values.dropna().to_numpy(), QUANTILES)
    for p, text, x in zip(QUANTILES, printed.split(" / "), found, strict=True):
        yield f"{quantity}, {p:.0%} quantile", text, float(x)


def counts(quantity: str, printed: dict[Any, str], values: pd.Series[Any]) -> Iterator[Statistic]:
    """Yield how often each value occurs, and that no other value does."""
    found = values.value_counts()
    for value, text in printed.items():
        yield f"{quantity} = {value}", text, float(found.get(value, 0))
    yield f"{quantity}: other values", "0", float(len(set(found.index) - set(printed)))


def _group_sizes(columns: list[str], printed: dict[int, tuple[str, str]], table: pd.DataFrame) -> Iterator[Statistic]:
    """Yield, for each least size, how many groups reach it and how many rows they hold."""
    sizes = table.groupby(columns).size()
    for least, (groups, rows) in printed.items():
        large = sizes[sizes >= least]
        yield f"groups by {', '.join(columns)} with >= {least} rows", groups, len(large)
        yield f"rows in groups with >= {least} rows", rows, int(large.sum())


def _per_hour(times: pd.Series[Any]) -> float:
    """Return how many rows there are per hour of the span of ``times``, seconds."""
    return float(len(times) / ((times.max() - times.min()) / 3600))


def _google_jobs(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the 29-day file of jobs."""
    started = table[table["submit_s"] > 0]
    yield "rows", "672074", len(table)
    yield "rows with submit_s = 0", "3986", len(table) - len(started)
    yield "rows without run_s", "3989", int(table["run_s"].isna().sum())
    yield "users", "933", table["user"].nunique()
    yield "group codes", "39730", table["group"].nunique()
    sizes = {1: ("40934", "672074"), 5: ("9296", "629243"), 20: ("4206", "575715"), 31282: ("1", "31282")}
    yield from _group_sizes(RECURRING, sizes, table)
    yield from counts("sched_class", {0: "257275", 1: "215109", 2: "194513", 3: "5177"}, table["sched_class"])
    ends = {0: "3989", 2: "22", 3: "10124", 4: "385582", 5: "272341", 6: "16"}
    yield from counts("end_event", ends, table["end_event"])
    yield "arrivals per hour", "959.9", _per_hour(started["submit_s"])
    yield "first submission, s", "604.05", started["submit_s"].min()
    yield "last submission, s", "2506179.28", started["submit_s"].max()
    yield from _quantiles("run_s", "21.58 / 62.01 / 176.52 / 444.87 / 1698.61 / 3941.73 / 43871.86", table["run_s"])
    yield from _quantiles("wait_s", "0.70 / 1.31 / 1.71 / 2.46 / 4.07 / 6.40 / 32.84", started["wait_s"])
    for k, text in enumerate(("116.58", "166.04", "238.17", "4716.26")):
        yield f"median run_s of class {k}", text, table.loc[table["sched_class"] == k, "run_s"].median()
    yield "median run_s, finished normally", "108.69", table.loc[table["end_event"] == 4, "run_s"].median()
    days = "19751 23614 22246 22374 22817 21343 17951 22251 23018 24518 25514 23762 19426 15784 20037 25392 23995 44437"
    days += " 26809 22500 19422 22115 25038 25253 20866 26837 21948 21361 17709"
    found = np.bincount(((started["submit_s"].to_numpy() - 600) // 86_400).astype(np.int64), minlength=29)
    for day, text in enumerate(days.split(), start=1):
        yield f"jobs submitted on day {day}", text, int(found[day - 1])
    yield from _google_regularity(table)


def _google_regularity(table: pd.DataFrame) -> Iterator[Statistic]:
    """How regular the recurring jobs are."""
    known = regularity(table)
    known = known[(known["n_runs"] >= 20) & (known["period_s"] > 0)]
    yield "recurring jobs with >= 20 submissions and a period", "4193", len(known)
    yield "of these, share >= 0.5", "2878", int((known["regular_share"] >= 0.5).sum())
    periodic = known[known["regular_share"] >= 0.8]
    yield "periodic: share >= 0.8", "2159", len(periodic)
    yield "their submissions", "249310", int(periodic["n_runs"].sum())
    yield "their users", "80", periodic["user"].nunique()
    for low, high, text in ((240, 360, "5"), (3240, 3960, "113"), (7920, 12960, "219"), (82000, 91000, "1516")):
        found = ((periodic["period_s"] > low) & (periodic["period_s"] <= high)).sum()
        yield f"periods in ({low}, {high}] s", text, int(found)
    spread = "5.83 / 26.92 / 86.06 / 141.93 / 792.77 / 1351.81 / 2343.86"
    yield from _quantiles("median |gap - period|, s", spread, periodic["deviation_s"])


def _google_demand(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the 19-hour file of jobs with their demand."""
    yield "rows", "15009", len(table)
    yield "users", "152", table["user"].nunique()
    yield "group codes", "4308", table["group"].nunique()
    yield from _group_sizes(RECURRING, {1: ("4322", "15009"), 5: ("518", "10384")}, table)
    yield from counts("sched_class", {0: "5754", 1: "5570", 2: "3568", 3: "117"}, table["sched_class"])
    yield from counts("end_event", {0: "6", 2: "1", 3: "188", 4: "9573", 5: "5239", 6: "2"}, table["end_event"])
    yield "arrivals per hour", "776.5", _per_hour(table["submit_s"])
    yield "first submission, s", "604.05", table["submit_s"].min()
    yield "last submission, s", "70189.7", table["submit_s"].max()
    yield from _quantiles("run_s", "22.35 / 46.56 / 165.63 / 415.57 / 1632.22 / 4489.36 / 39019.09", table["run_s"])
    yield from _quantiles("wait_s", "0.79 / 1.49 / 1.64 / 2.02 / 3.06 / 4.09 / 23.46", table["wait_s"])
    yield from _quantiles("n_tasks", "1 / 1 / 1 / 1 / 18 / 100 / 967", table["n_tasks"])
    yield "largest n_tasks", "10500", table["n_tasks"].max()
    yield from _quantiles("cpu_req", "0 / 0.00625 / 0.0125 / 0.03125 / 0.0625 / 0.06873 / 0.125", table["cpu_req"])
    yield "largest cpu_req", "0.5", table["cpu_req"].max()
    memory = "0.00016 / 0.00311 / 0.00777 / 0.0159 / 0.03339 / 0.04773 / 0.1034"
    yield from _quantiles("mem_req", memory, table["mem_req"])
    yield "largest mem_req", "0.2544", table["mem_req"].max()
    bands = {0: "3866", 1: "3005", 2: "3909", 4: "470", 6: "202", 8: "2350", 9: "1206", 10: "1"}
    yield from counts("priority", bands, table["priority"])


def _google_tasks(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the 3-hour file of task runs."""
    yield "rows", "91384", len(table)
    yield "users", "178", table["user"].nunique()
    yield "jobs", "2605", table["job_id"].nunique()
    yield "machines", "11538", table["machine"].nunique()
    yield from counts("end_event", {0: "567", 2: "14264", 3: "6079", 4: "42431", 5: "28043"}, table["end_event"])
    yield "first start, s", "7200.1", table["sched_s"].min()
    yield "last start, s", "17999.2", table["sched_s"].max()
    yield from _quantiles("run_s", "23.9 / 90.7 / 469.6 / 4393.2 / 20098.1 / 27605.5 / 49701.4", table["run_s"])
    yield from _quantiles("wait_s", "0.8 / 1.5 / 2.1 / 3.9 / 24.4 / 42.0 / 3598.0", table["wait_s"])
    cpu = "0.00625 / 0.00937 / 0.01562 / 0.04065 / 0.0625 / 0.09998 / 0.1572"
    yield from _quantiles("cpu_req", cpu, table["cpu_req"])
    memory = "0.00249 / 0.01151 / 0.02069 / 0.0318 / 0.04773 / 0.04773 / 0.0636"
    yield from _quantiles("mem_req", memory, table["mem_req"])
    bands = {0: "36631", 1: "12175", 2: "40632", 8: "741", 9: "1156", 10: "44", 11: "5"}
    yield from counts("priority", bands, table["priority"])
    evicted = (table["end_event"] == 2).groupby(table["priority"]).mean()
    for priority, text in {0: "0.308", 1: "0.242", 2: "0.0007", 8: "0.0013", 9: "0.0026"}.items():
        yield f"share evicted, priority {priority}", text, evicted[priority]


def _openb_pods(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the openb pods."""
    yield "rows", "8152", len(table)
    yield from counts("qos", {"LS": "4647", "BE": "3398", "Burstable": "100", "Guaranteed": "7"}, table["qos"])
    phases = {"Running": "5193", "Failed": "1870", "Pending": "897", "Succeeded": "192"}
    yield from counts("pod_phase", phases, table["pod_phase"])
    yield from counts("num_gpu", {0: "1088", 1: "6989", 2: "16", 4: "15", 8: "44"}, table["num_gpu"])
    shared = table[(table["num_gpu"] == 1) & (table["gpu_milli"] < 1000)]
    yield "pods on a part of a GPU", "3078", len(shared)
    duration = table["deletion_time"] - table["scheduled_time"]
    yield from _quantiles("duration, s", "50 / 175 / 616 / 2241 / 7763.6 / 18064 / 114347.8", duration)
    yield "median duration of LS, s", "896", duration[table["qos"] == "LS"].median()
    yield "median duration of BE, s", "241", duration[table["qos"] == "BE"].median()
    wait = table["scheduled_time"] - table["creation_time"]
    yield from _quantiles("wait, s", "0 / 0 / 2 / 35 / 106 / 241 / 889.64", wait)
    yield from _quantiles("cpu_milli", "3152 / 4000 / 11300 / 12000 / 16400 / 24200 / 32000", table["cpu_milli"])
    yield from _quantiles("memory_mib", "5600 / 15258 / 41560 / 49152 / 58368 / 64512 / 125952", table["memory_mib"])
    yield from _quantiles("gpu_milli, shared", "220 / 460 / 470 / 810 / 810 / 810 / 810", shared["gpu_milli"])
    yield "last creation_time, s", "12901761", table["creation_time"].max()
    yield from _group_sizes(list(JOB_TYPE), {1: ("162", "8152"), 5: ("87", "8018")}, table)
    recent = last_days(table)
    types = recent.groupby(list(JOB_TYPE)).size().sort_values(ascending=False)
    yield "pods in the last 30 days", "7355", len(recent)
    hours = ((table["creation_time"].max() - recent["creation_time"].to_numpy()) // 3600).astype(np.int64)
    hourly = np.bincount(hours, minlength=720)
    yield "pods per hour in the last 30 days", "10.2", hourly.mean()
    yield "variance of the hourly counts", "59.2", hourly.var(ddof=1)
    yield "share of empty hours", "0.018", (hourly == 0).mean()
    yield "job types in the last 30 days", "150", len(types)
    yield "pods of the 10 commonest types", "4381", int(types[:10].sum())
    yield "pods of the 20 commonest types", "5600", int(types[:20].sum())


def _openb_kinds(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the openb pods that name models of GPU."""
    named = table.loc[table["gpu_spec"] != "", "gpu_spec"]
    accepted, counted = named.str.split("|"), named.str.count("[|]") + 1
    yield "rows", "8152", len(table)
    yield "pods with a GPU", "7064", int((table["num_gpu"] > 0).sum())
    yield "pods that name models", "2388", len(accepted)
    yield "of them without a GPU", "0", int((table.loc[accepted.index, "num_gpu"] == 0).sum())
    for models, text in {1: "2010", 2: "151", 3: "128"}.items():
        yield f"pods that name {models} models", text, int((counted == models).sum())
    namings = {"T4": "1399", "P100": "461", "V100M32": "413", "G2": "397", "V100M16": "375", "G3": "86", "A10": "33"}
    yield from counts("model", namings, accepted.explode())


def _openb_nodes(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the openb machines."""
    yield "rows", "1523", len(table)
    models = {"G2": "549", "T4": "404", "": "310", "P100": "134", "V100M16": "55", "G3": "39", "V100M32": "30"}
    yield from counts("model", {**models, "A10": "2"}, table["model"])
    yield "cores", "125514", table["cpu_milli"].sum() / 1000
    yield "memory, MiB", "612028416", int(table["memory_mib"].sum())
    yield "GPUs", "6212", int(table["gpu"].sum())


def _pai_machines(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the PAI machines."""
    yield "rows", "1897", len(table)
    kinds = {"P100": "798", "T4": "497", "MISC": "280", "V100M32": "135", "V100": "104", "CPU": "83"}
    yield from counts("gpu_type", kinds, table["gpu_type"])
    for column, printed in {
        "cap_cpu": "51072 47712 26880 12960 9984 7968",
        "cap_mem": "408576 254464 143360 51840 47488 42496",
        "cap_gpu": "1596 994 2240 1080 832 0",
    }.items():
        sums = table.groupby("gpu_type")[column].sum()
        for kind, text in zip(kinds, printed.split(), strict=True):
            yield f"{column} of {kind}", text, int(sums[kind])


def _philly_jobs(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the Philly jobs."""
    yield "rows", "82247", len(table)
    yield "exact duplicate rows", "65", int(table.duplicated().sum())
    yield "tenants", "15", table["cluster"].nunique()
    tenants = {"6214e9": "41226", "11cb48": "16091", "6c71a0": "9953", "b436b2": "7423", "103959": "1934"}
    tenants |= {"ee9e8c": "1511", "0e4a51": "1435", "ed69ec": "1137", "7f04ca": "723", "2869ce": "422", "e13805": "374"}
    found = table["cluster"].value_counts()
    for tenant, text in tenants.items():
        yield f"jobs of tenant {tenant}", text, int(found.get(tenant, 0))
    for label, printed, stamp in (
        ("first", "2017-09-04 10:30:41", table["timestamp"].min()),
        ("last", "2017-12-22 08:02:11", table["timestamp"].max()),
    ):
        yield f"{label} submission, s from {printed}", "0", (stamp - pd.Timestamp(printed)).total_seconds()
    yield "arrivals per hour", "31.47", len(table) / (np.ptp(table["timestamp"].astype("int64").to_numpy()) / 3600)
    yield from _quantiles("duration", "48 / 115 / 1144 / 2932 / 11264.8 / 43646.2 / 254758.42", table["duration"])
    medians = table.groupby("num_gpus")["duration"].median()
    for gpus, text in {1: "1117", 2: "21", 4: "17409.5", 8: "23683", 16: "52548"}.items():
        yield f"median duration with {gpus} GPUs", text, medians[gpus]
    sizes = {1: "76627", 2: "1818", 4: "1870", 8: "1643", 12: "7", 16: "199", 24: "7", 32: "67", 64: "6", 128: "3"}
    yield from counts("num_gpus", sizes, table["num_gpus"])
    yield "mean num_gpus", "1.304", table["num_gpus"].mean()
    yield "GPU-hours", "978078.5", table["gpu_time"].sum() / 3600
    pairs = table.groupby(["cluster", "num_gpus"]).size()
    yield "(cluster, num_gpus) pairs", "59", len(pairs)
    yield "pairs with >= 5 jobs", "45", int((pairs >= 5).sum())


def _nasa_ipsc(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the NASA log."""
    yield "rows", "18239", len(table)
    yield "users", "69", table["user"].nunique()
    yield "span, days", "92.00", (table["submit_s"].max() - table["submit_s"].min()) / 86_400
    yield "arrivals per hour", "8.26", _per_hour(table["submit_s"])
    yield "rows without executable number", "1044", int((table["executable"] == -1).sum())
    yield "runs of 0 s", "173", int((table["run_s"] == 0).sum())
    known = table[table["executable"] != -1].groupby(["user", "executable"]).size()
    yield "(user, executable) pairs", "638", len(known)
    yield "pairs with >= 5 runs", "281", int((known >= 5).sum())
    yield "their runs", "16561", int(known[known >= 5].sum())
    yield "pairs with >= 20 runs", "130", int((known >= 20).sum())
    yield from _quantiles("run_s", "7 / 27 / 86 / 283.5 / 1479.2 / 3723 / 10931.62", table["run_s"])
    sizes = {1: "4935", 2: "1763", 4: "2683", 8: "1793", 16: "1780", 32: "3662", 64: "1203", 128: "420"}
    yield from counts("processors", sizes, table["processors"])
    span = table["submit_s"].max() - table["submit_s"].min()
    yield "use of the machine", "0.466", (table["run_s"] * table["processors"]).sum() / (128 * span)


def hpc2n(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the HPC2N excerpt."""
    yield "rows", "3170", len(table)
    yield "users", "17", table["user"].nunique()
    yield "largest job number", "7183", int(table["job"].max())
    yield "jobs that never ran", "25", int(table["run_s"].isna().sum())
    yield "span, days", "57.29", (table["submit_s"].max() - table["submit_s"].min()) / 86_400
    yield "arrivals per hour", "2.305", _per_hour(table["submit_s"])
    known = table.groupby(["user", "processors", "requested_s"]).size()
    yield "(user, processors, requested_s) triples", "440", len(known)
    yield "triples with >= 5 runs", "147", int((known >= 5).sum())
    yield "their runs", "2644", int(known[known >= 5].sum())
    yield from _quantiles("run_s", "5 / 129 / 943 / 7331 / 28816.4 / 46761.6 / 110744.8", table["run_s"])
    yield from _quantiles("processors", "2 / 8 / 16 / 24 / 36 / 64 / 98", table["processors"])
    yield "largest processors", "128", int(table["processors"].max())
    yield from _quantiles("wait_s", "1 / 199.5 / 3561 / 16003.25 / 48534.2 / 80036.55 / 202927.51", table["wait_s"])
    yield from _quantiles("requested_s", "900 / 1800 / 6600 / 30000 / 54000 / 86400 / 288000", table["requested_s"])
    yield "runs longer than requested", "320", int((table["run_s"] > table["requested_s"]).sum())


def _pai_minibatches(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the PAI mini-batch times."""
    yield "rows", "29720", len(table)
    yield from counts("job", {1: "3000", 2: "2402", 3: "2489", 4: "21829"}, table["job"])
    yield "largest iteration", "21821", int(table["time"].max())
    for job, gpu, printed, low, high in (
        (1, "25", "404 / 422 / 438 / 463 / 484 / 495 / 523", "425.7", "475.3"),
        (2, "20", "686 / 747 / 831 / 855 / 883.9 / 906 / 928", "686.0", "908.0"),
        (3, "25", "662 / 688 / 709 / 746 / 783 / 816.6 / 923", "692.6", "774.1"),
        (4, "50", "56 / 58 / 135 / 242 / 269 / 301 / 970", "60.6", "327.9"),
    ):
        own = table[table["job"] == job]
        yield f"job {job}: gpu", gpu, int(own["gpu"].max())
        yield from _quantiles(f"job {job}: batch_time_norm", printed, own["batch_time_norm"])
        means = own.groupby("worker")["batch_time_norm"].mean()
        yield f"job {job}: lowest mean of a worker", low, means.min()
        yield f"job {job}: highest mean of a worker", high, means.max()


def _lanl_outages(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the LANL outages."""
    yield "rows", "23739", len(table)
    yield "systems", "23", table["system"].nunique()
    yield "nodes with an outage", "3576", len(table[["system", "node"]].dropna().drop_duplicates())
    minutes = (table["fail_fixed"] - table["fail_start"]).dt.total_seconds() / 60
    yield from _quantiles("minutes", "7 / 25 / 59 / 144 / 329 / 619.1 / 3782.24", minutes)
    yield "mean minutes", "352.4", minutes.mean()
    yield "outages of 0 minutes", "122", int((minutes == 0).sum())
    causes = {"hardware": "14341", "software": "5361", "undetermined": "2652", "": "453", "network": "421"}
    yield from counts("cause", {**causes, "facilities": "362", "human": "149"}, table["cause"])
    for system, nodes, failed, outages in (
        (2, "49", "49", "7104"), (8, "164", "119", "475"), (16, "16", "16", "2680"), (18, "1024", "964", "3997"),
        (19, "1024", "928", "3284"), (20, "512", "400", "2478"), (23, "5", "5", "564"),
    ):  # fmt: skip
        own = table[table["system"] == system]
        yield f"system {system}: nodes", nodes, own["sys_nodes"].max()
        yield f"system {system}: nodes that failed", failed, own["node"].nunique()
        yield f"system {system}: outages", outages, len(own)


def _spot_nodes(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the spot fleets."""
    yield "rows", "497", len(table)
    for fleet, added, removed, last, mean, most, left in (
        ("p3", "177", "167", "40920", "5263.1", "32", "10"),
        ("g4dn", "79", "74", "38760", "5938.4", "24", "5"),
    ):
        own = table[table["trace"] == fleet]
        yield f"{fleet}: added", added, int((own["event"] == "add").sum())
        yield f"{fleet}: removed", removed, int((own["event"] == "remove").sum())
        yield f"{fleet}: last event, s", last, own["time_ms"].max() / 1000
        times = {event: rows.set_index("node")["time_ms"] / 1000 for event, rows in own.groupby("event")}
        yield f"{fleet}: mean life of removed nodes, s", mean, (times["remove"] - times["add"]).dropna().mean()
        steps = own.assign(n=np.where(own["event"] == "add", 1, -1)).groupby("time_ms")["n"].sum()
        yield f"{fleet}: most at once", most, int(steps.cumsum().max())
        yield f"{fleet}: left at the end", left, int(steps.sum())


def _spot_gpu_nodes(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of the machines of the cluster with spot GPUs; nodes and models are those of its description."""
    yield "rows", "4278", len(table)
    yield "GPU models", "6", table["gpu_model"].nunique()
    yield "GPUs", "10412", int(table["gpu_capacity_num"].sum())
    yield "vCPUs", "632636", int(table["cpu_num"].sum())
    yield from counts("gpu_capacity_num", {1: "3396", 4: "10", 8: "872"}, table["gpu_capacity_num"])
    models = {"A10": "2494", "GPU-series-1": "989", "A100-SXM4-80GB": "432", "H800": "219", "GPU-series-2": "122"}
    yield from counts("gpu_model", {**models, "A800-SXM4-80GB": "22"}, table["gpu_model"])


def _spot_gpu_jobs(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of its jobs, as users of the file report them; two of them agree on the number of rows."""
    yield "rows", "466867", len(table)
    yield "organizations", "119", table["organization"].nunique()
    yield from counts("job_type", {"HP": "345515", "Spot": "121352"}, table["job_type"])
    gpus = {0.01: "2", 0.1: "2428", 0.2: "8354", 0.25: "1", 0.3: "11996", 0.4: "74", 0.5: "26372", 0.67: "6"}
    gpus |= {0.8: "2", 0.85: "3", 1.0: "314922", 2.0: "22985", 3.0: "46", 4.0: "18023", 5.0: "56", 6.0: "230"}
    yield from counts("gpu_request", {**gpus, 7.0: "24", 8.0: "61343"}, table["gpu_request"])


def _spot_series(table: pd.DataFrame) -> Iterator[Statistic]:
    """Statistics of one zone of the availability and price series, found in the published file."""
    found = spot_statistics(table)
    yield "entries", "19961", len(table)
    yield "entries with a machine", "14591", int((table["available"] > 0).sum())
    for name, text in (
        ("days", "7.39296"), ("gap_s", "32"), ("most", "1"), ("mean", "0.73098"), ("share_any", "0.73098"),
        ("losses", "57"), ("mean_up_h", "2.23617"), ("mean_down_h", "0.82299"), ("price_low", "0.918"),
        ("price_mean", "0.918"), ("price_high", "0.918"),
    ):  # fmt: skip
        yield name, text, found[name]


STATISTICS: dict[str, Callable[[pd.DataFrame], Iterable[Statistic]]] = {
    "google-jobs": _google_jobs,
    "google-demand": _google_demand,
    "google-tasks": _google_tasks,
    "openb-pods": _openb_pods,
    "openb-pods-kinds": _openb_kinds,
    "openb-nodes": _openb_nodes,
    "pai-machines": _pai_machines,
    "philly-jobs": _philly_jobs,
    "nasa-ipsc": _nasa_ipsc,
    "hpc2n": hpc2n,
    "pai-minibatches": _pai_minibatches,
    "lanl-outages": _lanl_outages,
    "spot-nodes": _spot_nodes,
    "spot-gpu-nodes": _spot_gpu_nodes,
    "spot-gpu-jobs": _spot_gpu_jobs,
    "spot-series": _spot_series,
}
