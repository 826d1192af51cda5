"""Whether a whole number that the platform sees is the duration is a fact about the platform, never about a report."""

import numpy as np
import pytest

from marketsched.agents.job import Job
from marketsched.config.scenario import Scenario
from marketsched.mechanisms import BidPrice, DeadlineValue, FirstCome, InvalidParameterError, StatementOfWork
from marketsched.mechanisms.signals import observed_duration, signals_of
from marketsched.play.running import run

SIZES = {"max_concurrency": 1, "max_duration": 5, "max_value": 9.0, "max_delay": 9}
LABELLED = {
    "name": "labels",
    "workload": {
        "kind": "jobs", "capacity": 3, "horizon": 12, "max_concurrency": 1, "max_duration": 5, "max_value": 9.0,
        "max_delay": 9,
        "jobs": [
            {"name": f"j{i}", "owner": f"o{i}", "birth": 1, "concurrency": 1,
             "value": {"kind": "deadline", "value": 8.0, "deadline": 8},
             "requirements": [{"arrival": 2, "duration": 3, "probability": 1.0, "signal": 1}],
             "arrival": 2, "duration": 3, "signal": 1}
            for i in range(3)
        ],
    },
}  # fmt: skip


def labelled(mechanism):
    return Scenario.of({**LABELLED, "mechanism": {"name": mechanism}}, kind="market")


@pytest.mark.parametrize("mechanism", ["bid-price", "first-come"])
def test_three_truthful_jobs_with_a_label_are_served(mechanism):
    found = run(labelled(mechanism), 1)
    assert found.outcome["completed"] == 3 and found.outcome["evicted"] == 0
    assert found.outcome["welfare"] == 24.0


@pytest.mark.parametrize("kind", [BidPrice, FirstCome])
def test_the_report_does_not_choose_the_rule(kind):
    """The platform sees 3 rounds; the report hides its durations, or has 3 for a label. It is the same job."""
    truth = StatementOfWork(1, 1, DeadlineValue(8.0, 8), [(1, 3, 1.0)])
    hides = StatementOfWork(1, 1, DeadlineValue(8.0, 8), [(1, 3, 1.0, None)])
    label = StatementOfWork(1, 1, DeadlineValue(8.0, 8), [(1, 1, 1.0, 3)])
    booked = []
    for report in (truth, hides, label):
        market = kind(1, 12, **SIZES)
        market.submit("A", report)
        market.arrive("A", 3)
        market.advance()
        booked.append(market._free.tolist())
    assert booked[0][:4] == [0, 0, 0, 1]
    assert booked == booked[:1] * 3


def test_signals_are_durations_unless_one_is_something_else():
    law = StatementOfWork(1, 1, DeadlineValue(8.0, 8), [(1, 3, 0.5), (1, 2, 0.5)])
    hidden = StatementOfWork(1, 1, DeadlineValue(8.0, 8), [(1, 3, 1.0, None)])
    label = StatementOfWork(1, 1, DeadlineValue(8.0, 8), [(1, 1, 0.5, 1), (1, 3, 0.5, 1)])
    word = StatementOfWork(1, 1, DeadlineValue(8.0, 8), [(1, 3, 1.0, "long")])
    jobs = [Job("a", "a", law, 1, 3, 3), Job("b", "b", hidden, 1, 3, None), Job("c", "c", word, 1, 3, "long")]
    assert signals_of(jobs) == "durations"
    assert signals_of([*jobs, Job("d", "d", label, 1, 1, 1)]) == "labels"  # its law says so, whatever happened


def test_what_is_seen():
    seen = [observed_duration(s) for s in (3, np.int64(3), 3.0, 0, -1, 2.5, True, None, "3")]
    assert seen == [3, 3, 3, None, None, None, None, None, None]
    with pytest.raises(InvalidParameterError, match="signals"):
        FirstCome(1, 9, signals="rounds", **SIZES)
