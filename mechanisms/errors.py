"""Errors of the package: one family, and each leaf is also the built-in a caller expects.

An error says where the fault is, what was seen, and what is legal, in a message and in fields of its
own (`place`, `value`, `legal`), so that a caller that knows more about the place adds it and none takes a
message apart. Input is checked once, at the public edge, before anything is changed.
"""

from __future__ import annotations

import inspect
import reprlib
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

LONGEST_MESSAGE = 1000  # characters
PLAIN = (str, bytes, int, float, complex, type(None))  # values that travel between processes with their error


class _Unseen:
    """Default of ``value``: nothing that could be shown."""

    def __repr__(self) -> str:
        return "<nothing>"

    def __reduce__(self) -> str:
        return "UNSEEN"


UNSEEN = _Unseen()


class MarketschedError(Exception):
    """Root of every error raised on purpose by this package; an empty string, or `UNSEEN`: not known.

    Parameters
    ----------
    fault : str
        What is wrong, where ``place = value`` does not say it: ``"is missing"``; without a place, a
        whole sentence.
    place : str
        Where in what was given: a parameter, or a path such as ``jobs[3].value``. `at` puts more before it.
    value : object
        What was seen there.
    legal : str
        What is legal there.
    source : str
        What the place is in: a file, a line, a job.

    Examples
    --------
    >>> error = InvalidParameterError(place="birth", value=0, legal="a whole number >= 1")
    >>> str(error), str(error.at("jobs[3]").within("market.yaml"))
    ('birth = 0: expected a whole number >= 1', 'market.yaml: jobs[3].birth = 0: expected a whole number >= 1')
    >>> error.place, error.value, error.legal, error.source
    ('jobs[3].birth', 0, 'a whole number >= 1', 'market.yaml')
    """

    def __init__(
        self, fault: str = "", *, place: str = "", value: object = UNSEEN, legal: str = "", source: str = ""
    ) -> None:
        super().__init__(fault)
        self.place, self.value, self.legal, self.source = place, value, legal, source
        seen = "" if value is UNSEEN else f" = {shown(value)}" if place else shown(value)
        parts = ([seen] if seen else []) + ([fault if seen or not place else f" {fault}"] if fault else [])
        self._tail = ": ".join([*parts, *([f"expected {legal}"] if legal else [])])  # all but source and place
        if place and not parts and legal:
            self._tail = f": {self._tail}"

    def __str__(self) -> str:
        text = self.place + self._tail
        return shortened(" ".join((f"{self.source}: {text}" if self.source else text).splitlines()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def at(self, place: str) -> Self:
        """Put ``place`` before the error's own place, as the table or list that it is in; return the error."""
        if not self.place:
            self._tail = f": {self._tail}" if self._tail else ""
        dot = "." if self.place and not self.place.startswith("[") else ""
        self.place = f"{place}{dot}{self.place}"
        return self

    def within(self, source: str) -> Self:
        """Put ``source`` before all else, as the file, line or job that the fault is in; return the error."""
        self.source = f"{source}: {self.source}" if self.source else source
        return self

    def turned(self, kind: type[AnyError]) -> AnyError:
        """Return the same fault as an error of another ``kind``."""
        other = kind(*self.args)
        vars(other).update(vars(self))
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        state = dict(vars(self))
        if not isinstance(self.value, PLAIN):
            state["value"] = UNSEEN  # the message still shows it; the object may not survive the journey
        return type(self), self.args, state


AnyError = TypeVar("AnyError", bound=MarketschedError)


@contextmanager
def placed(place: str = "", source: str = "") -> Iterator[None]:
    """Put ``place``, and then ``source``, before the place of any error of the family raised inside.

    Examples
    --------
    >>> with placed("cluster.machines"):
    ...     raise InvalidParameterError(place="share", value=2, legal="a finite number in [0, 1]")
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.InvalidParameterError: cluster.machines.share = 2: expected a finite number in [0, 1]
    """
    try:
        yield
    except MarketschedError as error:
        if place:
            error.at(place)
        if source:
            error.within(source)
        raise


class InvalidReportError(MarketschedError, ValueError):
    """A statement of work, or one of its parts, is malformed or outside the announced limits.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue
    >>> DeadlineValue(value=-1.0, deadline=7)
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.InvalidReportError: value = -1.0: expected a finite number >= 0
    """


class InvalidParameterError(MarketschedError, ValueError):
    """A parameter of a mechanism, oracle, scenario or function is outside its legal range.

    Examples
    --------
    >>> raise InvalidParameterError(place="capacity", value=0, legal="a whole number >= 1")
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.InvalidParameterError: capacity = 0: expected a whole number >= 1
    """


class UnknownNameError(MarketschedError, KeyError):
    """A name is not in the table it was looked up in.

    Examples
    --------
    >>> from marketsched.mechanisms import get_mechanism
    >>> try:
    ...     get_mechanism("auction")
    ... except KeyError as error:
    ...     print(str(error)[:30])
    mechanism 'auction' is unknown
    """


class EventError(MarketschedError, ValueError):
    """An event does not fit the state of the market: wrong round, unknown or finished job.

    Examples
    --------
    >>> from marketsched.mechanisms import FirstCome
    >>> market = FirstCome(2, 9, 0.5, max_concurrency=1, max_duration=4, max_value=9.0, max_delay=9)
    >>> market.arrive("A")
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.EventError: arrive of 'A': expected a job submitted before
    """


class DecisionError(MarketschedError, ValueError):
    """A policy's decision of a slot is malformed or illegal in the environment.

    Examples
    --------
    See `play_slots`, which raises it if a decision is not allowed.
    """


class TooLargeError(MarketschedError, MemoryError):
    """An exact computation would need more memory than allowed; the message names the way out.

    Examples
    --------
    >>> from marketsched.mechanisms.allocation import Esdp
    >>> try:
    ...     Esdp([[1]], [2], [0], memory_limit=10)
    ... except MemoryError as error:
    ...     print(str(error)[:50])
    the table over 1 sums of values and 2 capacity vec
    """


class SolverError(MarketschedError, RuntimeError):
    """A solver is missing, or ended without the answer; the message states the failure and what to do.

    Examples
    --------
    See `best_fixed_allocation`, which raises it if its gap stays too large.
    """


class TraceError(MarketschedError, ValueError):
    """A trace file is truncated or malformed; the message names file and line.

    Examples
    --------
    See `Trace`, whose `read` raises it with file and line.
    """


class MissingDataError(MarketschedError, FileNotFoundError):
    """A data folder or file is not there.

    Examples
    --------
    >>> from marketsched.worlds.traces import data_folder
    >>> try:
    ...     data_folder("/nowhere")
    ... except FileNotFoundError as error:
    ...     print(str(error)[:24])
    /nowhere: no such folder
    """


class MechanismFault(MarketschedError, RuntimeError):
    """A mechanism raised an unexpected error, or broke the protocol; the message says where."""


@contextmanager
def faults_named(mechanism: object, when: Callable[[], str]) -> Iterator[None]:
    """Turn an error out of the file of a rule that is not built in into a `MechanismFault` that says when and where.

    Errors of the package are raised as they are: they have their words. So are those of built-in mechanisms, which
    are faults of ours: all of the traceback is wanted.
    """
    try:
        yield
    except (MarketschedError, MemoryError):
        raise
    except Exception as error:
        files = {
            _file_of(kind) for kind in type(mechanism).__mro__[:-1] if not kind.__module__.startswith("marketsched.")
        }
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
        if not own:
            raise
        place = f"{Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name}"
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise MechanismFault(f"{type(mechanism).__name__} in {when()}: {what} ({place})") from error


def _file_of(kind: type) -> str | None:
    """Return the file of a class; None: it was written where there is none, as in a notebook's memory."""
    with suppress(TypeError, OSError):
        return inspect.getsourcefile(kind)
    return None


class SweepError(MarketschedError, OSError):
    """What a sweep stands on failed it: disk, folder, worker processes or cluster; finished runs are kept."""


class _Brief(reprlib.Repr):
    """A ``repr`` of bounded size and time for every object."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlong, self.maxstring, self.maxother = 5, 60, 200, 200
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = 12

    def repr_int(self, x: int, level: int) -> str:
        if abs(x) < 10**self.maxlong:
            return repr(x)
        return f"<a number of about {int(x.bit_length() * 0.30103) + 1} digits>"  # repr refuses above 4300

    def repr_instance(self, x: Any, level: int) -> str:
        """Return a NumPy scalar as the number that it is."""
        return super().repr_instance(x.item() if hasattr(x, "item") and getattr(x, "shape", None) == () else x, level)

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """Return the first entries in their own order, not sorted."""
        if level <= 0 and x:
            return "{...}"
        first = [f"{self.repr1(k, level - 1)}: {self.repr1(x[k], level - 1)}" for k in list(x)[: self.maxdict]]
        return f"{{{', '.join(first + (['...'] if len(x) > self.maxdict else []))}}}"


_BRIEF = _Brief()


def shortened(message: str) -> str:
    """Return a message without its middle if it is very long, as a name may be that somebody else chose.

    Examples
    --------
    >>> len(shortened("x" * 10**6))
    1005
    """
    if len(message) <= LONGEST_MESSAGE:
        return message
    return f"{message[: LONGEST_MESSAGE // 2]} ... {message[-LONGEST_MESSAGE // 2 :]}"


def shown(x: object) -> str:
    """Return ``x`` as an error shows it: its repr, shortened where it is long.

    Examples
    --------
    >>> shown([1, "two"]), shown(10**5000)
    ("[1, 'two']", '<a number of about 5001 digits>')
    """
    return _BRIEF.repr(x)
