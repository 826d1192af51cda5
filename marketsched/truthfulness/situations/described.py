"""One owner, its true statement, and a market of others who report truly: the data of a situation, and its checks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation
from marketsched.agents.loop import Fate
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Natural, Whole, check_fields
from marketsched.mechanisms.limits import check_report
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.truthfulness.situations.guarded_market import Factory
from marketsched.truthfulness.situations.lotteries import fate_of
from marketsched.truthfulness.situations.streams import MECHANISM, stream, stream_of_run


@dataclass(frozen=True, slots=True)
class Other:
    """Another owner, who reports truly.

    ``name`` is that of its job, ``law`` over what it reports; ``happened`` is its actual outcome, if there is a
    history; ``owner`` is the job's owner (None: the job's name).

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementLaw
    >>> rival = StatementOfWork(1, 1, DeadlineValue(3.0, 2), [(1, 1, 1.0)])
    >>> other = Other("rival", StatementLaw([(0.5, rival), (0.5, None)]))
    >>> other.name, other.owner
    ('rival', None)
    """

    name: str
    law: StatementLaw
    happened: Fate | None = None
    owner: str | None = None

    @classmethod
    def of(cls, index: int, other: Any) -> Other:
        """Return ``other`` itself, or that of a job of a workload, a statement, or a law over statements."""
        if isinstance(other, Other):
            return other
        if isinstance(other, Job):
            return cls(other.name, StatementLaw.of(other.truth), fate_of(other), other.owner)
        return cls(f"other-{index + 1}", StatementLaw.of(other))


@dataclass(frozen=True, eq=False, repr=False)
class Described:
    """The data of a `Situation`, without its play; parameters and errors as there."""

    factory: Factory
    truth: StatementOfWork
    others: tuple[Other, ...] = ()
    capacity: Count = field(kw_only=True)
    horizon: Count = field(kw_only=True)
    max_delay: Count = field(kw_only=True)
    name: str = field(default="owner", kw_only=True)
    owner: str | None = field(default=None, kw_only=True)
    ahead: int | None = field(default=None, kw_only=True)
    history: Natural | None = field(default=None, kw_only=True)
    resubmit: bool = field(default=False, kw_only=True)
    nobody_later: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        given: Iterable[Any] = self.others
        others = tuple(Other.of(i, other) for i, other in enumerate(given))
        object.__setattr__(self, "others", tuple(sorted(others, key=lambda other: other.law.birth)))
        check_fields(self)
        if self.ahead is not None:
            Whole(0, self._n_same_birth).check("ahead", self.ahead)
        self._check_others()

    def _check_others(self) -> None:
        seen = {self.name}
        for other in self.others:
            if other.name in seen:
                raise InvalidParameterError(f"two jobs are named {other.name!r}: expected distinct names")
            seen.add(other.name)
            if other.happened is not None and len(other.law.cases) > 1:
                raise InvalidParameterError(
                    f"job {other.name!r}: what happened is given with a law of {len(other.law.cases)} statements: "
                    "expected the one statement that it made"
                )

    def __repr__(self) -> str:
        """Return whose situation it is, and how large."""
        sizes = f"capacity={self.capacity}, horizon={self.horizon}, max_delay={self.max_delay}"
        return f"{type(self).__name__}({self.name!r}, {len(self.others)} others, {sizes})"

    @property
    def _n_same_birth(self) -> int:
        return sum(other.law.birth == self.truth.birth for other in self.others)

    @property
    def n_ahead(self) -> int:
        """How many of the others of the same birth submit before the owner."""
        return self._n_same_birth if self.ahead is None else self.ahead

    @cached_property
    def public(self) -> PublicInformation:
        """Public information before reports: sizes, and the limits the mechanism announces.

        Raises InvalidParameterError if a fresh mechanism ends before ``horizon``, or announces a limit that is none.
        """
        mechanism = self.factory(stream(0, MECHANISM) if self.history is None else stream_of_run(self.history))
        return PublicInformation.of(mechanism, self.capacity, self.horizon, self.max_delay)

    def check(self, report: StatementOfWork) -> None:
        """Raise InvalidReportError if a report breaks the mechanism's limits (births are not checked)."""
        check_announced(self.name, report, self.public)

    def worth(self, completion: int | None) -> float:
        """Return the true value of a completion, credits; None, and from birth + S on: 0."""
        if completion is None or completion > self.truth.birth + self.max_delay - 1:
            return 0.0
        return float(self.truth.value(completion))


def check_announced(name: str, report: StatementOfWork, public: PublicInformation) -> None:
    """Raise InvalidReportError if a report breaks a mechanism's limits (births are not checked)."""
    longest = public.horizon if public.max_duration is None else public.max_duration
    highest = float("inf") if public.max_value is None else public.max_value
    now = report.birth if isinstance(report, StatementOfWork) else 0
    cluster = public.cluster if isinstance(report, StatementOfWork) and report.shapes else None
    check_report(name, report, now, public.widest, longest, highest, cluster)
