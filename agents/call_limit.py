"""A limit on how long one call of a mechanism may take: one that never ends is named, and the others go on.

The alarm of the operating system (POSIX, main thread) interrupts the call. Code that does not come back to Python,
a compiled kernel for one, is interrupted when it does. Elsewhere calls are not limited.

What counts is the time that the call has worked, so that a busy machine ends no call that would have ended on an idle
one; a call that does not work at all is not waited for.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType

from marketsched.mechanisms.errors import MarketschedError

RINGS = 8  # of the alarm within the time of a call
# Of the time: a call that works for less of it waits for something. So each ends within 22 times its limit.
ASLEEP = 0.04
LATER = 0.1  # of the time: what calls are given once one has not ended


class CallDidNotEnd(MarketschedError, TimeoutError):
    """A call of a mechanism took longer than it may; the message names it."""


class _Alarm(BaseException):
    """Raised inside the call; no `Exception`, so that a mechanism that catches its own errors does not catch it."""


class _Limit:
    """The limit that is in force; entered for each call.

    One alarm rings all the time, and asks how long the call has taken: to set it anew for each takes longer than many
    a call.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._whole = seconds, True
        self._inside, self._begin = False, 0.0
        self.call, self.now = "", 0  # what is called, in which round
        self._seen, self._worked = -1.0, 0.0  # the call in which the alarm rang last; the processor's time then
        self.thread = threading.get_ident()  # whose calls end

    def start(self) -> None:
        """Let the alarm ring."""
        signal.setitimer(signal.ITIMER_REAL, self._seconds / RINGS, self._seconds / RINGS)

    def __enter__(self) -> None:
        self._begin = time.monotonic()
        self._inside = True

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._inside = False
        if kind is _Alarm:
            seconds = self._seconds
            if self._whole:  # who waited once has learnt enough: the calls that follow are not waited for as long
                self._seconds, self._whole = seconds * LATER, False
                self.start()
            raise CallDidNotEnd(f"{self.call} in round {self.now}: did not end within {seconds:g} s") from None

    def ring(self, _number: int = 0, frame: FrameType | None = None) -> None:
        """Interrupt the call, if there is one and it has had its time; again and again, should it catch that."""
        if frame is not None and frame.f_code is _Limit.__exit__.__code__:  # the call has ended by itself
            return
        if not self._inside:
            return
        if self._seen != self._begin:  # the first ring in this call: to ask for the time in each takes too long
            self._seen, self._worked = self._begin, time.thread_time()
        waited, worked = time.monotonic() - self._begin, time.thread_time() - self._worked
        if waited < self._seconds:
            return
        if worked >= self._seconds * (1 - 1 / RINGS) or worked <= ASLEEP * waited:
            raise _Alarm


_limit: _Limit | None = None
_UNLIMITED = nullcontext()


@contextmanager
def calls_end_within(seconds: float | None) -> Iterator[None]:
    """Interrupt every `timed` call in this block that takes longer.

    After the first one that did not end, later ones have a tenth of the time. Inside another such block that one holds.
    ``seconds`` > 0 is how long a call may work; None: as long as it likes.
    """
    global _limit
    able = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or not able or _limit is not None:
        yield
        return
    limit = _Limit(seconds)
    handler, begin = signal.signal(signal.SIGALRM, limit.ring), time.monotonic()
    left, again = signal.setitimer(signal.ITIMER_REAL, 0.0)  # of another's alarm, which waits meanwhile
    _limit = limit
    limit.start()
    try:
        yield
    finally:
        _limit = None
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left - (time.monotonic() - begin)), again)


def timed(call: str, now: int) -> AbstractContextManager[None]:
    """Return a context for one call of a mechanism, made in round ``now``; it raises `CallDidNotEnd`.

    Examples
    --------
    >>> with calls_end_within(0.01), timed("advance", 3):
    ...     while True:
    ...         pass
    Traceback (most recent call last):
    ...
    marketsched.agents.call_limit.CallDidNotEnd: advance in round 3: did not end within 0.01 s
    """
    if _limit is None or _limit.thread != threading.get_ident():
        return _UNLIMITED
    _limit.call, _limit.now = call, now
    return _limit
