"""Gains from conduct outside the model in a scenario: tables with intervals, for several mechanisms and seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np
import pandas as pd

from marketsched.config.named_mechanisms import OWN, named_mechanisms
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Natural, Seed, legal
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.randomness import checked_seed
from marketsched.results.paired_statistics import CONFIDENCE, spread
from marketsched.results.result import Result, versions
from marketsched.truthfulness.conduct.all_jobs import KNOWN, VALUE
from marketsched.truthfulness.conduct.conduct_gains import play_conducts
from marketsched.truthfulness.conduct.conducts import BELIEFS, FAMILIES, TERMS

Utility = Literal["money", "value"]
OWN_STREAM = 0xC0D7  # keeps what is drawn here apart from the run's own randomness
KNOWLEDGE = (KNOWN, "as it will be")
BEST = "best of these in hindsight"
BEST_OF_DAYS = "best response over all runs"
NEGLIGIBLE = 1e-9  # of the largest value: smaller gains are rounding


@legal
def audit_conduct(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    mechanisms: Sequence[str | Callable[..., Any]] = (OWN,),
    *,
    owners: Count = 100,
    past_owners: Natural = 10,
    runs: Count = 1,
    families: Sequence[str] | None = None,
    utility: Utility = "money",
    seed: Seed = 0,
    data: str | PathLike[str] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Result:
    """Measure the gains of owners from delays, several identities, ghosts that arrive, and their past.

    Parameters
    ----------
    scenario : Scenario, name, path or mapping
        A market; all owners except the one examined report truthfully.
    mechanisms : sequence of str or class
        As for `marketsched.compare`; all play the same jobs, and the same owners are examined.
    owners : int
        Jobs, drawn from those that arrive, whose arrival is delayed and so on.
    past_owners : int
        Owners, drawn from those with several jobs, whose jobs are all reported at other values. Each costs five
        times the rest of a market. Those of the first run are looked at in all.
    runs : int
        Markets, with seeds ``seed .. seed + runs - 1``: days on which the same owners come again.
    families : sequence of str, optional
        Families to play: any of ``delay, split, ghost, past``, ``hurry`` (where patience is sold), and of reports that
        a mechanism without a promise of truthfulness takes as given: ``estimate, value, account, accounts, estimates,
        parts`` (see `marketsched.truthfulness.conduct.conducts`), and of all jobs of an owner ``ranks, slack, widths,
        ghosts, lates, hoard, half, trade`` (`marketsched.truthfulness.conduct.all_jobs`). None: the first four, and of
        such a mechanism all ten; of ``utility="value"`` all that an owner can do with all of its jobs.
    utility : {"money", "value"}
        What an owner cares for: the value of its jobs less its payments, or the value alone.
    seed : int
        The first one.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    progress : function of (str, float), optional
        Called with the current step, and the share of the work that is done.

    Returns
    -------
    Result
        Of kind ``conduct``. ``gains``: one row per mechanism, job (or owner) and conduct; the summary: one row per
        mechanism and conduct, see `conduct_table`.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If a number, the scenario or the name of a mechanism is at fault, or a mechanism cannot be pickled.
    MissingDataError, TraceError
        If the scenario needs a trace that is not there or damaged.

    Examples
    --------
    >>> found = audit_conduct("stochastic-mix", ["bid-price"], owners=20)  # doctest: +SKIP
    >>> found.save("runs/conduct")  # doctest: +SKIP
    """
    base = Scenario.of(scenario, kind="market")
    if base.workload.on_cluster:
        legal = "jobs of identical nodes: what is tried beside a report is about these"
        raise InvalidParameterError(place="workload", value=base.workload.kind, legal=legal)
    entrants = named_mechanisms(base, mechanisms)
    known = tuple(dict.fromkeys((*FAMILIES, *TERMS, *BELIEFS, *VALUE)))
    for name in families or ():
        if name not in known:
            raise InvalidParameterError(place="families", value=name, legal=f"some of {', '.join(known)}")
    first = checked_seed(seed, runs)
    found, past, step = [], None, 1 / (runs * len(entrants))
    for day in range(runs):
        workload = base.workload_of(first + day, data)
        draws = np.random.default_rng([OWN_STREAM, first + day])
        arriving = [job.name for job in workload.jobs if job.arrival is not None]
        jobs = [arriving[i] for i in draws.permutation(len(arriving))[:owners].tolist()]
        if past is None:
            several = pd.Series([job.owner for job in workload.jobs]).value_counts()
            recurring = sorted(str(owner) for owner in several[several > 1].index)
            past = [recurring[i] for i in draws.permutation(len(recurring))[:past_owners].tolist()]
        for place, each in enumerate(entrants):
            rng = np.random.default_rng(np.random.SeedSequence(first + day))
            setup = each.scenario.setup(rng, data=data, workload=workload)
            done = day * len(entrants) + place

            def notify(now: int, label: str = each.label, done: int = done, last: int = setup.horizon) -> None:
                if progress is not None:
                    progress(label, (done + now / last) * step)

            played = families
            if played is None:
                played = VALUE if utility == "value" else _default(setup.mechanism)
            paid = utility == "money"
            rows = play_conducts(setup, jobs, past, families=played, progress=notify, paid=paid).rows
            found.append(pd.DataFrame(rows).assign(mechanism=each.label, seed=first + day))
    gains = pd.concat(found, ignore_index=True)
    if gains.empty:
        raise InvalidParameterError("no owner of this market can be examined", legal="other families, or more jobs")
    gains["gain"] = gains["utility"] - gains["truth"]
    labels = [each.label for each in entrants]
    meta = {
        "scenario": base.name,
        "mechanisms": labels,
        "owners": owners,
        "past_owners": len(past or ()),
        "seed": first,
        "runs": runs,
        "utility": utility,
        "confidence": CONFIDENCE,
        "versions": versions(),
        "complete": True,
    }
    table = conduct_table(gains, labels, relative=utility == "value")
    return Result("conduct", {"gains": gains}, table, meta, {"scenario.yaml": base.to_yaml()})


def _default(mechanism: Mechanism) -> Sequence[str]:
    """Return the families that are played where none is named."""
    promises = {mechanism.truthful, mechanism.truthful_hidden}
    return (*FAMILIES, *BELIEFS) if promises == {"none"} else FAMILIES


def conduct_table(
    gains: pd.DataFrame, mechanisms: Sequence[str], confidence: float = CONFIDENCE, *, relative: bool = False
) -> pd.DataFrame:
    """Return one row per mechanism and conduct, and one for the best of a family, chosen in hindsight.

    Of several runs there is one more row for the past: the factor that was best for an owner over all runs
    together, the best response to days that are alike.

    ``gains`` has ``mechanism, seed, family, conduct, job, owner, truth, utility, gain, highest_value``; rows come in
    the order of ``mechanisms``; intervals are Student's. With ``relative`` a gain is a share of what the truth brings
    this owner, and owners count alike, as where their values have no common scale; who gets nothing by the truth and
    something by a lie gains all of it.

    Returns
    -------
    DataFrame
        ``looked_at`` (jobs, or owners); ``gain``, mean over them as a share of their mean utility under the truth,
        with ``gain_low`` and ``gain_high``; ``paying``, the share that gains; ``largest``, credits. In hindsight an
        owner that can only lose does nothing, so its gain is 0. ``pays``: whether the mean gain of a fixed conduct is
        clear of 0 at a confidence that is split among all of the mechanism's conducts (Bonferroni); knowing how long
        jobs will run is no lie, and never counts.
    """
    if relative:
        share = np.where(gains["truth"] > 0, gains["gain"] / gains["truth"].where(gains["truth"] > 0, 1.0), 0.0)
        share = np.where((gains["truth"] <= 0) & (gains["gain"] > 0), 1.0, share)
        gains = gains.assign(gain=share, truth=1.0, highest_value=1.0)
    rows = []
    for name in mechanisms:
        mine = gains[gains["mechanism"] == name]
        each_at = 1.0 - (1.0 - confidence) / max(1, len(mine[["family", "conduct"]].drop_duplicates()))
        for family, own in mine.groupby("family", sort=False):
            about = {"mechanism": name, "family": family}
            rows.append({**about, "conduct": BEST, **_row(_best_of(own, ["seed", "job", "owner"]), confidence)})
            if family == "past" and own["seed"].nunique() > 1:
                of_days = {"gain": "mean", "truth": "mean", "highest_value": "first"}
                fixed = own.groupby(["owner", "job", "conduct"], sort=False).agg(of_days).reset_index()
                rows.append({**about, "conduct": BEST_OF_DAYS, **_row(_best_of(fixed, ["job", "owner"]), confidence)})
            for conduct, each in own.groupby("conduct", sort=False):
                low = spread(each["gain"].to_numpy(), each_at).low
                pays = bool(low > NEGLIGIBLE * each["truth"].mean()) and conduct not in KNOWLEDGE
                rows.append({**about, "conduct": conduct, **_row(each, confidence), "pays": pays})
    return pd.DataFrame(rows).assign(pays=lambda table: table["pays"].eq(True))


def _best_of(own: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the largest gain of each, 0 where all lose."""
    best = own.groupby(by, sort=False).agg({"gain": "max", "truth": "first", "highest_value": "first"})
    return best.assign(gain=best["gain"].clip(lower=0))


def _row(own: pd.DataFrame, confidence: float) -> dict[str, Any]:
    found, mean = spread(own["gain"].to_numpy(), confidence), float(own["truth"].mean())
    share = [x / mean if mean > 0 else np.nan for x in (found.mean, found.low, found.high)]
    real = own["gain"].abs() > NEGLIGIBLE * own["highest_value"]
    return {
        "looked_at": len(own),
        **dict(zip(("gain", "gain_low", "gain_high"), share, strict=True)),
        "paying": float((real & (own["gain"] > 0)).mean()),
        "largest": float(own["gain"].where(real, 0.0).max()),
        "truth": mean,
    }
