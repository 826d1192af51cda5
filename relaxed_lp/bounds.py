r"""Upper bounds on the welfare of schedules: (11), (12) and (23) as linear programs.

=================  =====  =========================================================================
`offline_bound`    (11)   the best schedule in hindsight of the reported laws, in expectation
`plan_bound`       (12)   the best that launch plans can do, which do not see a hidden duration
`law_bound`        (23)   as (11), if the reports themselves are drawn from known laws
`realised_bound`   (11)   the best schedule of the jobs as they really turned out
=================  =====  =========================================================================

In all of them supply binds in expectation only, and starts may be shared out in fractions. So a job
wider than the cluster is not worthless in the first three (taken with a small probability it needs
few nodes); in the last one it is left out, as no schedule runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Positive, legal, listed
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.relaxed_lp.packing import Bound, PackingProgram
from marketsched.relaxed_lp.tasks import Tasks, tasks_of_jobs, tasks_of_laws, tasks_of_plans, tasks_of_reports

T = TypeVar("T")


def offline_bound(
    sows: Iterable[StatementOfWork],
    capacity: float,
    horizon: int,
    *,
    max_delay: int | None = None,
    time_limit: float | None = None,
) -> Bound:
    """Solve (11): no schedule of these jobs, even in hindsight, is worth more in expectation.

    Parameters
    ----------
    sows : iterable of StatementOfWork
        The reports; at least one.
    capacity : float
        Supply in each round, nodes, > 0; C, or (1 - eps) C.
    horizon : int
        T, last round.
    max_delay : int, optional
        S: completions at birth + S or later are worth nothing. None: no such limit.
    time_limit : float, optional
        Seconds that the solver may take; then see `Bound`.

    Raises
    ------
    InvalidParameterError
        If there is no report.
    SolverError
        If the solver is not installed or failed.
    TooLargeError
        If the program would not fit into memory; see `PackingProgram`.

    Notes
    -----
    For several capacities, `PackingProgram` compiles the program once.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue
    >>> sow = StatementOfWork(1, 1, DeadlineValue(2.0, 3), [(1, 1, 0.5), (2, 1, 0.5)])
    >>> bound = offline_bound([sow] * 3, capacity=1, horizon=2)
    >>> round(bound.value, 6), round(bound.gap, 6)
    (4.0, 0.0)
    """
    tasks = tasks_of_reports(_some("sows", "statement of work", sows), horizon, max_delay)
    return _solved(tasks, capacity, horizon, time_limit)


def plan_bound(
    sows: Iterable[StatementOfWork],
    capacity: float,
    horizon: int,
    *,
    max_delay: int | None = None,
    time_limit: float | None = None,
) -> Bound:
    """Solve (12): what launch plans can be worth that see the signal, not the duration.

    With durations revealed it equals (11); with durations hidden it is smaller, and the fair
    benchmark (gap G3). Parameters and errors are those of `offline_bound`.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    >>> round(plan_bound([sow] * 6, capacity=5, horizon=3).value, 6)
    20.0
    """
    tasks = tasks_of_plans(_some("sows", "statement of work", sows), horizon, max_delay)
    return _solved(tasks, capacity, horizon, time_limit)


def law_bound(
    laws: Iterable[StatementLaw | StatementOfWork | Iterable[Sequence[object]]],
    capacity: float,
    horizon: int,
    *,
    max_delay: int | None = None,
    time_limit: float | None = None,
) -> Bound:
    """Solve (23) at supply ``capacity``: the expected best in hindsight is no more, laws known, durations revealed.

    Parameters
    ----------
    laws : iterable
        One law over statements for each job (see `statement_laws`); at least one.
    capacity, horizon, max_delay, time_limit
        As for `offline_bound`.

    Raises
    ------
    InvalidParameterError
        As `offline_bound`, and if something is not a law, or a statement hides its durations.
    SolverError, TooLargeError
        As `offline_bound`.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementLaw
    >>> dear, cheap = (StatementOfWork(1, 1, DeadlineValue(value, 2), [(1, 1, 1.0, "a")]) for value in (8.0, 4.0))
    >>> law = StatementLaw([(0.5, dear), (0.5, cheap)])
    >>> round(law_bound([law, law], capacity=1, horizon=3).value, 6)
    8.0
    """
    return _solved(tasks_of_laws(_some("laws", "law", laws), horizon, max_delay), capacity, horizon, time_limit)


@legal
def realised_bound(jobs: RealisedJobs, capacity: Positive, horizon: int, *, time_limit: float | None = None) -> Bound:
    """Solve (11) for the jobs as they really turned out: no schedule of them is worth more.

    `dual_bound` comes within a fraction of a percent of it in much less time.

    Parameters
    ----------
    jobs : RealisedJobs
        What really happened; at least one job. Jobs wider than ``capacity`` are left out.
    capacity : float
        C, nodes, > 0.
    horizon : int
        T, the one ``jobs`` was built for.
    time_limit : float, optional
        As for `offline_bound`.

    Raises
    ------
    InvalidParameterError
        If the horizons differ, or there is no job.
    SolverError, TooLargeError
        As `offline_bound`.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    >>> jobs = RealisedJobs.build([(sow, 1, 1)] * 6, horizon=3, max_delay=9)
    >>> round(realised_bound(jobs, capacity=5, horizon=3).value, 6)
    20.0
    """
    if not isinstance(jobs, RealisedJobs):
        raise InvalidParameterError(f"jobs = {type(jobs).__name__}", legal="RealisedJobs (see RealisedJobs.build)")
    jobs.check_horizon(horizon)
    if not jobs.n_jobs:
        raise InvalidParameterError("jobs is empty: expected at least one job")
    return _solved(tasks_of_jobs(jobs.in_blocks(capacity)).fitting(capacity), capacity, horizon, time_limit)


def _some(name: str, kind: str, given: Iterable[T]) -> list[T]:
    """Return what was given as a list; raise if there is nothing."""
    found: list[T] = listed(name, f"a list of at least one {kind}", given)
    if not found:
        raise InvalidParameterError(f"{name} is empty: expected at least one {kind}")
    return found


@legal
def _solved(tasks: Tasks, capacity: Positive, horizon: int, time_limit: float | None) -> Bound:
    """Solve the program of these tasks once."""
    return PackingProgram(tasks, horizon).solve(capacity, time_limit=time_limit)
