"""A lie that pays, as one file: a scenario, and all data to play the lie again.

The scenario lists the others and the owner, all with their true statements, and the mechanism with all its
parameters: ``marketsched run FILE`` plays the truthful version. The lie, its owner, the seeds and the figures are in
comment lines that begin with ``#|``, which scenarios ignore and `replay_witness` reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from marketsched.agents.lies import misreport_from
from marketsched.agents.loop import Fate
from marketsched.config.job_list import JobEntry, JobList
from marketsched.config.mixtures import Mixtures
from marketsched.config.scenario import Scenario
from marketsched.config.sow_codec import sow_to_json
from marketsched.config.strict_yaml import dump_yaml, parse_yaml
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Finite, Whole
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.truthfulness.searches.findings import Deviation
from marketsched.truthfulness.searches.own_lies import FixedReport, OwnLie
from marketsched.truthfulness.searches.scoring import score
from marketsched.truthfulness.situations.described import Other
from marketsched.truthfulness.situations.guarded_market import Factory
from marketsched.truthfulness.situations.lotteries import fate_of
from marketsched.truthfulness.situations.situation import ScenarioMechanism, Situation

MARK = "#| "  # before every line of what is no scenario


class Replayed(NamedTuple):
    """A witness file, played again.

    ``recorded`` holds mean, low and high as the file has them; ``again`` is what the same lie gains in
    the same worlds now, and ``fresh`` what it gains in others.
    """

    recorded: tuple[float, float, float]
    again: Deviation
    fresh: Deviation

    @property
    def confirmed(self) -> bool:
        """True if the same worlds give the same gain, and the lie pays in others, too."""
        return self.again.gain_mean == self.recorded[0] and self.fresh.confirmed


def save_witness(path: str | PathLike[str], situation: Situation, deviation: Deviation) -> None:
    """Write one file that replays a lie.

    Parameters
    ----------
    path : path
        Of the file, conventionally ``.yaml``.
    situation : Situation
        Where the lie was found. If its mechanism is known by its factory alone, the file says so: it
        cannot be run, and `replay_witness` needs the factory.
    deviation : Deviation
        The lie.

    Raises
    ------
    InvalidReportError
        If a signal is of a kind that a file cannot hold.
    OSError
        If the file cannot be written.

    Examples
    --------
    See `replay_witness`, which plays it again.
    """
    Path(path).write_text(witness_text(situation, deviation), encoding="utf-8")


def witness_text(situation: Situation, deviation: Deviation) -> str:
    """Return the text that `save_witness` writes."""
    lines = [
        f"# {situation.name!r} gains {deviation.gain_mean:.6g} credits over the truth"
        f" (between {deviation.gain_low:.6g} and {deviation.gain_high:.6g}): it {deviation.words}.",
        *([] if deviation.inside_model else ["# This goes beyond misreporting: no theorem covers it."]),
        "# In the scenario below all owners report truthfully.",
    ]
    if situation.described is None:
        lines.append("# The mechanism was given as a Python function: to replay the lie, give it again.")
    record = [MARK + line for line in dump_yaml(_record(situation, deviation)).splitlines()]
    scenario = dump_yaml(_scenario(situation, deviation))
    return "\n".join([*lines, "#", *record, ""]) + scenario


def replay_witness(
    path: str | PathLike[str],
    *,
    factory: Factory | None = None,
    budget_seconds: float | None = 60.0,
    max_plays: int | None = None,
) -> Replayed:
    """Play the lie of a witness file again.

    Parameters
    ----------
    path : path
        Of the file.
    factory : function of Generator, optional
        The mechanism, if the file knows it by a factory alone.
    budget_seconds, max_plays
        As for `search`, for each of the two scores.

    Raises
    ------
    InvalidParameterError
        If the file is no witness file, or a factory is needed and not given.
    InvalidReportError, MechanismFault
        If the lie is not legal here, or the mechanism fails.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> again = replay_witness("runs/audit-1/lie-pay-as-bid.yaml")  # doctest: +SKIP
    >>> again.holds  # doctest: +SKIP
    True
    """
    situation, record = read_witness(path, factory=factory)
    misreport = misreport_from(record["misreport"])
    figures = record["gain"]
    settings: dict[str, Any] = {
        "confidence": record["confidence"],
        "tolerance": record["tolerance"],
        "budget_seconds": budget_seconds,
        "max_plays": max_plays,
    }
    seed = record["seed"]
    again = score(situation, misreport, seed=seed, worlds=figures["worlds"], **settings)
    fresh = again if again.exact else score(situation, misreport, seed=seed + 1, **settings)
    return Replayed((figures["mean"], figures["low"], figures["high"]), again, fresh)


def read_witness(path: str | PathLike[str], *, factory: Factory | None = None) -> tuple[Situation, Mapping[str, Any]]:
    """Return the situation and the lie of a witness file; errors as of `replay_witness`."""
    text = Path(path).read_text(encoding="utf-8")
    marked = [line[len(MARK) :] for line in text.splitlines() if line.startswith(MARK)]
    record = parse_yaml("\n".join(marked), str(path)) if marked else None
    keys = {"owner", "misreport", "seed", "gain", "confidence", "tolerance", "history", "registered"}
    if not isinstance(record, Mapping) or set(record) != keys:
        raise InvalidParameterError(
            f"{path}: expected lines that begin with {MARK!r} and say {', '.join(sorted(keys))}"
        )
    record = _checked(record, str(path))
    data = parse_yaml(text, str(path))
    if not record["registered"]:
        if factory is None:
            raise InvalidParameterError(f"{path}: the mechanism is known by a Python function alone: expected factory")
        data = {**data, "mechanism": {"name": "first-come"}}  # a scenario needs one; it is not used
    scenario = Scenario.from_dict(data, source=str(path), kind="market")
    return _situation(scenario, record, factory, str(path)), record


def _checked(record: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return what is no scenario, every number checked."""
    gain, registered = record["gain"], record["registered"]
    figures = {"mean": "(-inf, inf)", "low": "(-inf, inf)", "high": "(-inf, inf)"}
    if not isinstance(gain, Mapping) or set(gain) != {*figures, "worlds"}:
        raise InvalidParameterError(f"{source}: gain = {gain!r}: expected a table of mean, low, high, worlds")
    if not isinstance(registered, bool):
        raise InvalidParameterError(f"{source}: registered = {registered!r}: expected true or false")
    own = {name: Finite(legal).check(f"{source}: gain.{name}", gain[name]) for name, legal in figures.items()}
    return {
        **record,
        "gain": {**own, "worlds": Whole(0).check(f"{source}: gain.worlds", gain["worlds"])},
        "seed": Whole(0).check(f"{source}: seed", record["seed"]),
        "confidence": Finite("(0, 1)").check(f"{source}: confidence", record["confidence"]),
        "tolerance": Finite("[0, inf)").check(f"{source}: tolerance", record["tolerance"]),
    }


