"""Certificates of many owners in one run: each at the moment of its submission."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation, Strategy, submission_delay
from marketsched.agents.market_run import MarketRun
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, OpenShare, Seed, legal
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.certificates.arrival_certificate import MENU_LIES, certify_arrivals
from marketsched.truthfulness.certificates.owner_certificate import Certificate, certificate_row, certify, require_menu
from marketsched.worlds.workload import Workload

OWN_STREAM = 0xCE57  # keeps what is drawn here apart from the run's own randomness

Progress = Callable[[int, int], None]  # owners certified, owners in all


@legal
def certify_owners(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    owners: Count = 100,
    *,
    seed: Seed = 0,
    confidence: OpenShare = 0.99,
    samples: int | None = None,
    menu_lies: Count = MENU_LIES,
    data: str | PathLike[str] | None = None,
    workload: Workload | None = None,
    progress: Progress | None = None,
    note: Callable[[str, Certificate], None] | None = None,
) -> pd.DataFrame:
    """Run a scenario and certify owners spread over it, each just before it submits.

    The jobs that submit at birth are cut, in order of submission, into ``owners`` equal parts (to within one job),
    and one job of each part is drawn at random. The run is the one of `run` with the
    same seed: certifying changes nothing in it.

    A mechanism that posts its menu at arrival is certified then, in a run in which all owners report truly
    (`marketsched.truthfulness.certificates.arrival_certificate`), after its menus were checked.

    Parameters
    ----------
    scenario : Scenario, name, path or mapping
        As for `run`; its mechanism must be a posted-price mechanism, or post menus at arrival.
    owners : int
        How many; all, if there are fewer.
    seed : int
        Root of all randomness, >= 0.
    confidence, samples
        Of each certificate, see `certify`.
    menu_lies : int
        Menus at arrival: misreports of some of these owners tried to check that they do not change the menu, >= 1.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    workload : Workload, optional
        That of the seed, if it was built before.
    progress : function of (int, int), optional
        Called after each certificate with the owners certified, and the owners in all.
    note : function of (str, Certificate), optional
        Called with each owner's job and certificate.

    Returns
    -------
    DataFrame
        One row per owner: ``owner``, ``job``, ``round``, ``nodes``, ``highest_value``,
        ``truthful_utility``, ``regret_lower``, ``regret_estimate``, ``regret_upper`` (credits),
        ``witness`` (in words; empty: nothing beats the truth), ``confidence``; at arrival
        also ``rests_on``, the checks of the menus. Fewer rows than ``owners`` if the horizon cuts jobs off, some
        never arrive, or some durations are hidden from menus at arrival.

    Raises
    ------
    InvalidParameterError
        If the mechanism posts no menu, no job submits at birth, a report moves a menu at arrival (it is named),
        or all durations are hidden from menus at arrival.
    MissingDataError, TraceError
        As `run`.

    Examples
    --------
    >>> table = certify_owners("stochastic-mix", owners=20)  # doctest: +SKIP
    >>> table["regret_upper"].max()  # doctest: +SKIP
    """
    scenario = Scenario.of(scenario, kind="market")
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    draws = np.random.default_rng([OWN_STREAM, seed])
    setup = scenario.setup(rng, data=data, workload=workload)
    at_arrival = setup.mechanism.posts_menus_at_arrival
    if not at_arrival:
        require_menu(setup.mechanism)
    at_birth = [job for job in setup.jobs if submission_delay(setup.strategy_of(job)) == 0]
    if not at_birth:
        raise InvalidParameterError(f"scenario {setup.name!r}: no job submits at birth: expected at least one")
    chosen = _one_of_each_part(at_birth, owners, draws)
    if at_arrival:
        return certify_arrivals(setup, chosen, menu_lies=menu_lies, rng=draws.spawn(1)[0], progress=progress, note=note)
    found: list[dict[str, Any]] = []
    last_round = max(job.truth.birth for job in chosen.values())

    def certified(job: Job, truth: StatementOfWork) -> None:
        certificate = certify(setup.mechanism, truth, confidence=confidence, samples=samples, rng=draws.spawn(1)[0])
        found.append(certificate_row(job, certificate))
        if note is not None:
            note(job.name, certificate)
        if progress is not None:
            progress(len(found), len(chosen))

    def strategy_of(job: Job) -> Strategy:
        claim = setup.strategy_of(job)
        return _Certified(claim, job, certified) if job.name in chosen else claim

    market = MarketRun(replace(setup, strategy=strategy_of))
    while market.running and market.round < last_round:
        market.step()
    return pd.DataFrame(found)


class _Certified:
    """A strategy that has its owner certified before it reports for the first time."""

    def __init__(self, claim: Strategy, job: Job, note: Callable[[Job, StatementOfWork], None]) -> None:
        self._claim, self._job, self._note = claim, job, note
        self._noted = False

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Certify, then report as the claim does."""
        if not self._noted:
            self._noted = True
            self._note(self._job, truth)
        return self._claim.report(truth, public)


def _one_of_each_part(jobs: list[Job], parts: int, rng: np.random.Generator) -> dict[str, Job]:
    """Return by name one job, drawn at random, of each of ``parts`` equal parts of ``jobs`` in order of birth."""
    in_order = sorted(jobs, key=lambda job: job.truth.birth)
    chosen = [int(rng.choice(part)) for part in np.array_split(np.arange(len(in_order)), min(parts, len(in_order)))]
    return {in_order[i].name: in_order[i] for i in chosen}
