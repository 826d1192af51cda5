"""A small cluster on which naive rules start jobs of one task: every node, device and round is looked at.

It knows nothing of the package's calendars and placements: numbers in, places out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marketsched.agents.job import Job
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup
from marketsched.mechanisms.resources.shapes import Shape
from node_requests import CPU, GPU, LAWS, NEEDS

CLUSTER = Cluster((CPU, GPU), [NodeGroup("a", "a", 2, {"cpu": 8, "gpu": 2}), NodeGroup("c", "c", 1, {"cpu": 8})])
NODES = (("a", 8, 2), ("a", 8, 2), ("c", 8, 0))  # kind, cores, devices
CORES, DEVICES = 24.0, 4.0
HORIZON, LONGEST = 90, 24
SIZES = {"max_concurrency": 1, "max_duration": LONGEST, "max_value": 1e6, "max_delay": 60, "cluster": CLUSTER}


class Place(NamedTuple):
    """Where a job is, and until when at the latest."""

    node: int
    cores: float
    devices: dict[int, float]
    end: int  # the first round without it


def drawn_jobs(seed: int, n: int = 40, span: int = 25, owners: int = 3) -> list[Job]:
    """Return jobs of one task: half of those that may run on two kinds take twice as long on the second."""
    rng, jobs = np.random.default_rng(seed), []
    for i, birth in enumerate(np.sort(rng.integers(1, span, n)).tolist()):
        durations, chances = LAWS[rng.integers(len(LAWS))]
        each, kinds = NEEDS[rng.integers(len(NEEDS))]
        factors = (1, int(rng.integers(1, 3)))[: len(kinds)]
        on = {kind: tuple(f * d for d in durations) for kind, f in zip(kinds, factors, strict=True)}
        value = DeadlineValue(float(rng.uniform(1, 9)), birth + int(rng.integers(2, 50)))
        truth = StatementOfWork.of_shapes(birth, value, birth, [Shape(each, on)], chances, revealed=False)
        jobs.append(Job(f"j{i}", f"o{int(owners * rng.random() ** 2)}", truth, birth, int(rng.choice(durations))))
    return jobs


def share_of(job: Job) -> np.ndarray:
    """Return the shares of the cluster that a job takes."""
    each = job.truth.shapes[0].each
    return np.array([each["cpu"] / CORES, each.get("gpu", 0) / DEVICES])


class NaiveNodes:
    """Who runs where, by name."""

    def __init__(self) -> None:
        self.runs: dict[str, Place] = {}

    def free(self, node: int, rounds: range, held: tuple[int, Place] | None) -> tuple[float, list[float]]:
        """Return the cores of a node that are free in all of these rounds, and the part of each device."""
        _, cores, devices = NODES[node]
        least, parts = float(cores), [1.0] * devices
        for t in rounds:
            there = [place for place in self.runs.values() if place.node == node and place.end > t]
            if held is not None and held[0] <= t and held[1].node == node:
                there.append(held[1])
            least = min(least, cores - sum(place.cores for place in there))
            for d in range(devices):
                parts[d] = min(parts[d], 1.0 - sum(place.devices.get(d, 0.0) for place in there))
        return least, parts

    def best(self, job: Job, now: int, held: tuple[int, Place] | None = None, *, ever: bool = False) -> Place | None:
        """Return the place that leaves least over, of the kinds of least wall time that have room from ``now`` on."""
        (shape,) = job.truth.shapes
        left = job.truth.value.last - now
        kinds = [kind for kind in ("a", "c") if kind in shape.kinds and (ever or min(shape.on[kind]) <= left)]
        for wall in sorted({max(shape.on[kind]) for kind in kinds}):
            end = now + max(1, min(wall, LONGEST, left))
            found: tuple[float, Place] | None = None
            for node, (kind, cores, devices) in enumerate(NODES):
                if kind not in kinds or max(shape.on[kind]) != wall:
                    continue
                core, gpu = shape.each["cpu"], shape.each.get("gpu", 0)
                free, parts = self.free(node, range(now, end), held)
                taken = devices_for(gpu, parts)
                if free < core or taken is None:
                    continue
                score = (free - core) / cores + (2 * (sum(parts) - gpu) / devices if devices else 0.0)
                score += 10.0 * (devices > 0 and gpu == 0)
                if found is None or score < found[0] - 1e-9:
                    found = score, Place(node, core, taken, end)
            if found is not None:
                return found[1]
        return None

    def first(self, job: Job, now: int) -> tuple[int, Place]:
        """Return the first later round in which a job has a place, and that place: every round is tried."""
        (shape,) = job.truth.shapes
        for then in range(now + 1, HORIZON + LONGEST):
            hopeless = all(min(durations) > job.truth.value.last - then for durations in shape.on.values())
            place = self.best(job, then, ever=hopeless)
            if place is not None:
                return then, place
        raise AssertionError("a place is found once all runs have ended")


def devices_for(gpu: float, parts: list[float]) -> dict[int, float] | None:
    """Return the part of each device that is taken: those with least left that suffice."""
    each, count = (1.0, int(gpu)) if gpu >= 1 else (gpu, 1 if gpu else 0)
    enough = sorted((d for d, part in enumerate(parts) if part >= each), key=lambda d: (parts[d], d))
    return dict.fromkeys(enough[:count], each) if len(enough) >= count else None


def compared(market, jobs: list[Job], rule) -> dict[str, int]:
    """Play a market to its end; in each round ``rule(naive, waiting, now)`` names its starts. Returns starts by name.

    Names, nodes and devices have to agree, and no node may be overfull.
    """
    known, naive, waiting, ending, starts = {job.name: job for job in jobs}, NaiveNodes(), [], {}, {}
    for now in range(1, HORIZON):
        naive.runs = {name: place for name, place in naive.runs.items() if place.end > now}
        new = [job for job in jobs if job.truth.birth == now]
        for job in new:
            market.submit(job.name, job.truth, owner=job.owner)
        for job in new:
            market.arrive(job.name)
        waiting = [job for job in [*waiting, *new] if can_end(job, now)]
        expected = rule(naive, waiting, now)
        events = market.advance()
        started = {event.job: place_in(market, event.job, now) for event in events if event.kind.value == "start"}
        assert started == expected, now
        naive.runs |= expected
        for node, (_, cores, _) in enumerate(NODES):
            free, parts = naive.free(node, range(now, now + 1), None)
            assert 0 <= free <= cores and all(0 <= part <= 1 for part in parts)
        waiting = [job for job in waiting if job.name not in started]
        for name in started:
            durations = known[name].truth.shapes[0].on
            case = durations[next(iter(durations))].index(known[name].duration)
            ending[name] = now + durations[market.booking(name).kind][case], starts.setdefault(name, now)
        for name, (end, _) in list(ending.items()):
            if end == now + 1 and name in naive.runs and end <= naive.runs[name].end:
                market.complete(name)
                del naive.runs[name]
    return starts


def can_end(job: Job, now: int) -> bool:
    """Tell whether a start now could end in time."""
    return now + min(map(min, job.truth.shapes[0].on.values())) <= job.truth.value.last


def place_in(market, name: str, now: int) -> Place:
    """Return the place that a market gave a job that starts."""
    booking, begin = market.booking(name), CLUSTER.layout.device_begin[:, 1]
    (node,) = booking.placed.nodes.tolist()
    pairs = zip(booking.placed.devices.tolist(), booking.placed.parts.tolist(), strict=True)
    devices = {int(device - begin[node]): parts / GPU.parts for device, parts in pairs}
    return Place(node, booking.wanted.demand[0] / CPU.parts, devices, now + booking.length)
