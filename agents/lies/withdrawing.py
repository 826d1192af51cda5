"""Withdrawals: an owner takes its job back before it arrives, or a second statement that it has submitted beside it.

A withdrawal is a call of the protocol (`Mechanism.withdraw`) and may cost something, or pay. Of its own job it belongs
to the model: no promise of truth allows it to gain. A second statement goes beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass

from marketsched.agents.conduct import Conduct, Statement, nothing
from marketsched.agents.lies.base import Misreport, count_of, whole
from marketsched.agents.lies.strategy import PublicInformation
from marketsched.mechanisms.sow import StatementOfWork


@dataclass(frozen=True)
class Withdraw(Misreport):
    """The owner reports truly, and takes the job back ``after`` rounds from birth, unless it has arrived. Size: 1."""

    after: int = whole("after", 0, searched=False, default=0)

    kind = "withdraw"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        return truth

    def conduct(self, claim: StatementOfWork, truth: StatementOfWork, public: PublicInformation) -> Conduct:
        own = Statement(truth.birth, claim, truth.concurrency, withdrawn=truth.birth + self.after)
        return Conduct((own,), ("withdraw", self, claim))

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return 1.0

    def words(self, truth: StatementOfWork) -> str:
        when = f"{count_of(self.after, 'round')} later" if self.after else "at once"
        return f"reports the truth and withdraws the job {when}"


@dataclass(frozen=True)
class WithdrawTwin(Misreport):
    """The owner submits its statement twice, and takes the first one, which has no work behind it, back. Size: 1.

    It does so ``after`` rounds from the birth; 0: as soon as the second one is submitted.
    """

    after: int = whole("after", 0, searched=False, default=0)

    kind = "withdraw-twin"
    inside_model = False

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        return truth

    def conduct(self, claim: StatementOfWork, truth: StatementOfWork, public: PublicInformation) -> Conduct:
        birth, nodes = truth.birth, truth.concurrency
        twin = Statement(birth, claim, nodes, "/twin", part=nothing, counts=False, withdrawn=birth + self.after)
        return Conduct((twin, Statement(birth, claim, nodes)), ("withdraw-twin", self, claim))

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return 1.0

    def words(self, truth: StatementOfWork) -> str:
        when = f"{count_of(self.after, 'round')} later" if self.after else "at once"
        return f"submits its job twice, and withdraws the first {when}"
