"""Why a job of a live market waits, or waited, for its owner: causes from nodes and times alone, of others in steps.

What others reported is not looked at: only the nodes that their runs held, and when, which every owner can tell from
the busy nodes of each round. How many jobs held them is told in steps, as the number of jobs that wait is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from marketsched.explanations.rules import rule_of
from marketsched.live.job import LiveJob
from marketsched.live.state import next_step
from marketsched.live.turn import Turn
from marketsched.mechanisms.errors import EventError
from marketsched.results.overtaking import Waits

HELD = ("before", "ahead", "passed")
MOST_ROWS = 50_000  # of the journal, that are read for one answer
ENDS = ("requeue", "evict", "complete")


def explained(turn: Turn, job: LiveJob) -> dict[str, Any]:
    """Return the rounds that a job waited so far, by cause, and who held the nodes.

    Raises
    ------
    EventError
        If it has not arrived, or it arrived too many events ago, or nodes differ.
    """
    market = turn.market
    if market.config.cluster is not None:
        raise EventError(f"explanation of {job.name!r}", legal="a market of identical nodes: causes count nodes")
    if job.arrived is None:
        raise EventError(f"explanation of {job.name!r}", legal="a job that has arrived")
    came, last = next(row.seq for row in turn.rows(job.rows) if row.event == "arrive"), job.rows[-1]
    until = job.start or job.end or market.round
    last = last if job.start or job.gone else turn.last_seq
    if last - came > MOST_ROWS:
        raise EventError(f"explanation of {job.name!r}", legal=f"a job that came within the last {MOST_ROWS:,} events")
    runs: list[tuple[str, int, int]] = []
    going: dict[str, int] = {}
    for decision in (each for row in turn.rows(range(came, last + 1)) for each in row.decisions):
        name, now = decision["job"], decision["round"]
        if decision["event"] == "start":
            going[name] = now
        elif decision["event"] in ENDS:
            begin = going.pop(name, job.arrived - 1)  # or before it came
            runs.append((name, begin, now + (decision["event"] == "complete")))
    runs += [(name, begin, turn.job(name).end or market.round) for name, begin in going.items()]
    going_on = (other for other in market.jobs.values() if other.state == "running" and other.name not in going)
    runs += [(other.name, other.start or 0, market.round) for other in going_on]
    names = list(dict.fromkeys([job.name, *(name for name, *_ in runs)]))
    jobs = [turn.job(name) for name in names]
    rows = [(names.index(name), begin, max(begin, end)) for name, begin, end in runs if begin < until]
    table = np.array(rows, np.int64).reshape(-1, 3)
    arrivals = np.array([each.arrived or each.submitted for each in jobs], np.int64)
    order = np.lexsort((np.array([each.rows[0] for each in jobs]), arrivals))
    place = np.argsort(order)
    table[:, 0] = place[table[:, 0]]
    left = np.where(np.arange(len(jobs)) == 0, until, arrivals)[order]
    nodes = np.array([each.nodes for each in jobs], np.int64)[order]
    waits = Waits(arrivals[order], left, nodes, np.ones_like(nodes), table, market.config.capacity)
    mine = int(place[0])
    causes = {name: int(rounds[mine]) for name, rounds in waits.causes._asdict().items()}
    rule = rule_of(market.mechanism, revealed=False)
    if rule.keeps == "waiting":  # who is waited for is not told
        causes["kept"], causes["own"] = causes["own"], 0
    held = {
        cause: {"jobs_at_most": next_step(found.size), "node_rounds": int(work.sum())}
        for cause, (found, work) in zip(HELD, waits.holders(mine), strict=True)
        if causes[cause]
    }
    wait = {"job": job.name, "wait": until - job.arrived, "causes": causes, "held": held}
    said = {"passed": rule.passed, "own": rule.own}
    return wait | {cause: words for cause, words in said.items() if causes[cause]}
