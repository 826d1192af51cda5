"""Upgrade databases of older formats, so that their markets continue.

Format 1 had no writer, and no tokens and answers in its digests; `Database` gives its tables today's columns. Formats
1 and 2 kept ended jobs only in memory. Their journal is played once, and the outcomes of these jobs are written, with
an event whose digest of them adds them to the chain. Old rows stay as they are.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from marketsched import __version__
from marketsched.live import tables
from marketsched.live.job import LiveJob
from marketsched.live.journal import Journal
from marketsched.live.playing import PlayedJournal
from marketsched.live.rows import BESIDE, Row, beside_of_ended, note_ended

BY = "service"  # who records it


def upgrade(journal: Journal, played: PlayedJournal, ended: Sequence[LiveJob], now: str) -> Row:
    """Write the jobs that have gone, and the event of the upgrade; return it.

    Raises JournalError if that cannot be written; nothing is changed then.
    """
    by_seq: defaultdict[int, list[list[object]]] = defaultdict(list)
    for job in ended:
        found = job.kept()
        by_seq[found["seq"]].append(beside_of_ended(found))
    digest = hashlib.sha256()
    for seq in sorted(by_seq):
        note_ended(digest, Row(seq, "", 0, "", "", None, None, {}, beside={"ended": by_seq[seq]}))
    body = {"format": tables.FORMAT, "version": __version__, "ended": digest.hexdigest()}
    row = Row(played.seq + 1, now, played.market.round, "upgrade", BY, None, None, body)
    row.beside = {kind: [] for kind in BESIDE}
    journal.upgrade(ended, row, played.digest)
    played.seq, played.digest = row.seq, row.digest
    played.counts += row.counts
    played.counts["ended"] = len(ended)
    return row
