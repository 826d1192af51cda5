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
from marketsched.truthfulness.findings import Deviation, Deviations
from marketsched.truthfulness.situation import Situation
from marketsched.truthfulness.witness_file import witness_text

CONFIRMED = ["mechanism", "job", "lie", "size", "gain_low"]  # columns of the table of confirmed lies


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
        """The largest gain that is sure, by an exact certificate or a confirmed lie, credits."""
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

    def confirmed(self) -> list[tuple[str, str, str, float, float]]:
        """Return the lies that are confirmed, of every owner the smallest: see `CONFIRMED`."""
        found = [(one.job, one.lie) for one in self.searched if one.lie is not None]
        return [(self.label, job, lie.words, lie.size, lie.gain_low) for job, lie in found]

    @property
    def worst(self) -> tuple[str, str]:
        """The owner's job with the largest sure gain (else the largest bound), and the lie in words."""
        best = max((each for each in self.searched if each.lie), key=lambda each: each.lie.gain_low, default=None)  # type: ignore[union-attr]
        table, exact = self.certificates, self._exact_lower
        certified = float(exact.max(initial=0.0))
        if best is not None and best.lie is not None and best.lie.gain_low >= certified:
            return best.job, best.lie.words
        if not len(table):
            return "", ""
        row = int(exact.argmax()) if certified > 0 else int(table["regret_upper"].to_numpy().argmax())
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

    def result(self) -> Result:
        """Return the tables that are saved, printed and drawn.

        Beside one row per mechanism: ``tried`` (every lie, its size, and its gain on the worlds that the
        search looked at), ``lies`` (those confirmed on fresh worlds; ``lie-LABEL-JOB.yaml`` replays each), and
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
        return Result("audit", tables, self.summary(), {**self.meta, "complete": self.complete}, texts)


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
        "rests_on": each.rests_on,
        "certified_share": np.nan if each.certified_share is None else each.certified_share,
        "searched_owners": len(each.searched),
        "worst_job": job,
        "lie": words,
        "outside_model": outside[0].words if outside else "",
        "outside_gain": outside[0].gain_low if outside else 0.0,
        "plays": sum(one.deviations.plays for one in each.searched),
        "errors": "; ".join(each.errors),
    }
