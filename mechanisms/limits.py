"""The announced limits of a market: how large it is, and the largest report it takes.

Every mechanism, oracle and bound reads these six sizes in the same way, here: whether a report is
legal, and until when it is worth anything.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields
from typing import Annotated

from marketsched.mechanisms.errors import EventError, InvalidParameterError, InvalidReportError, placed
from marketsched.mechanisms.legal import Positive, Whole, check_fields
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import options_of
from marketsched.mechanisms.sow import StatementOfWork

LAST_ROUND = 10_000_000  # markets keep arrays over all rounds: a slip of the pen would ask for gigabytes
LARGEST_CAPACITY = 2_000_000_000  # nodes: loads are kept in 32 bits

NodeCount = Annotated[int, Whole(1, LARGEST_CAPACITY)]
RoundCount = Annotated[int, Whole(1, LAST_ROUND)]


@dataclass(frozen=True, slots=True)
class MarketLimits:
    """The size of a market and the limits of what it accepts.

    Parameters
    ----------
    capacity : int
        C, nodes.
    horizon : int
        T, the last round; rounds are 1 .. T.
    max_concurrency, max_duration : int
        The largest concurrency (c_max <= C, nodes) and the longest duration (D_max, rounds) that are accepted.
    max_value : float
        V_max, credits: the largest value accepted.
    max_delay : int
        S, rounds: a completion at birth + S or later is worth nothing.
    cluster : Cluster, optional
        The cluster, if its nodes differ; statements of work then have shapes, and ``capacity`` is the number of nodes
        of the cluster. None: the market has ``capacity`` identical nodes.

    Examples
    --------
    >>> limits = MarketLimits(8, 20, max_concurrency=2, max_duration=3, max_value=9, max_delay=10)
    >>> limits.window, limits.max_value
    (13, 9.0)
    """

    capacity: NodeCount
    horizon: RoundCount
    max_concurrency: NodeCount
    max_duration: RoundCount
    max_value: Positive
    max_delay: RoundCount
    cluster: Cluster | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.cluster is None:
            Whole(1, self.capacity).check("max_concurrency", self.max_concurrency)
        elif not isinstance(self.cluster, Cluster):
            raise InvalidParameterError(place="cluster", value=self.cluster, legal="a Cluster or None")
        elif self.capacity != self.cluster.nodes:
            legal = f"the nodes of the cluster, {self.cluster.nodes}"
            raise InvalidParameterError(place="capacity", value=self.capacity, legal=legal)

    @property
    def window(self) -> int:
        """Rounds ahead, the current one included, that an active job may still occupy."""
        return min(self.max_delay, self.horizon + 1) + self.max_duration

    def check_report(self, job: Hashable, sow: StatementOfWork, now: int) -> None:
        """Check a report before a mechanism takes it in, in round ``now``.

        InvalidReportError if it is no statement of work, or outside a limit; EventError if it is born in another round.
        """
        check_report(job, sow, now, self.max_concurrency, self.max_duration, self.max_value, self.cluster)

    def last_useful_completion(self, sow: StatementOfWork) -> int:
        """Return the last completion time worth anything in this market, as `last_useful_completion`."""
        return last_useful_completion(sow, self.max_delay, self.horizon)


SIZES = tuple(field.name for field in fields(MarketLimits) if field.name != "cluster")
GIVEN = ("laws", "classes", "owners", "round_seconds", "cluster")  # by a scenario, beside the sizes


def check_report(
    job: Hashable,
    sow: StatementOfWork,
    now: int,
    max_concurrency: int,
    max_duration: int,
    max_value: float,
    cluster: Cluster | None = None,
) -> None:
    """Check a report as `MarketLimits.check_report` does, where not all limits are announced.

    Raises
    ------
    InvalidReportError, EventError
        As `MarketLimits.check_report`.
    """
    source = f"job {job!r}"
    if not isinstance(sow, StatementOfWork):
        raise InvalidReportError(place="sow", value=sow, legal="a StatementOfWork", source=source)
    if sow.birth != now:
        raise EventError(place="birth", value=sow.birth, legal=f"the current round {now}", source=source)
    if cluster is not None or sow.shapes:
        _check_shapes(source, sow, max_duration, cluster)
    longest, highest = sow.span[1], sow.value.highest
    for name, size, largest in (("concurrency", sow.concurrency, max_concurrency), ("duration", longest, max_duration)):
        if size > largest:
            raise InvalidReportError(place=name, value=size, legal=f"a whole number in [1, {largest}]", source=source)
    if highest > max_value:
        raise InvalidReportError(place="value", value=highest, legal=f"values in [0, {max_value!r}]", source=source)


def _check_shapes(source: str, sow: StatementOfWork, max_duration: int, cluster: Cluster | None) -> None:
    """Check that a statement has shapes in a cluster, and only there, and that each of them fits somewhere."""
    if cluster is None:
        raise InvalidReportError(place="shapes", legal="none: the nodes of this market are identical", source=source)
    if not sow.shapes:
        legal = f"at least one shape, on kinds {', '.join(cluster.kinds)}"
        raise InvalidReportError("are missing", place="shapes", legal=legal, source=source)
    for i, shape in enumerate(sow.shapes):
        for kind, durations in shape.on.items():
            if max(durations) > max_duration:
                where, legal = f"shapes[{i}].on.{kind}", f"whole rounds, 1 to {max_duration}"
                raise InvalidReportError(place=where, value=max(durations), legal=legal, source=source)
    with placed(source=source):
        options_of(sow.shapes, cluster)


def last_useful_completion(sow: StatementOfWork, max_delay: int, horizon: int) -> int:
    """Return the last completion time worth anything: before birth + S, and at T + 1 at the latest.

    0, or one that no launch can meet, if nothing is worth anything.

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> sow = StatementOfWork(1, 1, DeadlineValue(8.0, 6), [(2, 2, 1.0)])
    >>> last_useful_completion(sow, max_delay=9, horizon=20), last_useful_completion(sow, max_delay=4, horizon=20)
    (6, 4)
    """
    return min(sow.value.last, sow.birth + max_delay - 1, horizon + 1)
