"""A job that its owner takes back before it arrives: in the loop, in a log, and what it pays."""

import pytest

from marketsched import replay
from marketsched.agents.conduct import Attempt, Conduct, Statement
from marketsched.agents.loop import Fate, MarketLoop
from marketsched.agents.playing import play
from marketsched.mechanisms import DeadlineValue, Event, EventKind, StatementOfWork
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.errors import EventError, MechanismFault
from marketsched.mechanisms.forwarding import Forwarding

LIMITS = {"max_concurrency": 2, "max_duration": 4, "max_value": 20.0, "max_delay": 9}
SOW = StatementOfWork(1, 1, DeadlineValue(10.0, 9), [(2, 2, 1.0)])


class HalfAsMuch(FirstCome):
    """Charges half of the fee that the market asks."""

    def withdraw(self, job, fee=0.0):
        return Event(self.round, EventKind.WITHDRAW, job, payment=fee / 2)


def loop(kind=FirstCome, wrapped=False):
    mechanism = kind(2, 9, 0.5, **LIMITS)
    market = MarketLoop(Forwarding(mechanism) if wrapped else mechanism)
    market.submit("A", SOW, Fate(2, 2, 2), 1)
    market.submit("B", SOW, Fate(2, 2, 2), 1)
    return market


@pytest.mark.parametrize(("kind", "wrapped", "payment"), [(FirstCome, False, 3.0), (HalfAsMuch, True, 1.5)])
def test_a_withdrawn_job_pays_and_never_arrives(kind, wrapped, payment):
    market = loop(kind, wrapped)
    assert market.withdraw("A", 3.0) == Event(1, EventKind.WITHDRAW, "A", payment=payment)
    market.ready("A", Fate(2, 2, 2))
    market.foretell({"A": Fate(2, 2, 2), "B": Fate(2, 2, 2)})
    assert [e.job for e in market.clear() + market.clear()] == ["B"]  # starts
    assert "A" in market.entries  # until the mechanism lets go of it
    for name in ("A", "B", "nobody"):
        with pytest.raises(EventError, match=f"withdraw of '{name}': expected a job in the market that has not"):
            market.withdraw(name)


@pytest.mark.parametrize(
    "event",
    [
        Event(1, EventKind.CANCEL, "A"),
        Event(1, EventKind.WITHDRAW, "B"),
        Event(1, EventKind.WITHDRAW, "A", payment=float("nan")),
    ],
)
def test_a_withdrawal_has_to_be_answered_by_its_event(event):
    class Answers(FirstCome):
        def withdraw(self, job, fee=0.0):
            return event

    with pytest.raises(MechanismFault, match="expected a withdrawal with a finite payment, of 'A'"):
        loop(Answers).withdraw("A")


@pytest.mark.parametrize(("round_", "paid", "completion"), [(1, 2.0, None), (2, 2.0, None), (3, 1.0, 4)])
def test_an_owner_may_withdraw_until_its_job_has_arrived(round_, paid, completion):
    class Fee(FirstCome):
        def withdraw(self, job, fee=0.0):
            return super().withdraw(job, fee + 2.0)

    attempt = Attempt(Conduct((Statement(1, SOW, 1, withdrawn=round_),), "key"), "A", Fate(2, 2, 2))

    class One:
        over = False

        def act(self, market):
            attempt.act(market)

        def hear(self, events, market):
            attempt.hear(events, market)

    play(MarketLoop(Fee(2, 9, 0.5, **LIMITS)), One(), 6)
    assert (attempt.payment, attempt.completion, attempt.over) == (paid, completion, True)


CONFIG = {"mechanism": "first-come", "capacity": 1, "max_concurrency": 1, "max_duration": 2, "max_value": 9}
CONFIG |= {"max_delay": 9, "horizon": 9, "parameters": {"price": 0.5}}
TOLD = {"concurrency": 1, "value": {"kind": "deadline", "value": 5.0, "deadline": 8}}
TOLD |= {"requirements": [{"arrival": 2, "duration": 1, "probability": 1.0}]}


def answers(*lines):
    return [
        (said["event"], said.get("payment"), said.get("message"))
        for said in replay(CONFIG, [{"round": 1, "event": "submit", "job": "A", "sow": TOLD}, *lines])
    ][1:]


def test_a_log_may_withdraw_a_job():
    taken = {"round": 1, "event": "withdraw", "job": "A"}
    arrives = {"round": 2, "event": "arrive", "job": "A", "duration": 1}
    assert answers({**taken, "fee": 1.5}, {"round": 9, "event": "end"}) == [
        ("withdraw", 1.5, None),
        ("cancel", None, None),
    ]
    refused = "withdraw of 'A': expected a job in the market that has not arrived"
    said = answers(taken, taken, arrives)
    assert said[:2] == [("withdraw", None, None), ("error", None, refused)]
    assert said[2][2] == "arrive of 'A': it was withdrawn before"
    assert answers(arrives, {**taken, "round": 2})[0] == ("error", None, refused)
    assert "fee = -1" in answers({**taken, "fee": -1})[0][2]
    assert answers({**taken, "job": "B"})[0][2] == "job = 'B' is unknown: expected a job submitted before"
