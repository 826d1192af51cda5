"""The command line: ``marketsched`` and ``python -m marketsched``."""

from __future__ import annotations

import sys

INTERRUPTED = 130  # 128 + SIGINT, as shells say it


def main() -> None:
    """Run the command line; exit status 0 done, 1 ended with reported errors, 2 bad input."""
    try:
        from marketsched.show.cli import app

        app(prog_name="marketsched")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
