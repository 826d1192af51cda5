r"""Feed a log of events to a mechanism and get its decisions: the replay contract.

One JSON object per line in, one decision per line out. A log is how a user in any language drives
a mechanism from a real system, how a run is reproduced from one file, and how a decision is
debugged.

Within a round come all ``submit``, all ``arrive``, then the mechanism clears the round, then
``complete``; a ``withdraw``, with a ``fee`` if one is asked, takes a job back at any time before its arrival. A
``share`` gives ``place``, an account or an owner, another ``share`` of the machine, by a mechanism that has shares.
Rounds without events are cleared too. A faulty line gives one line with
``"event": "error"``, changes nothing (it does not even clear the rounds before its own), and the
log goes on. Where the contract leaves a choice:

* rounds are cleared when a correct line needs it, so the round of a faulty line is not *mentioned*;
* an ``arrive`` without ``signal`` of a report that left signals out must give a ``duration``;
* lines after ``end`` are read like any others; a blank line is skipped;
* a round that a ``complete`` has cleared may still be closed by ``end``, once;
* unknown fields are refused inside ``sow`` (a misspelt ``signal`` would change its meaning), and
  ignored beside it; four are known: ``owner`` of a ``submit``, a name that is passed on to a mechanism that
  asks whose job it is; ``"late": true`` of a ``complete``, which says that the job ran its last round in the round
  cleared last although lines of the next one have been read; ``"open": true`` of a last ``end``: the log breaks
  off while that round is open; and ``"more": true`` of the ``end`` of the last round: completions of that round are
  reported after it, and jobs that are left stay until a second ``end``. Live markets write the last three.

A ``start`` by a rule with several classes of nodes has its ``class``. On a cluster it has the booking: ``shape`` (its
number, from 0), ``kind``, ``length`` in rounds, and ``nodes``: of each its tasks, and the parts of each of its devices
that they take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from marketsched.config.configuration import ReplayConfig
from marketsched.config.strict_yaml import read_yaml, validated
from marketsched.mechanisms.errors import placed
from marketsched.play.replayer import Decision, Line, Replayer


def replay(
    config: ReplayConfig | Mapping[str, Any] | str | PathLike[str],
    events: Iterable[Line] | str | PathLike[str],
    *,
    strict: bool = False,
) -> Iterator[Decision]:
    """Yield the decisions that a mechanism takes on a log of events.

    Parameters
    ----------
    config : mapping or path
        The configuration of the replay contract, or the YAML file that holds it.
    events : iterable of lines or mappings, or path
        The log: JSON lines (text or bytes) or ready-made mappings, in order of ``round``; or the
        file that holds the lines.
    strict : bool
        Stop after the first faulty line.

    Yields
    ------
    dict
        One decision: ``plan``, ``withdraw``, ``drop``, ``cancel``, ``evict``, ``start``, ``requeue``, ``complete`` or
        ``error``, each as soon as the lines read so far determine it.

    Raises
    ------
    InvalidParameterError
        If the configuration is at fault; raised by the call itself, before any event is read.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> config = {"capacity": 1, "max_concurrency": 1, "max_duration": 1, "max_value": 4, "max_delay": 3,
    ...           "horizon": 5, "pricing": {"kind": "posted", "prices": [0.5]}}
    >>> sow = {"concurrency": 1, "value": {"kind": "deadline", "value": 2.0, "deadline": 3},
    ...        "requirements": [{"arrival": 1, "duration": 1, "probability": 1.0}]}
    >>> for decision in replay(config, [{"round": 1, "event": "submit", "job": "A", "sow": sow}]):
    ...     print(decision)
    {'round': 1, 'event': 'plan', 'job': 'A', 'starts': [[1, 1, 1]], 'estimated_utility': 1.5}
    """
    checked = _as_config(config)
    with placed(source=str(config) if isinstance(config, (str, PathLike)) else ""):
        replayer = Replayer(checked)
    return _decisions(replayer, events, strict)


def _as_config(config: ReplayConfig | Mapping[str, Any] | str | PathLike[str]) -> ReplayConfig:
    if isinstance(config, ReplayConfig):
        return config
    if isinstance(config, (str, PathLike)):
        return validated(ReplayConfig, read_yaml(config), str(config))
    return validated(ReplayConfig, dict(config), "config")


def _decisions(replayer: Replayer, events: Iterable[Line] | str | PathLike[str], strict: bool) -> Iterator[Decision]:
    if isinstance(events, (str, PathLike)):
        with Path(events).open("rb") as lines:
            yield from _decisions(replayer, lines, strict)
        return
    for number, line in enumerate(events, start=1):
        for decision in replayer.feed(number, line):
            yield decision
            if strict and decision["event"] == "error":
                return
    yield from replayer.finish()
