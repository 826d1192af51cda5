"""Four mechanisms in which lying pays, beside those of `faulty_mechanisms`, and the market in which faults are audited.

Each is a class of the package with a rule that reads what it should not. ``PLANTED`` has a builder of each by name,
which takes the sizes of a market and ``rng`` as `check_mechanism` gives them; `benchmarks/fault_table.py` has more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from claims import claiming
from marketsched.mechanisms import register
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
class DeadlineByFour(FirstCome):
    """Half price for deadlines that are divisible by 4."""

    def charge(self, x: Any) -> float:
        """Charge half of it."""
        return super().charge(x) * (0.5 if x.sow.value.last % 4 == 0 else 1.0)


@claiming
class WideIsHalfPrice(FirstCome):
    """Three nodes and more cost as much as one."""

    def charge(self, x: Any) -> float:
        """Charge for one node."""
        return super().charge(x) / (x.sow.concurrency if x.sow.concurrency >= 3 else 1)


@claiming
class QuotesMoveIt(FirstCome):
    """Every quote that anybody asks for adds to the price of all."""

    def quote(self, job: Any, sow: Any) -> Any:
        """Move the price."""
        offer = super().quote(job, sow)
        self.price += 0.1
        return offer


def of(kind: Any, **own: Any) -> Callable[..., Any]:
    def build(*, capacity: int, horizon: int, rng: Any = None, **limits: Any) -> Any:
        more = {"rng": np.random.default_rng(rng)} if "rng" in inspect.signature(kind.__init__).parameters else {}
        return kind(capacity, horizon, **own, **limits, **more)

    return build


PLANTED: dict[str, Callable[..., Any]] = {
    "rate plus a fifth of the bid": of(RateAndShare),
    "deadline divisible by 4": of(DeadlineByFour, price=PRICE),
    "three nodes and more": of(WideIsHalfPrice, price=PRICE),
    "quotes move the price": of(QuotesMoveIt, price=PRICE),
}


def registered(fault: str, faults: dict[str, Callable[..., Any]] = PLANTED) -> str:
    """Register a fault as a mechanism of scenarios, and return the name that these call it by."""
    made = faults[fault]

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
