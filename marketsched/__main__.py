"""The command line: ``marketsched`` and ``python -m marketsched``."""

from __future__ import annotations

import gc
import signal
import sys
from types import FrameType

INTERRUPTED = 130  # 128 + SIGINT, as shells say it
ALIKE = ("SIGTERM", "SIGHUP")  # what batch systems and closed terminals send; not every system knows both


def main() -> None:
    """Run the command line; exit status 0 done, 1 ended with reported errors, 2 bad input."""
    # Jobs and modules stay until the end: looking for cycles among them after every 700 new objects takes a tenth of
    # the time of a run.
    gc.set_threshold(50_000, 20, 100)
    _end_as_with_ctrl_c()
    try:
        from marketsched.show.cli import app  # an interrupt while it is imported ends in one line, too

        app(prog_name="marketsched")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _end_as_with_ctrl_c() -> None:
    """Let other requests to end do what Ctrl-C does; one that is ignored (``nohup``) stays ignored."""
    for name in ALIKE:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell starts what is to run in the background
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)  # which waits where Ctrl-C has to wait


if __name__ == "__main__":
    main()
