"""The findings of an audit, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from marketsched.mechanisms.sow import StatementOfWork
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


def lie_in_words(truth: StatementOfWork, lie: StatementOfWork) -> str:
    """Say in what a report differs from the truth, as in ``says 1, is worth 5``.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue
    >>> true = StatementOfWork(1, 1, DeadlineValue(5.0, 3), [(1, 1, 1.0, 1)])
    >>> lie_in_words(true, StatementOfWork(1, 2, DeadlineValue(1.0, 2), [(1, 1, 1.0, 1)]))
    'says 1, is worth 5, asks for 2 nodes, needs 1, is due by 3, says 2'
    """
    said = []
    if lie.value.highest != truth.value.highest:
        said.append(f"says {lie.value.highest:.4g}, is worth {truth.value.highest:.4g}")
    if lie.concurrency != truth.concurrency:
        said.append(f"asks for {lie.concurrency} nodes, needs {truth.concurrency}")
    if lie.value.last != truth.value.last:
        said.append(f"is due by {truth.value.last}, says {lie.value.last}")
    if lie.requirements != truth.requirements:
        said.append("states another law of its arrival and duration")
    if lie.restarts != truth.restarts:
        said.append(f"says that it can{'' if lie.restarts else 'not'} restart")
    return ", ".join(said) or "states another curve of values"
