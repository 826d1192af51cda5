"""The workloads that a scenario makes of a log: one kind for each format, with the same keys."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Finite, Maybe, Positive, Whole, check_fields
from marketsched.mechanisms.randomness import Rng
from marketsched.worlds.logs import FORMATS, LogFormat, class_name
from marketsched.worlds.logs.columns import UTC, AnyColumns, AnyZone
from marketsched.worlds.logs.formats import find_log, read_log
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.market import Window, market_of
from marketsched.worlds.logs.rule import AnyRule, LogRule
from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.trace import Source
from marketsched.worlds.workload import Workload

MaybeCount = Annotated[int | None, Maybe(Whole(1))]
MaybePositive = Annotated[float | None, Maybe(Finite("(0, inf)"))]
MaybeAmount = Annotated[float | None, Maybe(Finite("[0, inf)"))]


@dataclass(frozen=True)
class LogFile:
    """A log in a file, as a workload; subclasses, one for each format, name it.

    Parameters
    ----------
    path : str
        The file, or its name in the data folder; empty: the usual name of the trace of this kind.
    days, first_day, most_jobs, max_concurrency, capacity, load, stretch, windows, window, partition, resample_users
        As of `marketsched.worlds.logs.market.Window`.
    columns : mapping of str to str
        Of a table of text: columns of the log by those of the file, as in ``{user: User}`` (`csv_log`).
    strict : bool
        Of a table of text or ``swf``: refuse it for a row that cannot be understood, instead of counting it.
    zone : str
        Of a table of text: the time zone of times that name none, as in ``Europe/Berlin``.
    rule : mapping
        Keys of `marketsched.worlds.logs.rule.LogRule`; None: all as they are by default.

    Raises
    ------
    InvalidParameterError
        If there is no path and no usual name.
    """

    kind: ClassVar[str] = ""
    trace: ClassVar[str] = ""  # whose usual name stands for an empty path

    path: str = ""
    days: MaybePositive = None
    first_day: MaybeAmount = None
    most_jobs: Count = 10_000
    max_concurrency: MaybeCount = None
    capacity: MaybeCount = None
    load: MaybePositive = None
    stretch: Positive = 1.0
    windows: Annotated[int, Whole(1, 1000)] = 1
    window: Annotated[int, Whole(0, 999)] = 0
    partition: str = ""
    resample_users: bool = False
    columns: Annotated[Any, Maybe(AnyColumns())] = None
    strict: bool = False
    zone: Annotated[str, AnyZone()] = UTC
    rule: Annotated[Any, Maybe(AnyRule())] = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.path and not self.trace:
            raise InvalidParameterError(place="path", value=self.path, legal="the file of a log")
        if self.capacity is not None and self.load is not None:
            raise InvalidParameterError(place="load", value=self.load, legal="nothing beside capacity")
        if self.window >= self.windows:
            raise InvalidParameterError(place="window", value=self.window, legal=f"below windows = {self.windows}")

    def build(self, rng: Rng, data: Source) -> Workload:
        """Return the workload; see `marketsched.worlds.logs.market.market_of`."""
        window = Window(**{each.name: getattr(self, each.name) for each in fields(Window)})
        log, name = self.read(data)
        return market_of(log, window, LogRule(**(self.rule or {})), rng=rng, name=name)

    def read(self, data: Source) -> tuple[JobLog, str]:
        """Return the log, and the name of its file."""
        path = find_log(self.path, data) if self.path else TRACES[self.trace].path(data)
        return read_log(path, self.kind, self.columns, self.strict, self.zone), path.name


def _kind(kind: str, form: LogFormat) -> type[LogFile]:
    """Return the workload that reads one format."""
    more = {"__doc__": form.title, "__module__": __name__, "kind": kind, "trace": form.trace}
    return type(class_name(kind), (LogFile,), more)


globals().update({class_name(kind): _kind(kind, form) for kind, form in FORMATS.items()})
