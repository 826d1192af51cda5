"""Rows of the journal, the chain of their digests, and the content of one transaction."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marketsched.live.accounts import Posting
from marketsched.live.job import LiveJob

BESIDE = ("made", "revoked", "answers", "ended")  # what stands beside a row: tokens, answers that are kept, jobs


@dataclass(slots=True)
class Row:
    """An accepted event and its consequences."""

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
    beside: dict[str, list[Any]] = field(default_factory=dict)  # tokens, answers and ended jobs of its event
    digest: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The event as the market takes it."""
        known = {"event": self.event, "owner": self.owner, "job": self.job}
        return {**self.body, **{key: value for key, value in known.items() if value is not None}}

    @property
    def counts(self) -> Counter[str]:
        """How many rows it makes, by table; itself among them."""
        beside = {"tokens": len(self.beside["made"]), "idempotency": len(self.beside["answers"])}
        own = {"journal": 1, "decisions": len(self.decisions), "ledger": len(self.postings)}
        return Counter({**own, **beside, "ended": len(self.beside["ended"])})

    def sealed(self, before: str) -> str:
        """Return the digest of this row behind one of digest ``before``."""
        head = [self.seq, self.time, self.round, self.event, self.by, self.owner, self.job]
        content = [before, *head, self.body, self.decisions, [list(posting) for posting in self.postings]]
        beside = {kind: sorted(rows) for kind, rows in self.beside.items() if rows}
        content += [beside] if beside else []
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(slots=True)
class Batch:
    """The content of one transaction."""

    rows: list[Row] = field(default_factory=list)
    new_accounts: list[dict[str, Any]] = field(default_factory=list)
    balances: dict[str, int] = field(default_factory=dict)
    new_tokens: list[dict[str, Any]] = field(default_factory=list)
    revoked: list[tuple[str, int]] = field(default_factory=list)  # digest of a token, and the event that revokes it
    answers: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    ended: dict[str, LiveJob] = field(default_factory=dict)  # by name
    snapshot: tuple[int, bytes] | None = None  # the number of its event, and the market

    def put_beside(self) -> None:
        """Give every row its entries outside the journal, as a reader of the journal finds them."""
        rows = {row.seq: row for row in self.rows}
        for row in self.rows:
            row.beside = {kind: [] for kind in BESIDE}
        for token in self.new_tokens:
            rows[token["made"]].beside["made"].append([token["digest"], token["account"]])
        for digest, seq in self.revoked:
            rows[seq].beside["revoked"].append(digest)
        for (account, key), each in self.answers.items():
            kept = json.dumps(each["answer"], sort_keys=True)
            rows[each["seq"]].beside["answers"].append([account, key, each["request"], kept])
        for job in self.ended.values():
            found = job.kept()
            rows[found["seq"]].beside["ended"].append(beside_of_ended(found))


def beside_of_ended(row: Mapping[str, Any]) -> list[Any]:
    """Return a row of the table ``ended`` as the digest of its event covers it."""
    known = [row[key] for key in ("job", "owner", "state", "submitted")]
    return [*known, json.dumps(row["body"], sort_keys=True)]
