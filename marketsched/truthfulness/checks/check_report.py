"""Results of the checks of a mechanism: one for each, with the number of cases it examined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from marketsched.mechanisms.errors import MarketschedError

CheckOutcome = Literal["passed", "failed", "not claimed", "does not apply"]


class MechanismCheckError(MarketschedError, AssertionError):
    """A mechanism failed a check that it claims to pass.

    Examples
    --------
    >>> CheckReport((CheckResult("truthful", "failed", "owner 2 gains 4 credits"),)).raise_if_failed()
    Traceback (most recent call last):
    ...
    marketsched.truthfulness.checks.check_report.MechanismCheckError: truthful: owner 2 gains 4 credits
    """


class Broken(Exception):
    """A check that failed; the message says how."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: its name, result and reason; ``seen`` is the number of cases that occurred."""

    name: str
    outcome: CheckOutcome
    detail: str = ""
    seen: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class CheckReport:
    """All checks of one mechanism.

    Examples
    --------
    >>> results = CheckResult("capacity is held", "passed"), CheckResult("truthful", "failed", "owner 2 gains 4")
    >>> report = CheckReport(results)
    >>> report["capacity is held"].outcome, [result.name for result in report.failed]
    ('passed', ['truthful'])
    >>> report
    CheckReport(1 passed, 1 failed; truthful: owner 2 gains 4)
    """

    results: tuple[CheckResult, ...] = field(repr=False)

    def __repr__(self) -> str:
        counts = Counter(result.outcome for result in self.results)
        said = ", ".join(f"{number} {outcome}" for outcome, number in counts.items()) or "no checks"
        failed = "".join(f"; {name}: {result.detail}" for name, result in self._lines() if result.outcome == "failed")
        return f"CheckReport({said}{failed})"

    def __getitem__(self, name: str) -> CheckResult:
        """Return the result of one check; KeyError: there is none of this name."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(f"{name!r} is no check: expected one of {', '.join(each.name for each in self.results)}")

    def __iter__(self) -> Iterator[CheckResult]:
        """Go through the results of all checks."""
        return iter(self.results)

    def __len__(self) -> int:
        """Return how many checks there are."""
        return len(self.results)

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return tuple(result for result in self.results if result.outcome == "failed")

    def raise_if_failed(self) -> None:
        """Raise ``MechanismCheckError`` with a sentence per failed check, if there is any."""
        failed = [f"{name}: {result.detail}" for name, result in self._lines() if result.outcome == "failed"]
        if failed:
            raise MechanismCheckError("; ".join(failed))

    def __str__(self) -> str:
        """Return one line per check; checks that fail for one reason share a line."""
        lines = self._lines()
        wide = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:{wide}}  {r.outcome}  {r.detail}".rstrip() for name, r in lines)

    def _lines(self) -> list[tuple[str, CheckResult]]:
        """Return what a line says, the checks that fail for one reason together at the first of them."""
        reasons = Counter(result.detail for result in self.failed)
        found: list[tuple[str, CheckResult]] = []
        said: set[str] = set()
        for result in self.results:
            together = reasons[result.detail] if result.outcome == "failed" else 1
            if together == 1:
                found.append((result.name, result))
            elif result.detail not in said:
                said.add(result.detail)
                found.append((f"{result.name}, and {together - 1} more", result))
        return found
