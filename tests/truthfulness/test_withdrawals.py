"""Withdrawals as lies: a rule that pays for them, and one by which they free others, are found; a fee is no finding."""

import pytest

from marketsched.agents.lies import Withdraw, WithdrawTwin, misreport_from
from marketsched.mechanisms import DeadlineValue, Event, EventKind, StatementOfWork, register
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.truthfulness.audit import audit
from marketsched.truthfulness.conduct.conduct_audit import audit_conduct
from planted_faults import market
from small_mechanisms import owner_in

PRICE = 0.5


class PaysWithdrawals(FirstCome):
    """Pays three credits to who takes its job back; truth gains more for most jobs, but not for all."""

    truthful = "ex post"

    def withdraw(self, job, fee=0.0):
        return Event(self.round, EventKind.WITHDRAW, job, payment=fee - 3.0)


class AsksForThem(PaysWithdrawals):
    """Asks for a credit."""

    truthful = "ex post"

    def withdraw(self, job, fee=0.0):
        return Event(self.round, EventKind.WITHDRAW, job, payment=fee + 1.0)


class FreesOthers(FirstCome):
    """Once a job was withdrawn, the jobs that have not arrived pay nothing."""

    truthful = "ex post"

    def __init__(self, *sizes, **limits):
        super().__init__(*sizes, **limits)
        self.free = set()

    def withdraw(self, job, fee=0.0):
        self.free |= {name for name, x in self._jobs.items() if not x.arrival}
        return super().withdraw(job, fee)

    def charge(self, x):
        return 0.0 if x.job in self.free else super().charge(x)


def built(kind):
    def build(*, capacity, horizon, max_concurrency, max_duration, max_value, max_delay, rng=None):
        limits = {"max_concurrency": max_concurrency, "max_duration": max_duration, "max_delay": max_delay}
        return kind(capacity, horizon, PRICE, max_value=max_value, **limits)

    build.__qualname__ = f"withdrawal-{kind.__name__.lower()}"
    register(build.__qualname__)(build)
    return build.__qualname__, build


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "status"), [(PaysWithdrawals, 3), (AsksForThem, 0), (FirstCome, 0)])
def test_the_audit_withdraws_jobs(kind, status):
    found = audit(market(), [built(kind)[0]], plays=900)
    (one,) = found.mechanisms
    assert found.status == status
    assert any(isinstance(gain.misreport, Withdraw) for gain in one.at_hand.gains)
    if status:
        best = one.exact
        assert isinstance(best.misreport, Withdraw) and best.counted == pytest.approx(3 - best.owner.truthful.utility)


@pytest.mark.parametrize(("kind", "pays"), [(FreesOthers, True), (FirstCome, False)])
def test_a_twin_that_is_withdrawn_is_conduct_beyond_the_model(kind, pays):
    found = audit_conduct(market(), [built(kind)[0]], past_owners=0, families=["twin"])
    assert bool(found.gains["gain"].max() > 0.1) is pays


def test_a_withdrawal_is_played_also_where_the_job_never_comes():
    truth = StatementOfWork(1, 1, DeadlineValue(4.0, 6), [(2, 1, 0.5)])
    sizes = {"capacity": 1, "horizon": 9, "max_delay": 9}

    def factory(rng):
        return PaysWithdrawals(1, 9, PRICE, max_concurrency=1, max_duration=2, max_value=9.0, max_delay=9)

    owner = owner_in(factory, truth, **sizes)
    lie = Withdraw().conduct(truth, truth, owner.public)
    paid = [owner.play(lie, fate) for fate, _ in owner.own_law]
    assert [(each.value, each.payment) for each in paid] == [(0.0, -3.0)] * 2


@pytest.mark.parametrize("lie", [Withdraw(2), WithdrawTwin(1)])
def test_withdrawals_are_plain_data(lie):
    assert misreport_from(lie.data()) == lie
