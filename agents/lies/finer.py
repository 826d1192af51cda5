"""Lies about single digits of the value, its curve, whether work can start again, one more duration, another's law."""

from __future__ import annotations

import math
from dataclasses import dataclass

from marketsched.agents.lies.base import Misreport, count_of, figure, number, restated, whole
from marketsched.agents.lies.strategy import PublicInformation
from marketsched.agents.lies.values import ScaleValue
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.law import Requirement
from marketsched.mechanisms.limits import last_useful_completion
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, LinearValue, TableValue, ValueCurve


def _with_highest(truth: StatementOfWork, public: PublicInformation, value: float) -> StatementOfWork:
    """Return ``truth`` with its curve scaled to this highest value."""
    highest = truth.value.highest
    if value == highest:
        return truth
    if highest <= 0 or not 0 < value <= (math.inf if public.max_value is None else public.max_value):
        raise InvalidReportError(
            place="value", value=value, legal="one between 0 and the highest value that is allowed"
        )
    return ScaleValue(value / highest).report(truth, public)


@dataclass(frozen=True)
class MoveDigit(Misreport):
    """One decimal of the highest value rises by ``steps`` (negative: falls). Size: the change as a share of the value.

    ``place`` 0 is the last digit before the point, 1 the first behind it.
    """

    steps: int = whole("steps", -9)
    place: int = whole("place", 0, searched=False, default=1)

    kind = "move-digit"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        return _with_highest(truth, public, truth.value.highest + self.steps * 10.0**-self.place)

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return abs(self.steps) * 10.0**-self.place / max(truth.value.highest, 1e-12)

    def words(self, truth: StatementOfWork) -> str:
        return f"reports a value {abs(self.steps) * 10.0**-self.place:g} {'lower' if self.steps < 0 else 'higher'}"


@dataclass(frozen=True)
class EndValue(Misreport):
    """The highest value is moved to the nearest one that ends in given digits, as .99 or 0. Size: the share of V moved.

    It goes ``share`` of the way (0 is the truth), to values of the form k ``unit`` + ``ending``.
    """

    share: float = number("share", "[0, 1]", default=1.0)
    unit: float = number("unit", "(0, inf)", searched=False, default=1.0)
    ending: float = number("ending", "[0, inf)", searched=False, default=0.99)

    kind = "end-value"

    def target(self, truth: StatementOfWork) -> float:
        """Return the nearest value of the form."""
        k = round((truth.value.highest - self.ending) / self.unit)
        return round(max(k, 0 if self.ending else 1) * self.unit + self.ending, 9)

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        highest = truth.value.highest
        return _with_highest(truth, public, highest + self.share * (self.target(truth) - highest))

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return self.share * abs(self.target(truth) - truth.value.highest) / max(truth.value.highest, 1e-12)

    def words(self, truth: StatementOfWork) -> str:
        way = "" if self.share == 1 else f", {self.share:.4g} of the way"
        return f"reports a value of {self.target(truth):g}{way}"


@dataclass(frozen=True)
class AddStep(Misreport):
    """From the middle of its useful completions on, the job is worth ``drop`` of its value less. Size: ``drop``."""

    drop: float = number("drop", "[0, 1]")

    kind = "add-step"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        if self.drop == 0:
            return truth
        last = last_useful_completion(truth, public.max_delay, public.horizon)
        first = truth.birth + 1
        if last <= first:
            raise InvalidReportError(f"{truth.value!r}: expected two useful completions, between which there is a step")
        values = truth.value.table(first, last - first + 1).tolist()
        middle = len(values) // 2
        stairs = [v if i < middle else (1 - self.drop) * v for i, v in enumerate(values)]
        return restated(truth, value=TableValue(dict(enumerate(stairs, first))))

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return self.drop

    def words(self, truth: StatementOfWork) -> str:
        return f"says that late completions are worth {figure(1 - self.drop, 1.0)} of their value"


