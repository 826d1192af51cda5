"""The findings of the audit of a finite mechanism: figures, and their worst cases."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from marketsched.mechanisms.finite.exact import Number

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FiniteLie:
    """One owner of a type reports another one.

    Examples
    --------
    >>> from marketsched.mechanisms.finite import first_price
    >>> from marketsched.finite import audit_finite
    >>> print(audit_finite(first_price([range(3)] * 2)).dominant_lie)
    owner 0 of type 2 reports 0 against 0: gains 2
    """

    owner: int
    true_type: Any
    report: Any
    others: tuple[Any, ...] | None  # types that the others have and report; None: in expectation over them
    gain: Number  # its utility under the lie less that of the truth

    def __str__(self) -> str:
        lie = f"owner {self.owner} of type {self.true_type} reports {self.report}"
        if self.others is None:
            return f"{lie}: gains {self.gain} in expectation"
        return f"{lie}{f' against {_tuple(self.others)}' if self.others else ''}: gains {self.gain}"


@dataclass(frozen=True)
class PairLie:
    """Two owners report together.

    Examples
    --------
    >>> from marketsched.mechanisms.finite import second_price
    >>> from marketsched.finite import audit_finite
    >>> print(audit_finite(second_price([range(3)] * 2)).pair_lie)
    owners 0 and 1 of types 2 and 2 report 0 and 0: gain 2 (2 and 0)
    """

    owners: tuple[int, int]
    true_types: tuple[Any, Any]
    reports: tuple[Any, Any]
    others: tuple[Any, ...]  # types and reports of all other owners, in their order
    gains: tuple[Number, Number]

    @property
    def total(self) -> Number:
        """Return the sum of both gains."""
        return self.gains[0] + self.gains[1]

    def __str__(self) -> str:
        (i, j), (a, b), (r, s), (g, h) = self.owners, self.true_types, self.reports, self.gains
        against = f" against {_tuple(self.others)}" if self.others else ""
        return f"owners {i} and {j} of types {a} and {b} report {r} and {s}{against}: gain {self.total} ({g} and {h})"


@dataclass(frozen=True)
class WorstUtility:
    """The smallest utility of a truthful owner."""

    owner: int
    true_type: Any
    others: tuple[Any, ...] | None  # the others' types; None: in expectation over them
    utility: Number

    def __str__(self) -> str:
        where = " in expectation" if self.others is None else f" against {_tuple(self.others)}" if self.others else ""
        return f"owner {self.owner} of type {self.true_type} gets {self.utility}{where}"


@dataclass(frozen=True)
class FiniteAudit:
    """The exact audit of a finite direct mechanism.

    Figures are ints or Fractions where the mechanism's numbers (and, for expectations, the prior's) are, else floats.
    Expectations are None without a prior.

    Examples
    --------
    >>> from marketsched.mechanisms.finite import first_price
    >>> from marketsched.finite import audit_finite
    >>> found = audit_finite(first_price([range(3)] * 2))
    >>> found.is_dominant, found.is_rational, found.dominant_gain
    (False, True, 2)
    """

    mechanism: str
    is_exact: bool  # whether the mechanism's numbers are
    tolerance: float  # gains and losses up to it count as none; 0 where numbers are exact
    dominant_gain: Number  # most that a lie gains at any profile of the others; 0: no lie gains
    dominant_lie: FiniteLie | None
    bayesian_gain: Number | None  # the same in expectation over the others' types, given the own one
    bayesian_lie: FiniteLie | None
    worst_utility: WorstUtility  # smallest of a truthful owner at any profile
    worst_interim_utility: WorstUtility | None  # the same in expectation over the others' types, given the own one
    least_revenue: Number  # what all owners pay together, at the worst profile
    least_revenue_at: tuple[Any, ...]
    most_revenue: Number
    expected_revenue: Number | None
    worst_loss: Number  # best welfare less the mechanism's, largest at any profile
    worst_loss_at: tuple[Any, ...]
    worst_ratio: Number | None  # smallest share of the best welfare where that is above 0; None: it never is
    expected_loss: Number | None
    expected_welfare: Number | None
    best_expected_welfare: Number | None
    pair_gain: Number | None  # most that two owners gain together, if money may pass; None: not asked, or one owner
    pair_lie: PairLie | None
    both_gain: Number | None  # most that the one of two that gains less gains: above 0, both gain without money passing
    both_lie: PairLie | None

    @property
    def is_dominant(self) -> bool:
        """Whether truth is a dominant strategy for every type."""
        return self.dominant_gain <= self.tolerance

    @property
    def is_bayesian(self) -> bool | None:
        """Whether truth is best in expectation if the others are truthful; None without a prior."""
        return None if self.bayesian_gain is None else self.bayesian_gain <= self.tolerance

    @property
    def is_rational(self) -> bool:
        """Whether no truthful owner ever gets less than 0, what staying away gives."""
        return self.worst_utility.utility >= -self.tolerance

    @property
    def is_interim_rational(self) -> bool | None:
        """Whether every type expects at least 0; None without a prior."""
        return None if self.worst_interim_utility is None else self.worst_interim_utility.utility >= -self.tolerance

    @property
    def has_no_deficit(self) -> bool:
        """Whether the owners together never are paid more than they pay."""
        return self.least_revenue >= -self.tolerance

    @property
    def is_balanced(self) -> bool:
        """Whether payments add up to 0 at every profile."""
        return self.has_no_deficit and self.most_revenue <= self.tolerance

    @property
    def is_efficient(self) -> bool:
        """Whether the outcome always is one of largest welfare."""
        return self.worst_loss <= self.tolerance

    @property
    def is_pair_proof(self) -> bool | None:
        """Whether no two owners can both gain by a joint lie, money not passing; None: not asked."""
        return None if self.both_gain is None else self.both_gain <= self.tolerance

    def _rows(self) -> list[tuple[str, bool | None, Number | None, str]]:
        """Return (question, answer, figure, where it is worst)."""
        interim = self.worst_interim_utility
        rows: list[tuple[str, bool | None, Number | None, str]] = [
            ("truthful in dominant strategies", self.is_dominant, self.dominant_gain, _text(self.dominant_lie)),
            ("truthful in expectation", self.is_bayesian, self.bayesian_gain, _text(self.bayesian_lie)),
            ("no owner loses", self.is_rational, self.worst_utility.utility, str(self.worst_utility)),
            (
                "no owner expects a loss",
                self.is_interim_rational,
                None if interim is None else interim.utility,
                _text(interim),
            ),
            ("no deficit", self.has_no_deficit, self.least_revenue, f"revenue at {_tuple(self.least_revenue_at)}"),
            ("balanced budget", self.is_balanced, self.most_revenue, "largest revenue"),
            ("efficient", self.is_efficient, self.worst_loss, f"loss of welfare at {_tuple(self.worst_loss_at)}"),
            (
                "no pair gains",
                None if self.pair_gain is None else self.pair_gain <= self.tolerance,
                self.pair_gain,
                _text(self.pair_lie),
            ),
            ("no pair where both gain", self.is_pair_proof, self.both_gain, _text(self.both_lie)),
            ("expected revenue", None, self.expected_revenue, ""),
            ("expected welfare", None, self.expected_welfare, ""),
            ("expected loss of welfare", None, self.expected_loss, ""),
            ("smallest share of the best welfare", None, self.worst_ratio, ""),
        ]
        return [row for row in rows if row[2] is not None]

    def to_frame(self) -> pd.DataFrame:
        """Return a table: question, answer (None: the row is a figure alone), figure (of its own type), worst case."""
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=["question", "answer", "figure", "where"], dtype=object)

    def __repr__(self) -> str:
        lines = [f"FiniteAudit of a {self.mechanism}"]
        for question, answer, figure, where in self._rows():
            says = "" if answer is None else "yes" if answer else "no"
            lines.append(f"  {question:<35}{says:<4} {figure!s:<8} {where}".rstrip())
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures and witnesses by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def _text(witness: object) -> str:
    return "" if witness is None else str(witness)


def _tuple(types: tuple[Any, ...]) -> str:
    """Return types as a person writes them: several in parentheses, one alone."""
    return str(types[0]) if len(types) == 1 else f"({', '.join(map(str, types))})"
