"""The events that the end of a round brings with it: bookings that are used up, and jobs that have not come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from marketsched.live.announcements import too_long
from marketsched.live.job import AWAY, OVERRUN, LiveJob
from marketsched.live.machine import LiveMarket


def due(market: LiveMarket, *, away: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the events that the end of the open round brings with it, to be taken before it is cleared.

    A job that ran for as long as it booked is complete, whether its work is done or not, and pays for what it booked:
    the paper's rule, by which evicted jobs pay nothing, is for those that the mechanism evicts. So is one that would go
    on for an unlikely duration once too often (`announcements`). A job that did not come in a round, or not with a
    signal, that it announced costs its owner the fee. Neither costs anything if no service ran (``away``): nobody could
    report.
    """
    for name in market.bookings_end.get(market.round, ()):
        job = market.jobs.get(name)
        if job is None:
            continue
        used = job.state == "running" and job.start is not None and market.round - job.start >= job.may_run
        if used and not job.ends_itself:
            outcome = job.outcome or (AWAY if away else OVERRUN)
            yield {"event": "complete", "owner": job.owner, "job": name, "outcome": outcome, "exit_code": None}
    for job in () if away else too_long(market):
        more = {"refused": "surprise", "outcome": OVERRUN, "exit_code": None}
        yield {"event": "complete", "owner": job.owner, "job": job.name, **more}
    for name in market.expected.get(market.round, ()):
        job = market.jobs.get(name)
        if job is not None and job.state == "submitted":
            yield _missed(job, away)
    for line in market.reported:
        job = market.jobs.get(line["job"])
        if job is not None and job.state == "arrived" and job.reason is not None and job.charge is None:
            yield _missed(job, False)


def _missed(job: LiveJob, away: bool) -> dict[str, Any]:
    more = {"micro": 0, "away": True} if away else {"micro": job.fee}
    return {"event": "missed", "owner": job.owner, "job": job.name, **more}
