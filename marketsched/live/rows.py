"""Rows of the journal, the chain of their digests, and what one transaction writes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from marketsched.live.accounts import Posting


@dataclass(slots=True)
class Row:
    """An accepted event and what follows from it."""

    seq: int
    time: str  # UTC
    round: int
    event: str
    by: str
    owner: str | None
    job: str | None
    body: dict[str, Any]
    decisions: list[dict[str, Any]] = field(default_factory=list)
    postings: list[Posting] = field(default_factory=list)
    beside: dict[str, list[Any]] = field(default_factory=dict)  # tokens and answers of its event
    digest: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The event as the market takes it."""
        known = {"event": self.event, "owner": self.owner, "job": self.job}
        return {**self.body, **{key: value for key, value in known.items() if value is not None}}

    def sealed(self, before: str, *, whole: bool = True) -> str:
        """Return the digest of this row behind a row of digest ``before``; ``whole``: with what stands beside it."""
        head = [self.seq, self.time, self.round, self.event, self.by, self.owner, self.job]
        content = [before, *head, self.body, self.decisions, [list(posting) for posting in self.postings]]
        beside = {kind: sorted(rows) for kind, rows in self.beside.items() if rows} if whole else {}
        content += [beside] if beside else []
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(slots=True)
class Batch:
    """What one transaction writes."""

    rows: list[Row] = field(default_factory=list)
    new_accounts: list[dict[str, Any]] = field(default_factory=list)
    balances: dict[str, int] = field(default_factory=dict)
    new_tokens: list[dict[str, Any]] = field(default_factory=list)
    revoked: list[tuple[str, int]] = field(default_factory=list)  # digest of a token, and the event that revokes it
    answers: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def put_beside(self) -> None:
        """Give every row what it makes beside the journal, as the journal's reader finds it."""
        rows = {row.seq: row for row in self.rows}
        for row in self.rows:
            row.beside = {"made": [], "revoked": [], "answers": []}
        for token in self.new_tokens:
            rows[token["made"]].beside["made"].append([token["digest"], token["account"]])
        for digest, seq in self.revoked:
            rows[seq].beside["revoked"].append(digest)
        for (account, key), each in self.answers.items():
            kept = json.dumps(each["answer"], sort_keys=True)
            rows[each["seq"]].beside["answers"].append([account, key, each["request"], kept])
