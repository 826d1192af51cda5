r"""``openb``: pods of Alibaba's GPU cluster with what they ask for, on a cluster with its kinds of nodes.

Recorded are cores, memory, GPUs or the share of one, the models of GPU that a third of the pods with a GPU accept
(others: any), the class, the duration, and when pods came. The scheduled pods of the last 30 days are drawn with
replacement; their times are folded into the market's rounds, which keeps the order within bursts; durations are cut.

All else is *drawn*, and listed in the notes of every workload:

* values, ``rho x (1 a GPU + .03 a core + .004 a GiB) x hours`` on a node of speed 1, with ln rho normal of deviation
  .8, and twice that for the class LS;
* deadlines: a job of class LS loses its value linearly over half its duration (an hour at least), any other is worth
  the same up to a delay of twice its duration (two hours at least), and nothing afterwards; no delay above 12 hours;
* speeds of kinds, to a power that is drawn for each job; jobs without a GPU run at speed 1 everywhere;
* owners, of which each job gets one at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.mechanisms.legal import Count, Positive, Range, Whole, check_fields, is_number
from marketsched.mechanisms.randomness import Rng, generator_of
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import Shape, demand_of, tasks_held
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.mechanisms.values import DeadlineValue, LinearValue
from marketsched.worlds.openb_nodes import GPU_KINDS, KINDS, kind_of, openb_cluster
from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.derived import last_days
from marketsched.worlds.traces.trace import Source
from marketsched.worlds.workload import KNOWN_DRAWS, Workload, laws_of_draws

SPEED = {"T4": 0.5, "P100": 0.6, "V100": 1.0, "G2": 1.0, "G3": 1.3}  # of work that the GPU alone limits
CREDITS_AN_HOUR = (0.03, 0.004, 1.0)  # a core, a GiB, a GPU
VALUE_SPREAD = 0.8  # deviation of ln rho
URGENT = "LS"
STREAMS = 5  # of draws: pods, speeds, kinds, values, owners
DAY_S, HOUR_S = 86_400.0, 3_600.0
LONGEST_DELAY_S = 12 * HOUR_S
SHIFTS, SHIFT_ROUNDS = 30, 17  # a day of the log is moved by a multiple of 17 rounds, so that days do not coincide


class _Speeds(Range[Any]):
    """A speed for each kind with GPUs."""

    def __call__(self, x: object) -> dict[str, float]:
        if not isinstance(x, Mapping) or not set(x) <= set(GPU_KINDS):
            raise ValueError(f"a table of speeds with keys of {', '.join(GPU_KINDS)}")
        if not all(is_number(each) and 0.01 <= each <= 100 for each in x.values()):
            raise ValueError("speeds in [0.01, 100]")
        return {**SPEED, **{kind: float(each) for kind, each in x.items()}}


class _Spread(Range[Any]):
    """The ends of an interval in [0, 1]."""

    def __call__(self, x: object) -> tuple[float, float]:
        if not isinstance(x, (list, tuple)) or len(x) != 2 or not all(is_number(each) for each in x):
            raise ValueError("[lowest, highest]")
        if not 0 <= x[0] <= x[1] <= 1:
            raise ValueError("[lowest, highest] with 0 <= lowest <= highest <= 1")
        return float(x[0]), float(x[1])


@dataclass(frozen=True)
class OpenbCluster:
    """Pods of openb on a cluster of its kinds of nodes.

    Parameters
    ----------
    jobs : int
        How many pods are drawn.
    rounds : int
        Jobs are born in rounds ``1 .. rounds``.
    round_seconds : float
        Length of a round.
    load : float
        Requested GPU-time, in expectation over all draws, over that of the cluster while jobs are born; the cluster is
        the same for all seeds.
    alternatives : {"recorded", "any", "none", "two", "three"}
        Kinds that a job with GPUs accepts. recorded: those of the log where it names some, else any. none: one, drawn
        in proportion to the GPUs of each kind; two, three: that one and one or two more, so drawn.
    speed : mapping of str to float
        Of kinds with GPUs, instead of T4 .5, P100 .6, V100 1, G2 1, G3 1.3.
    speed_spread : pair of float
        Interval that the power of the speeds is drawn from for each job.
    max_duration : int
        Rounds on a node of speed 1; longer runs are cut.
    owners : int
        Of whom each job gets one.
    """

    on_cluster: ClassVar[bool] = True  # its jobs have shapes

    jobs: Annotated[int, Whole(1, 1_000_000)] = 6_000
    rounds: Count = 432
    round_seconds: Positive = 300.0
    load: Positive = 1.0
    alternatives: Literal["recorded", "any", "none", "two", "three"] = "recorded"
    speed: Annotated[Any, _Speeds()] = None
    speed_spread: Annotated[Any, _Spread()] = (0.0, 1.0)
    max_duration: Annotated[int, Whole(1, 100_000)] = 144
    owners: Count = 20

    def __post_init__(self) -> None:
        if self.speed is None:
            object.__setattr__(self, "speed", dict(SPEED))
        check_fields(self)

    def build(self, rng: Rng, data: Source) -> Workload:
        """Return the workload; one stream each is spawned for pods, speeds, kinds, values and owners."""
        return openb_workload(self, rng=rng, data=data)

    def statement_laws(self, workload: Workload, rng: Rng, data: Source) -> list[StatementLaw]:
        """Return the laws known in advance: other draws, with a stream of their own; ``rng`` as `build` gets it."""
        others = generator_of(rng).spawn(STREAMS + 1)[STREAMS].spawn(KNOWN_DRAWS)
        return laws_of_draws(openb_workload(self, rng=other, data=data).jobs for other in others)


def openb_workload(parameters: OpenbCluster, *, rng: Rng, data: Source = None) -> Workload:
    """Draw the jobs; the module lists recorded and synthetic data.

    MissingDataError or TraceError if pods or nodes are not there, or damaged.
    """
    chosen = parameters
    pods = last_days(TRACES["openb-pods-kinds"].read(data))
    pods = pods[pods["scheduled_time"].notna()]
    rounds = _rounds_of(pods, chosen)
    asked = float((_gpus(pods) * rounds).mean()) * chosen.jobs
    cluster = openb_cluster(asked / (chosen.rounds * chosen.load), data)
    picks_rng, speed_rng, kinds_rng, value_rng, owner_rng = generator_of(rng).spawn(STREAMS)
    births, rows = _drawn(pods, chosen, picks_rng)
    picked, durations = pods.iloc[rows], rounds[rows]
    lowest, highest = chosen.speed_spread
    powers = speed_rng.uniform(lowest, highest, chosen.jobs)
    needs = _needs(picked)
    accepted = _accepted(picked, [_kinds_that_hold(need, cluster) for need in needs], chosen, cluster, kinds_rng)
    urgent = (picked["qos"] == URGENT).to_numpy()
    rates = np.exp(VALUE_SPREAD * value_rng.standard_normal(chosen.jobs)) * np.where(urgent, 2.0, 1.0)
    worth = rates * _credits_an_hour(picked) * durations * chosen.round_seconds / HOUR_S
    delays = _delays(durations, urgent, chosen)
    whose = owner_rng.integers(1, chosen.owners + 1, chosen.jobs)
    classes, names = picked["qos"].tolist(), picked["name"].tolist()
    jobs = []
    for i, (birth, d) in enumerate(zip(births.tolist(), durations.tolist(), strict=True)):
        if not accepted[i]:
            continue
        shape = Shape(needs[i], {kind: (_slowed(d, kind, needs[i], float(powers[i]), chosen),) for kind in accepted[i]})
        value = _value(float(worth[i]), birth + d, int(delays[i]), bool(urgent[i]))
        truth = StatementOfWork.of_shapes(birth, value, birth, [shape])
        first = shape.on[shape.kinds[0]][0]
        tags = {"class": classes[i], "pod": names[i]}
        jobs.append(Job(f"pod-{i}", f"owner-{whose[i]}", truth, birth, first, first, tags))
    longest = max(max(max(each) for each in job.truth.shapes[0].on.values()) for job in jobs)
    furthest = chosen.max_duration + round(LONGEST_DELAY_S / chosen.round_seconds) + 1
    return Workload(
        "openb",
        tuple(jobs),
        capacity=cluster.nodes,
        birth_rounds=chosen.rounds,
        horizon=chosen.rounds + furthest,
        max_concurrency=1,
        max_duration=longest,
        max_value=float(worth.max()),
        max_delay=furthest,
        round_seconds=chosen.round_seconds,
        notes=_notes(
            chosen,
            cluster.nodes,
            int(cluster.layout.pool_size[:, 2].sum() // 1000),
            len(pods),
            len(accepted) - len(jobs),
        ),
        cluster=cluster,
    )


def _rounds_of(pods: pd.DataFrame, chosen: OpenbCluster) -> NDArray[np.int64]:
    """Return durations on a node of speed 1."""
    seconds = (pods["deletion_time"] - pods["scheduled_time"]).to_numpy()
    return np.clip(np.ceil(seconds / chosen.round_seconds), 1, chosen.max_duration).astype(np.int64)


def _gpus(pods: pd.DataFrame) -> NDArray[np.float64]:
    """Return requested GPUs; a share of one where it is one."""
    number, share = pods["num_gpu"].to_numpy(), pods["gpu_milli"].to_numpy() / 1000
    return np.where(number == 1, share, number.astype(np.float64))


def _credits_an_hour(pods: pd.DataFrame) -> NDArray[np.float64]:
    core, gib, gpu = CREDITS_AN_HOUR
    cores, memory = pods["cpu_milli"].to_numpy() / 1000, pods["memory_mib"].to_numpy() / 1024
    return np.asarray(core * cores + gib * memory + gpu * _gpus(pods), dtype=np.float64)


def _drawn(
    pods: pd.DataFrame, chosen: OpenbCluster, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rounds of birth, in order, and which pod is born in each."""
    rows, shifts = rng.integers(0, len(pods), chosen.jobs), rng.integers(0, SHIFTS, chosen.jobs)
    times = pods["creation_time"].to_numpy()
    since = np.floor((times[rows] - times.min()) / chosen.round_seconds).astype(np.int64)
    births = (since + SHIFT_ROUNDS * shifts) % chosen.rounds + 1
    order = np.argsort(births, kind="stable")
    return births[order], rows[order]


