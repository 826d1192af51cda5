"""Random small markets, every kind of report of one owner in them, and what each brings: for printed promises.

`World` draws a market of a few jobs, `reports` what the owner of one of them could say, and `gains` compares each of
these with the truth as a promise says: in every outcome, on average over the own outcomes, or over those of all jobs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners
from marketsched.mechanisms import DeadlineValue, EventKind, LinearValue, StatementOfWork, TableValue
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.shapes import Shape, options_of

HORIZON, LONGEST, NODES, HIGHEST = 12, 5, 3, 60.0
SIZES = {"horizon": HORIZON, "max_concurrency": NODES, "max_duration": LONGEST, "max_value": HIGHEST, "max_delay": 20}
RESOURCES = (Resource("cpu"), Resource("gpu", parts=10, device=True))
KINDS = ("a", "b")
Build = Callable[..., Any]
Law = tuple[tuple[int, float], ...]  # durations (or, with shapes, cases), and how likely they are


@dataclass(frozen=True)
class World:
    """A market of a few jobs, and one of them, whose owner may lie."""

    sizes: dict[str, Any]
    jobs: tuple[Job, ...]
    mine: int

    @property
    def job(self) -> Job:
        """The one whose owner may lie."""
        return self.jobs[self.mine]

    @property
    def cluster(self) -> Cluster | None:
        """Where jobs have shapes."""
        return self.sizes.get("cluster")


def drawn_world(seed: int, *, hidden: bool, shapes: int = 0, n: int | None = None) -> World:
    """Return a market of two to five jobs, one of which may lie; on a cluster with up to so many shapes for each.

    Some jobs share an owner, and hide their duration or not; every second market ends soon after the arrivals.
    """
    rng = np.random.default_rng([seed, hidden, shapes])
    nodes = int(rng.integers(1, NODES + 1))
    sizes: dict[str, Any] = {**SIZES, "capacity": nodes, "max_concurrency": nodes}
    sizes["horizon"] = int(rng.choice([HORIZON, HORIZON, 7, 5]))
    if shapes:
        sizes["cluster"] = cluster = _cluster(rng)
        sizes |= {"capacity": cluster.nodes, "max_concurrency": 9}
    count = int(rng.integers(2, 6)) if n is None else n
    births, jobs, mine = np.sort(rng.integers(1, 4, count)).tolist(), [], int(rng.integers(count))
    for i, birth in enumerate(births):
        unseen = hidden if i == mine else rng.random() < (0.7 if hidden else 0.2)
        arrival = birth + int(rng.integers(0, 2))
        truth = _statement(rng, birth, _curve(rng, arrival), arrival, unseen, sizes, shapes)
        points = truth.requirements
        real = points[int(rng.integers(len(points)))]
        owner = f"owner {0 if rng.random() < 0.3 else i}"
        jobs.append(Job(f"job {i}", owner, truth, real.arrival, real.duration, real.signal))
    return World(sizes, tuple(jobs), mine)


def _cluster(rng: np.random.Generator) -> Cluster:
    groups = [
        NodeGroup(f"{kind}{i}", kind, 1, {"cpu": int(rng.integers(1, 4)), "gpu": int(rng.integers(0, 3))})
        for i, kind in enumerate([*KINDS, *rng.choice(KINDS, int(rng.integers(0, 2)))])
    ]
    return Cluster(RESOURCES, groups)


def _law(rng: np.random.Generator) -> Law:
    days = np.sort(rng.choice(np.arange(1, LONGEST + 1), int(rng.choice([1, 2, 2, 3])), replace=False)).tolist()
    days = [1] if rng.random() < 0.15 else days
    weights = rng.choice([0.25, 0.5, 1.0, 2.0], len(days))
    return tuple(zip(days, (weights / weights.sum()).tolist(), strict=True))


def _curve(rng: np.random.Generator, arrival: int) -> Any:
    value, last = float(rng.choice([1.0, 2.0, 4.5, 9.5, 20.0])), arrival + int(rng.integers(1, 9))
    kind = rng.integers(3)
    if kind == 0:
        return DeadlineValue(value, last)
    if kind == 1:
        return LinearValue(value, arrival + int(rng.integers(0, 3)), value / float(rng.integers(2, 6)), last)
    steps = sorted({last, *(arrival + rng.integers(1, 6, 2)).tolist()})
    table = dict(zip(steps, (value / (1.0 + np.arange(len(steps)))).tolist(), strict=True))
    return TableValue(table)


def _statement(
    rng: Any, birth: int, curve: Any, arrival: int, hidden: bool, sizes: dict[str, Any], shapes: int
) -> StatementOfWork:
    law = _law(rng)
    if not shapes:
        width = int(rng.integers(1, sizes["capacity"] + 1))
        return stated(birth, width, curve, arrival, law, hidden, restarts=bool(rng.random() < 0.7))
    first = _shape(rng, len(law), sizes["cluster"])
    similar = [first, *(_similar(rng, first, sizes["cluster"]) for _ in range(int(rng.integers(0, shapes))))]
    return on_shapes(birth, curve, arrival, similar, [p for _, p in law], hidden)


def stated(
    birth: int, width: int, curve: Any, arrival: int, law: Law, hidden: bool, *, restarts: bool = True
) -> StatementOfWork:
    """Return a statement for identical nodes."""
    rows = [(arrival, d, p, *([None] if hidden else [])) for d, p in law]
    return StatementOfWork(birth, width, curve, rows, restarts=restarts)


def on_shapes(
    birth: int, curve: Any, arrival: int, shapes: list[Shape], weights: list[float], hidden: bool
) -> StatementOfWork:
    """Return a statement with shapes."""
    return StatementOfWork.of_shapes(birth, curve, arrival, shapes, weights, revealed=not hidden)


def _durations(rng: np.random.Generator, cases: int) -> tuple[int, ...]:
    return tuple(np.sort(rng.choice(np.arange(1, LONGEST + 1), cases, replace=False)).tolist())


def _shape(rng: np.random.Generator, cases: int, cluster: Cluster) -> Shape:
    while True:
        each = {"cpu": int(rng.integers(1, 3)), "gpu": float(rng.choice([0, 0, 0.5, 1]))}
        on = {kind: _durations(rng, cases) for kind in KINDS if rng.random() < 0.7}
        made = Shape(each, on or {"a": _durations(rng, cases)}, int(rng.choice([1, 1, 2])))
        if _fits(made, cluster):
            return made


def _similar(rng: np.random.Generator, shape: Shape, cluster: Cluster) -> Shape:
    """Return a shape that differs in durations, worth, demand or tasks."""
    for _ in range(20):
        changes: list[dict[str, Any]] = [
            {"on": {kind: tuple(rng.permutation(days).tolist()) for kind, days in shape.on.items()}},
            {"on": {kind: _durations(rng, shape.cases) for kind in shape.on}},
            {"worth": float(rng.choice([0.3, 0.6, 1.0]))},
            {"each": {**shape.each, "cpu": int(rng.integers(1, 4))}},
            {"each": {**shape.each, "gpu": float(rng.choice([0, 0.5, 1]))}},
            {"tasks": int(rng.integers(1, 4))},
        ]
        some = [changes[i] for i in rng.choice(len(changes), int(rng.integers(1, 4)), replace=False)]
        made = replace(shape, **{key: value for change in some for key, value in change.items()})
        if _fits(made, cluster):
            return made
    return shape


def _fits(shape: Shape, cluster: Cluster) -> bool:
    try:
        options_of([shape], cluster)
    except InvalidReportError:
        return False
    return True


def reports(world: World, n: int, seed: int) -> Iterator[StatementOfWork]:
    """Yield ``n`` reports of the owner: values, deadlines, laws, nodes, shapes, or several of these."""
    rng, truth = np.random.default_rng([seed, 7]), world.job.truth
    yielded = 0
    for _ in itertools.count():
        if yielded == n:
            return
        try:
            made = _report(rng, world, truth)
        except InvalidReportError:
            continue
        if made != truth:
            yielded += 1
            yield made


def _report(rng: np.random.Generator, world: World, truth: StatementOfWork) -> StatementOfWork:
    what = set(rng.choice(["value", "law", "size"], int(rng.choice([1, 1, 2, 3])), replace=False).tolist())
    arrival = truth.requirements[0].arrival
    curve = _other_curve(rng, truth.value, arrival) if "value" in what else truth.value
    hidden = not truth.revealed
    if world.cluster is not None:
        shapes = list(truth.shapes)
        weights = truth.law.probabilities.tolist()
        if "law" in what:
            weights = rng.dirichlet(np.ones(len(weights))).tolist()
            weights = np.eye(len(weights))[rng.integers(len(weights))].tolist() if rng.random() < 0.5 else weights
        if "size" in what:
            shapes = _other_shapes(rng, shapes, world.cluster)
        shapes = shapes if _law_fits(shapes, weights) else list(truth.shapes)
        return on_shapes(truth.birth, curve, arrival, shapes, weights, hidden)
    law: Law = tuple((r.duration, r.probability) for r in truth.requirements)
    law = _law(rng) if "law" in what else law
    width = int(rng.integers(1, world.sizes["capacity"] + 1)) if "size" in what else truth.concurrency
    restarts = truth.restarts if rng.random() < 0.8 else not truth.restarts
    form = hidden if rng.random() < 0.9 else not hidden
    return stated(truth.birth, width, curve, arrival, law, form, restarts=restarts)


def _law_fits(shapes: list[Shape], weights: list[float]) -> bool:
    return all(shape.cases == len(weights) for shape in shapes)


def _other_curve(rng: np.random.Generator, curve: Any, arrival: int) -> Any:
    kind = rng.integers(4)
    last = max(arrival + 1, curve.last + int(rng.integers(-3, 4)))
    if kind == 0:
        return DeadlineValue(min(HIGHEST, curve.highest * float(rng.choice([0.0, 0.3, 0.7, 1.0, 1.4, 3.0]))), last)
    if kind == 1:
        return DeadlineValue(float(curve(arrival + 1)), last)
    if kind == 2:
        return LinearValue(curve.highest, arrival, curve.highest / float(rng.integers(2, 7)), last)
    table = np.minimum.accumulate(np.maximum(0, curve.table(arrival + 1, 10) + rng.choice([-2, 0, 0, 2], 10)))
    return TableValue({arrival + 1 + t: min(HIGHEST, float(v)) for t, v in enumerate(table)})


def _other_shapes(rng: np.random.Generator, shapes: list[Shape], cluster: Cluster) -> list[Shape]:
    kind = rng.integers(4)
    if kind == 0 and len(shapes) > 1:  # leaves one out
        return [shape for i, shape in enumerate(shapes) if i != rng.integers(len(shapes))] or shapes[:1]
    if kind == 1:  # one that holds all of them
        each = {k: max(shape.each.get(k, 0) for shape in shapes) for k in ("cpu", "gpu")}
        cases = [min(days) for days in zip(*(shape.on[shape.kinds[0]] for shape in shapes), strict=True)]
        tasks = max(shape.tasks for shape in shapes)
        made = Shape(each, {k: tuple(cases) for k in shapes[0].kinds}, tasks)
        return [made, *shapes] if _fits(made, cluster) else shapes
    if kind == 2:  # an invented one
        return [*shapes, _similar(rng, shapes[int(rng.integers(len(shapes)))], cluster)]
    return [_similar(rng, shape, cluster) for shape in shapes]


def utility(world: World, build: Build, report: StatementOfWork | None, jobs: tuple[Job, ...]) -> float:
    """Return what the owner has from a play in which these jobs really happen, credits, by its true values.

    ``report`` None: it reports truly, and withdraws its job at once.
    """
    mechanism = build(**world.sizes)
    loop, owners, own = MarketLoop(mechanism), TruthfulOwners(jobs), jobs[world.mine]
    submit, got = loop.submit, 0.0
    loop.submit = lambda name, sow, *rest, **more: submit(  # type: ignore[method-assign]
        name, report if name == own.name and report else sow, *rest, **more
    )
    events = []
    while loop.now <= mechanism.horizon:
        owners.act(loop)
        if report is None and loop.now == own.truth.birth:
            events.append(loop.withdraw(own.name))
        events += loop.clear()
    for event in [*events, *loop.close()]:
        if event.job == own.name:
            done = event.kind is EventKind.COMPLETE
            got += (event.worth * float(own.truth.value(event.completion)) if done else 0.0) - event.payment
    return got


def outcomes(world: World, everybody: bool = False) -> Iterator[tuple[float, tuple[Job, ...]]]:
    """Yield what may happen to the owner's job (or to all jobs) by the true laws, and how likely it is."""
    cases = [
        [(r.probability, replace(job, arrival=r.arrival, duration=r.duration, signal=r.signal))
         for r in job.truth.requirements] if everybody or i == world.mine else [(1.0, job)]
        for i, job in enumerate(world.jobs)
    ]  # fmt: skip
    for case in itertools.product(*cases):
        yield float(np.prod([p for p, _ in case])), tuple(job for _, job in case)


def largest_gain(world: World, build: Build, promise: str, tried: Iterator[StatementOfWork]) -> tuple[float, Any, int]:
    """Return the largest gain over the truth that breaks a promise, credits, its report, and how many were tried.

    Beside the reports a withdrawal is played, which the report None stands for.
    "ex post": in one outcome of the own job; "in expectation": on average over these; "up to regret": over all jobs'.
    """
    cases = list(outcomes(world, everybody=promise == "up to regret"))
    truth = [utility(world, build, world.job.truth, jobs) for _, jobs in cases]
    best, found, n = -np.inf, None, 0
    for report in itertools.chain([None], tried):
        n += report is not None
        try:
            gains = [utility(world, build, report, jobs) - mine for (_, jobs), mine in zip(cases, truth, strict=True)]
        except InvalidReportError:  # refused
            continue
        gain = max(gains) if promise == "ex post" else sum(p * g for (p, _), g in zip(cases, gains, strict=True))
        if gain > best:
            best, found = gain, report
    return best, found, n
