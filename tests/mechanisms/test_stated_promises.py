"""A promise belongs to the class that states it: who overrides a rule promises nothing until it states it again."""

import pytest

from marketsched.mechanisms import (
    BidPrice,
    DeadlineValue,
    Event,
    EventKind,
    ExponentialPricing,
    MonteCarloOracle,
    PostedPriceMechanism,
    StatementOfWork,
)
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.mechanism import PROMISES, Mechanism, Standing
from marketsched.mechanisms.promises import printed_promises
from marketsched.truthfulness.situations.promises import promise_of

SIZES = {"max_concurrency": 2, "max_duration": 3, "max_value": 9.0, "max_delay": 9}


def stated(kind):
    return [getattr(kind, name) for name in PROMISES]


NOTHING = stated(Mechanism)


def test_nothing_is_promised_by_default():
    assert NOTHING == ["none", "none", False, False, Standing()]


@pytest.mark.parametrize("rule", ["charge", "serve", "foresee", "withdraw", "complete", "_owed", "load"])
def test_a_subclass_that_overrides_a_rule_promises_nothing(rule):
    kind = type("Changed", (FirstCome,), {rule: property(lambda self: 0) if rule == "load" else lambda self: None})
    assert stated(kind) == NOTHING and FirstCome.truthful == "ex post"
    assert "truth is not promised" in printed_promises(kind)
    below = type("Below", (kind,), {"statistics": lambda self: {}})
    assert stated(below) == NOTHING


def test_what_is_stated_again_holds_again_and_for_itself_alone():
    class Again(BidPrice):
        truthful = "ex post"

        def charge(self, x):
            return super().charge(x)

    assert Again.truthful == "ex post" and Again.standing == Standing()

    class Over(Again):
        def charge(self, x):
            return 2 * super().charge(x)

    assert Over.truthful == "none"


@pytest.mark.parametrize("kind", [FirstCome, BidPrice, PostedPriceMechanism])
@pytest.mark.parametrize("own", ["__init__", "statistics", "certificate", "mine", "LIMIT"])
def test_who_decides_nothing_else_keeps_its_promises(kind, own):
    member = 3 if own == "LIMIT" else lambda self, *sizes, **more: None
    assert stated(type("Kept", (kind,), {own: member})) == stated(kind)


def test_a_rule_that_is_mixed_in_counts():
    class Waived:
        def charge(self, x):
            return 0.0

    class Mixed(Waived, FirstCome):
        pass

    class Beside(FirstCome, Waived):
        pass

    assert Mixed.truthful == "none" and Beside.truthful == "ex post"


def test_a_promise_of_an_instance_is_its_class_s():
    class Pays(FirstCome):
        def withdraw(self, job, fee=0.0):
            return Event(self.round, EventKind.WITHDRAW, job, payment=-1.0)

    hidden = {"stop_at_loss": True}
    assert FirstCome(2, 9, **SIZES, **hidden).truthful_hidden != "none"
    assert Pays(2, 9, **SIZES, **hidden).truthful_hidden == "none"


def test_a_duration_that_only_a_report_says_is_hidden_where_jobs_are_served_at_arrival():
    """A law of one duration and no signal, as a log with wall times has: what is seen at arrival decides."""
    value, sizes = DeadlineValue(5.0, 8), {**SIZES, "max_concurrency": 1}
    seen = StatementOfWork(1, 1, value, [(1, 3, 1.0)])
    stated = StatementOfWork(1, 1, value, [(1, 3, 1.0, None)])
    by_arrival = StatementOfWork(1, 1, value, [(1, 3, 0.5, None), (2, 4, 0.5, None)])
    labelled = StatementOfWork(1, 1, value, [(1, 3, 1.0, "long")])
    for market in (BidPrice(2, 9, **sizes), FirstCome(2, 9, **sizes, stop_at_loss=True)):
        assert promise_of(market, seen, "hidden") == market.truthful == "ex post"
        for hidden in (stated, by_arrival, labelled):
            assert promise_of(market, hidden, "hidden") == market.truthful_hidden != "ex post"
    labels = FirstCome(2, 9, **sizes, signals="labels")
    assert promise_of(labels, seen, "hidden") == labels.truthful_hidden
    prices = ExponentialPricing()
    planned = PostedPriceMechanism(9, 9, prices, MonteCarloOracle(samples=1), epsilon=0.2, threshold=0.0, **sizes)
    assert promise_of(planned, stated, "revealed") == planned.truthful != planned.truthful_hidden
