"""What an audit found: per mechanism the certificates, the searches, and who gains most by which lie."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.config.scenario import Scenario
from marketsched.results.output import file_name
from marketsched.results.result import Result
from marketsched.results.views import at_least, exact_amount, shown_whole
from marketsched.truthfulness.searches.evaluation import ROUNDING
from marketsched.truthfulness.searches.findings import Deviation, Deviations
from marketsched.truthfulness.searches.witness_file import witness_text
from marketsched.truthfulness.situations.situation import Situation

# Columns of the table of confirmed lies.
CONFIRMED = [
    "mechanism",
    "job",
    "lie",
    "size",
    "gain_low",
    "gain_high",
    "exact",
    "sentence",
    "smallest",
    "smallest_gain",
]


@dataclass(frozen=True, slots=True, repr=False)
class Searched:
    """The search for one owner.

    Attributes
    ----------
    job : str
        Whose.
    situation : Situation
        Where it was played.
    deviations : Deviations
        What was tried.
    lie : Deviation or None
        Of the confirmed lies inside the model, that with the largest sure gain.
    smallest : Deviation or None
        The smallest lie of the same kind that still pays; None: there is none but ``lie`` itself.
    """

    job: str
    situation: Situation
    deviations: Deviations
    lie: Deviation | None
    smallest: Deviation | None = None

    @property
    def compared(self) -> bool:
        """Whether any lie inside the model was played against the truth."""
        return self.lie is not None or any(tried.inside_model for tried in self.deviations.tried)

    def __repr__(self) -> str:
        """Return the job, how many lies were tried, and the best one that is confirmed."""
        best = "none confirmed" if self.lie is None else f"{self.lie.words!r} gains {self.lie.gain_low:g} or more"
        return f"Searched({self.job!r}, {len(self.deviations.tried)} lies tried, {best})"


@dataclass(frozen=True, slots=True, repr=False)
class MechanismAudit:
    """What was found about one mechanism. ``errors`` names what could not be done, and why."""

    label: str
    certificates: pd.DataFrame  # as `certify_owners`; empty without menus
    searched: tuple[Searched, ...]
    certified_share: float | None  # of owners that gain at most the tolerance, at least; None: not known
    errors: tuple[str, ...]

    def __repr__(self) -> str:
        """Return the figures of the summary."""
        gains = f"gain {self.regret_lower:g} .. {self.regret_upper:g}" if self.audited else "not audited"
        owners = f"{len(self.certificates)} certified, {len(self.searched)} searched"
        return f"MechanismAudit({self.label!r}, {gains}, {owners})"

    @property
    def audited(self) -> bool:
        """Whether anything is known: an owner was certified, or a lie was played against the truth."""
        return len(self.certificates) > 0 or any(each.compared for each in self.searched)

    @property
    def regret_upper(self) -> float:
        """The largest upper end of a certificate, credits; NaN without menus."""
        return float(self.certificates["regret_upper"].max()) if len(self.certificates) else np.nan

    @property
    def rests_on(self) -> str:
        """What was asked of menus at arrival before they were certified; empty for other mechanisms."""
        return str(self.certificates["rests_on"].iloc[0]) if "rests_on" in self.certificates else ""

    @property
    def lies(self) -> list[Deviation]:
        """The confirmed lies inside the model, largest sure gain first."""
        found = [each.lie for each in self.searched if each.lie is not None]
        return sorted(found, key=lambda lie: -lie.gain_low)

    @property
    def regret_lower(self) -> float:
        """The largest gain that is sure, by an exact certificate or a confirmed lie, credits; NaN: not audited."""
        if not self.audited:
            return np.nan
        return max([float(self._exact_lower.max(initial=0.0)), *(lie.gain_low for lie in self.lies)])

    @property
    def _exact_lower(self) -> NDArray[np.float64]:
        """Lower ends of certificates that hold for sure; 0 for the others."""
        if not len(self.certificates):
            return np.zeros(0)
        return np.array(self.certificates["regret_lower"].where(self.certificates["confidence"] == 1.0, 0.0))

    @property
    def outside(self) -> list[Deviation]:
        """Confirmed conduct outside the model that pays, largest sure gain first."""
        found = [each.deviations.best(inside_model=False) for each in self.searched]
        return sorted((lie for lie in found if lie is not None), key=lambda lie: -lie.gain_low)

    def tried(self) -> list[tuple[str, str, float, float]]:
        """Return every lie that was tried: label, job, size, gain on the worlds of the search."""
        return [(self.label, one.job, x.size, x.gain) for one in self.searched for x in one.deviations.tried]

    def confirmed(self) -> list[tuple[Any, ...]]:
        """Return the lies that are confirmed, of every owner the best: see `CONFIRMED`."""
        rows = []
        for one in self.searched:
            if one.lie is not None:
                least = one.lie if one.smallest is None else one.smallest
                figures = (one.lie.size, one.lie.gain_low, one.lie.gain_high, one.lie.exact)
                text = sentence(one.job, one.lie, one.deviations.truthful)
                rows.append((self.label, one.job, one.lie.words, *figures, text, least.words, least.gain_low))
        return rows

    @property
    def best(self) -> Searched | None:
        """The search with the largest sure gain; None: no lie is confirmed."""
        found = [each for each in self.searched if each.lie is not None]
        return max(found, key=lambda each: 0.0 if each.lie is None else each.lie.gain_low, default=None)

    @property
    def worst(self) -> tuple[str, str]:
        """The owner's job with the largest sure gain (else the largest bound), and the lie in words."""
        best, table, exact = self.best, self.certificates, self._exact_lower
        certified = float(exact.max(initial=0.0))
        if best is not None and best.lie is not None and best.lie.gain_low >= certified:
            return best.job, best.lie.words
        if not len(table):
            return "", ""
        row = int(exact.argmax()) if certified > 0 else int(table["regret_upper"].to_numpy().argmax())
        return str(table["job"].iloc[row]), str(table["witness"].iloc[row]) if certified > 0 else ""


