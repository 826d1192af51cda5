"""Recorded speeds, jobs and availabilities as the arrays that channels and machines are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.esdp.channel_instances import LEAST_CHANNELS
from marketsched.mechanisms.allocation.esdp.channel_utilities import relative_speeds
from marketsched.mechanisms.allocation.opm.machine_availability import availability_from_periods
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.memory import check_memory
from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.spot_series import read_spot_series
from marketsched.worlds.traces.trace import data_folder

Source = str | PathLike[str] | None

FINISHED = 4  # end_event of a Google task that ended normally


@dataclass(frozen=True, slots=True)
class ChannelSamples:
    """Recorded utilities of E channels."""

    samples: list[NDArray[np.float64]]  # of each channel, in [0, 1], in recorded order
    ports: NDArray[np.int64]  # (E,), ends of the channels
    servers: NDArray[np.int64]
    requests: NDArray[np.float64]  # (E, K), as recorded
    n_ports: int


def minibatch_samples(source: Source) -> ChannelSamples:
    """Return the PAI mini-batch times as channels: a job is a port, each of its workers a server of its own.

    Utilities are `relative_speeds` of the job's times, in order of the iterations; the request is the
    share of a GPU, per cent.
    """
    table = TRACES["pai-minibatches"].read(source).sort_values(["job", "worker", "time"], kind="stable")
    samples: list[NDArray[np.float64]] = []
    ports: list[int] = []
    gpus: list[float] = []
    for port, (_, job) in enumerate(table.groupby("job", sort=True)):
        times = [rows["batch_time_norm"].to_numpy(dtype=np.float64) for _, rows in job.groupby("worker", sort=True)]
        samples += relative_speeds(times)
        ports += [port] * len(times)
        gpus += [float(job["gpu"].max())] * len(times)
    n = len(samples)
    return ChannelSamples(samples, np.array(ports), np.arange(n), np.array(gpus).reshape(n, 1), max(ports) + 1)


def task_samples(
    rng: np.random.Generator,
    source: Source,
    *,
    n_ports: int,
    n_groups: int,
    edge_probability: float,
    least_tasks: int,
    least_samples: int,
    unit: float,
    largest_request: float,
) -> ChannelSamples:
    """Return Google task runs as channels between jobs and groups of machines.

    ``rng`` draws ``n_ports`` of the jobs whose tasks fit; then each channel with at least ``least_samples`` finished
    tasks is kept with ``edge_probability``, and draws without any are repeated. Machines in order of their numbers are
    in ``n_groups`` groups, as equally many in each as can be. A run's utility is ``min(median run time of the job / run
    time / unit, 1)``.
    """
    runs = TRACES["google-tasks"].read(source)
    runs = runs[(runs["end_event"] == FINISHED) & (runs["run_s"] > 0)]
    jobs = runs.groupby("job_id", sort=True).agg(
        n=("run_s", "size"), median=("run_s", "median"), cpu=("cpu_req", "max"), memory=("mem_req", "max")
    )
    fitting = jobs[(jobs["n"] >= least_tasks) & (jobs[["cpu", "memory"]].max(axis=1) <= largest_request)]
    if n_ports > len(fitting):
        raise InvalidParameterError(
            place="ports",
            value=n_ports,
            legal=f"at most {len(fitting)}, the jobs with {least_tasks} finished tasks that fit",
        )
    runs = runs[runs["job_id"].isin(fitting.index)]
    machines, place = np.unique(runs["machine"].to_numpy(), return_inverse=True)
    drawn = fitting.iloc[np.sort(rng.choice(len(fitting), size=n_ports, replace=False))]
    places = {label: place for place, label in enumerate(drawn.index.tolist())}
    known = runs.assign(group=place * n_groups // len(machines), port=runs["job_id"].map(places))
    known = known.dropna(subset=["port"]).sort_values("sched_s", kind="stable")
    known["speed"] = np.minimum(known["job_id"].map(drawn["median"]) / known["run_s"] / unit, 1.0)
    candidates = [
        (int(rows["port"].iloc[0]), int(rows["group"].iloc[0]), rows["speed"].to_numpy(dtype=np.float64))
        for _, rows in known.groupby(["port", "group"], sort=True)
        if len(rows) >= least_samples
    ]
    if not candidates:
        raise InvalidParameterError(
            "no job has as many on any group of machines", place="samples", value=least_samples, legal="fewer"
        )
    least = LEAST_CHANNELS / len(candidates)
    if edge_probability < least:  # drawn again until one is kept, which would take for ever
        legal = f"a finite number in [{least:g}, 1]"
        raise InvalidParameterError(place="edge_probability", value=edge_probability, legal=legal)
    kept = np.zeros(len(candidates), dtype=np.bool_)
    while not kept.any():
        kept = rng.random(len(candidates)) < edge_probability
    ports, groups, samples = zip(*(one for one, keep in zip(candidates, kept, strict=True) if keep), strict=True)
    requests = drawn[["cpu", "memory"]].to_numpy(dtype=np.float64)[list(ports)]
    return ChannelSamples(list(samples), np.array(ports), np.array(groups), requests, n_ports)


@dataclass(frozen=True, slots=True)
class _JobTimes:
    """When jobs came and how long they ran, in seconds from the beginning of the window; shape (n,) each."""

    submitted: NDArray[np.float64]
    ran: NDArray[np.float64]


def google_window(rng: np.random.Generator, source: Source, *, seconds: float) -> _JobTimes:
    """Return the jobs submitted in a window of the 29 days of Google jobs, which begins at a random time.

    Jobs that were there before the trace began, or did not end in it, are left out.
    """
    path = TRACES["google-jobs"].path(source)
    status = path.stat()
    submitted, ran = _google_times(path, status.st_mtime_ns, status.st_size)
    first, last = float(submitted.min()), float(submitted.max())
    _check_length(seconds, "s", last - first, "the length of the trace")
    begin = rng.uniform(first, last - seconds)
    inside = (submitted >= begin) & (submitted < begin + seconds)
    return _JobTimes(submitted[inside] - begin, ran[inside])


@lru_cache(maxsize=1)
def _google_times(path: Path, modified: int, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return submission and run times; kept, as a comparison asks for the same file once for each seed."""
    table = TRACES["google-jobs"].read(path)
    table = table[(table["submit_s"] > 0) & table["run_s"].notna()]
    submitted, ran = table["submit_s"].to_numpy(dtype=np.float64), table["run_s"].to_numpy(dtype=np.float64)
    submitted.setflags(write=False)
    ran.setflags(write=False)
    return submitted, ran