def _needs(pods: pd.DataFrame) -> list[dict[str, float]]:
    """Return the request of each pod, in units of the resources; what it does not need is left out."""
    columns = {"cpu": pods["cpu_milli"] / 1000, "memory": pods["memory_mib"] / 1024, "gpu": _gpus(pods)}
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    return [{name: x for name, x in zip(columns, row, strict=True) if x} for row in rows]


def _kinds_that_hold(need: Mapping[str, float], cluster: Cluster) -> tuple[str, ...]:
    """Return the kinds that have a node on which the pod fits."""
    return _that_hold(tuple(need.items()), cluster)


@lru_cache(maxsize=4096)
def _that_hold(need: tuple[tuple[str, float], ...], cluster: Cluster) -> tuple[str, ...]:
    held = tasks_held(demand_of(Shape(dict(need), {KINDS[0]: (1,)}), cluster), cluster, 1)
    return tuple(kind for kind, tasks in zip(cluster.pool_names, held.tolist(), strict=True) if tasks)


def _accepted(
    pods: pd.DataFrame,
    possible: list[tuple[str, ...]],
    chosen: OpenbCluster,
    cluster: Cluster,
    rng: np.random.Generator,
) -> list[tuple[str, ...]]:
    """Return the kinds that each pod accepts, of those on which it is possible; without a GPU, all of these."""
    number = {"none": 1, "two": 2, "three": 3}.get(chosen.alternatives, 0)
    gpus = dict(zip(cluster.pool_names, cluster.layout.pool_size[:, 2].tolist(), strict=True))
    # The smallest of -log(u) / share comes first: a draw without replacement in proportion to the shares.
    ranks = -np.log1p(-rng.random((len(pods), len(GPU_KINDS)))) / np.array([gpus[kind] for kind in GPU_KINDS])
    ordered = np.argsort(ranks, axis=1)
    found = []
    for i, (devices, models) in enumerate(zip(pods["num_gpu"].tolist(), pods["gpu_spec"].tolist(), strict=True)):
        if not devices:
            found.append(possible[i])
        elif number:
            drawn = [GPU_KINDS[k] for k in ordered[i] if GPU_KINDS[k] in possible[i]]
            found.append(tuple(drawn[:number]))
        else:
            named = {kind_of(model) for model in models.split("|")} & set(GPU_KINDS)
            takes = named if named and chosen.alternatives == "recorded" else set(GPU_KINDS)
            found.append(tuple(kind for kind in possible[i] if kind in takes))
    return found


