"""The command line: ``marketsched`` and ``python -m marketsched``."""

from __future__ import annotations

import gc
import sys

INTERRUPTED = 130  # 128 + SIGINT, as shells say it


def main() -> None:
    """Run the command line; exit status 0 done, 1 ended with reported errors, 2 bad input."""
    # Jobs and modules stay until the end: looking for cycles among them after every 700 new objects takes a tenth of
    # the time of a run.
    gc.set_threshold(50_000, 20, 100)
    try:
        from marketsched.show.cli import app  # an interrupt while it is imported ends in one line, too

        app(prog_name="marketsched")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
