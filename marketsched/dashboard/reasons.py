r"""The reasons for a job's placement: the menu at its submission, or at its arrival, start by start.

A mechanism wrapped in `WatchedMechanism` plays as it would alone, but what each report meets is kept:
for the case of arrival and signal that really comes about, every start's value, price, failure
estimate and expected surplus, the terms of (3). Where prices are made at arrival, what the report met at submission
gives way to what its job met then. The watcher knows what will happen, the mechanism does not.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.bid_price.entries import ArrivalMenu
from marketsched.mechanisms.errors import EventError
from marketsched.mechanisms.forwarding import Forwarding
from marketsched.mechanisms.law import Law, Signal
from marketsched.mechanisms.limits import last_useful_completion
from marketsched.mechanisms.mechanism import Event, JobId, LaunchPlan, Mechanism
from marketsched.mechanisms.posted.menu import announced_failures, announced_prices
from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism
from marketsched.mechanisms.sow import StatementOfWork

KEPT = 20_000  # reasons, the newest


@dataclass(frozen=True, slots=True, eq=False)
class Reason:
    """The menu of one report in one of its cases. Arrays have shape (n_starts,), credits."""

    name: JobId  # the mechanism's name of the job
    round: int  # of submission
    report: StatementOfWork
    arrival: int  # of the case
    signal: Signal
    foreseen: bool  # the case that really happens is in the report; if not, this is its likeliest case
    probability: float  # of the case, by the report
    starts: NDArray[np.int64]  # rounds from the arrival on from which the job can still be worth something
    values: NDArray[np.float64]  # expected reported value of each start
    prices: NDArray[np.float64]  # expected price; inf: not on sale, nan: this mechanism announces none
    failures: NDArray[np.float64]  # announced probability of failing; nan: this mechanism announces none
    surpluses: NDArray[np.float64]  # expected value minus price, failures taken into account: the plan's objective
    chosen: int | None  # the start the mechanism planned, or booked at arrival; None: none
    has_menu: bool  # these starts were on offer: at submission, or at arrival
    at_arrival: bool = False  # they were on offer when the job arrived


class WatchedMechanism(Forwarding):
    """A mechanism whose every answer is explained; it decides exactly as it would unwatched.

    ``happens`` says of each job with which (arrival, signal) it will really come; an arrival of None: it never does.
    """

    def __init__(self, mechanism: Mechanism, max_delay: int, happens: Mapping[str, tuple[int | None, Signal]]) -> None:
        super().__init__(mechanism)
        self._max_delay = max_delay
        self._happens = happens
        self.reasons: OrderedDict[JobId, Reason] = OrderedDict()
        self._arrived: list[JobId] = []

    def submit(self, job: JobId, sow: StatementOfWork, owner: Hashable = None) -> LaunchPlan:
        """Submit a report, and keep its menu."""
        seen = self._look(job, sow)
        plan = super().submit(job, sow, owner)
        chosen = plan.start(seen["arrival"], seen["signal"])
        self.reasons[job] = Reason(name=job, report=sow, chosen=chosen, **seen)
        if len(self.reasons) > KEPT:
            self.reasons.popitem(last=False)
        return plan

    def arrive(self, job: JobId, signal: Signal = None) -> None:
        """Report an arrival, whose menu is looked at when the round is cleared."""
        super().arrive(job, signal)
        self._arrived.append(job)

    def advance(self) -> list[Event]:
        """Clear the round, and replace the reasons of jobs that met a menu when they arrived in it."""
        looked_at = self._arrived if self.inner.posts_menus_at_arrival else []
        if looked_at:  # of this round alone: a menu has all rounds to come
            self.inner.keep_menus(looked_at)
        events = super().advance()
        for job in looked_at:
            with suppress(EventError):  # there is none where nothing was worth anything any more
                menu, reason = self.inner.menu_at_arrival(job), self.reasons.get(job)
                if isinstance(menu, ArrivalMenu) and reason and reason.foreseen and reason.arrival == menu.now:
                    self.reasons[job] = self._at_arrival(reason, menu)
        self._arrived.clear()
        return events

    def _at_arrival(self, reason: Reason, menu: ArrivalMenu) -> Reason:
        """Return the reason of a job that has arrived in the case that was foreseen."""
        law, width = reason.report.law, reason.report.concurrency
        group = law.group_of(reason.arrival, reason.signal)
        assert group is not None  # the case was foreseen
        durations, shares, _ = _durations(law, int(group))
        each = [menu.prices(width, d, reason.starts.size) for d in durations.tolist()]
        prices = np.where(np.isfinite(each).all(axis=0), shares @ np.nan_to_num(each, posinf=0.0), np.inf)
        booked = self.inner.booked(reason.name, int(durations[0]))
        return replace(
            reason, prices=prices, surpluses=reason.values - prices, chosen=None if booked is None else booked[0],
            has_menu=True, at_arrival=True,
        )  # fmt: skip

    def _look(self, job: JobId, sow: StatementOfWork) -> dict[str, Any]:
        """Return what the report meets before it is submitted."""
        law, now = sow.law, self.inner.round
        group, foreseen = self._case(job, sow, now)
        durations, shares, mass = _durations(law, group)
        arrival = int(law.group_arrivals[group])
        last = last_useful_completion(sow, self._max_delay, self.inner.horizon)
        n_starts = max(0, last - int(durations.min()) - arrival + 1)
        values = np.zeros((n_starts, durations.size))
        if n_starts:
            table = sow.value.table(arrival, n_starts + int(durations.max()))
            table[max(0, last + 1 - arrival) :] = 0.0
            values = table[np.add.outer(np.arange(n_starts), durations)]
        prices, failures, has_menu = self._menu(sow.concurrency, arrival, n_starts, durations)
        sold = np.isfinite(prices).all(axis=1) if has_menu else np.ones(n_starts, dtype=bool)
        known = np.where(np.isfinite(prices), prices, 0.0)
        surplus = ((1.0 - np.nan_to_num(failures)) * (values - known)) @ shares
        return {
            "round": now,
            "arrival": arrival,
            "signal": law.group_signals[group],
            "foreseen": foreseen,
            "probability": mass,
            "starts": arrival + np.arange(n_starts),
            "values": values @ shares,
            "prices": np.where(sold, prices @ shares, np.inf) if has_menu else prices @ shares,
            "failures": failures @ shares,
            "surpluses": np.where(sold, surplus, -np.inf),
            "has_menu": has_menu,
        }

    def _case(self, job: JobId, sow: StatementOfWork, now: int) -> tuple[int, bool]:
        """Return the case of the report that really comes about, or its likeliest."""
        name = str(job)
        if name not in self._happens:
            name = name[:-1]  # "<name>+": submitted again
        arrival, signal = self._happens.get(name, (None, None))
        group = None if arrival is None else sow.law.group_of(max(arrival, now), signal)
        if group is not None:
            return int(group), True
        masses = np.add.reduceat(sow.law.probabilities, sow.law.offsets[:-1])
        return int(masses.argmax()), False

    def _menu(
        self, concurrency: int, first: int, n_starts: int, durations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
        """Return prices and announced failures (n_starts, n_durations) of the case's durations."""
        unknown = np.full((n_starts, durations.size), np.nan)
        if not isinstance(self.inner, PostedPriceMechanism):
            return self._flat_prices(concurrency, first, n_starts, durations), unknown, False
        if not n_starts:
            return unknown, unknown, True
        meets, longest = self.inner.inspect(), int(durations.max())
        prices = announced_prices(*meets.prices(concurrency, first, n_starts, longest))
        ahead = first - meets.now
        estimates = meets.estimates(concurrency, ahead + n_starts, longest)[ahead : ahead + n_starts]
        failures = announced_failures(estimates, meets.threshold, first, meets.limits.horizon)
        columns = durations - 1
        return prices[:, columns], failures[:, columns], True

    def _flat_prices(
        self, concurrency: int, first: int, n_starts: int, durations: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return what a price per node-round would come to, nan without one."""
        prices = self.slot_prices(first, n_starts + int(durations.max())) if n_starts else None
        if prices is None:
            return np.full((n_starts, durations.size), np.nan)
        before = np.concatenate([[0.0], np.cumsum(prices)])
        begin = np.arange(n_starts)[:, np.newaxis]
        rent: NDArray[np.float64] = concurrency * (before[begin + durations] - before[begin])
        return rent


def _durations(law: Law, group: int) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Return the durations of one case, their shares of its probability, and that probability."""
    low, high = int(law.offsets[group]), int(law.offsets[group + 1])
    durations, weights = law.durations[low:high], law.probabilities[low:high]
    mass = float(weights.sum())
    if mass > 0:  # what cannot happen does not count, not even an infinite price
        durations, weights = durations[weights > 0], weights[weights > 0]
    return durations, weights / mass if mass > 0 else np.full(weights.size, 1.0 / weights.size), mass
