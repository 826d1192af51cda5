"""A report against what the market has announced: is it legal, and until when is it worth anything.

The limits are those of the model: c_max nodes, D_max rounds, V_max credits, the largest delay S and
the last round T. Every mechanism and every bound reads them in the same way, here.
"""

from __future__ import annotations

from collections.abc import Hashable

from marketsched.mechanisms.errors import EventError, InvalidReportError
from marketsched.mechanisms.sow import StatementOfWork


def check_report(
    job: Hashable, sow: StatementOfWork, now: int, max_concurrency: int, max_duration: int, max_value: float
) -> None:
    """Check a report before a mechanism takes it in, in round ``now``.

    Parameters
    ----------
    job : hashable
        Name of the job, for the message.
    sow : StatementOfWork
        The report.
    now : int
        The current round; a report is born in it.
    max_concurrency, max_duration, max_value : int, int, float
        c_max (nodes), D_max (rounds) and V_max (credits).

    Raises
    ------
    InvalidReportError
        If ``sow`` is not a statement of work, or is outside a limit.
    EventError
        If it is born in another round.
    """
    if not isinstance(sow, StatementOfWork):
        raise InvalidReportError(f"job {job!r}: sow = {sow!r}: expected a StatementOfWork")
    if sow.birth != now:
        raise EventError(f"job {job!r}: birth = {sow.birth}: expected the current round {now}")
    longest, highest = int(sow.law.durations.max()), sow.value.highest
    for name, size, largest in (
        ("concurrency", sow.concurrency, max_concurrency),
        ("duration", longest, max_duration),
    ):
        if size > largest:
            raise InvalidReportError(f"job {job!r}: {name} = {size}: expected a whole number in [1, {largest}]")
    if highest > max_value:
        raise InvalidReportError(f"job {job!r}: value = {highest!r}: expected values in [0, {max_value!r}]")


def last_useful_completion(sow: StatementOfWork, max_delay: int, horizon: int) -> int:
    """Return the last completion time worth anything: before birth + S, and at T + 1 at the latest.

    Parameters
    ----------
    sow : StatementOfWork
        The report, or the truth.
    max_delay, horizon : int
        S and T, rounds.

    Returns
    -------
    int
        A time; 0, or one that no launch can meet, if nothing is worth anything.

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> sow = StatementOfWork(1, 1, DeadlineValue(8.0, 6), [(2, 2, 1.0)])
    >>> last_useful_completion(sow, max_delay=9, horizon=20), last_useful_completion(sow, max_delay=4, horizon=20)
    (6, 4)
    """
    return min(sow.value.last, sow.birth + max_delay - 1, horizon + 1)
