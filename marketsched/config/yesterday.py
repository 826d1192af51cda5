"""Yesterday's log with which a mechanism begins: the arrivals of a finished run, or of a workload.

A run's folder says which scenario was played with which seed; its jobs are made again from that, and compared with
the table that the run has left, so that a log is exactly what happened there. A workload reads a trace, or draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from os import PathLike, fspath
from typing import Any

import numpy as np

from marketsched.agents.lies import PublicInformation
from marketsched.config.mechanism_choice import MechanismChoice
from marketsched.config.sections import read_workload
from marketsched.config.strict_yaml import parse_yaml
from marketsched.mechanisms.bid_price.past import PastArrival, PastLog
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Whole
from marketsched.mechanisms.limits import SIZES, MarketLimits
from marketsched.worlds.workload import Workload

Source = str | PathLike[str] | None

_LOAD = "marketsched.results.result"  # a name only: the room above loads on demand
_COMPARED = ("name", "owner", "birth", "arrival", "duration", "concurrency")
SEED = 0x9E57E2DA  # of the draws of a workload that names no seed: no run's own


def yesterday(
    what: Any, choice: MechanismChoice, workload: Workload, data: Source, *, read: Callable[..., Any]
) -> PastLog:
    """Return the log that a scenario's ``history`` stands for.

    Parameters
    ----------
    what : PastLog, path or mapping
        A log; the folder of a finished market run; or the section of a workload, which may name a ``seed``.
    choice : MechanismChoice
        The mechanism that is going to know it.
    workload : Workload
        Of the market that follows.
    data : path, optional
        Folder of recorded traces.
    read : function
        `marketsched.config.scenario.Scenario.from_dict`: reads the scenario of a run.

    Raises
    ------
    InvalidParameterError
        If the folder is missing, interrupted, no market run, or not of this version; or the log is of another
        market: other nodes, statements beyond the limits, or durations revealed in one and hidden in the other.
    """
    if isinstance(what, PastLog):
        log = what
    elif isinstance(what, Mapping):
        log = _of_workload(what, choice, workload, data)
    else:
        log = _of_run(fspath(what), data, read)
    log.check(_limits(choice, workload))
    hidden = [job.name for job in workload.jobs if not job.truth.revealed]
    if log.revealed == bool(hidden):
        seen, legal = ("revealed", "hidden") if hidden else ("hidden", "revealed")
        raise InvalidParameterError(place="durations", value=seen, legal=f"{legal}, as in this market")
    return log


def _of_workload(section: Mapping[str, Any], choice: MechanismChoice, workload: Workload, data: Source) -> PastLog:
    """Return the arrivals of a workload, as if it had been played on the nodes of this market."""
    parts = dict(section)
    seed = parts.pop("seed", None)
    root = np.random.SeedSequence(SEED if seed is None else Whole(0).check("seed", seed))
    try:
        past: Workload = read_workload(parts).build(np.random.default_rng(root).spawn(3)[0], data)
    except ValueError as error:
        if isinstance(error, InvalidParameterError):
            raise
        raise InvalidParameterError(value=section, legal="the section of a workload, with its kind") from error
    sizes = {name: getattr(past, name) for name in SIZES} | {"capacity": choice.capacity or workload.capacity}
    arrivals = [PastArrival(j.owner, j.truth, j.arrival, j.signal) for j in past.jobs if j.arrival is not None]
    return PastLog(tuple(arrivals), past.birth_rounds, MarketLimits(**sizes))


def _of_run(folder: str, data: Source, read: Callable[..., Any]) -> PastLog:
    """Return the arrivals of a finished run: what was reported of each job, when it came, and what was seen."""
    found = import_module(_LOAD).load(folder)
    if found.kind != "market":
        raise InvalidParameterError(f"{folder} holds a {found.kind}: expected the folder of a market run")
    if not found.complete:
        raise InvalidParameterError(f"{folder} was interrupted {found.how_far}: expected a run that was finished")
    if "scenario.yaml" not in found.texts:
        raise InvalidParameterError(f"{folder} has no scenario.yaml: expected all files of a market run")
    played = read(parse_yaml(found.texts["scenario.yaml"], folder), source=folder, kind="market")
    rng = np.random.default_rng(np.random.SeedSequence(int(found.meta["seed"])))
    past, report = _played_again(played, rng, data)
    table = found.jobs
    made = [(j.name, j.owner, j.truth.birth, j.arrival or 0, j.duration, j.truth.concurrency) for j in past.jobs]
    if list(table[list(_COMPARED)].fillna({"arrival": 0}).itertuples(index=False, name=None)) != made:
        raise InvalidParameterError(
            f"{folder}: its jobs are not those that its scenario makes with seed {found.meta['seed']}: expected a run "
            "of this version, of the same trace files and plug-ins"
        )
    submitted = table["submitted"].fillna(0).astype(int).tolist()
    arrivals = [
        PastArrival(job.owner, report(job), max(job.arrival, first), job.signal)
        for job, first in zip(past.jobs, submitted, strict=True)
        if job.arrival is not None and first
    ]
    return PastLog(tuple(arrivals), past.birth_rounds, _limits(played.mechanism, past))


def _played_again(played: Any, rng: np.random.Generator, data: Source) -> tuple[Workload, Any]:
    """Return the workload of a run, and what each job's owner reported."""
    streams = rng.spawn(3)  # as in `Scenario.setup`
    past: Workload = played.workload.build(streams[0], data)
    if not played.owners.misreporting:
        return past, lambda job: job.truth
    found = played.owners.strategies(sorted({job.owner for job in past.jobs}), streams[2])
    strategy = found if callable(found) else lambda job: found
    sizes = _limits(played.mechanism, past)
    public = PublicInformation(**{name: getattr(sizes, name) for name in SIZES})
    if any(hasattr(strategy(job), "hear") for job in past.jobs):
        raise InvalidParameterError(place="owners.strategy", value="learning", legal="a run whose owners do not learn")
    return past, lambda job: strategy(job).report(job.truth, public)


def _limits(choice: MechanismChoice, workload: Workload) -> MarketLimits:
    """Return the sizes of a scenario's market."""
    own = {name: getattr(choice, name) for name in SIZES}
    return MarketLimits(**{name: getattr(workload, name) if size is None else size for name, size in own.items()})
