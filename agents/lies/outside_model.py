"""Conduct beyond misreporting a statement, which the theorems do not cover.

* Submit late (gap G2), or submit the job as two.
* Submit jobs that never arrive: they pay nothing, and may move prices.
* Run longer than declared: show a signal at arrival that is not the job's.

Gains found here are listed separately, and never count as a breach of truthfulness.
"""

from __future__ import annotations

from dataclasses import dataclass

from marketsched.agents.conduct import Conduct, Plans, Statement, nothing, plain
from marketsched.agents.lies.base import Bounds, Misreport, count_of, figure, number, restated, whole
from marketsched.agents.lies.strategy import PublicInformation
from marketsched.agents.lies.values import ScaleValue, ShiftDeadline, value_until
from marketsched.agents.loop import Fate
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.law import Requirement, Signal
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue


@dataclass(frozen=True)
class DelaySubmission(Misreport):
    """The owner keeps quiet for ``k`` rounds after birth, then reports honestly (gap G2).

    Not a misreport of the statement, but of its time. Arrivals before the late submission are
    reported as arriving with it, which is what the platform will see; the law is not conditioned on
    what the owner learned while waiting. Values at completions ``>= true birth + max_delay`` stay 0.
    Size: ``k / S``.

    Parameters
    ----------
    k : int
        Rounds of silence, >= 0.

    Examples
    --------
    >>> truth = StatementOfWork(1, 1, DeadlineValue(4.0, 9), [(1, 2, 0.25), (2, 2, 0.25), (6, 2, 0.5)])
    >>> late = DelaySubmission(3).report(truth, PublicInformation(8, 20, 10))
    >>> late.birth, late.law.arrivals.tolist(), late.law.probabilities.tolist()
    (4, [4, 6], [0.5, 0.5])
    """

    k: int = whole("delay", 0)

    kind = "delay-submission"
    inside_model = False
    label = "rounds of silence"
    telling = 6

    @property
    def delay(self) -> int:
        """The rounds between birth and submission: what the market asks a strategy for."""
        return self.k

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return ``truth`` as reported ``k`` rounds after its birth; equal points merge."""
        if self.k == 0:
            return truth
        birth = truth.birth + self.k
        points = [Requirement(max(r.arrival, birth), r.duration, r.probability, r.signal) for r in truth.requirements]
        value = value_until(truth, truth.birth + public.max_delay - 1, public)
        return StatementOfWork(birth, truth.concurrency, value, points, truth.shapes, **truth.terms)

    def check(self, truth: StatementOfWork, public: PublicInformation) -> None:
        """Refuse a submission after the last round."""
        if truth.birth + self.k > public.horizon:
            raise InvalidReportError(f"submission in round {truth.birth + self.k}: expected one of the market")

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """Until nothing is worth anything."""
        return {"k": (0.0, float(min(public.max_delay - 1, public.horizon - truth.birth)))}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the rounds over S."""
        return self.k / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        return f"submits {count_of(self.k, 'round')} late"


