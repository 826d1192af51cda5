r"""The posted-price mechanism: Algorithm 1, filled in by the reduction of Algorithm 2.

Announced to each submission, before it is read: a menu of prices (from a relaxed algorithm run with
supply :math:`C' = (1-\epsilon) C`) and of failure probabilities (from an oracle, zeroed up to the
threshold :math:`\theta`). The mechanism plans on the owner's behalf, forces the plan on the relaxed
algorithm, and later starts, evicts (most recent submission first) and charges.

Theorem T (truthfulness) and Theorem 4.1 (welfare, at a capacity as in (19)) hold for durations revealed at arrival,
when the others report truly, births are taken as given (G2), and estimates keep (7): an exact oracle, or paths drawn
afresh for each submission; kept paths are measured, not proven. With hidden durations the mechanism runs, but
over-declaring the concurrency can pay (gap G1); only bound (8) is proven then. Equation numbers: docs/mathematics.md.

References
----------
.. [BLLMSW22] Babaioff, Lempel, Lucier, Menache, Slivkins, Wong: Truthful Online Scheduling of
   Cloud Workloads under Uncertainty, WWW 2022, arXiv:2203.01213. Algorithms 1 and 2.
"""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.columns import JobColumns, Outcomes, follows
from marketsched.mechanisms.errors import EventError
from marketsched.mechanisms.law import Law, Signal
from marketsched.mechanisms.legal import BelowOne, Finite, Named, is_hashable, legal
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.mechanism import Event, EventKind, JobId, LaunchPlan, Offer, Standing, Truthful
from marketsched.mechanisms.menu import Menu, WelfareCertificate
from marketsched.mechanisms.posted.active_job import ActiveJob, Submission
from marketsched.mechanisms.posted.eviction import overload_removals
from marketsched.mechanisms.posted.inspection import Inspection
from marketsched.mechanisms.posted.launch_plan import Choice
from marketsched.mechanisms.posted.oracle import FailureOracle
from marketsched.mechanisms.posted.oracle_in_use import OracleInUse
from marketsched.mechanisms.posted.planner import Planner
from marketsched.mechanisms.posted.posted_play import PostedPlay
from marketsched.mechanisms.posted.relaxed import Pricing
from marketsched.mechanisms.posted.residual import Eviction
from marketsched.mechanisms.randomness import generator_of
from marketsched.mechanisms.rounds import Rounds
from marketsched.mechanisms.sow import StatementOfWork