def sentence(job: str, lie: Deviation, truthful: float | None) -> str:
    """Return what an owner would do, what that gains in credits and per cent, and how sure it is.

    Parameters
    ----------
    job : str
        The owner's job.
    lie : Deviation
        A confirmed lie.
    truthful : float or None
        What the truth brings the owner, credits; the per cent are of it, where it is above 0.
    """
    how = "exactly" if lie.exact and shown_whole(lie.gain_low) else "at least"
    gain = exact_amount(lie.gain_low) if lie.exact else at_least(lie.gain_low)
    whole = truthful is not None and truthful > ROUNDING * max(1.0, lie.gain_low)
    more = "" if truthful is None else " where the truth brings it nothing"
    if whole and truthful is not None:
        more = f", {at_least(100 * lie.gain_low / truthful)} % of what the truth brings it"
    sure = "all worlds were gone through" if lie.exact else f"sure to {100 * lie.confidence:.12g} %"
    sure += "" if lie.exact else f", from {lie.n_fresh:,} fresh worlds"
    return f"{job} {lie.words}: that gains {how} {gain} credits{more} ({sure})"


@dataclass(frozen=True, slots=True, repr=False)
class Audit:
    """The audit of all mechanisms asked for.

    Examples
    --------
    See `marketsched.audit`, which returns one.
    """

    scenario: Scenario
    mechanisms: tuple[MechanismAudit, ...]
    tolerance: float
    complete: bool  # False: interrupted; what is there is finished
    meta: dict[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        """Return the scenario, and one part per mechanism."""
        return f"Audit({self.scenario.name!r}, {list(self.mechanisms)!r})"

    @property
    def not_audited(self) -> list[str]:
        """Labels of the mechanisms of which nothing is known; ``errors`` of each says why."""
        return [each.label for each in self.mechanisms if not each.audited]

    @property
    def profitable(self) -> bool:
        """Whether a lie inside the model gains more than the tolerance, for sure."""
        return any(each.regret_lower > self.tolerance for each in self.mechanisms)

    def summary(self) -> pd.DataFrame:
        """Return one row per mechanism."""
        return pd.DataFrame([_row(each) for each in self.mechanisms])

    def result(self) -> Result:
        """Return the tables that are saved, printed and drawn.

        Beside one row per mechanism: ``tried`` (every lie, its size, and its gain on the worlds that the
        search looked at), ``lies`` (of each owner the best that is confirmed on fresh worlds, in one sentence, and the
        smallest that still pays; ``lie-LABEL-JOB.yaml`` and ``smallest-LABEL-JOB.yaml`` replay them), and
        ``certificates-LABEL``, where there are any.
        """
        columns = ["mechanism", "job", "size", "gain"]
        tables = {
            "tried": pd.DataFrame([row for each in self.mechanisms for row in each.tried()], columns=columns),
            "lies": pd.DataFrame([row for each in self.mechanisms for row in each.confirmed()], columns=CONFIRMED),
        }
        texts = {"scenario.yaml": self.scenario.to_yaml()}
        for each in self.mechanisms:
            label = file_name(each.label)
            if len(each.certificates):
                tables[f"certificates-{label}"] = each.certificates
            for one in each.searched:
                if one.lie is not None:
                    texts[f"lie-{label}-{file_name(one.job)}.yaml"] = witness_text(one.situation, one.lie)
                if one.smallest is not None:
                    texts[f"smallest-{label}-{file_name(one.job)}.yaml"] = witness_text(one.situation, one.smallest)
        return Result("audit", tables, self.summary(), {**self.meta, "complete": self.complete}, texts)


def _row(each: MechanismAudit) -> dict[str, Any]:
    job, words = each.worst
    widths = each.certificates["regret_upper"] - each.certificates["regret_lower"] if len(each.certificates) else None
    outside, best = each.outside, each.best
    told = best is not None and best.lie is not None and best.job == job and best.lie.words == words
    smallest = best.smallest if best is not None and told else None
    return {
        "mechanism": each.label,
        "audited": each.audited,
        "regret_lower": each.regret_lower,
        "regret_upper": each.regret_upper,
        "median_width": float(widths.median()) if widths is not None else np.nan,
        "largest_width": float(widths.max()) if widths is not None else np.nan,
        "certified_owners": len(each.certificates),
        "rests_on": each.rests_on,
        "certified_share": np.nan if each.certified_share is None else each.certified_share,
        "searched_owners": len(each.searched),
        "worst_job": job,
        "lie": words,
        "exact": bool(best.lie.exact) if best is not None and best.lie is not None and told else bool(words),
        "sentence": sentence(job, best.lie, best.deviations.truthful) if best and best.lie and told else "",
        "smallest_lie": "" if smallest is None else smallest.words,
        "smallest_gain": np.nan if smallest is None else smallest.gain_low,
        "outside_model": outside[0].words if outside else "",
        "outside_gain": outside[0].gain_low if outside else (0.0 if each.audited else np.nan),
        "plays": sum(one.deviations.plays for one in each.searched),
        "errors": "; ".join(each.errors),
    }