@dataclass(frozen=True)
class SplitNodes(Misreport):
    """Two jobs: one on ``nodes`` nodes, one on the rest, each with its share of the value.

    It is assumed that the work can be divided so, that the parts may run at different times, and that
    the job is done when both are. Size: the smaller part's share of the nodes.
    """

    nodes: int = whole("nodes", 0)

    kind = "split-nodes"
    inside_model = False

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the first of the two reports."""
        return self._part(truth, self.nodes, public)

    def conduct(self, claim: StatementOfWork, truth: StatementOfWork, public: PublicInformation) -> Conduct:
        if self.nodes == 0:
            return plain(claim, truth.concurrency)
        rest = truth.concurrency - self.nodes
        both = (self._part(claim, self.nodes, public), self._part(claim, claim.concurrency - self.nodes, public))
        first, second = both
        statements = (Statement(truth.birth, first, self.nodes), Statement(truth.birth, second, rest, "/2"))
        return Conduct(statements, ("nodes", both))

    def _part(self, claim: StatementOfWork, nodes: int, public: PublicInformation) -> StatementOfWork:
        if not 1 <= nodes < claim.concurrency:
            raise InvalidReportError(f"{nodes} of {claim.concurrency} nodes: expected a true part of them")
        value = ScaleValue(nodes / claim.concurrency).report(claim, public).value
        return StatementOfWork(claim.birth, nodes, value, claim.requirements, **claim.terms)

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """Up to all but one."""
        return {"nodes": (0.0, float(max(0, truth.concurrency - 1)))}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return min(self.nodes, truth.concurrency - self.nodes) / truth.concurrency

    def words(self, truth: StatementOfWork) -> str:
        return f"submits two jobs, on {self.nodes} and {truth.concurrency - self.nodes} of its nodes"


@dataclass(frozen=True)
class SplitRounds(Misreport):
    """Two jobs, one after the other: the first ``rounds`` rounds, and the rest.

    The second is reported to arrive when the first ends by its launch plan (at once, if it has
    none), and does arrive when it is done. Both report the whole value, the first earlier by as much as
    the second needs. Size: ``rounds`` as a share of the longest duration.
    """

    rounds: int = whole("rounds", 0)

    kind = "split-rounds"
    inside_model = False

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the first of the two reports."""
        self._check(truth)
        points = [
            Requirement(r.arrival, min(r.duration, self.rounds), r.probability, self._signal(r, first=True))
            for r in truth.requirements
        ]
        rest = int(truth.law.durations.max()) - self.rounds
        return restated(ShiftDeadline(-rest).report(truth, public), points=points)

    def _check(self, truth: StatementOfWork) -> None:
        longest = int(truth.law.durations.max())
        if not 1 <= self.rounds < longest:
            raise InvalidReportError(f"split after {self.rounds} of {longest} rounds: expected a true part of them")

    def _signal(self, r: Requirement, *, first: bool) -> Signal:
        """Each part shows its own duration where the job shows its duration."""
        if r.signal != r.duration:
            return r.signal
        return min(r.duration, self.rounds) if first else r.duration - self.rounds

    def conduct(self, claim: StatementOfWork, truth: StatementOfWork, public: PublicInformation) -> Conduct:
        if self.rounds == 0:
            return plain(claim, truth.concurrency)
        first = self.report(claim, public)

        def second(plans: Plans) -> StatementOfWork | None:
            plan = plans.get("")
            points = []
            for r in claim.requirements:
                shown = self._signal(r, first=True)
                start = None if plan is None else plan.start(r.arrival, shown)
                ready = (r.arrival if start is None else start) + self.rounds
                if r.duration > self.rounds:
                    left = Requirement(ready, r.duration - self.rounds, r.probability, self._signal(r, first=False))
                    points.append(left)
            return restated(claim, points=points)

        statements = (
            Statement(truth.birth, first, truth.concurrency, part=lambda job: self._fate(job, first=True)),
            Statement(
                truth.birth,
                second,
                truth.concurrency,
                "/2",
                part=lambda job: self._fate(job, first=False) if job.duration > self.rounds else None,
                after="",
            ),
        )
        return Conduct(statements, ("rounds", self.rounds, claim))

    def _fate(self, job: Fate, *, first: bool) -> Fate:
        duration = min(job.duration, self.rounds) if first else job.duration - self.rounds
        signal = duration if job.signal == job.duration else job.signal
        return Fate(job.arrival, duration, signal)

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """Up to all but one."""
        return {"rounds": (0.0, float(max(0, int(truth.law.durations.max()) - 1)))}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the share of the rounds."""
        return self.rounds / int(truth.law.durations.max())

    def words(self, truth: StatementOfWork) -> str:
        return f"submits two jobs, the first {count_of(self.rounds, 'round')} and what is then left"


@dataclass(frozen=True)
class Ghosts(Misreport):
    """``count`` more jobs that never arrive, each on ``nodes`` nodes for ``rounds`` rounds.

    They are submitted ``early`` rounds before birth, or just before (that is 0) the owner's own report, to
    arrive when its job first may, and claim ``value`` credits each until birth + S. Size: their node-rounds over
    those of the job's longest case.
    """

    count: int = whole("count", 0)
    nodes: int = whole("nodes", 1, None)
    rounds: int = whole("rounds", 1, None)
    value: float = number("value", "[0, inf)", None)
    early: int = whole("early", 0, None, default=0)

    kind = "ghosts"
    inside_model = False

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the owner's own report: the truth."""
        return truth

    def conduct(self, claim: StatementOfWork, truth: StatementOfWork, public: PublicInformation) -> Conduct:
        """Return the ghosts and the owner's own report."""
        if self.count == 0:
            return plain(claim, truth.concurrency)
        born = truth.birth - self.early
        if born < 1:
            raise InvalidReportError(f"ghosts in round {born}: expected a round of the market")
        arrival = int(claim.law.arrivals[0])
        last = max(born + 1, min(born + public.max_delay - 1, public.horizon + 1))
        ghost = StatementOfWork(
            born, self.nodes, DeadlineValue(self.value, last), [Requirement(arrival, self.rounds, 1.0)]
        )
        ghosts = [
            Statement(born, ghost, self.nodes, f"/ghost-{k + 1}", part=nothing, counts=False) for k in range(self.count)
        ]
        own = Statement(truth.birth, claim, truth.concurrency)
        return Conduct((*ghosts, own), ("ghosts", self, claim))

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """A few, of any value."""
        highest = 2 * truth.value.highest if public.max_value is None else public.max_value
        return {"count": (0.0, 8.0), "value": (0.0, highest)}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the node-rounds over those of the job."""
        return self.count * self.nodes * self.rounds / (truth.concurrency * int(truth.law.durations.max()))

    def words(self, truth: StatementOfWork) -> str:
        when = f" {count_of(self.early, 'round')} before its own" if self.early else ""
        size = f"{count_of(self.nodes, 'node')} and {count_of(self.rounds, 'round')}"
        return f"submits {count_of(self.count, 'job')} of {size} that never arrive{when}"


@dataclass(frozen=True)
class Overrun(Misreport):
    """At arrival the job shows ``factor`` times its duration, as it has declared, and runs on as it must.

    For revealed durations, where the signal is the duration; a report alone cannot do this, since
    the platform sees the signal. Size: ``|factor - 1|``.
    """

    factor: float = number("factor", "(0, inf)", 1.0)

    kind = "overrun"
    inside_model = False

    def _shown(self, duration: int, public: PublicInformation) -> int:
        longest = public.max_duration or 10**7
        return max(1, min(round(duration * self.factor), longest))

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report with other durations and the signals that go with them."""
        points = []
        for r in truth.requirements:
            if r.signal != r.duration:
                raise InvalidReportError(f"signal {r.signal!r} of duration {r.duration}: expected revealed durations")
            points.append(Requirement(r.arrival, self._shown(r.duration, public), r.probability))
        return restated(truth, points=points)

    def conduct(self, claim: StatementOfWork, truth: StatementOfWork, public: PublicInformation) -> Conduct:
        """Return the report, with a signal that matches it; plain conduct where that is the true duration."""
        report = self.report(claim, public)
        lengths = {*truth.law.durations.tolist(), *claim.law.durations.tolist()}
        if all(self._shown(d, public) == d for d in lengths):
            return plain(claim, truth.concurrency)

        def part(job: Fate) -> Fate:
            return Fate(job.arrival, job.duration, self._shown(job.duration, public))

        return Conduct((Statement(truth.birth, report, truth.concurrency, part=part),), ("overrun", self, report))

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """From one round to twice as long."""
        return {"factor": (1.0 / (2 * int(truth.law.durations.max())), 2.0)}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the change of the factor."""
        return abs(self.factor - 1)

    def words(self, truth: StatementOfWork) -> str:
        share = f"{figure(self.factor, 1.0)} {'of' if self.factor < 1 else 'times'}"
        return f"declares and shows {share} its rounds, and runs as long as it must"
