"""Clusters and arrivals from recorded traces: machines as instances, types of pods as ports.

A *type* of pod is its request (CPU, memory, GPUs, quality of service): the openb trace names
neither users nor jobs. Types are ranked by how many pods of theirs were created in the last
:data:`RANKING_DAYS` days, before which the rows of the file thin out.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.instances import draw_gains
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.derived import JOB_TYPE, last_days

if TYPE_CHECKING:
    import pandas as pd

Source = str | PathLike[str] | None

RANKING_DAYS = 30.0
MIB_PER_GIB = 1024.0

# Cores, GiB, GPUs, and how many of the 1,897 machines of the Alibaba PAI cluster of 2020 are of this
# size (pai_machine_spec, CC BY 4.0; Weng et al., "MLaaS in the Wild", NSDI 2022).
PAI_SIZES = ((96, 512, 0, 83), (64, 512, 2, 798), (96, 512, 2, 497), (96, 512, 8, 339), (96, 384, 8, 180))


@dataclass(frozen=True, slots=True)
class _PodTypes:
    """The most common types of pods, the most common first."""

    requirements: NDArray[np.float64]  # (L, 3): CPU cores, memory in GiB, GPUs
    keys: pd.DataFrame  # the columns that make the type, one row per type


def common_pod_types(source: Source, n_types: int) -> _PodTypes:
    """Return the ``n_types`` most common types of pods of the openb trace."""
    recent = last_days(TRACES["openb-pods"].read(source), RANKING_DAYS)
    columns = list(JOB_TYPE)
    counts = recent.groupby(columns, sort=True).size().sort_values(ascending=False, kind="stable")
    if n_types > len(counts):
        raise InvalidParameterError(
            place="ports", value=n_types, legal=f"at most {len(counts)}, the types of pods in the trace"
        )
    keys = counts.index[:n_types].to_frame(index=False)
    gpus = keys["num_gpu"] * keys["gpu_milli"] / 1000.0
    requirements = np.column_stack([keys["cpu_milli"] / 1000.0, keys["memory_mib"] / MIB_PER_GIB, gpus])
    return _PodTypes(np.ascontiguousarray(requirements, dtype=np.float64), keys)


def machine_capacities(source: Source, trace: Literal["openb", "pai"]) -> NDArray[np.float64]:
    """Return CPU cores, memory in GiB and GPUs of every machine of a trace, shape (n_machines, 3)."""
    if trace == "openb":
        nodes = TRACES["openb-nodes"].read(source)
        columns = [nodes["cpu_milli"] / 1000.0, nodes["memory_mib"] / MIB_PER_GIB, nodes["gpu"]]
    else:
        machines = TRACES["pai-machines"].read(source)
        columns = [machines["cap_cpu"], machines["cap_mem"], machines["cap_gpu"]]
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])


def pai_mix() -> NDArray[np.float64]:
    """Return cores, memory in GiB and GPUs of as many machines as PAI had, by their sizes; shape (1897, 3)."""
    table = np.array(PAI_SIZES)
    return np.repeat(table[:, :3], table[:, 3], axis=0).astype(np.float64)


def recorded_instance(
    rng: np.random.Generator,
    source: Source,
    *,
    machines: Literal["openb", "pai"],
    n_ports: int,
    n_instances: int,
    reach: float,
    memory_unit_gib: float,
    contention: float,
    gain: str,
    alpha: tuple[float, float],
    overhead: tuple[float, float],
) -> BipartiteCluster:
    """Return a cluster of recorded machines (``openb``, ``pai``), whose ports are the most common types of openb pods.

    ``rng`` draws the machines (without replacement), who may use them, gains and coefficients, in this order.
    ``contention`` multiplies requests after `eligible_channels`; the rest is as in `published_instance`.
    """
    unit = np.array([1.0, memory_unit_gib, 1.0])
    table = machine_capacities(source, machines) / unit
    if n_instances > len(table):
        raise InvalidParameterError(
            place="instances", value=n_instances, legal=f"at most {len(table)}, the recorded machines"
        )
    requirements = common_pod_types(source, n_ports).requirements / unit
    capacities = table[rng.choice(len(table), size=n_instances, replace=False)]
    return BipartiteCluster(
        requirements=contention * requirements,
        capacities=capacities,
        channels=eligible_channels(requirements, capacities, reach, rng),
        gain=draw_gains(rng, gain, n_instances, 3),
        alpha=rng.uniform(*alpha, (n_instances, 3)),
        overhead=rng.uniform(*overhead, 3),
    )


def recorded_counts(source: Source, n_ports: int, *, days: float, slot_seconds: float) -> NDArray[np.int64]:
    """Return how many pods of each common type were created in each slot, shape (T, ``n_ports``).

    The first slot begins exactly ``days`` days before the last pod was created. A pod that was created at the boundary
    of two slots counts in the earlier one. T is the number of whole slots in ``days`` days.
    """
    types = common_pod_types(source, n_ports)
    pods = TRACES["openb-pods"].read(source)
    created = pods["creation_time"].to_numpy(dtype=np.float64)
    length = days * 86_400.0
    if length > created.max():
        raise InvalidParameterError(
            place="days", value=days, legal=f"at most {created.max() / 86_400:.4g}, the trace's length"
        )
    slots = int(length // slot_seconds)
    if slots < 1:
        raise InvalidParameterError(
            place="slot_seconds", value=slot_seconds, legal=f"at most {length:g}, the length of it all"
        )
    port = types.keys.assign(port=np.arange(n_ports)).merge(
        pods[list(JOB_TYPE)].reset_index(), on=list(JOB_TYPE), how="inner"
    )
    since = created[port["index"].to_numpy()] - (created.max() - length)
    slot = np.ceil(since / slot_seconds).astype(np.int64) - 1
    inside = (since > 0) & (slot < slots)
    counts = np.zeros((slots, n_ports), dtype=np.int64)
    np.add.at(counts, (slot[inside], port["port"].to_numpy()[inside]), 1)
    return counts


def eligible_channels(
    requirements: NDArray[np.float64], capacities: NDArray[np.float64], share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return which ports may use which instances, shape (L, R), from requests (L, K) of a pod and capacities (R, K).

    An instance is eligible if it alone could run one pod of the type. Of the eligible ones a port
    keeps a random ``share`` in (0, 1] (data lie somewhere), at least one; an instance that no port may use
    stays, unused. InvalidParameterError if a type of pod fits on none of the instances.
    """
    fits = np.all(requirements[:, None, :] <= capacities[None, :, :], axis=2)
    draws = rng.random(fits.shape)
    for port, row in enumerate(fits):
        if not row.any():
            amounts = ", ".join(f"{x:g}" for x in requirements[port])
            raise InvalidParameterError(
                f"port {port} asks for {amounts} and fits on none of the {len(capacities)} machines drawn",
                legal="more instances, or fewer ports",
            )
    nearest = np.where(fits, draws, np.inf).argmin(axis=1)
    kept: NDArray[np.bool_] = np.asarray(fits & (draws < share))
    kept[np.arange(len(fits)), nearest] = True
    return kept
