r"""The audit of a scenario: regret between a search from below and certificates from above.

For every mechanism, ``search <= true regret <= certificate``:

* mechanisms with menus: certificates of many owners spread over one run (`certify_owners`);
* any mechanism: a black-box search for lies that pay, for the few owners whose certificate is
  loosest, or who were drawn if there is none (`search`).

A certificate is a bound with a stated confidence. A search finds lies, and never proves that there
are none. Lies outside the model (delayed submissions, split jobs, ghosts) are told apart: no theorem
speaks of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from marketsched.contestants import OWN, Contestant, contestants
from marketsched.mechanisms.checks import finite_parameter, whole_parameter
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError, MissingDataError, TraceError
from marketsched.running import checked_seed, versions
from marketsched.scenario import Scenario
from marketsched.truthfulness.findings import Deviation, Deviations
from marketsched.truthfulness.owners import certify_owners
from marketsched.truthfulness.population import certify_population
from marketsched.truthfulness.searching import search
from marketsched.truthfulness.shrinking import shrink
from marketsched.truthfulness.situation import Situation, situations_of

SEARCHED = 4  # owners per mechanism that the search is run for
FOR_SHRINKING = 0.2  # share of an owner's budget

Progress = Callable[[str, float], None]  # what is being done, and how much of it is


@dataclass(frozen=True, slots=True)
class Searched:
    """The search for one owner: what was tried, and the smallest lie inside the model that is confirmed."""

    job: str
    situation: Situation
    deviations: Deviations
    lie: Deviation | None


@dataclass(frozen=True, slots=True)
class MechanismAudit:
    """What was found about one mechanism. ``errors`` names what could not be done, and why."""

    label: str
    certificates: pd.DataFrame  # as `certify_owners`; empty without menus
    searched: tuple[Searched, ...]
    certified_share: float | None  # of owners that gain at most the tolerance, at least; None: not known
    errors: tuple[str, ...]

    @property
    def regret_upper(self) -> float:
        """The largest upper end of a certificate, credits; NaN without menus."""
        return float(self.certificates["regret_upper"].max()) if len(self.certificates) else np.nan

    @property
    def lies(self) -> list[Deviation]:
        """The confirmed lies inside the model, largest sure gain first."""
        found = [each.lie for each in self.searched if each.lie is not None]
        return sorted(found, key=lambda lie: -lie.gain_low)

    @property
    def regret_lower(self) -> float:
        """The largest gain that is sure, by certificate or search, credits."""
        certified = float(self.certificates["regret_lower"].max()) if len(self.certificates) else 0.0
        return max([certified, *(lie.gain_low for lie in self.lies)])

    @property
    def outside(self) -> list[Deviation]:
        """Confirmed conduct outside the model that pays, largest sure gain first."""
        found = [each.deviations.best(inside_model=False) for each in self.searched]
        return sorted((lie for lie in found if lie is not None), key=lambda lie: -lie.gain_low)

    @property
    def worst(self) -> tuple[str, str]:
        """The owner's job with the largest sure gain (else the largest bound), and the lie in words."""
        best = max((each for each in self.searched if each.lie), key=lambda each: each.lie.gain_low, default=None)  # type: ignore[union-attr]
        table = self.certificates
        certified = float(table["regret_lower"].max()) if len(table) else 0.0
        if best is not None and best.lie is not None and best.lie.gain_low >= certified:
            return best.job, best.lie.words
        if not len(table):
            return "", ""
        row = int(table["regret_lower" if certified > 0 else "regret_upper"].to_numpy().argmax())
        return str(table["job"].iloc[row]), str(table["witness"].iloc[row]) if certified > 0 else ""


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit of all mechanisms asked for."""

    scenario: Scenario
    mechanisms: tuple[MechanismAudit, ...]
    tolerance: float
    complete: bool  # False: interrupted; what is there is finished
    meta: dict[str, Any] = field(repr=False)

    @property
    def profitable(self) -> bool:
        """Whether a lie inside the model gains more than the tolerance, for sure."""
        return any(each.regret_lower > self.tolerance for each in self.mechanisms)

    def summary(self) -> pd.DataFrame:
        """Return one row per mechanism."""
        return pd.DataFrame([_row(each) for each in self.mechanisms])

    def to_dict(self) -> dict[str, Any]:
        """Return summary and meta as plain data, NaN as None."""
        from marketsched.output import plain

        rows = [{str(key): value for key, value in row.items()} for row in self.summary().to_dict(orient="records")]
        found: dict[str, Any] = plain(
            {
                "scenario": self.scenario.name,
                "profitable": self.profitable,
                "complete": self.complete,
                "mechanisms": rows,
                "meta": self.meta,
            }
        )
        return found


def audit(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    mechanisms: Sequence[str] = (OWN,),
    *,
    owners: int = 100,
    confidence: float = 0.99,
    tolerance: float = 0.0,
    budget: float = 60.0,
    seed: int = 0,
    samples: int | None = None,
    data: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> Audit:
    """Audit mechanisms on the jobs of one seed.

    Parameters
    ----------
    scenario : Scenario, name, path or mapping
        Jobs, limits and rules.
    mechanisms : sequence of str
        As for `marketsched.compare`; by default the scenario's own.
    owners : int
        How many are certified per mechanism.
    confidence : float
        Of every certificate, and of the findings of every search together.
    tolerance : float
        Gains up to it do not count, credits.
    budget : float
        Seconds of search per mechanism; the time until the market stands as an owner finds it, some
        seconds in a large one, comes on top.
    seed : int
        Root of all randomness.
    samples : int, optional
        Fresh paths per certificate, see `certify`.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    progress : function of (str, float), optional
        Told what is being done, and the share of it that is done.
    keep_interrupted : bool
        On Ctrl-C return what is finished instead of raising ``KeyboardInterrupt``.

    Returns
    -------
    Audit
        A mechanism that cannot be audited is named with its error; the others go on.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If a number, the scenario, or the name of a mechanism is at fault.
    MissingDataError, TraceError
        If the scenario needs a trace that is not there or damaged.
    """
    base = Scenario.of(scenario)
    entrants = contestants(base, mechanisms)
    owners, seed = whole_parameter("owners", owners, 1), checked_seed(seed)
    confidence = finite_parameter("confidence", confidence, "(0, 1)")
    tolerance, budget = finite_parameter("tolerance", tolerance), finite_parameter("budget", budget, "(0, inf)")
    plan = _Plan(owners, confidence, tolerance, budget, seed, samples, data, progress or (lambda what, share: None))
    meta = {
        "scenario": base.name,
        "owners": owners,
        "confidence": confidence,
        "tolerance": tolerance,
        "budget_seconds": budget,
        "seed": seed,
        "versions": versions(),
    }
    done: list[MechanismAudit] = []
    complete = True
    try:
        for entrant in entrants:
            done.append(_audited(entrant, plan))
    except _Stopped as stopped:
        complete = False
        done += [] if stopped.part is None else [stopped.part]
    if not complete and not (keep_interrupted and done):
        raise KeyboardInterrupt
    return Audit(base, tuple(done), tolerance, complete, meta)


class _Stopped(Exception):
    """Ctrl-C (control flow); ``part`` is what was found about the mechanism in work, if anything."""

    def __init__(self, part: MechanismAudit | None) -> None:
        super().__init__()
        self.part = part


@dataclass(frozen=True, slots=True)
class _Plan:
    owners: int
    confidence: float
    tolerance: float
    budget: float
    seed: int
    samples: int | None
    data: str | PathLike[str] | None
    tell: Progress


def _audited(entrant: Contestant, plan: _Plan) -> MechanismAudit:
    errors: list[str] = []
    try:
        table = _certified(entrant, plan, errors)
    except KeyboardInterrupt:
        raise _Stopped(None) from None
    share = None
    if len(table):
        unsure = 1 - float(table["confidence"].min())
        sure = certify_population(table["regret_upper"].tolist(), plan.tolerance, plan.confidence)
        share = max(0.0, sure - unsure)
    searched: list[Searched] = []
    try:
        _search_some(entrant, table, plan, searched, errors)
    except KeyboardInterrupt:
        errors.append("interrupted while it was searched")
        raise _Stopped(MechanismAudit(entrant.label, table, tuple(searched), share, tuple(errors))) from None
    return MechanismAudit(entrant.label, table, tuple(searched), share, tuple(errors))


def _certified(entrant: Contestant, plan: _Plan, errors: list[str]) -> pd.DataFrame:
    """Return the certificates of a mechanism; empty, with the reason in ``errors``, if there are none."""
    what = f"{entrant.label}: certificates"
    plan.tell(what, 0.0)
    try:
        return certify_owners(
            entrant.scenario,
            plan.owners,
            seed=plan.seed,
            confidence=plan.confidence,
            samples=plan.samples,
            data=plan.data,
            progress=lambda done, total: plan.tell(what, done / total),
        )
    except (MissingDataError, TraceError):  # no mechanism's fault
        raise
    except InvalidParameterError as error:  # no menu: only the search is left
        errors.append(f"no certificates: {error}")
    except Exception as error:  # a mechanism may raise anything: named, and the audit goes on
        errors.append(f"no certificates: {type(error).__name__}: {error}")
    return pd.DataFrame()


def _search_some(
    entrant: Contestant, table: pd.DataFrame, plan: _Plan, found: list[Searched], errors: list[str]
) -> None:
    """Search for the lies of a few owners, each added to ``found`` when it is finished."""
    plan.tell(f"{entrant.label}: playing up to the owners' turns", 0.0)
    try:
        situations = _situations(entrant, table, plan)
    except Exception as error:
        errors.append(f"no search: {error}" if isinstance(error, MarketschedError) else f"no search: {error!r}")
        return
    each_budget = plan.budget / max(len(situations), 1)
    for situation in situations:
        try:
            found.append(_search(situation, entrant.label, each_budget, plan))
        except Exception as error:
            errors.append(f"search for {situation.name}: {type(error).__name__}: {error}")
        else:
            errors.extend(
                f"{situation.name}: {each.words}: {each.reason}" for each in found[-1].deviations.failures[:1]
            )
            if not found[-1].deviations.plays:
                errors.append(f"{situation.name}: no lie was played within {each_budget:g} seconds")


def _search(situation: Situation, label: str, seconds: float, plan: _Plan) -> Searched:
    what = f"{label}: lies of {situation.name}"
    plan.tell(what, 0.0)
    with suppress(MarketschedError):  # a mechanism at fault: the search says so
        situation.mechanism_at_turn()  # else this would be counted as searching
    deviations = search(
        situation,
        budget_seconds=seconds * (1 - FOR_SHRINKING),
        confidence=plan.confidence,
        tolerance=plan.tolerance,
        seed=plan.seed,
        progress=lambda phase, plays, share: plan.tell(what, share),
    )
    lie = deviations.best(inside_model=True)
    if lie is not None:
        lie = shrink(situation, lie, budget_seconds=seconds * FOR_SHRINKING)
    return Searched(situation.name, situation, deviations, lie)


def _situations(entrant: Contestant, table: pd.DataFrame, plan: _Plan) -> list[Situation]:
    """Return the situations of the owners with the loosest certificates, or of some that are drawn."""
    if len(table):
        ranked = table.sort_values("regret_upper", ascending=False, kind="stable")["job"].tolist()
        # Later jobs never matter to an owner under LIFO: leaving them out is exact, and fast.
        return situations_of(entrant.scenario, ranked[:SEARCHED], plan.seed, nobody_later=True, data=plan.data)
    rng = np.random.default_rng(np.random.SeedSequence(plan.seed))
    workload = entrant.scenario.workload.build(rng.spawn(3)[0], plan.data)
    drawn = np.random.default_rng([0xA0D1, plan.seed]).permutation(len(workload.jobs))[:SEARCHED]
    names = [workload.jobs[int(i)].name for i in np.sort(drawn)]
    return situations_of(entrant.scenario, names, plan.seed, data=plan.data)


def _row(each: MechanismAudit) -> dict[str, Any]:
    job, words = each.worst
    widths = each.certificates["regret_upper"] - each.certificates["regret_lower"] if len(each.certificates) else None
    outside = each.outside
    return {
        "mechanism": each.label,
        "regret_lower": each.regret_lower,
        "regret_upper": each.regret_upper,
        "median_width": float(widths.median()) if widths is not None else np.nan,
        "largest_width": float(widths.max()) if widths is not None else np.nan,
        "certified_owners": len(each.certificates),
        "certified_share": np.nan if each.certified_share is None else each.certified_share,
        "searched_owners": len(each.searched),
        "worst_job": job,
        "lie": words,
        "outside_model": outside[0].words if outside else "",
        "outside_gain": outside[0].gain_low if outside else 0.0,
        "plays": sum(one.deviations.plays for one in each.searched),
        "errors": "; ".join(each.errors),
    }
