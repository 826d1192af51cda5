r"""Prior knowledge about a job: a law :math:`F_j` over statements of work.

The stochastic variant (docs/mathematics.md, Section 8) knows for each job a finite mixture of statements, jobs
independent of each other. The birth round belongs to the job, not to the draw: if births moved with what is reported,
the order of submissions would tell about the reports, and the guarantee would be lost (gap G5).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import listed
from marketsched.mechanisms.randomness import Rng, generator_of
from marketsched.mechanisms.sow import StatementOfWork

MASS_TOLERANCE = 1e-9  # how far from 1 the probabilities of a law may add up

Case = tuple[StatementOfWork | None, float]


@dataclass(frozen=True, slots=True)
class StatementLaw:
    """A finite mixture of statements of work, all of the same birth round.

    Parameters
    ----------
    cases : iterable of (StatementOfWork or None, probability)
        The possible reports of the job, with probabilities; None: it does not appear. Either order within a
        pair is understood.

    Raises
    ------
    InvalidParameterError
        If there is no case, a probability is outside [0, 1], the probabilities do not add up to 1,
        births differ, or nothing but None may happen.

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> small, large = (StatementOfWork(2, c, DeadlineValue(4.0 * c, 6), [(2, 2, 1.0)]) for c in (1, 3))
    >>> law = StatementLaw([(small, 0.75), (large, 0.2), (None, 0.05)])
    >>> law.birth, len(law.cases)
    (2, 3)
    """

    cases: tuple[Case, ...]

    def __init__(self, cases: Iterable[Sequence[object]]) -> None:
        object.__setattr__(self, "cases", tuple(_as_case(i, case) for i, case in enumerate(cases)))
        if not self.cases:
            raise InvalidParameterError("a law without cases: expected at least one (statement, probability)")
        total = math.fsum(p for _, p in self.cases)
        if abs(total - 1) > MASS_TOLERANCE:
            raise InvalidParameterError(
                f"probabilities add up to {total:.12g}: expected 1 (a job that may not appear has a case None)"
            )
        births = {sow.birth for sow, _ in self.cases if sow is not None}
        if not births:
            raise InvalidParameterError("no case has a statement of work: expected at least one")
        if len(births) > 1:
            raise InvalidParameterError(
                f"births {sorted(births)}: expected one birth round for all statements of a law (see G5)"
            )

    @classmethod
    def of(cls, law: StatementLaw | StatementOfWork | Iterable[Sequence[object]]) -> StatementLaw:
        """Return ``law`` itself, the law of a statement known for certain, or that of these cases."""
        if isinstance(law, StatementLaw):
            return law
        return cls([(law, 1.0)]) if isinstance(law, StatementOfWork) else cls(law)

    @property
    def birth(self) -> int:
        """The round in which the job submits, if it appears."""
        return next(sow.birth for sow, _ in self.cases if sow is not None)

    def sample(self, rng: Rng) -> StatementOfWork | None:
        """Draw a report of the job; takes one number from ``rng``."""
        rng = generator_of(rng)
        u = float(rng.random())
        for sow, p in self.cases:
            u -= p
            if u < 0:
                return sow
        return next(sow for sow, p in reversed(self.cases) if p > 0)  # rounding only


def statement_laws(laws: Iterable[StatementLaw | StatementOfWork | Iterable[Sequence[object]]]) -> list[StatementLaw]:
    """Return one law per job from laws, cases, or statements known for certain; an error names its place."""
    checked = []
    for j, law in enumerate(listed("laws", "laws over statements of work", laws)):
        try:
            checked.append(StatementLaw.of(law))
        except InvalidParameterError as error:
            raise error.at(f"laws[{j}]") from None
        except TypeError as error:
            raise InvalidParameterError(str(error)).at(f"laws[{j}]") from None
    return checked


def _as_case(index: int, case: Sequence[object]) -> Case:
    """Read one (statement, probability), in either order."""
    pair = tuple(case) if isinstance(case, Sequence) and not isinstance(case, str) else ()
    if len(pair) == 2 and (pair[1] is None or isinstance(pair[1], StatementOfWork)):
        pair = pair[::-1]
    if len(pair) != 2 or not (pair[0] is None or isinstance(pair[0], StatementOfWork)):
        raise InvalidParameterError(place=f"cases[{index}]", value=case, legal="(StatementOfWork or None, probability)")
    sow, p = pair
    number = isinstance(p, (int, float, np.integer, np.floating)) and not isinstance(p, bool)
    if not number or not 0 <= p <= 1 + MASS_TOLERANCE:  # type: ignore[operator]  # NaN fails, too
        raise InvalidParameterError(f"cases[{index}]: probability = {p!r}: expected a number in [0, 1]")
    return cast(Case, (sow, float(cast(float, p))))