class PostedPriceMechanism(Rounds):
    """Algorithms 1 and 2: plan at posted prices, evict last in first out, charge at completion.

    Parameters
    ----------
    capacity : int
        C, nodes.
    horizon : int
        T, the last round; rounds are 1 .. T.
    pricing : Pricing
        The relaxed algorithm: `ExponentialPricing`, `PostedPricing`, `StochasticPricing` or one of
        your own. It runs with supply ``(1 - epsilon) * capacity``.
    oracle : ExactOracle or MonteCarloOracle
        A new one for each mechanism.
    max_concurrency, max_duration, max_value, max_delay : int, int, float, int
        The announced limits c_max, D_max (rounds), V_max (credits) and S: a completion at birth + S
        or later is worth 0.
    epsilon : float
        Capacity slack, below 1; negative overbooks.
    threshold : float or "auto"
        theta, failure estimates up to it count as 0. ``"auto"``: ``eps / (2 V_max)`` for the exact
        oracle, ``eps / (4 V_max)`` for Monte Carlo (Theorem 4.1).
    eviction : {"all", "running"}
        LIFO over all active jobs (the paper), or over those in this round's load (Section 15.3).
    rng : numpy.random.Generator or int, optional
        Source of the oracle's draws.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, ExactOracle, ExponentialPricing, StatementOfWork
    >>> market = PostedPriceMechanism(
    ...     5, 10, ExponentialPricing(), ExactOracle(), max_concurrency=1, max_duration=2, max_value=4.0, max_delay=5
    ... )
    >>> market.submit("A", StatementOfWork(1, 1, DeadlineValue(4.0, 3), [(1, 1, 1.0)])).starts
    ((1, 1, 1),)
    >>> market.arrive("A", signal=1)
    >>> [str(event.kind) for event in market.advance()]
    ['start']
    >>> market.complete("A").payment
    0.25
    """

    truthful: ClassVar[Truthful] = "up to regret"  # Theorem T
    standing: ClassVar[Standing] = Standing(
        "proved",
        "a ratio to the optimum, or with stochastic prices to the relaxed optimum",
        "laws of arrival and duration in every report; for stochastic prices those of all jobs that may come",
        "truth is not promised, since declaring more nodes can pay (gap G1)",
        lie="more nodes than needed",
    )
    later_jobs_change_nothing: ClassVar[bool] = True

    @legal
    def __init__(
        self,
        capacity: int,
        horizon: int,
        pricing: Pricing,
        oracle: FailureOracle,
        *,
        max_concurrency: int,
        max_duration: int,
        max_value: float,
        max_delay: int,
        epsilon: BelowOne = 0.0,
        threshold: float | Literal["auto"] = 0.0,
        eviction: Eviction = "all",
        rng: np.random.Generator | int | None = None,
    ) -> None:
        super().__init__(MarketLimits(capacity, horizon, max_concurrency, max_duration, max_value, max_delay))
        self.epsilon = epsilon
        self.threshold = self._checked_threshold(threshold, oracle)
        self.only_counted = eviction == "running"
        relaxed = pricing.open((1 - self.epsilon) * self.capacity, self.limits)
        oracle.attach(self.limits, generator_of(rng), eviction)
        self._oracle = OracleInUse(oracle)
        self._planner = Planner(relaxed, self._oracle, self.limits, self.threshold)
        self._active: dict[JobId, ActiveJob] = {}  # in order of submission
        self._arriving: list[ActiveJob] = []  # arrived in this round
        self._starting: dict[int, dict[JobId, ActiveJob]] = defaultdict(dict)  # by round of launch
        self._running: dict[JobId, ActiveJob] = {}
        self._overdue: dict[int, dict[JobId, ActiveJob]] = defaultdict(dict)  # by round in which D_max is exceeded
        self._whole: PostedPlay | None = None  # of a market that is played as columns

    def _checked_threshold(self, threshold: float | Literal["auto"], oracle: FailureOracle) -> float:
        if threshold == "auto":
            return max(self.epsilon, 0.0) / ((2 if oracle.exact else 4) * self.max_value)
        checked: float = Named(("auto",), Finite("[0, 1]")).check("threshold", threshold)
        return checked

    # -- the protocol ----------------------------------------------------------------------------

    def submit(self, job: JobId, sow: StatementOfWork) -> LaunchPlan:
        """Take a report, plan it at the current menu, and follow it from now on.

        InvalidReportError if the report breaks the announced limits. EventError if the name was used before, the birth
        is not the current round, an arrival of this round was already observed, or the market has closed.
        """
        self._check_submission(job, sow)
        law = sow.law
        self._oracle.check(law)
        choice, quote = self._planner.plan(sow, law, self._round)
        choice.starts.flags.writeable = False  # copies of the market share them
        order = self._enter(job)
        self._active[job] = ActiveJob(Submission(job, order, sow.concurrency, law, choice.starts, quote))
        self._oracle.submitted(job, order, sow.concurrency, law, choice.starts)
        return _launch_plan(job, law, choice)

    def quote(self, job: JobId, sow: StatementOfWork) -> Offer:
        """Return the plan that `submit` would return now, with prices and failure probabilities of its runs.

        Nothing is changed: draws that precede an estimate are made in a copy of the oracle. Errors as of `submit`.
        """
        choice, failures = self._previewed(job, sow)
        runs = tuple(self._planner.runs(sow, self._round, choice, failures))
        return Offer(_launch_plan(job, sow.law, choice), runs)

    @property
    def active(self) -> tuple[ActiveJob, ...]:
        """The jobs that have not ended, in order of submission, for audits."""
        return tuple(self._active.values())

    def plan_now(self, job: JobId, sow: StatementOfWork) -> Submission:
        """Return what `submit` would fix now, for audits; nothing is changed. Errors as of `submit`."""
        choice, _ = self._previewed(job, sow)
        quote = self._planner.quote_of(sow.concurrency, choice)
        return Submission(job, self._submissions, sow.concurrency, sow.law, choice.starts, quote)

    def _previewed(self, job: JobId, sow: StatementOfWork) -> tuple[Choice, NDArray[np.float64]]:
        self._check_submission(job, sow)
        self._oracle.check(sow.law)
        return self._planner.preview(sow, self._round, oracle=self._oracle.at_rest())

    def arrive(self, job: JobId, signal: Signal = None) -> None:
        """Observe that a job became ready in this round; one that its law lacks drops it. Ignored if it was cancelled.

        EventError if the job is unknown or arrived before, or the market has closed.
        """
        self._take_arrival(job, signal)
        active = self._active.get(job)
        if active is None:
            return  # cancelled before it arrived
        active.case = active.submission.law.group_of(self._round, signal)
        self._arriving.append(active)

    def advance(self) -> list[Event]:
        """Clear the current round: drops, removals (LIFO), starts; then move to the next. EventError after the last."""
        self._check_open("advance")
        now = self._round
        events = self._settle_arrivals()
        starting = sorted(self._starting.pop(now, {}).values(), key=_order)
        removed = [*self._overdue.pop(now, {}).values()]
        for active in removed:
            self._remove(active)
        removed += self._clear_overload(starting)
        removed.sort(key=_order, reverse=True)
        events += [self._removal(active, now) for active in removed]
        for active in starting:
            if self._active.get(active.job) is active:
                self._running[active.job] = active
                self._overdue[now + self.limits.max_duration][active.job] = active
                events.append(Event(now, EventKind.START, active.job))
        self._round = now + 1
        self._any_arrival = False
        self._oracle.advanced(self._round)
        return events

    def complete(self, job: JobId) -> Event:
        """Observe that a job ran its last round in the round just cleared; charge its menu price; else EventError."""
        active = self._running.get(job) if is_hashable(job) else None
        if active is None:
            raise self._did_not_run(job)
        quote = active.submission.quote
        assert active.start is not None and quote is not None
        payment = quote.price(active.start, self._round - active.start)
        self._remove(active)
        return Event(self._round - 1, EventKind.COMPLETE, job, completion=self._round, payment=payment)

    def owed(self, job: JobId, rounds: int) -> float | None:
        """Return what a running job would pay if it completed after so many rounds, credits; None: it does not run."""
        active = self._running.get(job)
        if active is None or active.submission.quote is None or active.start is None:
            return None
        return float(active.submission.quote.price(active.start, rounds))

    def close(self) -> list[Event]:
        """Evict or cancel every job left, most recent submission first; EventError if rounds are left."""
        self._check_closing()
        left = list(reversed(self._active.values()))
        for active in left:
            self._remove(active)
        return [self._removal(active, self.horizon, cleared=True) for active in left]

    def play(self, jobs: JobColumns, outcomes: Outcomes, until: int) -> bool:
        """Play many rounds at once: slot prices, and failures by sample paths."""
        if self._whole is None:
            if self._round > 1 or self._submissions or not follows(self, PostedPriceMechanism):
                return False
            self._whole = PostedPlay.of(self._planner, self._oracle.own(), jobs, self.limits)
            if self._whole is None:
                return False
        self._whole.advance(self._round, until, outcomes)
        self._round, self._submissions = until + 1, self._whole.submitted
        return True

    # -- what can be looked at -------------------------------------------------------------------

    def menu(self, concurrency: int) -> Menu:
        """Return the menu of a job of so many nodes, 1 .. max_concurrency, submitted now: (max_delay, max_duration)."""
        return self._planner.menu(concurrency, self._round)

    def inspect(self) -> Inspection:
        """Return all that a report submitted now would meet, for audits; nothing is recorded, no path is used up.

        EventError if no report is accepted now: an arrival of this round was observed, or the market has closed.
        """
        self._check_open("inspect")
        if self._any_arrival:
            raise EventError(f"inspect after an arrival of round {self._round}", legal="a moment of submissions")
        return Inspection(self._planner, self._oracle.own(), self.limits, self._round, self.threshold)

    @property
    def load(self) -> int:
        """Nodes of the jobs that ran in the round just cleared and have not ended."""
        return sum(active.width for active in self._running.values()) if self._whole is None else self._whole.load

    def committed(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the committed expected usage Y_t of ``count`` rounds from ``first`` on, nodes."""
        return self._planner.relaxed.usage(first, count)

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the current prices of ``count`` rounds from ``first`` on, credits per node-round."""
        return self._planner.relaxed.slot_prices(first, count)

    def certificate(self) -> WelfareCertificate | None:
        """Return the prices' certificate about the best welfare for the submissions so far, as (22); None: nothing."""
        return self._planner.certificate()

    def theorems(self, *, revealed: bool) -> str:
        """Say what Theorems T and 4.1 prove of a market like this one."""
        if not revealed:
            return (
                "durations hidden: truthfulness and the welfare ratio are proven for revealed durations only; here "
                "declaring too many nodes can pay (gap G1), and only bound (8) holds"
            )
        certificate = self.certificate()
        capped = 0 if certificate is None else certificate.cap_bindings
        return (
            "durations revealed: given that the others report truly, reporting truly is optimal up to twice the "
            "estimates' error times V_max (Theorem T; paths that are kept between submissions are measured, not "
            "proven); the welfare ratio (Theorem 4.1) needs the capacity of (19)"
            + (
                f"; the hard cap kept {capped:,} owners from a launch worth its price: no theorem covers them (G7)"
                if capped
                else ""
            )
        )

    def statistics(self) -> dict[str, Any]:
        """Return counts about the estimates, and what pricing and oracle say about themselves."""
        return {"submissions": self._submissions, **self._planner.statistics()}

    # -- steps -----------------------------------------------------------------------------------

    def _settle_arrivals(self) -> list[Event]:
        """Step 4: fix the start of every job that arrived in this round, or drop it."""
        events, ready = [], []
        for active in sorted(self._arriving, key=_order):
            start = -1 if active.case is None else int(active.submission.starts[active.case])
            if active.case is None or start < 0:
                self._remove(active)
                events.append(Event(self._round, EventKind.DROP, active.job))
            else:
                active.start = start
                self._starting[start][active.job] = active
                ready.append((active.job, active.case, start))
        if ready:
            self._oracle.arrived(ready)
        self._arriving.clear()
        return events

    def _clear_overload(self, starting: list[ActiveJob]) -> list[ActiveJob]:
        """Step 5: remove jobs, most recent submission first, until the load fits."""
        counted = {job: active.width for job, active in self._running.items()}
        counted.update((active.job, active.width) for active in starting)
        jobs = overload_removals(reversed(self._active), counted, self.capacity, only_counted=self.only_counted)
        for active in (removed := [self._active[job] for job in jobs]):
            self._remove(active)
        return removed

    def _remove(self, active: ActiveJob) -> None:
        del self._active[active.job]
        ran = self._running.pop(active.job, None) is not None
        if active.start is not None:
            due, when = (self._overdue, active.start + self.max_duration) if ran else (self._starting, active.start)
            due.get(when, {}).pop(active.job, None)
        self._oracle.removed(active.job)

    @staticmethod
    def _removal(active: ActiveJob, now: int, *, cleared: bool = False) -> Event:
        """Name the removal in round ``now``: an eviction once the job has run (``cleared``: in it, too)."""
        return Event(now, EventKind.EVICT if active.has_run(now + cleared) else EventKind.CANCEL, active.job)


def _launch_plan(job: JobId, law: Law, choice: Choice) -> LaunchPlan:
    starts = [None if s < 0 else s for s in choice.starts.tolist()]
    cases = tuple(zip(law.group_arrivals.tolist(), law.group_signals, starts, strict=True))
    return LaunchPlan(job, cases, choice.utility)


_order = attrgetter("submission.order")
