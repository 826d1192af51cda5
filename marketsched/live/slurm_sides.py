"""The two sides that a bridge compares: jobs of the market and of Slurm, their names, and what can be done about them.

The comment of a Slurm job names its job of the market, ``market:OWNER.LABEL``; on a cluster of several kinds it ends
in the number of the shape that this job of Slurm would run, ``market:OWNER.LABEL/1``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from marketsched.live.slurm import SlurmJob
from marketsched.live.slurm_shapes import SlurmShape

PREFIX = "market:"
NAME = re.compile(r"([a-z0-9_-]{1,32}\.[A-Za-z0-9_.-]{1,64})(?:/(\d{1,2}))?")  # no other is looked for
Kind = Literal["announce", "arrive", "hold", "release", "stop", "cancel", "complete", "again", "take_back", "class"]
LONGEST_LABEL = 64  # characters of the part of a name that is the owner's choice
NONE = 0  # number of a job that Slurm does not know


@dataclass(frozen=True)
class MarketJob:
    """A job of the market, with ``state`` and ``outcome`` as the service returns them."""

    job: str
    owner: str
    state: str
    nodes: int  # of its statement
    order: int = 0  # of submission
    start: int | None = None  # the round in which it was started
    outcome: str | None = None  # how it ended
    # the ways in which it can run on a cluster of several kinds, each a job of Slurm; none on identical nodes
    shapes: tuple[SlurmShape, ...] = ()
    shape: int | None = None  # number of the booked shape; None: none yet
    places: tuple[str, ...] = ()  # the market's names of the nodes that it has booked
    regular: bool = False  # whether it has, or waits for, regular nodes, where some are regular and some free

    @classmethod
    def of(cls, row: Mapping[str, Any], order: int = 0) -> MarketJob:
        """Read a job of the service, but for its shapes, which its statement has."""
        found = cls(row["job"], row["owner"], row["state"], int(row["nodes"]), order, row["start"], row["outcome"])
        found = replace(found, regular=row.get("class") == "regular")
        booking = row.get("booking")
        return found if booking is None else replace(found, shape=booking["shape"], places=tuple(booking["nodes"]))

    @property
    def gone(self) -> bool:
        """Whether the market has finished with it."""
        return self.state not in ("submitted", "arrived", "running")


@dataclass(frozen=True)
class Action:
    """One thing to do."""

    kind: Kind  # ``take_back``: complete without a charge a start that nodes were missing for, and submit it again
    job: str = ""  # the market's; empty if it has none
    number: int = NONE  # Slurm's; `NONE`: none
    why: str = ""  # for the log, and for the user of a cancelled job; of a ``class`` the quality of service to be set
    outcome: str = "done"  # of a completion
    exit_code: int | None = None  # of the script


@dataclass(frozen=True)
class View:
    """Both sides at one moment."""

    market: Mapping[str, MarketJob]  # by name: every job that is not gone, and those that jobs of Slurm name
    queue: Sequence[SlurmJob]  # those of the market's partition
    round: int  # the market's open round
    capacity: int  # nodes the market sells
    usable: int  # nodes that Slurm can use
    check_users: bool = True  # whether the owner of a job has to be the user who submitted it to Slurm
    partition: str = "market"  # the market's
    # the market's names of nodes that Slurm cannot use, on a cluster of several kinds
    down: frozenset[str] = frozenset()
    types: Mapping[str, frozenset[str]] = field(default_factory=dict)  # the types of GPUs of each kind of node there
    # names of jobs that a bridge submitted to the market, because nodes were down, and that Slurm has. A name alone
    # says nothing: owners choose them, in the market and in Slurm
    renewed: frozenset[str] = frozenset()
    # Slurm's qualities of service for regular and for free nodes; None: it has none, or the market no such classes
    qos: tuple[str, str] | None = None


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
    >>> name_of("market:ann.train/1")
    'ann.train'
    """
    found = NAME.fullmatch(comment.removeprefix(PREFIX))
    return found[1] if found and comment.startswith(PREFIX) else None


def shape_of(comment: str) -> int | None:
    """Return which shape of its market job a comment names; None: none, as on identical nodes.

    Examples
    --------
    >>> shape_of("market:ann.train/1"), shape_of("market:ann.train")
    (1, None)
    """
    found = NAME.fullmatch(comment.removeprefix(PREFIX))
    return int(found[2]) if found and found[2] else None


def comment_of(job: str, shape: int | None = None) -> str:
    """Return the comment that names a job of the market, and a shape of it."""
    return f"{PREFIX}{job}" if shape is None else f"{PREFIX}{job}/{shape}"


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
