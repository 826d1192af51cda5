"""Eleven more mechanisms in which lying pays: narrow triggers, draws, signals, owners; and all 26 faults by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from claims import claiming  # type: ignore[import-not-found]
from faulty_mechanisms import FAULTS, UNFAIR  # type: ignore[import-not-found]
from marketsched.mechanisms import BidPrice
from marketsched.mechanisms.auctions.first_come import FirstCome
from planted_faults import PLANTED, PRICE, of  # type: ignore[import-not-found]


@claiming
class OneInAThousand(FirstCome):
    """Free for a value in one window of .01 out of 10 credits."""

    def charge(self, x: Any) -> float:
        """Charge nothing there."""
        return 0.0 if int(100 * x.sow.value.highest) == 337 else super().charge(x)


@claiming
class ThirdStep(FirstCome):
    """Free for a value curve with a third step."""

    def charge(self, x: Any) -> float:
        """Charge nothing then."""
        curve = x.sow.value
        steps = np.unique(curve.table(x.sow.birth, max(1, curve.last - x.sow.birth + 1)))
        return 0.0 if (steps > 0).sum() >= 3 else super().charge(x)


@claiming
class DrawnShare(FirstCome):
    """Charges a share of the declared value that it draws."""

    def __init__(self, *sizes: Any, rng: np.random.Generator, **limits: Any) -> None:
        super().__init__(*sizes, **limits)
        self.rng = rng

    def charge(self, x: Any) -> float:
        """Draw the share."""
        self.give_back(x)
        return float(self.rng.random()) * float(x.sow.value.highest)


@claiming
class Rebate(BidPrice):
    """Never charges more than four fifths of what is declared."""

    def charge(self, x: Any) -> float:
        """Cap the payment."""
        return float(min(super().charge(x), 0.8 * x.sow.value.highest))


@claiming
class RefundByLaw(BidPrice):
    """Gives half back if the run was shorter than the report's law says on average."""

    def charge(self, x: Any) -> float:
        """Compare with the law."""
        paid, law = super().charge(x), x.sow.law
        mean = float(law.durations @ law.probabilities) / float(law.probabilities.sum())
        return paid / 2 if self.round - x.start < mean else paid


@claiming
class HonestMenus(BidPrice):
    """Says that its menus can be certified, and charges what they say only while they are kept."""

    certified_as = "its menus at arrival, which does not hold where it is not looked at"

    def charge(self, x: Any) -> float:
        """Cap the payment where menus are not kept."""
        paid = super().charge(x)
        return paid if self._menus is not None else min(paid, 0.5 * x.sow.value.highest)


@claiming
class SignalForetold(FirstCome):
    """The more likely the report called the signal that was then seen, the less the job pays."""

    def foresee(self, x: Any, signal: Any) -> None:
        """Note how likely the report called it."""
        super().foresee(x, signal)
        law, group = x.sow.law, x.sow.law.group_of(self.round, signal)
        own = 0.0 if group is None else float(law.probabilities[law.offsets[group] : law.offsets[group + 1]].sum())
        x.agreed = own

    def charge(self, x: Any) -> float:
        """Charge the rest."""
        return float(super().charge(x) * (1.5 - x.agreed))


@claiming
class PaysForMany(FirstCome):
    """Each earlier job of the same owner adds a half to the price."""

    def __init__(self, *sizes: Any, **limits: Any) -> None:
        super().__init__(*sizes, **limits)
        self._count: dict[Any, int] = {}

    def submit(self, job: Any, sow: Any, owner: Any = None) -> Any:
        """Count the owner's jobs."""
        plan = super().submit(job, sow, owner)
        self._count[job] = self._count.get(owner, 0)
        self._count[owner] = self._count[job] + 1
        return plan

    def charge(self, x: Any) -> float:
        """Charge by the count."""
        return super().charge(x) * (1 + 0.5 * self._count[x.job])


@claiming
class FirstReportPrices(FirstCome):
    """An owner's first report prices its later jobs: the lower its value, the less they pay."""

    def __init__(self, *sizes: Any, **limits: Any) -> None:
        super().__init__(*sizes, **limits)
        self._first: dict[Any, tuple[Any, float]] = {}

    def submit(self, job: Any, sow: Any, owner: Any = None) -> Any:
        """Remember the first value."""
        plan = super().submit(job, sow, owner)
        self._first.setdefault(owner, (job, float(sow.value.highest)))
        return plan

    def charge(self, x: Any) -> float:
        """Charge later jobs by it."""
        paid = super().charge(x)
        job, value = self._first.get(x.owner, (x.job, 0.0))
        return paid if job == x.job else paid * 0.2 * value


@claiming
class ValueFirst(FirstCome):
    """Within a round the job of the highest declared value is served first."""

    def serve(self, waiting: Any) -> list[int | None]:
        """Serve in that order, and answer in the other."""
        order = sorted(range(len(waiting)), key=lambda i: (waiting[i].arrival, -waiting[i].sow.value.highest))
        served = dict(zip(order, super().serve([waiting[i] for i in order]), strict=True))
        return [served[i] for i in range(len(waiting))]


@claiming
class ThreeAtOnce(FirstCome):
    """Free for a report of a value below 3 with a slack of at least 8 rounds and two nodes or more."""

    def charge(self, x: Any) -> float:
        """Charge nothing where all three hold."""
        low, wide = x.sow.value.highest < 3, x.sow.concurrency >= 2
        return 0.0 if low and wide and x.sow.value.last - x.sow.birth >= 8 else super().charge(x)


MORE: dict[str, Callable[..., Any]] = {
    "one value in a thousand": of(OneInAThousand, price=PRICE),
    "third step of the value curve": of(ThirdStep, price=PRICE),
    "a drawn share of the bid": of(DrawnShare, price=PRICE),
    "bid-price with a rebate of the bid": of(Rebate),
    "bid-price with a refund by the law": of(RefundByLaw),
    "menus honest, charges not": of(HonestMenus),
    "price by the signal foretold": of(SignalForetold, price=PRICE),
    "price by the owner's earlier jobs": of(PaysForMany, price=PRICE),
    "first report prices the second job": of(FirstReportPrices, price=PRICE),
    "order within a round by value": of(ValueFirst, price=PRICE),
    "three lies at once": of(ThreeAtOnce, price=PRICE),
}

POSTED = {"pricing": {"kind": "posted", "prices": [PRICE]}}
RISKY = {**POSTED, "threshold": 0.3}  # estimates of failure up to .3 count as none, so that jobs are evicted
PARAMETERS: dict[str, dict[str, Any]] = {  # of the posted price under the faults of `faulty_mechanisms`
    "oracle seed depends on the report": RISKY,
    "threshold depends on the value": POSTED,
    **dict.fromkeys(["FIFO eviction", "evicts everybody", *UNFAIR], RISKY),
}


def _posted(build: Callable[..., Any], parameters: dict[str, Any]) -> Callable[..., Any]:
    return lambda **sizes: build(**sizes, **parameters)


def all_faults() -> dict[str, Callable[..., Any]]:
    """Return the builders of all faults by name: the eleven of `faulty_mechanisms`, then `PLANTED` and `MORE`."""
    old = {name: _posted(build, PARAMETERS.get(name, POSTED)) for name, build in {**FAULTS, **UNFAIR}.items()}
    return {**old, **PLANTED, **MORE}
