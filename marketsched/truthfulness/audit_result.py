"""The result of an audit of several mechanisms: statuses, and the tables that are saved and printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from marketsched.config.scenario import Scenario
from marketsched.results.output import file_name
from marketsched.results.result import Result
from marketsched.truthfulness.audit_findings import MechanismAudit
from marketsched.truthfulness.searches.gain_file import claim_text, gain_sentence, gain_text
from marketsched.truthfulness.sentences import joint_words, sentence
from marketsched.truthfulness.statuses import (
    CLEAN,
    CUT,
    MISCHARGED,
    NOT_AUDITED,
    PROFITABLE,
    STATUSES,
    TRUTH_FAILS,
    UNDECIDED,
)

# Columns of the table of confirmed lies.
CONFIRMED = ["mechanism", "job", "lie", "size", "gain_low", "gain_high", "sentence"]
# Columns of the table of lies that gained in the market at hand; ``breaks``: the mechanism promises that none does.
EXACT = ["mechanism", "job", "lie", "size", "gain", "over_own_law", "breaks", "sentence"]


@dataclass(frozen=True, slots=True, repr=False)
class Audit:
    """The audit of all requested mechanisms.

    Examples
    --------
    See `marketsched.audit`, which returns one.
    """

    scenario: Scenario
    mechanisms: tuple[MechanismAudit, ...]
    tolerance: float
    complete: bool  # False: interrupted; what is there is finished
    meta: dict[str, Any] = field(repr=False)
    kept: tuple[Any, ...] = field(default=(), repr=False)  # what holds finished plays on the disk, as of `Result`

    def __repr__(self) -> str:
        """Return the scenario, and one part per mechanism."""
        return f"Audit({self.scenario.name!r}, {list(self.mechanisms)!r})"

    @property
    def not_audited(self) -> list[str]:
        """Labels of the mechanisms without results; ``errors`` of each has the reason."""
        return [each.label for each in self.mechanisms if not each.audited and not each.truth_fails]

    @property
    def truth_fails(self) -> list[str]:
        """Labels of the mechanisms that fail under the truth of every owner that was looked at."""
        return [each.label for each in self.mechanisms if each.truth_fails]

    @property
    def profitable(self) -> bool:
        """Whether a lie inside the model gains more than the tolerance, for sure."""
        return any(each.pays(self.tolerance) for each in self.mechanisms)

    @property
    def undecided(self) -> bool:
        """Whether a lie seems to pay, but is not confirmed, under a mechanism without a known lie that pays."""
        return any(each.seems() and not each.pays(self.tolerance) for each in self.mechanisms)

    @property
    def mischarged(self) -> bool:
        """Whether a job paid what its menu does not say, under a mechanism that promises something."""
        return any(each.mischarged for each in self.mechanisms)

    @property
    def cut(self) -> bool:
        """Whether seconds ended a part before its plays were made."""
        return any(each.cut for each in self.mechanisms)

    @property
    def status(self) -> int:
        """The exit status, see `marketsched.truthfulness.statuses`."""
        applies = {
            NOT_AUDITED: bool(self.not_audited),
            TRUTH_FAILS: bool(self.truth_fails),
            PROFITABLE: self.profitable,
            MISCHARGED: self.mischarged,
            UNDECIDED: self.undecided,
            CUT: self.cut,
            CLEAN: True,
        }
        return next(status for status in STATUSES if applies[status])

    @property
    def summary(self) -> pd.DataFrame:
        """One row per mechanism."""
        return pd.DataFrame([_row(each) for each in self.mechanisms])

    def result(self) -> Result:
        """Return the tables that are saved, printed and drawn.

        Beside one row per mechanism: ``tried`` (every lie, its size, and its gain on the worlds that the
        search looked at), ``lies`` (those that are confirmed on fresh worlds, in one sentence; ``lie-LABEL-JOB.yaml``
        replays them), ``exact`` (of each owner the best that was played in the market at hand), and
        ``certificates-LABEL``, where there are any.
        """
        columns = ["mechanism", "job", "lie", "size", "gain"]
        tables = {
            "tried": pd.DataFrame([row for each in self.mechanisms for row in each.tried()], columns=columns),
            "lies": pd.DataFrame([row for each in self.mechanisms for row in each.confirmed()], columns=CONFIRMED),
            "exact": pd.DataFrame([row for each in self.mechanisms for row in each.exact_gains()], columns=EXACT),
        }
        texts = {"scenario.yaml": self.scenario.to_yaml()}
        for each in self.mechanisms:
            label = file_name(each.label)
            if len(each.certificates):
                tables[f"certificates-{label}"] = each.certificates
            if each.exact is not None and each.scenario is not None:
                texts[f"exact-{label}-{file_name(each.exact.owner.name)}.yaml"] = gain_text(each.scenario, each.exact)
            if each.scenario is not None:
                for claim in each.worlds.confirmed:
                    name = f"lie-{label}-{file_name(claim.job)}.yaml"
                    texts[name] = claim_text(each.scenario, claim, self.meta)
        status = {"status": self.status, "status_words": STATUSES[self.status]}
        meta = {**self.meta, "complete": self.complete, **status}
        return Result("audit", tables, self.summary, meta, texts, kept=self.kept)


def _row(each: MechanismAudit) -> dict[str, Any]:
    job, words = each.worst
    widths = each.certificates["regret_upper"] - each.certificates["regret_lower"] if len(each.certificates) else None
    best, at_hand = each.best, each.at_hand
    named = best is not None and best.job == job and best.words == words and each.headline is None
    best_sentence = sentence(best) if best is not None and named else ""
    tightest = min(each.claims, key=lambda claim: claim.detectable, default=None)
    luck = None if at_hand is None else at_hand.best_ex_post
    return {
        "mechanism": each.label,
        "audited": each.audited,
        "truth_fails": each.truth_fails,
        "promise": each.promise,
        "free_of_charge": each.free_of_charge,
        "regret_lower": each.regret_lower,
        "regret_upper": each.regret_upper,
        "kind": each.kind,
        "median_width": float(widths.median()) if widths is not None else np.nan,
        "largest_width": float(widths.max()) if widths is not None else np.nan,
        "certified_owners": len(each.certificates),
        "rests_on": each.rests_on,
        "certified_share": np.nan if each.certified_share is None else each.certified_share,
        "screened_owners": 0 if at_hand is None else len(at_hand.owners),
        "gained_ex_post": 0 if at_hand is None else at_hand.gainers,
        "most_ex_post": 0.0 if luck is None else luck.gain,
        "searched_owners": len({job for job, *_ in each.worlds.tried}),
        "worst_job": job,
        "lie": words,
        "exact": bool(words) and not named,
        "sentence": best_sentence if each.headline is None else gain_sentence(each.headline),
        "plays": each.plays,
        "joint": joint_words(each.joint),
        "seems_to_pay": "; ".join(each.seems()[:2]),
        "detectable_share": np.nan if at_hand is None else at_hand.detectable_share,
        "detectable_by": "" if at_hand is None else ", ".join(at_hand.finished),
        "power": np.nan if tightest is None else tightest.detectable,
        "power_of": "" if tightest is None else f"{tightest.job} {tightest.words}",
        "power_worlds": 0 if tightest is None else tightest.n_fresh,
        "irreproducible": each.irreproducible,
        "mischarged": each.mischarged,
        "refused": 0 if at_hand is None else at_hand.refused,
        "failed": 0 if at_hand is None else at_hand.failed,
        "cut": ", ".join(each.cut),
        "errors": "; ".join(each.errors),
    }
