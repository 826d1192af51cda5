"""Exit statuses of an audit: each with what it says, in the order in which the first that applies is taken."""

from __future__ import annotations

NOT_AUDITED, TRUTH_FAILS, PROFITABLE, MISCHARGED, UNDECIDED, CUT, CLEAN = 4, 6, 3, 8, 5, 7, 0

STATUSES = {
    NOT_AUDITED: "a mechanism was not audited",
    TRUTH_FAILS: "a mechanism fails under the truth",
    PROFITABLE: "a lie pays",
    MISCHARGED: "a payment is not that of its menu, under a promise",
    UNDECIDED: "a lie seems to pay, and is not confirmed",
    CUT: "the seconds ended before the plays were made, and nothing was found so far",
    CLEAN: "no lie is known to pay",
}
