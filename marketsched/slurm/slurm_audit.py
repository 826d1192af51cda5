"""What users of a Slurm gain by lying to it: screened on the port of fair share, confirmed on a real slurmctld.

A log is played by the port, and some of the jobs that wait are drawn. What each meets is a situation of its own
(`marketsched.slurm.situations`), in which it is submitted truly and under each lie. Situations in which lies pay are
then played through a slurmctld of their own, the truth and each lie several times. A lie is confirmed if the job is
done earlier in every one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from marketsched.config.mechanism_text import mechanism_in
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import is_log
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Natural, Positive, Seed, legal
from marketsched.results.paired_statistics import CONFIDENCE, spread
from marketsched.results.result import Result, versions
from marketsched.slurm.accounts import missing_accounting
from marketsched.slurm.cluster import missing_programs
from marketsched.slurm.fair_share import FairShareCluster, Situation
from marketsched.slurm.lies import LIES, done, parts_of, submitted_as
from marketsched.slurm.shown import script
from marketsched.slurm.situations import Looked, PlayedLog

OWN_STREAM = 0x5107  # keeps what is drawn here apart from the run's own randomness
RULES = ("rule", "weight_age", "weight_fair_share", "weight_size", "weight_qos", "half_life_hours", "max_age_hours")
DEFAULTS = {name: getattr(FairShareCluster, name) for name in RULES}
MOST_JOBS = 150  # of a situation that is played through slurmctld
COLUMNS = ("lie", "job", "owner", "wait", "jobs", "gain")


@dataclass(frozen=True, slots=True)
class _Screened:
    looked: Looked
    lie: str
    lying: Situation
    gain: int


@legal
def audit_slurm(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    mechanism: str = "slurm",
    *,
    owners: Count = 100,
    repetitions: Natural = 3,
    rate: Positive = 200.0,
    seed: Seed = 0,
    data: str | PathLike[str] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Result:
    """Screen what users of a log gain by lying to Slurm, and confirm the lies that pay on a slurmctld of its own.

    Parameters
    ----------
    scenario : Scenario, name, path or mapping
        Of a log.
    mechanism : str
        ``slurm``, or with its configuration: ``slurm:rule=classic:weight_qos=5000``; keys are those of
        `FairShareCluster`, in hours of the log.
    owners : int
        Jobs, drawn from those that wait 1 to 24 rounds, that lie.
    repetitions : int
        Of the truth and of each lie that pays on the port, on slurmctld; 0: none.
    rate : float
        How fast Slurm's clock runs at first; where this machine is too slow for it, half as fast.
    seed : int
        Of the jobs that are drawn, and of the workload.
    data : path, optional
        Folder of recorded traces.
    progress : function of (str, float), optional
        Receives the current step, and its finished share.

    Returns
    -------
    Result
        Of kind ``slurm-lies``: a row of the summary per lie; tables ``screened`` (lie, job, gain in rounds on the port)
        and ``confirmed`` (lie, repetition, rounds in which the job was done); a script for each lie that is confirmed.

    Raises
    ------
    InvalidParameterError
        If the scenario is not of a log, the configuration has an unknown key, or no job waits.
    SlurmError
        If a command of Slurm fails, or this machine is too slow for its clock.

    Examples
    --------
    >>> audit_slurm("log.swf", owners=20).to_frame()  # doctest: +SKIP
    """
    base = Scenario.of(scenario, kind="market")
    if not is_log(base.to_dict()):
        raise InvalidParameterError(
            f"mechanism {mechanism!r} on {base.name}", legal="a log of jobs, as an SWF or sacct file"
        )
    rules, tell = _rules_of(mechanism), progress or (lambda what, share: None)
    log = PlayedLog(base.workload_of(seed, data), rules, base.mechanism.capacity)
    waiting = log.waiting()
    if not waiting:
        raise InvalidParameterError("no job of this log waits under fair share", legal="a smaller workload.capacity")
    drawn = np.random.default_rng([OWN_STREAM, seed]).permutation(len(waiting))[:owners]
    found = [each for place in drawn.tolist() for each in _screened(log.situation(waiting[place]))]
    lacking = [*missing_programs(fast=True), *missing_accounting()]
    chosen = [] if lacking or not repetitions else _to_play(found)
    confirmed, versions_seen, texts = [], set[str](), {}
    for place, lies in enumerate(chosen):
        tell(f"slurmctld: {', '.join(each.lie for each in lies)}", place / len(chosen))
        rows, version = _confirmed(lies, repetitions, rate)
        confirmed += rows
        versions_seen.add(version)
        for each in lies:
            own = [row for row in rows if row["lie"] == each.lie]
            if all(row["gain"] > 0 for row in own):
                texts[f"{each.lie.replace(' ', '-')}.sh"] = script(each.looked, each.lie, each.lying, version, own)
    screened = pd.DataFrame(
        [(x.lie, x.looked.job, x.looked.owner, x.looked.wait, len(x.lying.jobs), x.gain) for x in found],
        columns=COLUMNS,
    )
    plays = pd.DataFrame(confirmed, columns=["lie", "job", "repetition", "truth", "lying", "gain", "port", "rate"])
    meta = {
        "scenario": base.name,
        "mechanism": mechanism,
        "rules": rules,
        "nodes": log.nodes,
        "round_seconds": log.round_s,
        "waiting": len(waiting),
        "owners": len(drawn),
        "repetitions": repetitions,
        "missing": lacking,
        "slurm": sorted(versions_seen),
        "seed": seed,
        "confidence": CONFIDENCE,
        "versions": versions(),
        "complete": True,
    }
    tables = {"screened": screened, "confirmed": plays}
    return Result("slurm-lies", tables, _summary(screened, plays), meta, {"scenario.yaml": base.to_yaml(), **texts})


def _rules_of(mechanism: str) -> dict[str, Any]:
    """Return the configuration that ``slurm:key=value`` stands for."""
    _, changes = mechanism_in(mechanism)
    given = {key.removeprefix("parameters."): value for key, value in changes.items()}
    for key in given:
        if key not in RULES:
            raise InvalidParameterError(f"mechanism {mechanism!r}: key {key!r}", legal=f"one of {', '.join(RULES)}")
    rules = DEFAULTS | given
    FairShareCluster(1, {}, **rules)  # says what is out of range
    return rules


def _screened(looked: Looked) -> list[_Screened]:
    """Play all lies of a job on the port."""
    cluster, truth = looked.cluster, looked.truth
    end = done(truth, cluster.starts_on_port(truth, parts_of(truth)))
    found = []
    for lie in LIES:
        lying = submitted_as(truth, lie, cluster.nodes)
        if lying is not None:
            found.append(
                _Screened(looked, lie, lying, end - done(lying, cluster.starts_on_port(lying, parts_of(lying))))
            )
    return found


def _to_play(found: list[_Screened]) -> list[list[_Screened]]:
    """Return lies that pay on the port, by situation: at first the one in which most of them do, then the others.

    Of equal ones that with the largest of the smallest gains comes first, then that with fewer jobs.
    """
    by_job: dict[str, list[_Screened]] = {}
    for each in found:
        if each.gain > 0 and len(each.lying.jobs) <= MOST_JOBS:
            by_job.setdefault(each.looked.job, []).append(each)
    chosen: list[list[_Screened]] = []
    while any(by_job.values()):
        best = max(by_job.values(), key=lambda own: (len(own), *(min((f(x) for x in own), default=0) for f in _WORTH)))
        chosen.append(best)
        taken = {each.lie for each in best}
        by_job = {job: [each for each in own if each.lie not in taken] for job, own in by_job.items()}
    return chosen


_WORTH: tuple[Callable[[_Screened], int], ...] = (lambda x: x.gain, lambda x: -len(x.lying.jobs))


def _confirmed(lies: list[_Screened], repetitions: int, rate: float) -> tuple[list[dict[str, Any]], str]:
    """Play the truth of a situation and some lies in turn through slurmctld."""
    looked, rows, version = lies[0].looked, [], ""
    for repetition in range(repetitions):
        played = looked.cluster.play_on_slurm(looked.truth, rate=rate, until=parts_of(looked.truth))
        rate, version, truth = played.rate, played.version, done(looked.truth, played.starts)
        for each in lies:
            played = looked.cluster.play_on_slurm(each.lying, rate=rate, until=parts_of(each.lying))
            rate, end = played.rate, done(each.lying, played.starts)
            about = {"lie": each.lie, "job": looked.job, "repetition": repetition, "truth": truth, "lying": end}
            rows.append({**about, "gain": truth - end, "port": each.gain, "rate": rate})
    return rows, version


def _summary(screened: pd.DataFrame, plays: pd.DataFrame) -> pd.DataFrame:
    """Return a row per lie: jobs looked at, mean gain on the port with an interval, and what slurmctld said."""
    rows = []
    for lie in LIES:
        own, played = screened[screened["lie"] == lie], plays[plays["lie"] == lie]
        gain = spread(own["gain"].to_numpy(float))
        rows.append(
            {
                "lie": lie,
                "looked_at": len(own),
                "gain": gain.mean,
                "gain_low": gain.low,
                "gain_high": gain.high,
                "paying": float((own["gain"] > 0).mean()) if len(own) else np.nan,
                "job": str(played["job"].iloc[0]) if len(played) else "",
                "on_port": float(played["port"].iloc[0]) if len(played) else np.nan,
                "least_on_slurm": float(played["gain"].min()) if len(played) else np.nan,
                "most_on_slurm": float(played["gain"].max()) if len(played) else np.nan,
                "confirmed": bool(len(played) and (played["gain"] > 0).all()),
            }
        )
    return pd.DataFrame(rows)