def _slowed(d: int, kind: str, need: Mapping[str, float], power: float, chosen: OpenbCluster) -> int:
    """Return the duration on a kind, rounds."""
    return int(np.ceil(d / chosen.speed[kind] ** power)) if "gpu" in need else d


def _delays(durations: NDArray[np.int64], urgent: NDArray[np.bool_], chosen: OpenbCluster) -> NDArray[np.int64]:
    """Return the delay at which each job is worth nothing, rounds after its end on a node of speed 1."""
    hour = HOUR_S / chosen.round_seconds
    patient, pressed = np.maximum(2 * hour, 2 * durations), np.maximum(hour, durations // 2)
    most = LONGEST_DELAY_S / chosen.round_seconds
    return np.clip(np.where(urgent, pressed, patient), 1, most).astype(np.int64)


def _value(credits: float, end: int, delay: int, urgent: bool) -> DeadlineValue | LinearValue:
    """Return the curve of a job that ends at ``end`` if it starts at once on a node of speed 1."""
    if urgent:
        return LinearValue(credits, end, credits / delay, end + delay - 1)
    return DeadlineValue(credits, end + delay - 1)


def _notes(chosen: OpenbCluster, nodes: int, gpus: int, pods: int, left_out: int) -> dict[str, str | int | float]:
    """Say what was chosen and made up."""
    kinds = {
        "recorded": "as the log names them, else any", "any": "any", "none": "one, drawn by capacity",
        "two": "two, drawn by capacity", "three": "three, drawn by capacity",
    }  # fmt: skip
    speeds = ", ".join(f"{kind} {chosen.speed[kind]:g}" for kind in GPU_KINDS)
    return {
        "source": TRACES["openb-pods-kinds"].source,
        "pods drawn from": pods,
        "nodes": f"{nodes} with {gpus} GPUs, openb's shapes in their shares, for a load of {chosen.load:g}",
        "kinds accepted": kinds[chosen.alternatives],
        "speeds (made up)": f"{speeds}, to a power in [{chosen.speed_spread[0]:g}, {chosen.speed_spread[1]:g}]",
        "values (made up)": f"log-normal (deviation {VALUE_SPREAD:g}) about 1 credit a GPU, .03 a core, .004 a GiB and "
        "hour, twice that for LS",
        "deadlines (made up)": "LS falls to 0 over half its duration (1 h at least), others end worth 0 after a delay "
        "of twice it (2 h at least), 12 h at most",
        "owners (made up)": chosen.owners,
        **({"pods left out: no node of a kind they accept holds them": left_out} if left_out else {}),
    }