@dataclass(frozen=True)
class RewriteCurve(Misreport):
    """The highest value until the last useful completion, written in another form. Size: 1.

    Of a flat value nothing changes but the form: 0 is a line of slope 0, 1 a deadline, 2 a table of every completion.
    """

    form: int = whole("form", 0, searched=False)

    kind = "rewrite-curve"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        last = last_useful_completion(truth, public.max_delay, public.horizon)
        highest, first = truth.value.highest, truth.birth + 1
        if last < first or self.form > 2:
            raise InvalidReportError(place="form", value=self.form, legal="0, 1 or 2, of a job of some value")
        curves: tuple[ValueCurve, ...] = (
            LinearValue(highest, last, 0.0, last),
            DeadlineValue(highest, last),
            TableValue(dict.fromkeys(range(first, last + 1), highest)),
        )
        return restated(truth, value=curves[self.form])

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return 1.0

    def words(self, truth: StatementOfWork) -> str:
        form = ("a line of slope 0", "a deadline", "a table")[min(self.form, 2)]
        return f"reports its highest value until its last useful completion, as {form}"


@dataclass(frozen=True)
class ClaimRestarts(Misreport):
    """The opposite of the truth about whether the work can start again once its run is stopped. Size: 1."""

    kind = "claim-restarts"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        return restated(truth, restarts=not truth.restarts)

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return 1.0

    def words(self, truth: StatementOfWork) -> str:
        return f"says that its work {'cannot' if truth.restarts else 'can'} start again"


@dataclass(frozen=True)
class ClaimCheckpoints(Misreport):
    """The job is said to save its work every ``every`` rounds (0: never); what it really keeps stays. Size: 1."""

    every: int = whole("every", 0, searched=False)

    kind = "claim-checkpoints"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        return restated(truth, checkpoint=self.every)

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return 1.0

    def words(self, truth: StatementOfWork) -> str:
        when = f"saved every {count_of(self.every, 'round')}" if self.every else "never saved"
        return f"says that its work is {when}"


@dataclass(frozen=True)
class AddDuration(Misreport):
    """A share of the heaviest case moves to a duration that the law does not have: it has one more. Size: the share.

    The new one is ``rounds`` longer (negative: shorter). Where the duration is shown at arrival, so is that of the
    new case.
    """

    rounds: int = whole("rounds", -(10**6))
    share: float = number("share", "[0, 1]", default=0.02)

    kind = "add-duration"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        points = list(truth.requirements)
        place = max(range(len(points)), key=lambda i: points[i].probability)
        heavy = points[place]
        duration = heavy.duration + self.rounds
        known = {each.duration for each in points}
        if self.share == 0 or self.rounds == 0:
            return truth
        if truth.shapes or duration in known or not 1 <= duration <= (public.max_duration or duration):
            raise InvalidReportError(f"{duration} rounds: expected a legal duration that the law does not have")
        moved = self.share * heavy.probability
        points[place] = Requirement(heavy.arrival, heavy.duration, heavy.probability - moved, heavy.signal)
        signal = duration if heavy.signal == heavy.duration else heavy.signal
        return restated(truth, points=[*points, Requirement(heavy.arrival, duration, moved, signal)])

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return self.share if self.rounds else 0.0

    def words(self, truth: StatementOfWork) -> str:
        by = f"{count_of(abs(self.rounds), 'round')} {'shorter' if self.rounds < 0 else 'longer'}"
        return f"moves {figure(self.share, 0.0, 3)} of its likeliest case to one that is {by}"


@dataclass(frozen=True)
class CopyLaw(Misreport):
    """The law of arrivals and durations is that of ``public.others[place]``, as it was announced. Size: 1."""

    place: int = whole("place", 0, searched=False)

    kind = "copy-law"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report with the other law, moved to the birth of this job."""
        if self.place >= len(public.others) or truth.shapes:
            raise InvalidReportError(
                place="place", value=self.place, legal=f"one of {len(public.others)} others, of a job without shapes"
            )
        other = public.others[self.place]
        later = truth.birth - other.birth
        points = [
            (r.arrival + later, r.duration, r.probability, r.duration if truth.revealed else None)
            for r in other.requirements
        ]
        return StatementOfWork(truth.birth, truth.concurrency, truth.value, points, **truth.terms)

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return 1.0

    def words(self, truth: StatementOfWork) -> str:
        return f"reports the law that owner {self.place} of those before it has announced"
