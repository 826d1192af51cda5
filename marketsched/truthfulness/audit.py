r"""The audit of a scenario: regret between a search from below and certificates from above.

For every mechanism, ``search <= true regret <= certificate``:

* mechanisms with menus, at birth or at arrival: certificates of many owners spread over one run (`certify_owners`);
* any mechanism: single lies of many owners in the market at hand, where gains are exact (`Screening`, `Reading`);
  where these decide nothing, because the mechanism draws or promises truth up to regret alone, the best of them, and
  those that certificates name, on fresh worlds (`lies_on_worlds`).

A certificate is a bound with a stated confidence. A search finds lies, and never proves that there
are none. No mechanism is accused by a sampled certificate alone: with hundreds of them a few are wrong. The
lie it names is played on fresh worlds, and confirmed or not; all lies of a mechanism that are scored share the
stated confidence. Conduct outside the model (delayed submissions, split jobs, ghosts) is what `audit_conduct` plays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Annotated, Any

import pandas as pd

from marketsched.agents.call_limit import calls_end_within
from marketsched.config.named_mechanisms import OWN, NamedMechanism, named_mechanisms
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Count, OpenShare, Positive, Seed, Whole, legal
from marketsched.mechanisms.signatures import renamed
from marketsched.play.kept_results import kept_for
from marketsched.play.parallel import Where, workers_for
from marketsched.results.result import versions
from marketsched.truthfulness.at_hand import joint_at_hand, market_at_hand, on_worlds, plays_ahead, screened_at_hand
from marketsched.truthfulness.audit_findings import MechanismAudit
from marketsched.truthfulness.audit_result import Audit
from marketsched.truthfulness.certificates.arrival_certificate import MENU_LIES
from marketsched.truthfulness.certificates.bands import certify_population
from marketsched.truthfulness.certifying import Certified, make_certificates
from marketsched.truthfulness.checks.checks import CALL_SECONDS
from marketsched.truthfulness.contradictions import contradiction
from marketsched.truthfulness.plan import FEWEST_PLAYS, PLAYS, Plan, Progress, Purse
from marketsched.truthfulness.searches.joint_reports import JointGain
from marketsched.truthfulness.searches.on_worlds import OnWorlds
from marketsched.truthfulness.searches.plays_ahead import Helpers, ready, truth_of
from marketsched.truthfulness.searches.screened import Screened
from marketsched.truthfulness.situations.reproducible import NOT_PASSED, differs_by_process, not_reproducible, repeats


@renamed(jobs="workers")
@legal
def audit(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    mechanisms: Sequence[str | Callable[..., Any]] = (OWN,),
    *,
    owners: Count = 100,
    confidence: OpenShare = 0.99,
    tolerance: Amount = 0.0,
    budget: Positive | None = None,
    plays: Annotated[int, Whole(FEWEST_PLAYS)] | None = PLAYS,
    seed: Seed = 0,
    samples: int | None = None,
    menu_lies: Count = MENU_LIES,
    call_seconds: Positive = CALL_SECONDS,
    per_owner: bool = False,
    data: str | PathLike[str] | None = None,
    workers: Count = 1,
    executor: Where | None = None,
    keep: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> Audit:
    """Measure how much owners can gain by lying to mechanisms, on the jobs of one seed.

    Parameters
    ----------
    scenario : Scenario, name, path or mapping
        A market: jobs, limits and rules.
    mechanisms : sequence of str or class
        As for `marketsched.compare`; by default the scenario's own.
    owners : int
        Number of owners that get a certificate, per mechanism.
    confidence : float
        Of every certificate by itself, and of all confirmed lies of a mechanism together.
    tolerance : float
        Gains up to it do not count, credits.
    budget : float or None
        Limit of search per mechanism, seconds of the processor, of all processes together; the result lists the parts
        that it cut off, and has a status of its own if nothing was found. It does not include building the market,
        which takes some seconds for a large one. None: no limit.
    plays : int or None
        Plays of search per mechanism, >= 100. The same seed gives the same result on every machine, busy or idle,
        unless ``budget`` ends first. None: only ``budget`` limits the search.
    seed : int
        Root of all randomness.
    samples : int, optional
        Fresh paths per certificate, see `certify`.
    menu_lies : int
        For mechanisms with menus at arrival: misreports tried to check that a report does not change its own menu.
    call_seconds : float
        Time limit of one call of a mechanism, of the time in which it works. A longer call is interrupted and counts as
        a fault of the mechanism; later calls then have a tenth of the limit. Without effect on Windows and outside the
        main thread.
    per_owner : bool
        Also play joint reports of owners with several jobs, with a quarter of the plays in addition. No mechanism
        promises anything about them.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    workers : int
        Processes that share the plays; your script then needs ``if __name__ == "__main__":``. The result does not
        depend on it, unless ``budget`` ends first.
    executor : str or concurrent.futures.Executor, optional
        In place of processes here: the address of a Dask scheduler (``"tcp://10.0.0.1:8786"``), or an executor.
    keep : path, optional
        Folder that keeps finished plays until the audit is saved: the same audit, if interrupted or killed, continues
        from there. None: nothing is kept.
    progress : function of (str, float), optional
        Called with the name of the current step, and the share of the audit that is done, in plays or seconds.
    keep_interrupted : bool
        On Ctrl-C return the finished part instead of raising ``KeyboardInterrupt``.

    Returns
    -------
    Audit
        A mechanism that cannot be audited has its error and figures of NaN; the other mechanisms are audited.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If a number, the scenario, or the name of a mechanism is not legal.
    MissingDataError, TraceError
        If a trace that the scenario needs is missing or damaged.

    Examples
    --------
    >>> found = audit("stochastic-mix", ["first-come"], owners=1, plays=100)
    >>> found.mechanisms[0].label, found.mechanisms[0].lies
    ('first-come', [])
    """
    base = Scenario.of(scenario, kind="market")
    entrants = named_mechanisms(base, mechanisms)
    if budget is None and plays is None:
        raise InvalidParameterError("budget and plays are both None: expected one of them")
    tell = progress or (lambda what, share: None)
    question = {
        "scenario": base.to_yaml(),
        "mechanisms": [each.label for each in entrants],
        "numbers": [owners, confidence, tolerance, budget, plays, seed, samples, menu_lies, call_seconds, per_owner],
        "data": None if data is None else str(data),
    }
    kept = kept_for(keep if all(isinstance(each, str) for each in mechanisms) else None, {"audit": question})
    numbers = (owners, confidence, tolerance, budget, plays, seed, samples, menu_lies, data)
    meta = {
        "scenario": base.name,
        "owners": owners,
        "confidence": confidence,
        "tolerance": tolerance,
        "budget_seconds": budget,
        "plays": plays,
        "seed": seed,
        "versions": versions(),
    }
    done: list[MechanismAudit] = []
    complete = True

    def notify(what: str, share: float) -> None:
        tell(what, (len(done) + share) / len(entrants))

    try:
        with workers_for(workers, executor, ready) as staying:
            workload = base.workload_of(seed, data)
            plan = Plan(*numbers, notify, per_owner, call_seconds, Helpers(staying, kept), workload)
            for entrant in entrants:
                with calls_end_within(call_seconds):
                    done.append(_audited(entrant, plan))
    except _Stopped as stopped:
        complete = False
        done += [] if stopped.part is None else [stopped.part]
    if not complete and not (keep_interrupted and done):
        raise KeyboardInterrupt
    return Audit(base, tuple(done), tolerance, complete, meta, () if kept is None else (kept,))


class _Stopped(Exception):
    """Ctrl-C (control flow); ``part`` is what was found about the mechanism in work, if anything."""

    def __init__(self, part: MechanismAudit | None) -> None:
        super().__init__()
        self.part = part


def _audited(entrant: NamedMechanism, plan: Plan) -> MechanismAudit:
    errors: list[str] = []
    try:
        plan.tell(f"{entrant.label}: the truth, played again", 0.0)
        market = market_at_hand(entrant, plan, errors)
        why = "" if market is None else not_reproducible(market)
        why = why or differs_by_process(entrant.scenario, plan.seed, plan.data)
        if why:
            return _unrepeatable(entrant, why)
    except KeyboardInterrupt:
        raise _Stopped(None) from None
    certified: Certified | None = None
    purse = Purse(plan.plays, plan.seconds)
    worlds = OnWorlds()
    screened: Screened | None = None
    joint: list[JointGain] = []
    ahead = plays_ahead(entrant, plan)
    interrupted = False
    try:
        certified = make_certificates(entrant, plan)
        screened = screened_at_hand(entrant, market, plan, purse, errors, certified.menus, ahead)
        if screened is None or screened.best_counted is None:
            if market is not None and len(certified.table) and not certified.menus:
                market.alone = True  # later jobs never matter to an owner under LIFO
            worlds = on_worlds(entrant, market, screened, certified.named, plan, purse, errors)
        joint = joint_at_hand(entrant, screened, plan, purse, errors) if plan.per_owner else []
    except KeyboardInterrupt:
        if certified is None:
            raise _Stopped(None) from None
        errors.append("interrupted while it was searched")
        interrupted = True
    if not _repeatable(screened):
        return _unrepeatable(entrant, f"{NOT_PASSED}: a play of a lie ends otherwise when it is made again")
    table, errors = certified.table, [*certified.errors, *errors]
    share = None
    if len(table):
        unsure = 1 - float(table["confidence"].min())
        if market is not None and len(table) == len(market.setup.jobs):  # all owners: nothing was sampled
            sure = float((table["regret_upper"] <= plan.tolerance).mean())
        else:
            sure = certify_population(table["regret_upper"].tolist(), plan.tolerance, plan.confidence)
        share = max(0.0, sure - unsure)
    wrong = contradiction(table, worlds.claims, screened)
    if wrong:
        errors.append(wrong)
        table, share = pd.DataFrame(), None
    beside_menu = certified.beside_menu
    if not beside_menu and screened is not None and screened.mischarged is not None:
        beside_menu = str(screened.mischarged)
    more = (
        screened,
        tuple(purse.cut),
        purse.spent,
        entrant.scenario,
        tuple(joint),
        "",
        beside_menu,
    )
    found = MechanismAudit(entrant.label, table, worlds, share, tuple(errors), *more)
    if found.truth_fails and len(table):
        why = "no certificates: the mechanism fails under the truthful reports of every owner examined"
        found = replace(found, certificates=pd.DataFrame(), certified_share=None, errors=(why, *errors))
    if interrupted:
        raise _Stopped(found)
    return found


def _unrepeatable(entrant: NamedMechanism, why: str) -> MechanismAudit:
    """Return the findings about a mechanism whose plays cannot be compared: none."""
    why_not = f"not audited, no lie was played: {why}"
    return MechanismAudit(
        entrant.label, pd.DataFrame(), OnWorlds(), None, (why_not,), scenario=entrant.scenario, irreproducible=why
    )


def _repeatable(screened: Screened | None) -> bool:
    """Tell whether the lie that breaks the promise by most ends the same when it is played again, and its truth."""
    best = None if screened is None else screened.best_counted
    if best is None:
        return True
    truth = truth_of(best.owner)
    return repeats(lambda: (best.owner.play(best.conduct), best.owner.play(truth)))
