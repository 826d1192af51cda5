"""What a bridge has to do, given both sides: the market's jobs, and Slurm's.

The comment of a Slurm job names its job of the market, ``market:OWNER.LABEL``. `decide` looks at the two
lists as they are now and returns the actions that bring them together; it keeps nothing, so that it does not matter
what a bridge before it has done, or half done. Each action is safe to take twice, and none is needed again once it
worked.

| market | Slurm | action |
|---|---|---|
| submitted | waits, held | arrive |
| submitted, arrived | can start, or runs | hold; or take the nodes away, as the bridge did not start it |
| running | held | release, unless nodes are down and it has to wait |
| running | over | complete, with its exit code |
| running | its node failed | complete, without a charge |
| running | runs, and nodes are down | last come first: complete without a charge, submit again under a new name |
| running | unknown | complete, failed |
| dropped, cancelled | waits | cancel |
| evicted | has nodes | take them away: back to the queue, held, or cancelled |
| completed | has nodes | cancel: it ran for all the rounds that it booked |
| any | several jobs in one, or in other partitions, too | cancel |
| unknown | any | announce its statement, if the comment holds one; else cancel |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from marketsched.slurm.commands import SlurmJob

PREFIX = "market:"
NAME = re.compile(r"[a-z0-9_-]{1,32}\.[A-Za-z0-9_.-]{1,64}")  # whatever users write there, no other is asked for
NODE_FAILURES = ("NODE_FAIL", "BOOT_FAIL")  # states of Slurm
Kind = Literal["announce", "arrive", "hold", "release", "stop", "cancel", "complete", "again", "take_back"]
LONGEST_LABEL = 64  # characters of the part of a name that is the owner's choice
NONE = 0  # number of a job that Slurm does not know


@dataclass(frozen=True)
class MarketJob:
    """A job as the market knows it: ``state`` and ``outcome`` as the service says them.

    Parameters
    ----------
    job, owner, state : str
    nodes : int
        Of its statement.
    order : int
        Of submission.
    start : int, optional
        The round in which it was started.
    outcome : str, optional
        How it ended.
    """

    job: str
    owner: str
    state: str
    nodes: int
    order: int = 0
    start: int | None = None
    outcome: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any], order: int = 0) -> MarketJob:
        """Read a job of the service."""
        return cls(row["job"], row["owner"], row["state"], int(row["nodes"]), order, row["start"], row["outcome"])

    @property
    def gone(self) -> bool:
        """Whether the market has finished with it."""
        return self.state not in ("submitted", "arrived", "running")


@dataclass(frozen=True)
class Action:
    """One thing to do.

    Parameters
    ----------
    kind : str
        ``take_back``: complete without a charge a start that nodes were missing for, and submit it again.
    job : str
        The market's; empty if it has none.
    number : int
        Slurm's; `NONE`: none.
    why : str
        For the log, and for the user of a cancelled job.
    outcome : "done", "failed" or "node-failed"
        Of a completion.
    exit_code : int, optional
        Of the script.
    """

    kind: Kind
    job: str = ""
    number: int = NONE
    why: str = ""
    outcome: str = "done"
    exit_code: int | None = None


@dataclass(frozen=True)
class View:
    """Both sides at one moment.

    Parameters
    ----------
    market : mapping
        By name: every job that is not gone, and those that jobs of Slurm name.
    queue : sequence of SlurmJob
        Those of the market's partition.
    round : int
        The market's open round.
    capacity, usable : int
        Nodes the market sells, and those that Slurm can use.
    check_users : bool
        Whether the owner of a job has to be the user who submitted it to Slurm.
    """

    market: Mapping[str, MarketJob]
    queue: Sequence[SlurmJob]
    round: int
    capacity: int
    usable: int
    check_users: bool = True
    partition: str = "market"


@dataclass(frozen=True)
class Decision:
    """Actions in the order in which they are to be taken; starts that have to wait, and jobs that lost their nodes."""

    actions: tuple[Action, ...]
    held: tuple[str, ...] = ()
    removed: tuple[str, ...] = field(default=())


def name_of(comment: str) -> str | None:
    """Return the market job that a comment names; None: none.

    Examples
    --------
    >>> name_of("market:ann.nightly-17"), name_of("market:{birth: 1}"), name_of("hello"), name_of("market:../owners")
    ('ann.nightly-17', None, None, None)
    """
    text = comment.removeprefix(PREFIX)
    return text if text != comment and NAME.fullmatch(text) else None


def statement_in(comment: str) -> str | None:
    """Return the statement of work that a comment holds, as text; None: none."""
    text = comment.removeprefix(PREFIX)
    return text if text != comment and text.lstrip().startswith("{") else None


def successor(job: str) -> str:
    """Return the name under which the bridge submits a job again that had to make room.

    Examples
    --------
    >>> successor("ann.nightly-17"), successor("ann.nightly-17.r1"), len(successor("ann." + 64 * "x"))
    ('ann.nightly-17.r1', 'ann.nightly-17.r2', 68)
    """
    owner, _, label = job.partition(".")
    stem, mark, number = label.rpartition(".r")
    again = int(number) + 1 if mark and number.isascii() and number.isdigit() else 1
    ending = f".r{again}"
    return f"{owner}.{(stem if again > 1 else label)[: LONGEST_LABEL - len(ending)]}{ending}"


def decide(view: View) -> Decision:
    """Return what is to be done."""
    pairs, actions = _pairs(view)
    named = {name_of(mate.comment) for mate in view.queue}
    for job, mate in pairs.items():
        actions += _mend(view.market[job], mate, moved_on=successor(job) in named)
    starts, held, removed = _nodes(view, pairs)
    return Decision((*actions, *starts), held, removed)


def _pairs(view: View) -> tuple[dict[str, SlurmJob | None], list[Action]]:
    """Return the mate in Slurm of each job of the market, and what is to be done about those without a place."""
    of: dict[str, list[SlurmJob]] = {}
    actions = []
    for mate in view.queue:
        name = name_of(mate.comment)
        job = view.market.get(name or "")
        if not mate.over and (shape := _several(mate, view)):
            actions.append(Action("cancel", "", mate.leader or mate.id, shape))
            continue
        if job is not None and not (why := _misfit(job, mate, view)):
            of.setdefault(job.job, []).append(mate)
        elif not mate.over:
            if job is None and statement_in(mate.comment) is not None:
                actions.append(Action("hold" if not mate.held else "announce", "", mate.id))
            else:
                why = why if job is not None else "this job was not announced to the market"
                actions.append(Action("cancel", "", mate.id, why))
    pairs: dict[str, SlurmJob | None] = {name: None for name, job in view.market.items() if not job.gone}
    for name, mates in of.items():
        if view.market[name].state in ("submitted", "arrived"):  # what is over of these never ran for it
            mates = [mate for mate in mates if not mate.over] or mates
        best = min(mates, key=_rank)
        pairs[name] = best
        why = f"{name} is job {best.id} already"
        actions += [Action("cancel", "", mate.id, why) for mate in mates if mate is not best and not mate.over]
    return pairs, actions


def _several(mate: SlurmJob, view: View) -> str:
    """Say why a job of Slurm could take more than one job of the market; empty: it cannot."""
    if mate.parts:
        return f"{mate.parts} is several jobs, and the market starts one"
    if mate.partitions not in ((), (view.partition,)):
        return f"it waits in {', '.join(mate.partitions)}, and the market has {view.partition} alone"
    return ""


def _misfit(job: MarketJob, mate: SlurmJob, view: View) -> str:
    """Say why a job of Slurm cannot be this job of the market; empty: it can."""
    if view.check_users and mate.user != job.owner:
        return f"{job.job} belongs to another user"
    if mate.nodes != job.nodes:
        return f"{job.job} was announced with {job.nodes} nodes, not {mate.nodes}"
    return ""


def _rank(mate: SlurmJob) -> tuple[int, int]:
    """Return who comes first among several of one name: who has nodes, then who had, then who waits."""
    return (0 if mate.active else 1 if mate.over and mate.started else 2 if not mate.over else 3, mate.id)


def _mend(job: MarketJob, mate: SlurmJob | None, *, moved_on: bool) -> list[Action]:
    """Return what one pair needs, but for starts; ``moved_on``: the job of Slurm has its next name already."""
    if job.state in ("submitted", "arrived"):
        return _mend_waiting(job, mate)
    if job.state == "running":
        if mate is None and moved_on:
            return [Action("complete", job.job, NONE, "its nodes failed", "node-failed")]
        return [_completion(job, mate)] if mate is None or mate.over else []
    if mate is None or mate.over or (mate.held and job.state in ("evicted", "completed")):
        return []
    if mate.active and job.state == "completed":
        how = "it used all the rounds that it booked" if job.outcome == "overrun" else job.outcome or job.state
        return [Action("cancel", job.job, mate.id, how)]
    if mate.active:
        return [Action("stop", job.job, mate.id, f"{job.state} by the market")]
    if job.state == "evicted":
        return [Action("hold", job.job, mate.id)]
    return [Action("cancel", job.job, mate.id, f"{job.state} by the market")]


def _mend_waiting(job: MarketJob, mate: SlurmJob | None) -> list[Action]:
    if mate is None or mate.over:
        return []
    if mate.active:
        return [Action("stop", job.job, mate.id, "the market has not started it")]
    first = [] if mate.held else [Action("hold", job.job, mate.id)]
    return [*first, *([Action("arrive", job.job, mate.id)] if job.state == "submitted" else [])]


def _completion(job: MarketJob, mate: SlurmJob | None) -> Action:
    if mate is None:
        return Action("complete", job.job, NONE, "Slurm does not know it", "failed")
    if mate.state in NODE_FAILURES:
        return Action("complete", job.job, mate.id, "its node failed", "node-failed")
    done = mate.state == "COMPLETED"
    return Action("complete", job.job, mate.id, mate.state, "done" if done else "failed", mate.exit_code)


def _nodes(view: View, pairs: Mapping[str, SlurmJob | None]) -> tuple[list[Action], tuple[str, ...], tuple[str, ...]]:
    """Return starts, and where nodes are missing who has to wait and, last come first, who has to go."""
    mates = {name: mate for name, mate in pairs.items() if mate is not None and not mate.over}
    running = sorted((view.market[name] for name in mates), key=lambda job: job.order)
    running = [job for job in running if job.state == "running"]
    on_nodes = [job for job in running if not mates[job.job].held]
    waiting = [job for job in running if mates[job.job].held]
    if view.usable >= view.capacity:
        return [Action("release", job.job, mates[job.job].id) for job in waiting], (), ()
    actions: list[Action] = []
    load = sum(job.nodes for job in on_nodes)
    removed = []
    while load > view.usable and on_nodes:
        last = on_nodes.pop()
        load -= last.nodes
        removed.append(last.job)
        actions.append(Action("again", last.job, mates[last.job].id, "nodes are down", "node-failed"))
    held = []
    for job in waiting:
        if load + job.nodes <= view.usable and not removed:
            load += job.nodes
            actions.append(Action("release", job.job, mates[job.job].id))
            continue
        held.append(job.job)
        if job.start is not None and view.round > job.start + 1:  # a whole round without its nodes
            actions.append(Action("take_back", job.job, mates[job.job].id, "nodes are down", "node-failed"))
    return actions, tuple(held), tuple(removed)
