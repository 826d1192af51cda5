r"""How long jobs waited for their nodes, by class and width: what a quote says beside the promise.

The wait within which 95 % start is the :math:`\lceil (n + 1) \cdot 0.95 \rceil`-th smallest of the last n waits: the
next one is within it with that probability, if waits come in no particular order (split conformal prediction; Vovk,
Gammerman, Shafer, *Algorithmic Learning in a Random World*, 2005). A job that leaves without a start counts as longer
than any.
"""

from __future__ import annotations

import math

import numpy as np

FREE, REGULAR = 0, 1
KEPT = 128  # waits of each class and band of widths
NEVER = 2**40  # rounds
COVERED = 0.95


class Waits:
    """The last waits of jobs, and how many free runs lost their nodes."""

    def __init__(self) -> None:
        self._rounds = np.zeros((2, 5, KEPT), np.int64)
        self._seen = np.zeros((2, 5), np.int64)
        self.runs = self.taken = 0

    def note(self, kind: int, band: int, rounds: int) -> None:
        """Remember a wait; `NEVER`: there was no start."""
        self._rounds[kind, band, self._seen[kind, band] % KEPT] = rounds
        self._seen[kind, band] += 1

    def covered(self, kind: int, band: int) -> int | None:
        """Return the rounds within which 95 % of jobs start, of this width if enough of them are known, else of all.

        None: not known yet, or fewer start at all.
        """
        counts = np.minimum(self._seen[kind], KEPT)
        own = self._rounds[kind, band, : counts[band]]
        found = _quantile(own)
        if found is None:
            parts = [self._rounds[kind, each, :count] for each, count in enumerate(counts)]
            found = _quantile(np.concatenate(parts))
        return found if found is not None and found < NEVER else None


def _quantile(waits: np.ndarray) -> int | None:
    """Return the wait that covers the next one; None: there are too few."""
    place = math.ceil((waits.size + 1) * COVERED)
    return None if place > waits.size else int(np.sort(waits)[place - 1])
