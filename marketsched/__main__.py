"""The command line: ``marketsched`` and ``python -m marketsched``."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from types import FrameType

INTERRUPTED = 130  # 128 + SIGINT, as shells say it
ALIKE = ("SIGTERM", "SIGHUP")  # what batch systems and closed terminals send; not every system knows both
AGAIN_S = 0.02  # after an interruption that nobody could see

_asked = threading.Event()  # Ctrl-C, or what does the same


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
    except Exception as error:
        if not _asked.is_set():
            raise
        # A library that was interrupted while it was imported fails when it is next called.
        sys.stderr.write(f"marketsched: interrupted ({type(error).__name__})\n")
        sys.exit(INTERRUPTED)


def _end_as_with_ctrl_c() -> None:
    """Let other requests to end do what Ctrl-C does; one that is ignored (``nohup``) stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _ctrl_c)
        sys.unraisablehook = _dropped
    for name in ALIKE:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _ctrl_c(number: int, frame: FrameType | None) -> None:
    _asked.set()
    raise KeyboardInterrupt


def _dropped(what: sys.UnraisableHookArgs) -> None:
    """Ask again where Python drops an interruption: in a destructor, or as compiled code calls back."""
    if what.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(what)
        return
    main_thread = threading.main_thread().ident
    again = threading.Timer(AGAIN_S, signal.pthread_kill, (main_thread, signal.SIGINT))
    again.daemon = True
    again.start()


def _interrupt(number: int, frame: FrameType | None) -> None:
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell starts what is to run in the background
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)  # which waits where Ctrl-C has to wait


if __name__ == "__main__":
    main()
