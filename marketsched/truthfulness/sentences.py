"""The findings of an audit, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from marketsched.mechanisms.sow import StatementOfWork
from marketsched.results.views import at_least, at_most, exact_amount
from marketsched.truthfulness.searches.findings import Deviation
from marketsched.truthfulness.searches.joint_reports import JointGain


def sentence(lie: Deviation) -> str:
    """Return in words a confirmed lie, its gain in credits and per cent, and how sure that is."""
    share = f", {at_least(100 * lie.gain_low / lie.worth)} % of what its job is worth" if lie.worth > 0 else ""
    return (
        f"{lie.job} {lie.words}: that gains at least {at_least(lie.gain_low)} credits{share} (sure to "
        f"{100 * lie.confidence:.12g} %, from {lie.n_fresh:,} fresh worlds, if it never pays more than "
        f"{at_most(lie.largest_payment)} credits)"
    )


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
