"""The findings of an audit, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from marketsched.results.views import at_least, exact_amount, shown_whole
from marketsched.truthfulness.searches.evaluation import ROUNDING
from marketsched.truthfulness.searches.findings import Deviation
from marketsched.truthfulness.searches.joint_reports import JointGain


def sentence(job: str, lie: Deviation, truthful: float | None) -> str:
    """Return in words a lie, its gain in credits and per cent, and the confidence.

    Parameters
    ----------
    job : str
        The owner's job.
    lie : Deviation
        A confirmed lie.
    truthful : float or None
        The owner's utility under the truth, credits; the base of the per cent if above 0.
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


def joint_words(joint: Sequence[JointGain]) -> str:
    """Return what joint reports of owners with several jobs gained; empty: none were played."""
    if not joint:
        return ""
    gaining = [one for one in joint if one.gain > 0]
    if not gaining:
        return f"no joint report of {len(joint)} owners with several jobs gains in this market"
    best = gaining[0]
    return (
        f"{len(gaining)} of {len(joint)} owners with several jobs gain by a joint report in this market, exactly; "
        f"most {best.owner}, which {best.words} and gains {exact_amount(best.gain)} credits "
        f"(the truth brings it {best.truthful:.6g}); no mechanism promises anything about several jobs of one owner"
    )
