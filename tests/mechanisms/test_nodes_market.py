"""Markets that start jobs on free nodes, by the plainest of them: in order of arrival, worked by hand."""

import numpy as np
import pytest

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners
from marketsched.mechanisms import DeadlineValue, LinearValue, StatementOfWork
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup
from marketsched.mechanisms.resources.shapes import Shape
from marketsched.mechanisms.schedulers.node_jobs import NodeJob, facts_of
from marketsched.mechanisms.schedulers.nodes_market import NodesMarket
from node_requests import CPU

SIZES = {"max_duration": 6, "max_value": 9.0, "max_delay": 18}
KINDS = Cluster((CPU,), [NodeGroup("f", "fast", 1, {"cpu": 4}), NodeGroup("s", "slow", 2, {"cpu": 4})])


class InOrder(NodesMarket[NodeJob]):
    """Who came first is tried first, with the options that are worth most."""

    def _present_of(self, x, known):
        return NodeJob(**facts_of(x, 0, known, self.cluster))

    def advance(self):
        now = self.round
        events = self._depart(now) + self._admit(now)
        for each in self._present.values():
            if each.run is None:
                self._start(each, each.worth_most(now), now, events)
        return self._next_round(events)


def job(name, arrival, nodes, law, duration, deadline):
    points = [(arrival, d, 1 / len(law), None) for d in law]
    return Job(name, "ann", StatementOfWork(arrival, nodes, DeadlineValue(4.0, deadline), points), arrival, duration)


def test_jobs_start_end_and_leave_as_their_laws_and_values_say():
    jobs = [
        job("long", 1, 2, [2, 4], 4, 9),  # rounds 1 to 4
        job("late", 1, 1, [3, 6], 3, 7),  # it could start in round 4 for the last time
        job("wide", 2, 2, [1, 5], 1, 20),  # starts in round 5
        job("never", 2, 1, [3], 3, 4),  # three rounds from round 2 end in round 5
        job("stopped", 3, 1, [2, 5], 5, 9),  # starts in round 6, and is worth nothing from round 9 on
        job("beside", 4, 1, [6], 6, 20),  # rounds 6 to 11
        job("last", 11, 2, [1, 4], 4, 20),  # runs when the market closes
        job("waits", 11, 1, [1], 1, 20),
    ]
    loop = MarketLoop(InOrder(2, 13, max_concurrency=2, **SIZES))
    events, loads = [], []
    owners = TruthfulOwners(jobs)
    while loop.now <= 13:
        owners.act(loop)
        events += loop.clear()
        loads.append(loop.load)
    closed = loop.close()
    assert [(event.kind.value, event.job) for event in closed] == [("evict", "last")]
    found = [(event.round, event.kind.value, event.job) for event in events]
    assert sorted(found) == sorted([
        (1, "start", "long"), (2, "drop", "never"), (4, "complete", "long"), (5, "drop", "late"), (5, "start", "wide"),
        (5, "complete", "wide"), (6, "start", "stopped"), (6, "start", "beside"), (9, "evict", "stopped"),
        (11, "start", "waits"), (11, "complete", "beside"), (11, "complete", "waits"), (12, "start", "last"),
    ])  # fmt: skip
    assert loads == [2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 2, 2, 2]
    assert all(event.payment == 0.0 for event in [*events, *closed])  # who says nothing of prices takes none


def test_a_start_is_worth_most_where_it_ends_first_and_nothing_once_it_ends_too_late():
    """Fast for 2 or 4 rounds, slow for twice these; 10 credits until round 6, less 2 a round later, none after 9."""
    market = InOrder(3, 30, max_concurrency=2, cluster=KINDS, **SIZES)
    shape = Shape({"cpu": 2}, {"fast": (2, 4), "slow": (4, 6)}, tasks=2, per_node=1)
    one = Shape({"cpu": 2}, {"fast": (2, 4), "slow": (4, 6)})
    value = LinearValue(8.0, 6, 2.0, 9)
    for name, shapes in (("one", [one]), ("two", [shape]), ("both", [one, Shape({"cpu": 1}, {"slow": (2, 4)})])):
        market.submit(name, StatementOfWork.of_shapes(1, value, 1, shapes, (0.5, 0.5), revealed=False))
    for name in ("one", "two", "both"):
        market.arrive(name)
    market.advance()
    one, two, both = (market._present[name] for name in ("one", "two", "both"))
    pools = [KINDS.pool_kinds[pool] for pool in one.options.pool]
    fast, slow = pools.index("fast"), pools.index("slow")

    def worth(now, lengths):
        return sum(0.5 * (8.0 - 2.0 * max(0, now + d - 6) if now + d <= 9 else 0.0) for d in lengths)

    for now in range(1, 10):
        of = {fast: worth(now, (2, 4)), slow: worth(now, (4, 6))}
        best = max(of.values())
        assert one.worth_most(now) == [row for row in sorted(of) if best > 0 and of[row] == best], now
    assert len(both.worth_most(1)) == 2 and both.worth_most(8) == []  # the fast node, and the second shape on slow ones
    # Least work: the fast node for 3 rounds rather than slow ones for 5; two tasks hold twice as much.
    assert one.least == fast and (one.mean, two.mean) == (3.0, 5.0) and two.size == 2 * one.size
    assert one.size == pytest.approx(3 * 2 / 12) and one.important == pytest.approx(8.0 / (one.size * 3.0))
    assert both.mean == 3.0 and both.size == pytest.approx(3 * 1 / 12)
    assert market.nodes_in_use() == len(
        {n for name in ("one", "two", "both") for n in market.booking(name).placed.nodes}
    )
    assert market.booking("nobody") is None and np.isfinite(one.means).all()
