"""How many random cases a test draws: a part of them in `make test`, all of them in `make slow`.

A test that draws cases says `many(200)` where it would say 200. A file that does so, or that uses Hypothesis, is run
again by `make slow` with every case (`conftest.py` marks its tests `many`).
"""

import os

ALL = os.environ.get("MARKETSCHED_TESTS") == "all"


def many(n: int, *, least: int = 10) -> int:
    """Return how many of ``n`` cases to draw: all in `make slow`, otherwise a quarter of them, but some at least."""
    return n if ALL else min(n, max(n // 4, least))
