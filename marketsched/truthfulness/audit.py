r"""The audit of a scenario: regret between a search from below and certificates from above.

For every mechanism, ``search <= true regret <= certificate``:

* mechanisms with menus, at birth or at arrival: certificates of many owners spread over one run (`certify_owners`);
* any mechanism: a black-box search for lies that pay, for a few owners: those of whom a certificate
  names a lie, then those whose certificate is loosest, or who were drawn if there is none (`search`).

A certificate is a bound with a stated confidence. A search finds lies, and never proves that there
are none. Nobody is accused by a sampled certificate alone: with hundreds of them a few are wrong. The
lie it names is given to the search, which confirms it on fresh worlds or does not, and all searches of
a mechanism share the stated confidence. Lies outside the model (delayed submissions, split jobs,
ghosts) are told apart: no theorem speaks of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from marketsched.agents.call_limit import CallDidNotEnd, calls_end_within
from marketsched.config.named_mechanisms import OWN, NamedMechanism, named_mechanisms
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.checks import finite_parameter, whole_parameter
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError, MissingDataError, TraceError
from marketsched.mechanisms.randomness import checked_seed
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.play.running import versions
from marketsched.results.views import at_least, at_most
from marketsched.truthfulness.audited import Audit, MechanismAudit, Searched
from marketsched.truthfulness.certificates.arrival_certificate import MENU_LIES
from marketsched.truthfulness.certificates.certificate import NEGLIGIBLE, Certificate
from marketsched.truthfulness.certificates.owners import certify_owners
from marketsched.truthfulness.certificates.population import certify_population
from marketsched.truthfulness.checks.checks import CALL_SECONDS
from marketsched.truthfulness.searches.own_lies import FixedReport
from marketsched.truthfulness.searches.scoring import score
from marketsched.truthfulness.searches.searching import search
from marketsched.truthfulness.searches.shrinking import shrink
from marketsched.truthfulness.situations.situation import Situation, situations_of

SEARCHED = 4  # owners per mechanism that the search is run for
FOR_SHRINKING = 0.2  # share of an owner's budget

Progress = Callable[[str, float], None]  # what is being done, and how much of it is


def audit(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    mechanisms: Sequence[str] = (OWN,),
    *,
    owners: int = 100,
    confidence: float = 0.99,
    tolerance: float = 0.0,
    budget: float = 60.0,
    plays: int | None = None,
    seed: int = 0,
    samples: int | None = None,
    menu_lies: int = MENU_LIES,
    call_seconds: float = CALL_SECONDS,
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
        Of every certificate by itself, and of all confirmed lies of a mechanism together.
    tolerance : float
        Gains up to it do not count, credits.
    budget : float
        Seconds of search per mechanism, so what is found depends on the machine; the time until the market
        stands as an owner finds it, with all kernels compiled, some seconds in a large one, comes on top.
    plays : int, optional
        Plays of search per mechanism, >= 100, in place of the seconds: what is found is then the same
        for the same seed on every machine.
    seed : int
        Root of all randomness.
    samples : int, optional
        Fresh paths per certificate, see `certify`.
    menu_lies : int
        Of a mechanism with menus at arrival: how many reports are asked whether they move the menu they face.
    call_seconds : float
        How long one call of a mechanism may take; one that takes longer is interrupted, and is a fault of the
        mechanism (later ones then have a tenth of it). Not in force on Windows, nor outside of the main thread.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    progress : function of (str, float), optional
        Called with what is being done, and the share of it that is done.
    keep_interrupted : bool
        On Ctrl-C return what is finished instead of raising ``KeyboardInterrupt``.

    Returns
    -------
    Audit
        A mechanism that cannot be audited is named with its error, its figures are NaN; the others go on.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If a number, the scenario, or the name of a mechanism is at fault.
    MissingDataError, TraceError
        If the scenario needs a trace that is not there or damaged.

    Examples
    --------
    >>> found = audit("stochastic-mix", ["first-come"], owners=1, plays=100)
    >>> found.mechanisms[0].label, found.mechanisms[0].lies
    ('first-come', [])
    """
    base = Scenario.of(scenario, kind="market")
    entrants = named_mechanisms(base, mechanisms)
    owners, seed = whole_parameter("owners", owners, 1), checked_seed(seed)
    confidence = finite_parameter("confidence", confidence, "(0, 1)")
    tolerance, budget = finite_parameter("tolerance", tolerance), finite_parameter("budget", budget, "(0, inf)")
    most = None if plays is None else whole_parameter("plays", plays, 100)
    tell = progress or (lambda what, share: None)
    lies = whole_parameter("menu_lies", menu_lies, 1)
    finite_parameter("call_seconds", call_seconds, "(0, inf)")
    plan = _Plan(owners, confidence, tolerance, budget, most, seed, samples, lies, data, tell)
    meta = {
        "scenario": base.name,
        "owners": owners,
        "confidence": confidence,
        "tolerance": tolerance,
        "budget_seconds": budget,
        **({} if most is None else {"plays": most}),
        "seed": seed,
        "versions": versions(),
    }
    done: list[MechanismAudit] = []
    complete = True
    try:
        for entrant in entrants:
            with calls_end_within(call_seconds):
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
    plays: int | None
    seed: int
    samples: int | None
    menu_lies: int
    data: str | PathLike[str] | None
    tell: Progress

    def limits(self, part: float) -> dict[str, Any]:
        """Return what a search may spend that has this part of the budget."""
        if self.plays is None:
            return {"budget_seconds": self.budget * part}
        return {"budget_seconds": None, "max_plays": max(1, int(self.plays * part))}


