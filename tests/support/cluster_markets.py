"""Tiny markets on clusters, the reports that could be made in them, and faulty mechanisms that such reports beat."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from claims import claiming
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.mechanisms import DeadlineValue, EventKind, LinearValue, StatementOfWork
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.resources.bid_price import ClusterBidPrice
from marketsched.mechanisms.resources.bookings import Booking
from marketsched.mechanisms.resources.calendars import Wanted
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.known import Known
from marketsched.mechanisms.resources.menus import _entries_kernel, quoted
from marketsched.mechanisms.resources.placement import place
from marketsched.mechanisms.resources.shapes import Shape, options_of

HORIZON, LONGEST = 20, 9
SIZES = {"max_concurrency": 9, "max_duration": LONGEST, "max_value": 1e4, "max_delay": 16}
RULES = {"lags": (3, 5), "ahead": 10, "steps": 6, "slack": 0.1}
RESOURCES = (Resource("cpu", parts=2), Resource("memory"), Resource("gpu", parts=10, device=True))
KINDS = "abcdef"


def tiny_cluster(rng: np.random.Generator) -> Cluster:
    """Return six kinds of nodes, six to eight nodes."""
    return Cluster(
        RESOURCES,
        [
            NodeGroup(
                f"{kind}{i}",
                kind,
                1,
                {"cpu": int(rng.integers(2, 7)), "memory": int(rng.integers(2, 7)), "gpu": int(rng.integers(0, 4))},
            )
            for i, kind in enumerate([*KINDS, *rng.choice(list(KINDS), int(rng.integers(0, 3)))])
        ],
    )


def random_shape(rng: np.random.Generator) -> Shape:
    """Return one task or a gang, with a share of a device, whole ones, or none."""
    tasks = int(rng.choice([1, 1, 1, 2, 3]))
    each = {"cpu": float(rng.integers(1, 7)) / 2, "memory": int(rng.integers(0, 4))}
    each["gpu"] = float(rng.choice([0, 0, 0.3, 0.5, 1, 1, 2]))
    kinds = rng.choice(list(KINDS), int(rng.integers(1, 7)), replace=False)
    worth = float(rng.choice([1.0, 1.0, 0.8]))
    per_node = 1 if tasks > 1 and rng.random() < 0.3 else None
    return Shape(each, {str(kind): int(rng.integers(1, 6)) for kind in kinds}, tasks, per_node, worth)


def on_kinds_that_fit(shape: Shape, cluster: Cluster) -> Shape | None:
    """Return a shape without the kinds that could never hold it; None if there are none left."""
    fitting = {}
    for kind, durations in shape.on.items():
        try:
            options_of([Shape(shape.each, {kind: durations}, shape.tasks, shape.per_node, shape.worth)], cluster)
        except InvalidReportError:
            continue
        fitting[kind] = durations
    return Shape(shape.each, fitting, shape.tasks, shape.per_node, shape.worth) if fitting else None


def tiny_market(seed: int, n: int = 14) -> tuple[Cluster, list[Job]]:
    """Return a cluster and jobs of one to three shapes each, most of which arrive while others run."""
    rng = np.random.default_rng(seed)
    cluster, jobs = tiny_cluster(rng), []
    for i, birth in enumerate(np.sort(rng.integers(1, 10, n)).tolist()):
        shapes = [on_kinds_that_fit(random_shape(rng), cluster) for _ in range(int(rng.integers(1, 4)))]
        shapes = [shape for shape in shapes if shape is not None] or [Shape({"cpu": 0.5}, {"a": 2})]
        arrival, worth = birth + int(rng.integers(0, 2)), float(rng.integers(4, 60))
        last = arrival + int(rng.integers(3, 11))
        curve = DeadlineValue(worth, last) if rng.random() < 0.5 else LinearValue(worth, arrival + 1, worth / 12, last)
        sow = StatementOfWork.of_shapes(birth, curve, arrival, shapes)
        duration = sow.requirements[0].duration
        jobs.append(Job(f"job-{i}", f"owner-{i}", sow, arrival, duration, duration))
    return cluster, jobs


def played(mechanism, jobs, name, report=None):
    """Play with one job under a report; return what it books, its utility, and the market."""
    mechanism.keep_menus([name])
    loop, born = MarketLoop(mechanism), {}
    for job in jobs:
        born.setdefault(job.truth.birth, []).append(job)
    start, utility, booking = None, 0.0, None
    while loop.now <= mechanism.horizon:
        for job in born.get(loop.now, ()):
            sow = report if job.name == name and report is not None else job.truth
            loop.submit(job.name, sow, job, job.truth.concurrency)
        arrived = name in loop.entries and loop.entries[name].arrived
        for event in loop.clear():
            if event.job != name:
                continue
            if event.kind is EventKind.START:
                start = event.round
            if event.kind is EventKind.COMPLETE:
                truth = next(job.truth for job in jobs if job.name == name)
                utility = event.worth * float(truth.value(event.completion)) - event.payment
        if booking is None and mechanism.booking(name) is not None:
            booking = mechanism.booking(name)
        if (arrived or start is not None) and name not in loop.entries:
            break
    return (booking.start, booking.length, booking.wanted.pool) if booking else None, utility, mechanism


def _scaled(shape: Shape, factor: float, names: tuple[str, ...]) -> dict[str, float]:
    """Return the demand of a task with some resources scaled, in whole parts."""
    whole = {"cpu": 2, "memory": 1}
    return {k: round(v * factor * whole[k]) / whole[k] if k in names else v for k, v in shape.each.items()}


def changes(shape: Shape, rng: np.random.Generator) -> Iterator[dict]:
    """Yield what could be said otherwise of a shape: kinds, durations, demands, widths; some of it impossible."""
    on, kinds = {kind: durations[0] for kind, durations in shape.on.items()}, list(shape.on)
    for kind in kinds:
        yield {"on": {k: d for k, d in on.items() if k != kind}}
        yield {"on": {kind: on[kind]}}
        yield from ({"on": {**on, kind: on[kind] + more}} for more in (-1, 1, 3))
    yield from ({"on": {**on, kind: int(rng.integers(1, 6))}} for kind in KINDS if kind not in on)
    yield from ({"on": {k: d + more for k, d in on.items()}} for more in (-2, -1, 1, 2, 4))
    yield {"on": dict(zip(kinds, [on[k] for k in [*kinds[1:], kinds[0]]], strict=True))}
    for factor in (0.5, 1.5, 2.0):
        yield from ({"each": _scaled(shape, factor, names)} for names in (("cpu",), ("memory",), ("cpu", "memory")))
    yield from ({"each": {**shape.each, "gpu": gpu}} for gpu in (0, 0.3, 0.5, 0.7, 1, 2, 3))
    for tasks in (1, 2, 3, 4):
        yield {"tasks": tasks}
        yield {"tasks": tasks, "per_node": 1}
    for boxes in (1, 2):  # fewer, larger tasks, in which the true ones would run
        inside = -(-shape.tasks // boxes)
        if inside > 1:
            yield {"each": {k: v * inside for k, v in shape.each.items()}, "tasks": boxes, "per_node": None}
    yield {"worth": 0.5}
    yield {"worth": 1.0}


def changed(shape: Shape, parts: dict) -> Shape:
    """Return a shape with some of its fields replaced."""
    given = {"each": shape.each, "on": shape.on, "tasks": shape.tasks, "per_node": shape.per_node, "worth": shape.worth}
    return Shape(**(given | parts))


def lies(job: Job, cluster: Cluster, rng: np.random.Generator) -> Iterator[StatementOfWork]:
    """Yield legal reports other than the truth: of values, of shapes, and of both."""
    truth, arrival, shapes = job.truth, job.arrival, job.truth.shapes
    top, last = truth.value.highest, truth.value.last
    curves = [DeadlineValue(factor * top, last) for factor in (0.0, 0.3, 0.7, 1.5, 3.0, 30.0)]
    curves += [DeadlineValue(top, last + shift) for shift in (-3, -1, 2, 6)]
    curves += [LinearValue(2 * top, arrival + 1, top / 3, last + 4), LinearValue(top, arrival + 1, top / 30, last + 4)]
    several = [list(some) for n in range(1, len(shapes)) for some in itertools.combinations(shapes, n)]
    several.append([random_shape(rng), *shapes])
    for i, shape in enumerate(shapes):
        for parts in changes(shape, rng):
            try:
                several.append([*shapes[:i], changed(shape, parts), *shapes[i + 1 :]])
            except InvalidReportError:
                continue
    mixed = [(curve, several[int(rng.integers(len(several)))]) for curve in curves for _ in range(3)]
    for curve, other in [*((c, list(shapes)) for c in curves), *((truth.value, s) for s in several), *mixed]:
        try:
            options_of(other, cluster)
            if max(d for shape in other for each in shape.on.values() for d in each) <= LONGEST:
                yield StatementOfWork.of_shapes(truth.birth, curve, arrival, other)
        except InvalidReportError:
            continue


class Entries(NamedTuple):
    """Entries of positive surplus, best first, whether they fit or not."""

    surplus: np.ndarray  # (m,), credits
    option: np.ndarray  # (m,), row of the options
    start: np.ndarray  # (m,), rounds after the round of arrival
    length: np.ndarray  # (m,), rounds booked


def entries(known: Known, prefix: np.ndarray, rounds_left: int, phi: float) -> Entries:
    """Return the entries that a job could choose at these prices, as the kernel lists them."""
    options = known.options
    found = _entries_kernel(
        prefix, options.pool, options.total, options.worth, known.lengths, known.chances, known.values,
        rounds_left, phi,
    )  # fmt: skip
    order = np.argsort(-found[0], kind="stable")
    return Entries(*(column[order] for column in found))


@claiming
class HearsTheRound(ClusterBidPrice):
    """A fault: what arrives in a round teaches its prices."""

    def serve(self, waiting):
        for x in waiting:
            self._prices.learn(self.round - 1, self._known[x.job])
        return super().serve(waiting)


@claiming
class ChargesFragments(ClusterBidPrice):
    """A fault: whoever leaves parts of devices that are in nobody's way pays for them on top."""

    def _serve_one(self, x, known):
        now, o, best = self.round, known.options, None
        wanted = entries(known, self._prices.prefix, self.horizon - now + 1, 0.0)
        for i in range(wanted.surplus.size):
            row, start, length = int(wanted.option[i]), now + int(wanted.start[i]), int(wanted.length[i])
            ask = Wanted(int(o.pool[row]), int(o.tasks[row]), int(o.per_node[row]), o.demand[row])
            if not self._calendars.fits(ask, start, length):
                continue
            room = self._calendars.room(ask, start, length)
            placed = place(self._rule, room, ask, self.cluster, self._types)
            left = (
                sum(int(room.free[room.nodes == node, 2][0]) for node in placed.nodes) - int(ask.demand[2]) * ask.tasks
            )
            surcharge = 0.4 * (left % 10)
            if wanted.surplus[i] - surcharge > 1e-12 and (best is None or wanted.surplus[i] - surcharge > best[0]):
                best = (wanted.surplus[i] - surcharge, row, start, length, ask, placed, surcharge)
        if best is not None:
            _, row, start, length, ask, placed, surcharge = best
            self._calendars.book(ask, placed, start, length)
            costs = quoted(self._prices.prefix, ask.pool, o.total[row], start - now, length) + surcharge
            kind = self.cluster.pool_kinds[ask.pool]
            x.agreed = Booking(int(o.shape[row]), kind, start, length, ask, placed, costs)
            x.start, x.limit = start, length
        return 0.0
