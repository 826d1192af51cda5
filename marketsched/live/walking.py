"""The rows before a snapshot, checked again piece by piece while a service is idle.

A restart from a snapshot checks only the rows after it. Rows before it are checked here, one by one, against the
snapshot's chain of digests, so a damaged row is named soon after the start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from marketsched.live.database import JournalError
from marketsched.live.journal import Journal
from marketsched.live.playing import check_counts
from marketsched.live.rows import Row

ROWS_AT_ONCE = 100


class Walk:
    """The way from the first row to ``last``, behind which the market of a snapshot was; 0: nothing is to be read.

    ``counts``: how many rows the open journal had then, and the tables that hang on it.
    """

    def __init__(self, journal: Journal, last: int, counts: Mapping[str, int]) -> None:
        self._journal, self.last, self._expected = journal, last, counts
        self._seq, self._digest = 0, ""
        self._counts: Counter[str] = Counter()

    @property
    def over(self) -> bool:
        """True once all rows have been checked."""
        return self._seq >= self.last

    def step(self) -> None:
        """Read some rows. Raises JournalError if one is damaged; the message names it."""
        if self.over:
            return
        rows = list(self._journal.rows(self._seq, min(ROWS_AT_ONCE, self.last - self._seq)))
        for row in rows:
            self._pass(row)
        if not rows:
            raise JournalError(f"journal row {self._seq + 1} is missing")

    def _pass(self, row: Row) -> None:
        if row.seq != self._seq + 1:
            raise JournalError(f"journal row {self._seq + 1} is missing: the next one is {row.seq}")
        self._journal.check_seal(row, self._digest)
        self._counts += row.counts
        if row.seq == self.last:
            check_counts(self._expected, self._counts)
        self._seq, self._digest = row.seq, row.digest