def _audited(entrant: NamedMechanism, plan: _Plan) -> MechanismAudit:
    errors: list[str] = []
    named: dict[str, StatementOfWork] = {}
    try:
        table = _certified(entrant, plan, named, errors)
    except KeyboardInterrupt:
        raise _Stopped(None) from None
    share = None
    if len(table):
        unsure = 1 - float(table["confidence"].min())
        sure = certify_population(table["regret_upper"].tolist(), plan.tolerance, plan.confidence)
        share = max(0.0, sure - unsure)
    searched: list[Searched] = []
    interrupted = False
    try:
        _search_some(entrant, table, plan, named, searched, errors)
    except KeyboardInterrupt:
        errors.append("interrupted while it was searched")
        interrupted = True
    wrong = _contradicted(table, searched)
    if wrong:
        errors.append(wrong)
        table, share = pd.DataFrame(), None
    found = MechanismAudit(entrant.label, table, tuple(searched), share, tuple(errors))
    if interrupted:
        raise _Stopped(found)
    return found


def _certified(
    entrant: NamedMechanism, plan: _Plan, named: dict[str, StatementOfWork], errors: list[str]
) -> pd.DataFrame:
    """Return the certificates of a mechanism; empty, with the reason in ``errors``, if there are none.

    ``named`` receives, by job, the reports that certificates say beat the truth.
    """

    def note(job: str, certificate: Certificate) -> None:
        if certificate.report is not None:
            named[job] = certificate.report

    what = f"{entrant.label}: certificates"
    plan.tell(what, 0.0)
    try:
        return certify_owners(
            entrant.scenario,
            plan.owners,
            seed=plan.seed,
            confidence=plan.confidence,
            samples=plan.samples,
            menu_lies=plan.menu_lies,
            data=plan.data,
            progress=lambda done, total: plan.tell(what, done / total),
            note=note,
        )
    except (MissingDataError, TraceError):  # no mechanism's fault
        raise
    except (InvalidParameterError, CallDidNotEnd) as error:  # no menu: only the search is left
        errors.append(f"no certificates: {error}")
    except Exception as error:  # a mechanism may raise anything: named, and the audit goes on
        errors.append(f"no certificates: {type(error).__name__}: {error}")
    return pd.DataFrame()


def _search_some(
    entrant: NamedMechanism,
    table: pd.DataFrame,
    plan: _Plan,
    named: Mapping[str, StatementOfWork],
    found: list[Searched],
    errors: list[str],
) -> None:
    """Search for the lies of a few owners, each added to ``found`` when it is finished.

    What could not be done is added to ``errors``, the same trouble of several owners once.
    """
    plan.tell(f"{entrant.label}: playing up to the owners' turns", 0.0)
    try:
        situations = _situations(entrant, table, plan)
    except Exception as error:
        errors.append(f"no search: {error}" if isinstance(error, MarketschedError) else f"no search: {error!r}")
        return
    n = max(len(situations), 1)
    confidence = 1 - (1 - plan.confidence) / n
    troubles: defaultdict[str, list[str]] = defaultdict(list)  # owners' jobs, by what could not be done
    try:
        for situation in situations:
            lie = named.get(situation.name)
            try:
                found.append(_search(situation, entrant.label, lie, 1 / n, confidence, plan))
            except Exception as error:
                troubles[f"the search failed: {type(error).__name__}: {error}"].append(situation.name)
            else:
                for trouble in _unplayed(found[-1], plan, n):
                    troubles[trouble].append(situation.name)
    finally:  # Ctrl-C, too
        errors.extend(f"{', '.join(names)}: {trouble}" for trouble, names in troubles.items())


