"""Runs that are taken back: the job stays, starts again and is complete after its last run."""

from typing import ClassVar

import numpy as np
import pytest

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.market_run import MarketRun
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import DeadlineValue, Event, EventKind, StatementOfWork
from marketsched.mechanisms.errors import MechanismFault
from marketsched.truthfulness.situations.guarded_market import GuardedMarket
from strict_mechanism import StrictMechanism

REQUEUE, START = EventKind.REQUEUE, EventKind.START


class Scripted(StrictMechanism):
    """Every job starts at its arrival; in some rounds runs are taken back, and started again."""

    script: ClassVar = {2: [(REQUEUE, "a")], 4: [(START, "a")], 5: [(REQUEUE, "a"), (START, "a")]}

    def advance(self):
        now, events = self.round, super().advance()
        return [*events, *(Event(now, kind, job) for kind, job in self.script.get(now, ()))]


def job(name, duration, nodes=2):
    truth = StatementOfWork(1, nodes, DeadlineValue(10.0, 30), [(1, duration, 1.0)])
    return Job(name, "ann", truth, 1, duration, duration)


JOBS = [job("a", 3), job("b", 4, nodes=1)]


def test_a_job_completes_its_last_run_and_holds_nodes_only_while_it_runs():
    market = MarketLoop(Scripted(4, 9))
    owners, loads, events = TruthfulOwners(JOBS), [], []
    for _ in range(9):
        owners.act(market)
        events += market.clear()
        loads.append(market.load)
    assert [(e.round, e.kind.value) for e in events if e.job == "a"] == [
        (1, "start"), (2, "requeue"), (4, "start"), (5, "requeue"), (5, "start"), (7, "complete")
    ]  # fmt: skip
    assert loads == [3, 1, 1, 3, 2, 2, 2, 0, 0] and not market.entries
    assert play(MarketLoop(Scripted(4, 9)), TruthfulOwners(JOBS), 9) == events


def test_tables_count_runs_and_what_was_lost():
    result = MarketRun(MarketSetup("test", JOBS, Scripted(4, 9), 4, 9, 20)).run()
    a, b = result.jobs.set_index("name").loc["a"], result.jobs.set_index("name").loc["b"]
    assert (a["start"], a["completion"], a["runs"], a["lost_node_rounds"]) == (5, 8, 3, 2 * 1 + 2 * 1)
    assert (b["start"], b["completion"], b["runs"], b["lost_node_rounds"]) == (1, 5, 1, 0)
    assert result.outcome["requeues"] == 2 and result.outcome["lost_node_rounds"] == 4
    assert result.rounds["requeued"].tolist() == [0, 1, 0, 0, 1, 0, 0, 0, 0]
    used = (result.jobs["concurrency"] * result.jobs["duration"]).sum() + result.outcome["lost_node_rounds"]
    assert result.rounds["load"].sum() == used


def test_a_job_that_is_taken_back_for_good_has_no_start():
    class Once(Scripted):
        script: ClassVar = {2: [(REQUEUE, "a")]}

    result = MarketRun(MarketSetup("test", JOBS, Once(4, 9), 4, 9, 20)).run()
    a = result.jobs.set_index("name").loc["a"]
    assert a["outcome"] == "unfinished" and str(a["start"]) == "<NA>" and (a["runs"], a["lost_node_rounds"]) == (1, 2)


@pytest.mark.parametrize("script", [{3: [(REQUEUE, "a"), (REQUEUE, "a")]}, {2: [(START, "a")]}])
def test_a_guarded_market_refuses_what_cannot_be(script):
    class Wrong(Scripted):
        pass

    Wrong.script = script
    market = GuardedMarket(lambda rng: Wrong(4, 9), np.random.default_rng(0), 4)
    owners = TruthfulOwners(JOBS)
    with pytest.raises(MechanismFault, match=r"requeue of 'a'|start of 'a'"):
        for _ in range(9):
            owners.act(market)
            market.clear()