def _record(situation: Situation, deviation: Deviation) -> dict[str, Any]:
    """Return what is no scenario."""
    misreport = deviation.misreport
    if isinstance(misreport, OwnLie):  # a program is no data, but what it says here is
        claim = misreport.report(situation.truth, situation.public)
        misreport = FixedReport(claim, late=not misreport.inside_model)
    return {
        "owner": situation.name,
        "misreport": misreport.data(),
        "seed": deviation.seed,
        "gain": {
            "mean": float(deviation.gain_mean),
            "low": float(deviation.gain_low),
            "high": float(deviation.gain_high),
            "worlds": deviation.n_fresh,
        },
        "confidence": deviation.confidence,
        "tolerance": deviation.tolerance,
        "history": situation.history,
        "registered": situation.described is not None,
    }


def _scenario(situation: Situation, deviation: Deviation) -> dict[str, Any]:
    """Return the truthful market as a scenario."""
    s, public = situation, situation.public
    place = sum(other.law.birth < s.truth.birth for other in s.others) + s.n_ahead
    listed: list[Other] = list(s.others)
    listed.insert(place, Other(s.name, StatementLaw.of(s.truth), owner=s.owner))
    certain = all(len(other.law.cases) == 1 for other in listed)
    statements = [sow for other in listed for sow, _ in other.law.cases if sow is not None]
    workload = {
        "kind": "jobs" if certain else "mixtures",
        "capacity": s.capacity,
        "horizon": s.horizon,
        "max_concurrency": min(s.capacity, public.max_concurrency or s.capacity),
        "max_duration": public.max_duration or max(int(sow.law.durations.max()) for sow in statements),
        "max_value": public.max_value or max(max(sow.value.highest for sow in statements), 1.0),
        "max_delay": s.max_delay,
        "jobs": [_job(other, certain) for other in listed],
    }
    unknown = {"name": f"{getattr(s.factory, '__qualname__', type(s.factory).__qualname__)} (a Python function)"}
    return {
        "name": f"a lie that pays: {s.name}",
        "description": f"{s.name} {deviation.words}",
        "workload": workload,
        "mechanism": unknown if s.described is None else _plain(s.described),
        "resubmit": s.resubmit,
    }


