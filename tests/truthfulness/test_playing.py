"""Plays of the search: what an owner can do beyond its statement, and mechanisms that break the protocol."""

import pytest

from marketsched.agents.conduct import plain
from marketsched.agents.lies import DelaySubmission
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.errors import MechanismFault
from small_mechanisms import HighestBid, OpenMarket, owner_in


def open_market(price, **keywords):
    return lambda rng: OpenMarket(4, 12, price, **keywords)


def played(owner, misreport):
    return owner.play(misreport.conduct(owner.truth, owner.truth, owner.public))


def test_a_job_that_declares_too_few_nodes_never_completes():
    truth = StatementOfWork(1, 2, DeadlineValue(9.0, 9), [(1, 1, 1.0)])
    owner = owner_in(open_market(lambda *_: 1.0), truth, capacity=4, horizon=12, max_delay=12)
    told = StatementOfWork(1, 1, DeadlineValue(9.0, 9), [(1, 1, 1.0)])
    assert owner.play(plain(told, 2))[:3] == (0.0, 0.0, None)


def test_a_late_submission():
    truth = StatementOfWork(1, 1, DeadlineValue(9.0, 9), [(1, 1, 1.0)])
    owner = owner_in(open_market(lambda *_: 1.0), truth, capacity=4, horizon=12, max_delay=4)
    assert played(owner, DelaySubmission(2))[:3] == (9.0, 1.0, 4)  # ready at 3, done at 4
    assert played(owner, DelaySubmission(3)).completion is None  # worth nothing from birth + 4 on


# --- faults -----------------------------------------------------------------------------------------


class Broken(HighestBid):
    """A mechanism with one fault."""

    def __init__(self, fault):
        super().__init__("second", horizon=9)
        self.fault = fault

    def submit(self, job, sow):
        if self.fault == "raises" and job == "owner":
            raise ZeroDivisionError("division by zero")
        return super().submit(job, sow)

    def advance(self):
        events = super().advance()
        if self.fault == "stands still":
            self.round -= 1
        if self.fault == "endless":
            return iter(lambda: events[0], None)
        if self.fault == "stranger":
            events[0] = type(events[0])(events[0].round, events[0].kind, "nobody")
        return events

    def complete(self, job):
        event = super().complete(job)
        if self.fault == "nan":
            return type(event)(event.round, event.kind, event.job, event.completion, float("nan"))
        return event


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raises", "submit of 'owner' in round 1: ZeroDivisionError: division by zero"),
        ("stands still", "the mechanism is in round 1: expected round 2"),
        ("endless", "advance in round 1: start of 'owner', which has started before: expected one start"),
        ("stranger", "advance in round 1: start of 'nobody': expected a job in the market"),
        ("nan", "complete of 'owner' in round 2: .*expected a completion with a finite payment"),
    ],
)
def test_a_fault_of_the_mechanism_is_named_with_its_round_and_call(fault, message):
    truth = StatementOfWork(1, 1, DeadlineValue(9.0, 9), [(1, 1, 1.0)])
    with pytest.raises(MechanismFault, match=message):
        owner_in(lambda rng: Broken(fault), truth, capacity=1, horizon=9, max_delay=9).play(plain(truth, 1))


def test_a_mechanism_that_oversells_or_cannot_be_built_is_named():
    truth = StatementOfWork(1, 3, DeadlineValue(9.0, 9), [(1, 2, 1.0)])
    sizes = {"capacity": 4, "horizon": 12, "max_delay": 9}
    with pytest.raises(MechanismFault, match="round 1: 6 nodes run: expected at most the capacity 4"):
        owner_in(lambda rng: OpenMarket(9, 12, lambda *_: 1.0), truth, [truth], **sizes)
    with pytest.raises(MechanismFault, match="the mechanism cannot be built: ZeroDivisionError"):
        owner_in(lambda rng: 1 / 0, truth, **sizes)