def lanl_availability(
    rng: np.random.Generator, source: Source, *, system: int, n_machines: int, slots: int, slot_hours: float
) -> NDArray[np.float32]:
    """Return the available part of every slot of nodes of one LANL system, shape (slots, n_machines).

    Nodes are drawn without replacement, among them those that never failed; the window begins at a
    random time between the system's first and last outage, the same for all nodes. Nodes that joined or left
    within the window count as available.
    """
    table = TRACES["lanl-outages"].read(source)
    table = table[table["sys_nodes"].notna() & table["node"].notna()]
    own = table[table["system"] == system]
    if own.empty:
        legal = ", ".join(str(each) for each in sorted(table["system"].unique()))
        raise InvalidParameterError(place="system", value=system, legal=f"one of {legal}")
    n_nodes = int(own["sys_nodes"].max())
    if n_machines > n_nodes:
        raise InvalidParameterError(
            place="machines", value=n_machines, legal=f"at most {n_nodes}, the nodes of the system"
        )
    origin = own["fail_start"].min()
    starts = (own["fail_start"] - origin).dt.total_seconds().to_numpy(dtype=np.float64) / 3600.0
    ends = (own["fail_fixed"] - origin).dt.total_seconds().to_numpy(dtype=np.float64) / 3600.0
    length = slots * slot_hours
    _check_length(length, "hours", starts.max(), "the record of the system")
    place = np.full(n_nodes, -1)
    place[rng.choice(n_nodes, size=n_machines, replace=False)] = np.arange(n_machines)
    begin = rng.uniform(0.0, starts.max() - length)
    nodes = place[own["node"].to_numpy(dtype=np.int64)]
    kept = nodes >= 0
    return availability_from_periods(
        nodes[kept],
        starts[kept] - begin,
        np.maximum(ends, starts)[kept] - begin,
        n_machines=n_machines,
        slots=slots,
        slot_length=slot_hours,
        periods_are="outages",
    )


def spot_availability(source: Source, *, fleet: str, slots: int, slot_seconds: float) -> NDArray[np.float32]:
    """Return the part of every slot in which each node of a spot fleet was there, shape (slots, nodes).

    Nodes in order of their ``add`` events; a node that was never removed stays until the record ends.
    """
    table = TRACES["spot-nodes"].read(source)
    own = table[table["trace"] == fleet]
    last = float(own["time_ms"].max()) / 1000.0
    _check_length(slots * slot_seconds, "s", last, "the record of the fleet")
    added = own[own["event"] == "add"].set_index("node")["time_ms"] / 1000.0
    removed = own[own["event"] == "remove"].set_index("node")["time_ms"] / 1000.0
    ends = removed.reindex(added.index).fillna(last).to_numpy(dtype=np.float64)
    return availability_from_periods(
        np.arange(len(added)),
        added.to_numpy(dtype=np.float64),
        ends,
        n_machines=len(added),
        slots=slots,
        slot_length=slot_seconds,
        periods_are="presence",
    )


def series_availability(
    files: Sequence[str], source: Source, *, slots: int, slot_seconds: float
) -> NDArray[np.float32]:
    """Return the part of every slot in which each machine of some zones was there, shape (slots, machines).

    A zone of a series (`read_spot_series`), one file each (paths, or names in the data folder), has as many machines as
    were ever available at once; the first of them is there while one is available, the second while two are, and so on.
    """
    machines, starts, ends = [], [], []
    n_machines = 0
    for name in files:
        path = Path(name) if Path(name).is_file() else data_folder(source) / name
        series = read_spot_series(path)
        times, available = series["time_s"].to_numpy(), series["available"].to_numpy()
        gap = times[1] - times[0] if times.size > 1 else 1.0
        _check_length(slots * slot_seconds, "s", times[-1] + gap, f"as {path} does")
        most = int(available.max())
        check_memory(f"{n_machines + most} machines", 250.0 * (n_machines + most), "fewer machines")
        for i in range(most):
            there = np.flatnonzero(available > i)
            machines.append(np.full(there.size, n_machines))
            starts.append(times[there])
            ends.append(times[there] + gap)
            n_machines += 1
    if not n_machines:
        raise InvalidParameterError("no zone ever had a machine", legal="series with machines")
    return availability_from_periods(
        np.concatenate(machines),
        np.concatenate(starts),
        np.concatenate(ends),
        n_machines=n_machines,
        slots=slots,
        slot_length=slot_seconds,
        periods_are="presence",
    )


def _check_length(length: float, unit: str, most: float, what: str) -> None:
    """Refuse slots that last longer than what was recorded."""
    if length > most:
        raise InvalidParameterError(f"slots last {length:g} {unit} together", legal=f"at most {most:.0f}, {what}")