def _job(other: Other, certain: bool) -> dict[str, Any]:
    if not certain:
        cases = [{"probability": p, **({"nothing": True} if sow is None else _sow(sow))} for sow, p in other.law.cases]
        return {"name": other.name, **_owner(other), "birth": other.law.birth, "statements": cases}
    ((sow, _),) = other.law.cases
    assert sow is not None  # a law has a statement
    job = {"name": other.name, **_owner(other), "birth": sow.birth, **_sow(sow)}
    if other.happened is not None:
        job["arrival"] = other.happened.arrival
        if other.happened.arrival is not None:
            job["duration"] = other.happened.duration
            job["signal"] = _signal(other.happened.signal)
    return job


def _owner(other: Other) -> dict[str, str]:
    return {} if other.owner is None else {"owner": other.owner}


def _sow(sow: StatementOfWork) -> dict[str, Any]:
    for signal in sow.law.group_signals:
        _signal(signal)
    return sow_to_json(sow)


def _signal(signal: Signal) -> Signal:
    if signal is not None and (isinstance(signal, bool) or not isinstance(signal, (int, float, str))):
        raise InvalidReportError(f"signal {signal!r}: expected a number, a string or None, which a file can hold")
    return signal


def _plain(data: Any) -> Any:
    """Return plain lists and numbers."""
    if isinstance(data, Mapping):
        return {key: _plain(value) for key, value in data.items() if value is not None}
    if isinstance(data, Sequence) and not isinstance(data, str):
        return [_plain(x) for x in data]
    return data.item() if isinstance(data, np.generic) else data


def _situation(scenario: Scenario, record: Mapping[str, Any], factory: Factory | None, source: str) -> Situation:
    """Return the situation that a witness file describes."""
    workload = scenario.workload
    if not isinstance(workload, (JobList, Mixtures)):
        raise InvalidParameterError(f"{source}: workload.kind = {workload.kind!r}: expected 'jobs' or 'mixtures'")
    others: list[Other] = []
    for entry in workload.jobs:
        if isinstance(entry, JobEntry):
            owner = entry.owner if "owner" in entry.model_fields_set else None
            others.append(Other(entry.name, StatementLaw.of(entry.statement()), _happened(entry), owner))
        else:
            others += [Other(name, law, owner=entry.owner) for name, law in zip(entry.names, entry.laws(), strict=True)]
    place = next((i for i, other in enumerate(others) if other.name == record["owner"]), None)
    if place is None or len(others[place].law.cases) > 1:
        raise InvalidParameterError(f"{source}: owner = {record['owner']!r}: expected a job with one statement")
    truth = others[place].law.cases[0][0]
    assert truth is not None
    before = others[:place]
    named = ScenarioMechanism(scenario, workload.build(np.random.default_rng(0), None), np.random.default_rng(0), None)
    return Situation(
        named if factory is None else factory,
        truth,
        tuple(before + others[place + 1 :]),
        capacity=workload.capacity,
        horizon=workload.horizon,
        max_delay=workload.max_delay,
        name=str(record["owner"]),
        owner=others[place].owner,
        ahead=sum(other.law.birth == truth.birth for other in before),
        history=record["history"],
        resubmit=scenario.resubmit,
        described=named.described if factory is None else None,
    )


def _happened(entry: JobEntry) -> Fate | None:
    """Return what an entry says has happened; None: it leaves that open."""
    if "arrival" not in entry.model_fields_set:
        return None
    return fate_of(entry.job(np.random.default_rng(0)))
