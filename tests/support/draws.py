"""How many random cases a test draws: a quarter in `make test` and `make slow`, all in `make thorough`.

A test that draws cases says `many(200)` where it would say 200. A file that does so, or that uses Hypothesis, is run
again by `make thorough` (`conftest.py` marks its tests `many`).
"""

import os

PART = 1 if os.environ.get("MARKETSCHED_TESTS") == "all" else 4


def many(n: int, *, least: int = 10) -> int:
    """Return how many of ``n`` cases to draw: as large a part as this run takes, but some at least."""
    return min(n, max(n // PART, least))
