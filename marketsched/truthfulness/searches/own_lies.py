"""Misreports outside the package's families: a user's own strategy, and one given statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from marketsched.agents.lies import Misreport as Misreport
from marketsched.agents.lies import PublicInformation, Strategy, submission_delay
from marketsched.agents.lies import misreport_from as misreport_from
from marketsched.config.sow_codec import sow_from_json, sow_to_json
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.sow import StatementOfWork


@dataclass(frozen=True)
class FixedReport(Misreport):
    """One given statement, whatever the truth is. Size: 1, as there is no measure for it."""

    claim: StatementOfWork
    late: bool = False  # submitted after birth: outside the model

    kind = "statement"

    @property
    def inside_model(self) -> bool:  # type: ignore[override]
        """False if it is submitted late."""
        return not self.late

    @classmethod
    def read(cls, fields: dict[str, Any]) -> FixedReport:
        """Return the report that `data` has written."""
        birth, late = fields.pop("birth", 0), bool(fields.pop("late", False))
        return cls(sow_from_json(birth, fields), late)

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the statement."""
        if self.claim.birth < truth.birth or (self.claim.birth > truth.birth) is not self.late:
            legal = f"one after {truth.birth}" if self.late else f"the true birth {truth.birth}"
            raise InvalidReportError(f"birth = {self.claim.birth}: expected {legal}")
        return self.claim

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return 1 for every lie."""
        return float(self.claim != truth)

    def words(self, truth: StatementOfWork) -> str:
        """Show the statement."""
        return f"reports {self.claim!r}"

    def data(self) -> dict[str, Any]:
        """Return the statement as plain data."""
        return {"kind": self.kind, "birth": self.claim.birth, "late": self.late, **sow_to_json(self.claim)}


@dataclass(frozen=True)
class OwnLie(Misreport):
    """A user's own strategy, as a misreport: whatever has ``report(truth, public)``.

    ``words`` and ``distance`` are used if it has them. With a positive ``delay`` it is outside the model.
    """

    lie: Strategy

    kind: ClassVar[str] = ""  # a program, not data

    @property
    def inside_model(self) -> bool:  # type: ignore[override]
        """False for a strategy that submits late, or says so itself."""
        return bool(getattr(self.lie, "inside_model", True)) and not submission_delay(self.lie)

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report of the strategy; it must be a statement of work."""
        claim = self.lie.report(truth, public)
        if not isinstance(claim, StatementOfWork):
            raise InvalidReportError(f"the strategy returned {claim!r}: expected a StatementOfWork")
        born = truth.birth + submission_delay(self.lie)
        if claim.birth != born:
            raise InvalidReportError(f"the strategy's report is born in {claim.birth}: expected {born}")
        return claim

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the strategy's own measure, or 1."""
        own = getattr(self.lie, "distance", None)
        return float(own(truth, public)) if callable(own) else 1.0

    def words(self, truth: StatementOfWork) -> str:
        """Return the strategy's own words, or its representation."""
        own = getattr(self.lie, "words", None)
        return str(own(truth)) if callable(own) else f"follows {self.lie!r}"

    def data(self) -> dict[str, Any]:
        """Return a note that it is no data."""
        return {"kind": "own", "strategy": repr(self.lie)}


def misreport_of(lie: object) -> Misreport:
    """Return ``lie`` itself, or a user's own strategy as a misreport; InvalidParameterError if it is neither."""
    if isinstance(lie, Misreport):
        return lie
    if isinstance(lie, Strategy):
        return OwnLie(lie)
    raise InvalidParameterError(f"misreport {lie!r}: expected a Misreport, or something with report(truth, public)")
