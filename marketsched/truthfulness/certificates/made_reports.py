r"""Reports made to select a given launch plan: each shows that an owner can reach the plan.

A report is free to claim values, durations and the probabilities of the cases it names. For claimed
durations, the plan of case g is :math:`s_g` if that start has the largest estimated utility (3), which is
linear in the claimed values. So with values claimed only at the completion times the plan needs, the
largest margin by which all cases prefer their start is a small linear program:

.. math:: \max m \quad \text{s.t.} \quad \hat u_g(s_g) \ge m, \quad
   \hat u_g(s_g) \ge \hat u_g(s) + m \;\text{ for all } g, s, \quad V_{max} \ge v_{f_1} \ge v_{f_2} \ge \dots \ge 0.

Times between the listed ones are worth 0, which value tables allow.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.law import Requirement
from marketsched.mechanisms.posted.inspection import Inspection
from marketsched.mechanisms.posted.menu import announced_failures, announced_prices
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import TableValue
from marketsched.truthfulness.certificates.alternatives import Alternatives
from marketsched.truthfulness.certificates.regret import BestResponse

MOST_ROWS = 20_000  # of the linear program
LEAST_MARGIN = 1e-6  # of V_max

Claims = list[list[tuple[int, float]]]  # per case: (duration, probability)


def reports_for(view: Inspection, options: Alternatives, plan: BestResponse) -> Iterator[StatementOfWork]:
    """Yield reports that may select ``plan``; the mechanism decides what they select.

    First the truth with the declared concurrency. Then reports made for the plan, which leave out the
    cases that are not to run and claim, for the others: runs that all end at the same time, the only one
    of value; runs of one round; the true durations.
    """
    truth, concurrency = options.truth, int(options.concurrencies[plan.width])
    if plan.width:
        yield StatementOfWork(truth.birth, concurrency, truth.value, truth.requirements, **truth.terms)
    cases = np.flatnonzero((plan.columns < options.n_starts) & (_masses(options) > 0))
    if cases.size == 0:
        yield StatementOfWork(truth.birth, concurrency, TableValue({truth.birth + 1: 0.0}), [(truth.birth, 1, 1.0)])
        return
    starts = options.first_start + plan.columns[cases]
    for claims in _claims(view, options, cases, starts):
        values = _values(view, options, concurrency, cases, starts, claims)
        if values is not None:
            yield _report(options, concurrency, cases, claims, values)


def selected_columns(
    view: Inspection, options: Alternatives, plan: BestResponse, report: StatementOfWork
) -> NDArray[np.int64] | None:
    """Return the columns ``report`` is launched in, for each case of the true law.

    None if one of them is no start that was looked at (as one too late for any value is not); ``plan``
    tells the concurrency the report declares.
    """
    law, reported = options.law, report.law
    chosen = view.plan(report).starts
    groups = [reported.group_of(int(a), o) for a, o in zip(law.group_arrivals, law.group_signals, strict=True)]
    columns = options.columns_of(np.array([-1 if g is None else chosen[g] for g in groups], dtype=np.int64))
    known = columns <= options.n_starts
    known &= options.open[plan.width, np.arange(columns.size), np.minimum(columns, options.n_starts)]
    return columns if known.all() else None


def _masses(options: Alternatives) -> NDArray[np.float64]:
    """Return the probability of each case."""
    return np.asarray(np.add.reduceat(options.law.probabilities, options.law.offsets[:-1]))


def _claims(
    view: Inspection, options: Alternatives, cases: NDArray[np.int64], starts: NDArray[np.int64]
) -> Iterator[Claims]:
    """Yield what to claim about the durations of each case."""
    law, share = options.law, 1.0 / cases.size
    end = int(starts.max()) + 1
    if end - int(starts.min()) <= view.limits.max_duration:
        yield [[(end - s, share)] for s in starts.tolist()]
    yield [[(1, share)] for _ in starts]
    yield [
        list(zip(law.durations[low:high].tolist(), law.probabilities[low:high].tolist(), strict=True))
        for low, high in zip(law.offsets[cases].tolist(), law.offsets[cases + 1].tolist(), strict=True)
    ]


def _values(
    view: Inspection,
    options: Alternatives,
    concurrency: int,
    cases: NDArray[np.int64],
    starts: NDArray[np.int64],
    claims: Claims,
) -> dict[int, float] | None:
    """Return values that make every case prefer its start, completion time to credits; None if none are found."""
    from scipy.optimize import linprog

    limits, first = view.limits, options.first_start
    last = min(options.truth.birth + limits.max_delay - 1, limits.horizon + 1)
    times = sorted({s + d for s, claim in zip(starts.tolist(), claims, strict=True) for d, _ in claim if s + d <= last})
    if not times or len(times) * sum(map(len, claims)) > MOST_ROWS:
        return None
    n_starts = max(times) - first
    prices = announced_prices(*view.prices(concurrency, first, n_starts, limits.max_duration))
    ahead = first - view.now
    estimates = view.estimates(concurrency, ahead + n_starts, limits.max_duration)[ahead:]
    runs = 1.0 - announced_failures(estimates, view.threshold, first, limits.horizon)
    place = {time: i for i, time in enumerate(times)}

    def utility(claim: list[tuple[int, float]], start: int) -> tuple[NDArray[np.float64], float] | None:
        """Return the coefficients of the values, and what is paid; None: not on sale."""
        row, paid = np.zeros(len(times)), 0.0
        for duration, probability in claim:
            if not np.isfinite(price := prices[start - first, duration - 1]):
                return None
            weight = probability * runs[start - first, duration - 1]
            paid += weight * price
            if start + duration in place:
                row[place[start + duration]] += weight
        return row, paid

    rows, rights = [], []
    for arrival, target, claim in zip(options.law.group_arrivals[cases].tolist(), starts.tolist(), claims, strict=True):
        wanted = utility(claim, target)
        if wanted is None:
            return None
        others = {f - d for f in times for d, _ in claim if arrival <= f - d} - {target}
        found = [utility(claim, start) for start in others]
        for row, paid in [(np.zeros(len(times)), 0.0), *(pair for pair in found if pair is not None)]:
            rows.append(np.r_[row - wanted[0], sum(p for _, p in claim)])  # margins count by the case's probability
            rights.append(paid - wanted[1])
    falling = np.eye(len(times) - 1, len(times) + 1, k=1) - np.eye(len(times) - 1, len(times) + 1)
    solved = linprog(
        np.r_[np.zeros(len(times)), -1.0],
        A_ub=np.vstack([*rows, falling]),
        b_ub=np.r_[rights, np.zeros(len(times) - 1)],
        bounds=[(0.0, view.max_value)] * len(times) + [(None, view.max_value)],
    )
    if solved.status != 0 or solved.x[-1] <= LEAST_MARGIN * view.max_value:
        return None
    falling_values = np.minimum.accumulate(np.clip(solved.x[:-1], 0.0, view.max_value))  # rounding of the solver
    return dict(zip(times, falling_values.tolist(), strict=True))


def _report(
    options: Alternatives, concurrency: int, cases: NDArray[np.int64], claims: Claims, values: dict[int, float]
) -> StatementOfWork:
    law = options.law
    points = [
        Requirement(int(law.group_arrivals[g]), duration, probability, law.group_signals[g])
        for g, claim in zip(cases.tolist(), claims, strict=True)
        for duration, probability in claim
    ]
    truth = options.truth
    return StatementOfWork(truth.birth, concurrency, TableValue(values), points, **truth.terms)
