"""The explanation of one job, as data and as lines to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from marketsched.explanations.rules import Rule
from marketsched.results.views import amount, percent

HELD = {  # who held the nodes, by cause, where somebody did
    "before": "{} that began before it came",
    "ahead": "{} ahead of it",
    "passed": "{} that came later and passed it: {passed}",
}
LARGEST = 3  # holders that are named


class Holders(NamedTuple):
    """Who held the nodes that a job waited for: how many jobs, and the largest: (job, owner, node-rounds)."""

    jobs: int
    largest: Sequence[tuple[str, str, int]]


@dataclass(frozen=True)
class Explanation:
    """Why a job waited.

    Attributes
    ----------
    job, owner : str
        Its name, and its owner's.
    nodes : int
        Nodes that it declared.
    arrival, start, end : int or None
        Rounds; ``start`` of its last run, ``end`` the completion, or the round in which it left.
    outcome : str
        As in the table ``jobs``.
    value, best, payment : float
        What its completion is worth, the most that it could be worth, and what it pays, credits.
    wait : int
        Rounds from the arrival to ``start``, or to ``end``.
    causes : mapping of str to int
        Rounds by cause (`marketsched.results.overtaking`); they add up to ``wait``.
    holders : mapping of str to Holders
        Of the causes *before*, *ahead* and *passed*.
    kept_for : str
        The first job that waits, and that idle nodes are kept for; empty: for none.
    rule : Rule
        The words of its rule.
    mechanism : str
        The name of the rule.
    round_seconds : float or None
        Length of a round.
    """

    job: str
    owner: str
    nodes: int
    arrival: int
    start: int | None
    end: int | None
    outcome: str
    value: float
    best: float
    payment: float
    wait: int
    causes: Mapping[str, int]
    holders: Mapping[str, Holders]
    kept_for: str
    rule: Rule
    mechanism: str
    round_seconds: float | None = None
    runs: int = 0
    more: Sequence[str] = field(default_factory=tuple)

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self) | {"rule": self.rule._asdict()}

    def lines(self) -> list[str]:
        """Return it in words, the answer first."""
        return [self._answer(), self._facts(), *self._causes(), *self.more]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def span(self, rounds: float) -> str:
        """Return a number of rounds in words, as in ``5 h 10 min``."""
        return span(rounds, self.round_seconds)

    def _answer(self) -> str:
        if not self.wait:
            return f"job {self.job} of {self.owner} did not wait ({self.mechanism})"
        cause = max(self.causes, key=lambda name: self.causes[name])
        waited = "waited" if self.start is not None else "never started; it waited"
        share = percent(self.causes[cause] / self.wait)
        return (
            f"job {self.job} of {self.owner} {waited} {self.span(self.wait)} ({self.mechanism}): "
            f"{share} of it because {self._because(cause)}"
        )

    def _because(self, cause: str) -> str:
        return {
            "before": "runs that began before it came held the nodes",
            "ahead": "jobs ahead of it held the nodes",
            "passed": "jobs that came later passed it and held the nodes",
            "kept": "idle nodes were kept for "
            + (f"job {self.kept_for}, first of all" if self.kept_for else "another"),
            "own": f"of its own limit: {self.rule.own}",
            "lost": "its own runs were taken back",
        }[cause]

    def _facts(self) -> str:
        at = self._moment
        ends = {"completed": "completed", "evicted": "stopped", "unfinished": "still there"}
        run = "no run" if self.start is None else f"{'last ' if self.runs > 1 else ''}start {at(self.start)}"
        end = "" if self.end is None else f"; {ends.get(self.outcome, self.outcome)} {at(self.end)}"
        count = f", {self.runs} runs" if self.runs > 1 else ""
        worth = f"worth {amount(self.value)} of at most {amount(self.best)} credits"
        return (
            f"  {self.nodes} nodes; arrival {at(self.arrival)}; {run}{end}{count}; {worth}, pays {amount(self.payment)}"
        )

    def _moment(self, now: int) -> str:
        if self.round_seconds is None:
            return f"in round {now:,}"
        minutes = round((now - 1) * self.round_seconds / 60)
        return f"day {minutes // 1440 + 1}, {minutes // 60 % 24:02}:{minutes % 60:02}"

    def _causes(self) -> list[str]:
        found = []
        for cause, rounds in self.causes.items():
            if not rounds:
                continue
            head = f"  {self.span(rounds):>12}  {percent(rounds / self.wait):>6}  "
            holders = self.holders.get(cause)
            if holders is None:
                text = self._because(cause) + (
                    f" ({self.runs - (self.start is not None)} runs)" if cause == "lost" else ""
                )
                found.append(f"{head}{text}")
                continue
            who = HELD[cause].format(f"{holders.jobs:,} job{'s' if holders.jobs != 1 else ''}", passed=self.rule.passed)
            largest = ", ".join(f"{job} ({owner}, {self._work(work)})" for job, owner, work in holders.largest)
            found.append(f"{head}{who}; {'largest: ' if holders.jobs > 1 else ''}{largest}")
        return found

    def _work(self, node_rounds: int) -> str:
        if self.round_seconds is None:
            return f"{node_rounds:,} node-rounds"
        return f"{amount(round(node_rounds * self.round_seconds / 3600, 1))} node-h"


def span(rounds: float, round_seconds: float | None) -> str:
    """Return a number of rounds in words.

    Examples
    --------
    >>> span(31, 600.0), span(2, 600.0), span(1, None)
    ('5 h 10 min', '20 min', '1 round')
    """
    if round_seconds is None:
        return f"{rounds:,} round{'s' if rounds != 1 else ''}"
    minutes = rounds * round_seconds / 60
    hours, left = divmod(round(minutes), 60)
    if minutes < 1:
        return f"{round(60 * minutes)} s"
    return f"{hours:,} h {left:02} min" if hours else f"{left} min"
