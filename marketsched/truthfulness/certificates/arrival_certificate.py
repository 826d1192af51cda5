r"""Certificates of mechanisms that post a menu at arrival: the surplus of the best entry minus that of the truth's.

A job that has arrived with its duration revealed faces a menu of starts at prices. If no report of its
own moves that menu, a report selects an entry and nothing else, so with c' nodes declared, c' >= c,

.. math:: \text{regret} = \max\{0, \max_{c', s} V(s + d) - p_{c'}(s, d)\} - (V - \text{payment under the truth}),

a finite maximum, ex post, whatever the others report, per job; with fewer nodes than c the job cannot run. That no
report moves the menu, and that the menu is what is charged, is not taken on trust. For a sample of owners and lies
`marketsched.truthfulness.certificates.menus` compares the menus bit for bit, and every payment with the menu that its
job was shown; a menu that moves, or a payment that differs from it, is refused a certificate. So is a class that
changes anything of the one that the theorem is about (`unchanged`). Not covered: when an owner declares its arrival,
several jobs of one owner, and durations that are hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.limits import last_useful_completion
from marketsched.mechanisms.resources.menus import ClusterMenu
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.certificates.cluster_menus import best_on_cluster
from marketsched.truthfulness.certificates.menus import Served, has_entries, lies_of, play_menus
from marketsched.truthfulness.certificates.owner_certificate import Certificate, certificate_row, negligible_gain
from marketsched.truthfulness.certificates.unchanged import require_certified_class
from marketsched.truthfulness.situations.announced import PaymentBesideMenu

MENU_LIES = 24  # tried in each run, by default
MOST_LIES = 12  # of one owner


def certify_arrivals(
    setup: MarketSetup,
    chosen: Mapping[str, Job],
    *,
    menu_lies: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
    note: Callable[[str, Certificate], None] | None = None,
) -> pd.DataFrame:
    """Play a market of true reports, which is used up, and certify the ``chosen`` owners as their jobs arrive.

    Menus are compared under ``menu_lies`` >= 1 misreports, drawn by ``rng``, of as many owners as needed. Returns one
    row per owner whose job arrives and shows its duration then, with the columns of `certify_owners`.

    Raises InvalidParameterError if a report moves a menu, a job pays what its menu does not say, durations are hidden,
    no menu was seen, or the mechanism changes what the theorem is about.
    """
    check_revealed(chosen)
    lies = _lies(setup, chosen, menu_lies, rng)
    last = max((job.arrival or 0 for job in chosen.values()), default=0)

    def notify(now: int) -> None:
        if progress is not None and last:
            progress(sum((job.arrival or 0) <= now for job in chosen.values()), len(chosen))

    served, check = play_menus(setup, lies, notify)
    if not check.lies:
        raise InvalidParameterError(f"menus at arrival: none of {len(chosen)} jobs arrives with a report to ask about")
    if check.moved is not None:
        raise InvalidParameterError(
            f"{check.words}: expected menus that no report moves; the search takes any mechanism"
        )
    if check.rates_only and check.owners:
        raise InvalidParameterError(
            "durations are hidden: when a job's turn comes is no menu, so a certificate does not apply; "
            f"{check.words}; expected revealed durations"
        )
    if check.mischarged is not None:
        raise PaymentBesideMenu(check.mischarged)
    require_certified_class(setup.mechanism)
    found = []
    for name, each in served.items():
        if not has_entries(each.menu):
            continue
        job = chosen[name]
        got = certify_served(each, job.truth, job.duration, setup)
        words = best_for(each.menu, job.truth, job.duration, setup)[1]
        missed = words if got.regret_upper > negligible_gain(job.truth) else ""
        found.append({**certificate_row(job, got), "witness": missed, "rests_on": check.words})
        if note is not None:
            note(name, got)
    if not found:
        raise InvalidParameterError(f"no menu was seen of {len(chosen)} jobs: expected one at the arrival of each")
    return pd.DataFrame(found)


def check_revealed(chosen: Mapping[str, Job]) -> None:
    """Raise InvalidParameterError if the platform does not see the duration of a job with shapes at its arrival."""
    hidden = [name for name, job in chosen.items() if job.truth.shapes and not job.truth.revealed]
    if hidden:
        raise InvalidParameterError(
            f"durations are hidden, of {hidden[0]} first: the best entry is then best on average alone, and one play "
            "shows no average; expected revealed durations"
        )


def certify_served(served: Served, truth: StatementOfWork, duration: int, setup: Any) -> Certificate:
    """Return the exact certificate of one owner whose job was served under its true report.

    ``duration`` are the rounds that the platform saw at arrival; ``setup`` has ``public``, and on a cluster
    ``mechanism``.

    Examples
    --------
    >>> from marketsched.config.scenario import Scenario
    >>> setup = Scenario.load("stochastic-mix").with_mechanism("bid-price").setup(np.random.default_rng(1))
    >>> job = setup.jobs[0]
    >>> served, _ = play_menus(setup, {job.name: []})
    >>> certify_served(served[job.name], job.truth, job.duration, setup).regret_upper
    0.0
    """
    public = setup.public
    value = 0.0
    if served.completion is not None and served.completion < truth.birth + public.max_delay:
        value = served.worth * float(truth.value(served.completion))
    utility = value - served.payment
    best, _ = best_for(served.menu, truth, duration, setup)
    regret = max(0.0, best - utility)
    return Certificate(
        regret_upper=regret,
        regret_lower=regret,
        confidence=1.0,
        witness="",
        report=None,
        regret_estimate=regret,
        truthful_utility=utility,
        highest_value=truth.value.highest,
        samples=None,
    )


def best_for(menu: Any, truth: StatementOfWork, duration: int, setup: Any) -> tuple[float, str]:
    """Return the largest true surplus among the entries of a menu, on identical nodes or a cluster, and it in words."""
    if isinstance(menu, ClusterMenu):
        return best_on_cluster(menu, truth, duration, setup.mechanism.cluster, setup.mechanism.limits)
    return best_entry_of(menu, truth, duration, setup.public)


def best_entry_of(menu: Any, truth: StatementOfWork, duration: int, public: PublicInformation) -> tuple[float, str]:
    """Return the largest true surplus among the entries of a menu at arrival, credits, and the entry in words.

    ``menu`` has ``now`` and ``prices(width, duration, n_starts)``, as `ArrivalMenu`. Not to run at all brings 0.
    """
    last = last_useful_completion(truth, public.max_delay, public.horizon)
    n_starts = max(0, last - duration - menu.now + 1)
    if not n_starts or (public.max_duration is not None and duration > public.max_duration):
        return 0.0, ""
    values, best, words = truth.value.table(menu.now + duration, n_starts), 0.0, ""
    for width in range(truth.concurrency, public.widest + 1):
        surplus = values - menu.prices(width, duration, n_starts)
        place = int(surplus.argmax())
        if surplus[place] > best:
            best = float(surplus[place])
            words = f"the start in round {menu.now + place} on {width} nodes was to be had"
    return best, words


def _lies(setup: MarketSetup, chosen: Mapping[str, Job], menu_lies: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return by job the reports that its menu is asked about, in order of birth; for most there are none."""
    arriving = [name for name, job in chosen.items() if job.arrival is not None and job.arrival <= setup.horizon]
    asked = min(len(arriving), -(-menu_lies // MOST_LIES) if menu_lies > MOST_LIES * 4 else 4)
    places = set(rng.permutation(len(arriving))[:asked].tolist())
    found: dict[str, Any] = {name: [] for name in arriving}
    left, public = menu_lies, setup.public
    for place, name in enumerate(arriving):
        if place in places:
            own = lies_of(chosen[name].truth, public, -(-left // max(1, asked)), rng)
            found[name] = own
            left, asked = left - len(own), asked - 1
    return found
