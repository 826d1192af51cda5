"""Fifteen mechanisms in which lying pays, beside those of `faulty_mechanisms`: narrow triggers, draws, signals, owners.

Each is a class of the package with a rule that reads what it should not. ``PLANTED`` has a builder of each by name,
which takes the sizes of a market and ``rng`` as `check_mechanism` gives them. `market` is one in which all of them, and
those of `faulty_mechanisms`, can be audited by the same command.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from claims import claiming
from faulty_mechanisms import FAULTS, UNFAIR
from marketsched.mechanisms import BidPrice, register
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.auctions.round_auction import RoundAuction, Settlement, by_density

PRICE = 0.5  # credits per node and round


class RateAndShare(RoundAuction):
    """Half a credit for a node and round, plus a fifth of the bid."""

    def settle(self, bids: Any, free: int) -> list[Settlement | None]:
        """Charge both."""
        winners, _ = by_density(bids, free)
        return [Settlement(rate=PRICE * n, share=0.2) if i in winners else None for i, n in enumerate(bids.nodes)]


@claiming
class OneInAThousand(FirstCome):
    """Free for a value in one window of .01 out of 10 credits."""

    def charge(self, x: Any) -> float:
        """Charge nothing there."""
        return 0.0 if int(100 * x.sow.value.highest) == 337 else super().charge(x)


@claiming
class DeadlineByFour(FirstCome):
    """Half price for deadlines that are divisible by 4."""

    def charge(self, x: Any) -> float:
        """Charge half of it."""
        return super().charge(x) * (0.5 if x.sow.value.last % 4 == 0 else 1.0)


@claiming
class ThirdStep(FirstCome):
    """Free for a value curve with a third step."""

    def charge(self, x: Any) -> float:
        """Charge nothing then."""
        curve = x.sow.value
        steps = np.unique(curve.table(x.sow.birth, max(1, curve.last - x.sow.birth + 1)))
        return 0.0 if (steps > 0).sum() >= 3 else super().charge(x)


@claiming
class WideIsHalfPrice(FirstCome):
    """Three nodes and more cost as much as one."""

    def charge(self, x: Any) -> float:
        """Charge for one node."""
        return super().charge(x) / (x.sow.concurrency if x.sow.concurrency >= 3 else 1)


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
        return min(super().charge(x), 0.8 * x.sow.value.highest)


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
        return super().charge(x) * (1.5 - x.agreed)


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
class QuotesMoveIt(FirstCome):
    """Every quote that anybody asks for adds to the price of all."""

    def quote(self, job: Any, sow: Any) -> Any:
        """Move the price."""
        offer = super().quote(job, sow)
        self.price += 0.1
        return offer


@claiming
class ThreeAtOnce(FirstCome):
    """Free for a report of a value below 3 with a slack of at least 8 rounds and two nodes or more."""

    def charge(self, x: Any) -> float:
        """Charge nothing where all three hold."""
        low, wide = x.sow.value.highest < 3, x.sow.concurrency >= 2
        return 0.0 if low and wide and x.sow.value.last - x.sow.birth >= 8 else super().charge(x)


def _of(kind: Any, **own: Any) -> Callable[..., Any]:
    def build(*, capacity: int, horizon: int, rng: Any = None, **limits: Any) -> Any:
        more = {"rng": np.random.default_rng(rng)} if "rng" in inspect.signature(kind.__init__).parameters else {}
        return kind(capacity, horizon, **own, **limits, **more)

    return build


PLANTED: dict[str, Callable[..., Any]] = {
    "rate plus a fifth of the bid": _of(RateAndShare),
    "one value in a thousand": _of(OneInAThousand, price=PRICE),
    "deadline divisible by 4": _of(DeadlineByFour, price=PRICE),
    "third step of the value curve": _of(ThirdStep, price=PRICE),
    "three nodes and more": _of(WideIsHalfPrice, price=PRICE),
    "a drawn share of the bid": _of(DrawnShare, price=PRICE),
    "bid-price with a rebate of the bid": _of(Rebate),
    "bid-price with a refund by the law": _of(RefundByLaw),
    "menus honest, charges not": _of(HonestMenus),
    "price by the signal foretold": _of(SignalForetold, price=PRICE),
    "price by the owner's earlier jobs": _of(PaysForMany, price=PRICE),
    "first report prices the second job": _of(FirstReportPrices, price=PRICE),
    "order within a round by value": _of(ValueFirst, price=PRICE),
    "quotes move the price": _of(QuotesMoveIt, price=PRICE),
    "three lies at once": _of(ThreeAtOnce, price=PRICE),
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
    """Return the builders of all faults by name: the eleven of `faulty_mechanisms`, then `PLANTED`."""
    old = {name: _posted(build, PARAMETERS.get(name, POSTED)) for name, build in {**FAULTS, **UNFAIR}.items()}
    return {**old, **PLANTED}


def registered(fault: str) -> str:
    """Register a fault as a mechanism of scenarios, and return the name that these call it by."""
    made = all_faults()[fault]

    def build(
        *,
        capacity: int,
        horizon: int,
        max_concurrency: int,
        max_duration: int,
        max_value: float,
        max_delay: int,
        rng: Any = None,
    ) -> Any:
        limits = {"max_concurrency": max_concurrency, "max_duration": max_duration, "max_delay": max_delay}
        return made(capacity=capacity, horizon=horizon, max_value=max_value, rng=rng, **limits)

    name = "fault-" + "".join(c if c.isalnum() else "-" for c in fault)
    build.__qualname__ = name
    register(name)(build)
    return name


def market(seed: int = 0, n: int = 36, owners: int = 12) -> dict[str, Any]:
    """Return a scenario of jobs with revealed durations, more than there is room for; some owners have several.

    A job comes at one of two rounds, or with one of two durations, by a law that is its true one; values are flat up to
    a deadline, or fall in two steps.
    """
    rng, jobs = np.random.default_rng([0xFA17, seed]), []
    for i in range(n):
        birth = 1 + i // 3
        first, second = (int(d) for d in rng.permutation([1, 2, 3])[:2])
        points = [(birth + int(rng.integers(0, 3)), first, 0.6), (birth + int(rng.integers(0, 3)), second, 0.4)]
        arrival, duration, _ = points[0 if rng.random() < 0.6 else 1]
        worth, last = float(rng.uniform(2, 10)), birth + int(rng.integers(6, 10))
        flat = {"kind": "deadline", "value": worth, "deadline": last}
        steps = {t: worth if t <= last - 2 else 0.6 * worth for t in range(birth, last + 1)}
        jobs.append(
            {
                "name": f"job-{i}",
                "owner": f"owner-{i % owners}",
                "birth": birth,
                "concurrency": int(rng.integers(1, 4)),
                "value": flat if rng.random() < 0.7 else {"kind": "table", "values": steps},
                "requirements": [{"arrival": a, "duration": d, "probability": p} for a, d, p in points],
                "arrival": arrival,
                "duration": duration,
            }
        )
    sizes = {"capacity": 4, "horizon": 26, "max_concurrency": 4, "max_duration": 4, "max_value": 10, "max_delay": 12}
    return {"name": "planted faults", "workload": {"kind": "jobs", **sizes, "jobs": jobs}}