def _unplayed(one: Searched, plan: _Plan, n: int) -> list[str]:
    """Return what could not be compared in a search, and why."""
    failures, said = one.deviations.failures, []
    if failures:
        more = f" (and {len(failures) - 1} more could not be compared)" if len(failures) > 1 else ""
        said.append(f"{failures[0].words}: {failures[0].reason}{more}")
    if not one.compared:
        within = f"{plan.budget / n:g} seconds" if plan.plays is None else f"{plan.plays // n:,} plays"
        said.append(f"no lie was compared with the truth, in {one.deviations.plays:,} plays within {within}")
    return said


def _search(
    situation: Situation, label: str, named: StatementOfWork | None, part: float, confidence: float, plan: _Plan
) -> Searched:
    """Search the lies of one owner, play the one that a certificate has named, and shrink the best of the search.

    All of them share ``confidence``.
    """
    steps = 2 if named is None else 3
    confidence = 1 - (1 - confidence) / steps
    after = part * FOR_SHRINKING / (steps - 1)
    what = f"{label}: lies of {situation.name}"
    plan.tell(what, 0.0)
    deviations = search(
        situation,
        **plan.limits(part * (1 - FOR_SHRINKING)),
        confidence=confidence,
        tolerance=plan.tolerance,
        seed=plan.seed,
        progress=lambda phase, plays, share: plan.tell(what, share),
    )
    lie = deviations.best(inside_model=True)
    least = None if lie is None else shrink(situation, lie, **plan.limits(after))
    smallest = None if least is lie else least
    if named is not None:
        with suppress(MarketschedError):  # a mechanism at fault under this lie: as in the search, nobody is accused
            given = score(
                situation,
                FixedReport(named),
                confidence=confidence,
                tolerance=plan.tolerance,
                seed=plan.seed,
                **plan.limits(after),
                family="certificate",
            )
            if given.confirmed and (lie is None or given.gain_low > lie.gain_low):
                lie = given
    return Searched(situation.name, situation, deviations, lie, smallest)


def _contradicted(table: pd.DataFrame, searched: Sequence[Searched]) -> str:
    """Return which certificate a lie that was played contradicts, if any: then none of them is worth anything."""
    for one in searched if len(table) else ():
        row = table[table["job"] == one.job]
        upper = float(row["regret_upper"].iloc[0]) if len(row) else np.inf
        if one.lie is not None and one.lie.gain_low > upper + NEGLIGIBLE * max(1.0, one.situation.truth.value.highest):
            return (
                f"no certificates: {one.job} {one.lie.words}, which gains at least {at_least(one.lie.gain_low)} "
                f"credits; its certificate allows {at_most(upper)}: what it takes for granted does not hold"
            )
    return ""


def _situations(entrant: NamedMechanism, table: pd.DataFrame, plan: _Plan) -> list[Situation]:
    """Return the situations of owners with a named lie or a loose certificate, or of some that are drawn."""
    if len(table):
        ranked = table.sort_values(["regret_lower", "regret_upper"], ascending=False, kind="stable")["job"].tolist()
        # Later jobs never matter to an owner under LIFO: leaving them out is exact, and fast. Menus at arrival are
        # made of jobs that were submitted later, too.
        alone = "rests_on" not in table
        return situations_of(entrant.scenario, ranked[:SEARCHED], plan.seed, nobody_later=alone, data=plan.data)
    rng = np.random.default_rng(np.random.SeedSequence(plan.seed))
    workload = entrant.scenario.workload.build(rng.spawn(3)[0], plan.data)
    drawn = np.random.default_rng([0xA0D1, plan.seed]).permutation(len(workload.jobs))[:SEARCHED]
    names = [workload.jobs[int(i)].name for i in np.sort(drawn)]
    return situations_of(entrant.scenario, names, plan.seed, data=plan.data)
