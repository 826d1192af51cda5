"""What a mechanism of one's own raises, as one line: the round, the error, and the line of its file."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from marketsched.mechanisms.errors import MarketschedError, MechanismFault
from marketsched.mechanisms.mechanism import Mechanism

OURS = "marketsched."


@contextmanager
def faults_named(mechanism: Mechanism, round_now: Callable[[], int]) -> Iterator[None]:
    """Turn an error out of the file of a mechanism that is not built in into a `MechanismFault` that says where.

    Errors of the package are raised as they are: they have their words. So are those of built-in mechanisms, which
    are faults of ours: all of the traceback is wanted.
    """
    try:
        yield
    except (MarketschedError, MemoryError):
        raise
    except Exception as error:
        files = {_file_of(kind) for kind in type(mechanism).__mro__[:-1] if not kind.__module__.startswith(OURS)}
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
        if not own:
            raise
        place = f"{Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name}"
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise MechanismFault(f"{type(mechanism).__name__} in round {round_now()}: {what} ({place})") from error


def _file_of(kind: type) -> str | None:
    """Return the file of a class; None: it was written where there is none, as in a notebook's memory."""
    with suppress(TypeError, OSError):
        return inspect.getsourcefile(kind)
    return None
