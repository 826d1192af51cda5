"""The explanation of one job, as data and as lines to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from marketsched.explanations.changes import Changed
from marketsched.explanations.payment import Payment
from marketsched.explanations.rules import Rule, counted, named, span
from marketsched.results.views import amount, percent

HELD = {  # who held the nodes, by cause, where somebody did
    "before": "{} that began before it came",
    "ahead": "{} ahead of it",
    "passed": "{} behind it that passed it: {passed}",
}
NEVER = 2**62  # a round that is none
PROMISED = {  # of a false report
    "ex post": "by the rule's promise it gains nothing",
    "in expectation": "by the rule's promise it gains nothing on average",
    "up to regret": "by the rule's promise it gains at most a regret that is computed",
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
    runs : int
        How often it started.
    changes : sequence of Changed, or None
        What changes of this job alone would have brought; None: the market cannot be played again.
    checked : Payment or None
        Its payment, recomputed; None: not asked for.
    purse : str
        Where owners have purses, what its own says of the job.
    taken_back : sequence of (int, sequence of str)
        Of each run that was taken back: the round, and jobs that started then.
    log_id : str
        The job's number in its log; empty: not known.
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
    changes: Sequence[Changed] | None = ()
    checked: Payment | None = None
    purse: str = ""
    taken_back: Sequence[tuple[int, Sequence[str]]] = ()
    log_id: str = ""

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        found = asdict(replace(self, changes=())) | {"rule": self.rule._asdict()}
        changes = [
            {"change": each.change.words, "promised": each.change.promised, **_figures(each)}
            for each in self.changes or ()
        ]
        return found | {"changes": changes, "checked": None if self.checked is None else self.checked._asdict()}

    def lines(self) -> list[str]:
        """Return it in words, the answer first."""
        purse = [f"  {self.purse}"] if self.purse else []
        return [self._answer(), self._facts(), *purse, *self._causes(), *self._changes(), *self._payment()]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def span(self, rounds: float) -> str:
        """Return a number of rounds in words, as in ``5 h 10 min``."""
        return span(rounds, self.round_seconds)

    def _answer(self) -> str:
        who = f"job {self.job} of {named(self.owner)}"
        if self.start is None and not self.wait:
            why = self.rule.dropped if self.outcome == "dropped" else self.outcome
            return f"{who} never started ({self.mechanism}): {why}"
        if not self.wait:
            return f"{who} did not wait ({self.mechanism})"
        cause = max(self.causes, key=lambda name: self.causes[name])
        never = ": no run of it was completed" if self.runs else " never started"
        waited = " waited" if self.start is not None else f"{never}; it waited"
        share = percent(self.causes[cause] / self.wait)
        return f"{who}{waited} {self.span(self.wait)} ({self.mechanism}): {share} of it because {self._because(cause)}"

    def _because(self, cause: str) -> str:
        return {
            "before": "runs that began before it came held the nodes",
            "ahead": "jobs ahead of it held the nodes",
            "passed": "jobs behind it passed it and held the nodes",
            "kept": "idle nodes were kept for "
            + (f"job {self.kept_for}, first of all" if self.kept_for else "another"),
            "own": self.rule.own,
            "lost": "its own runs were taken back",
        }[cause]

    def _facts(self) -> str:
        at = self._moment
        ends = {"completed": "completed", "evicted": "stopped", "unfinished": "still there"}
        run = f"{counted(self.runs, 'start')}, taken back" if self.runs else "no run"
        run = run if self.start is None else f"{'last ' if self.runs > 1 else ''}start {at(self.start)}"
        end = "" if self.end is None else f"; {ends.get(self.outcome, self.outcome)} {at(self.end)}"
        count = f", {self.runs} runs" if self.runs > 1 and self.start is not None else ""
        worth = f"worth {amount(self.value)} of at most {amount(self.best)} credits"
        asked = (f"job {self.log_id} of the log; " if self.log_id else "") + counted(self.nodes, "node")
        return f"  {asked}; arrival {at(self.arrival)}; {run}{end}{count}; {worth}, pays {amount(self.payment)}"

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
                text = self._because(cause)
                if cause == "lost":
                    text += f" ({counted(self.runs - (self.start is not None), 'run')}): {self._lost()}"
                found.append(f"{head}{text}")
                continue
            who = HELD[cause].format(counted(holders.jobs, "job"), passed=self.rule.passed)
            largest = ", ".join(f"{job} ({named(owner)}, {self._work(work)})" for job, owner, work in holders.largest)
            found.append(f"{head}{who}; {'largest: ' if holders.jobs > 1 else ''}{largest}")
        return found

    def _lost(self) -> str:
        each = [
            f"{self._moment(now)}{', as ' * bool(others) + ', '.join(others)}{' started' * bool(others)}"
            for now, others in self.taken_back[:LARGEST]
        ]
        return "; ".join(each + ["..."] * (len(self.taken_back) > LARGEST))

    def _changes(self) -> list[str]:
        """Return what each change would have brought: what starts it an hour earlier first, equal ones in one line."""
        if self.changes is None:
            return ["no change can be played: owners here do not all report truly, or the rule keeps state elsewhere"]
        if not self.changes:
            return []
        hour = 1 if self.round_seconds is None else max(1, round(3600 / self.round_seconds))
        until = NEVER if self.start is None else self.start
        groups: dict[tuple[int, float], list[str]] = {}
        for each in self.changes:
            start = NEVER if each.start is None else each.start
            words = each.change.words
            if each.change.promised != "none":
                words += f" (a false report: {PROMISED[each.change.promised]}; here it {self._gained(each)})"
            groups.setdefault((start, round(each.payment, 9)), []).append(words)
        rank = {
            key: (0 if until - key[0] >= hour else 1 if key[0] < until else 2 if key[0] == until else 3)
            for key in groups
        }
        found, head = [], ""
        for key in sorted(groups, key=lambda key: rank[key]):
            start, payment = key
            last, head = head, "what would have started it earlier" if start < until else "what would not have"
            found += [f"{head}, everybody else as they were:"] if head != last else []
            when = "no start" if start == NEVER else f"start {self._moment(start)}"
            if start == until != NEVER:
                when = f"the same start, {self._moment(start)}"
            elif NEVER not in (start, until):
                when += f" ({self.span(abs(until - start))} {'earlier' if start < until else 'later'})"
            found.append(f"  {when}, pays {amount(payment)}: {'; '.join(groups[key])}")
        return found

    def _gained(self, each: Changed) -> str:
        gain = round(each.utility - (self.value - self.payment), 9)
        return "gains nothing" if not gain else f"{'gains' if gain > 0 else 'loses'} {amount(abs(gain))} credits"

    def _payment(self) -> list[str]:
        return [] if self.checked is None else [f"payment: {self.checked.words}"]

    def _work(self, node_rounds: int) -> str:
        if self.round_seconds is None:
            return counted(node_rounds, "node-round")
        return f"{amount(round(node_rounds * self.round_seconds / 3600, 1))} node-h"


def _figures(each: Changed) -> dict[str, Any]:
    return {name: getattr(each, name) for name in ("start", "completion", "payment", "utility")}
