"""From small markets to the package: statements of work, mechanisms, and a truthful environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from marketsched.mechanisms import (
    DeadlineValue,
    Event,
    EventKind,
    ExactOracle,
    ExponentialPricing,
    LaunchPlan,
    LinearValue,
    PostedPriceMechanism,
    PostedPricing,
    Requirement,
    StatementOfWork,
    TableValue,
    ValueCurve,
)
from reference.markets import TrueJob


def value_curve(spec: dict[str, Any]) -> ValueCurve:
    """Return the value curve of a log's ``value``."""
    if spec["kind"] == "table":
        return TableValue({int(time): value for time, value in spec["values"].items()})
    if spec["kind"] == "deadline":
        return DeadlineValue(spec["value"], spec["deadline"])
    return LinearValue(value=spec["value"], start=spec["from"], slope=spec["slope"], deadline=spec["deadline"])


def statement(job: TrueJob) -> StatementOfWork:
    """Return the report of a job."""
    rows = [Requirement(**row) for row in job.sow["requirements"]]
    return StatementOfWork(job.birth, job.sow["concurrency"], value_curve(job.sow["value"]), rows)


def mechanism(config: dict[str, Any], *, oracle: Any = None, **changes: Any) -> PostedPriceMechanism:
    """Return the package's mechanism for a configuration; ``changes`` replace some of its entries."""
    config = config | changes
    pricing = {name: x for name, x in config["pricing"].items() if name != "kind"}
    prices = ExponentialPricing(**pricing) if config["pricing"]["kind"] == "exponential" else PostedPricing(**pricing)
    names = ("max_concurrency", "max_duration", "max_value", "max_delay", "epsilon", "threshold", "eviction")
    return PostedPriceMechanism(
        config["capacity"],
        config["horizon"],
        prices,
        ExactOracle() if oracle is None else oracle,
        **{name: config[name] for name in names},
    )


Before = Callable[[TrueJob, StatementOfWork], object]
After = Callable[[TrueJob, StatementOfWork, LaunchPlan], object]


def play(
    market: PostedPriceMechanism,
    jobs: Sequence[TrueJob],
    *,
    before: Before | None = None,
    after: After | None = None,
    cleared: Callable[[], object] | None = None,
) -> list[Event]:
    """Play all rounds of a market whose jobs do what ``jobs`` says; return every event.

    ``before`` and ``after`` are called around each submission, ``cleared`` after each clearing.
    """
    events: list[Event] = []
    started: dict[str, int] = {}
    gone: set[str] = set()

    def note(new: Sequence[Event]) -> None:
        events.extend(new)
        for event in new:
            if event.kind is EventKind.START:
                started[str(event.job)] = event.round
            else:
                gone.add(str(event.job))

    for t in range(1, market.horizon + 1):
        for job in jobs:
            if job.birth == t:
                sow = statement(job)
                if before is not None:
                    before(job, sow)
                plan = market.submit(job.name, sow)
                if after is not None:
                    after(job, sow, plan)
        for job in jobs:
            if job.arrival == t and job.name not in gone:
                market.arrive(job.name, job.signal)
        note(market.advance())
        if cleared is not None:
            cleared()
        for job in jobs:
            if job.name in started and job.name not in gone and started[job.name] + job.duration - 1 == t:
                note([market.complete(job.name)])
    note(market.close())
    return events
