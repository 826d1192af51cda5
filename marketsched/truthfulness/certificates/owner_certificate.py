r"""A certificate: how much one owner could gain by any misreport to a menu mechanism, from both sides.

At the moment of a submission a report selects a declared concurrency and a launch plan, and nothing
else (`marketsched.truthfulness.certificates.alternatives`); so the best response over all misreports is a finite
maximum, and no search is needed. Only the failure probabilities are unknown. Enumerated, they give
the regret itself; from fresh paths, independent of every estimate of the mechanism, they give

.. math:: \text{lower} \le \text{regret} \le \text{upper} \quad \text{with the stated confidence,}

both ends together (`marketsched.truthfulness.certificates.regret`). The upper end covers every plan, also those no
single report selects; the lower end is the certain gain of one report, which the certificate names.

A certificate is about one owner at one history, and what it takes on trust is what Theorem T takes: the
earlier owners' reports are true, births are observed (G2), and the menu does not depend on the report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError, TooLargeError
from marketsched.mechanisms.legal import OpenShare, Whole, legal
from marketsched.mechanisms.limits import check_report
from marketsched.mechanisms.posted.inspection import Inspection
from marketsched.mechanisms.posted.planner import Planner
from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism
from marketsched.mechanisms.randomness import generator_of
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.certificates.alternatives import Alternatives, alternatives
from marketsched.truthfulness.certificates.fixed_prices import require_fixed_prices
from marketsched.truthfulness.certificates.made_reports import reports_for, selected_columns
from marketsched.truthfulness.certificates.paired import (
    FEW_OUTCOMES,
    FailureCounts,
    compare,
    count_failures,
    exact_failures,
)
from marketsched.truthfulness.certificates.regret import (
    BestResponse,
    best_responses,
    likely_plans,
    plan_floor,
    regret_ceiling,
)
from marketsched.truthfulness.certificates.unchanged import changed_members
from marketsched.truthfulness.certificates.witness import words_of

SAMPLES = 10_000  # fresh paths, by default
NEGLIGIBLE = 1e-9  # of the owner's largest value: gains up to this are rounding


class CertificateError(MarketschedError, ArithmeticError):
    """The two ends of a certificate cross: it is worth nothing, and no figure is made of it.

    Examples
    --------
    See `certify`, which raises it.
    """


@dataclass(frozen=True, slots=True)
class Certificate:
    """Bounds on an owner's gain from misreporting, in credits of expected utility.

    Attributes
    ----------
    regret_upper : float
        No misreport gains more.
    regret_lower : float
        What ``report`` gains at least; 0 if no report is sure to gain.
    confidence : float
        Probability that both ends hold; 1 if failure probabilities were enumerated.
    witness : str
        The best response under the failure probabilities found, in words; empty if nothing beats the truth.
    report : StatementOfWork or None
        The lie behind ``regret_lower``.
    regret_estimate : float
        Gain of the witness under the failure probabilities found; no bound.
    truthful_utility : float
        Utility of the truth under them.
    highest_value : float
        The largest value of the truth: a scale for the other figures.
    samples : int or None
        Fresh paths; None: enumerated.

    Examples
    --------
    See `certify`, which returns one.
    """

    regret_upper: float
    regret_lower: float
    confidence: float
    witness: str
    report: StatementOfWork | None
    regret_estimate: float
    truthful_utility: float
    highest_value: float
    samples: int | None

    @property
    def width(self) -> float:
        """Upper minus lower end, credits."""
        return self.regret_upper - self.regret_lower


def certificate_row(job: Job, certificate: Certificate) -> dict[str, Any]:
    """Return one owner's row of a table of certificates: who it is, and the figures."""
    return {
        "owner": job.owner,
        "job": job.name,
        "round": job.truth.birth,
        "nodes": job.truth.concurrency,
        "highest_value": certificate.highest_value,
        "truthful_utility": certificate.truthful_utility,
        "regret_lower": certificate.regret_lower,
        "regret_estimate": certificate.regret_estimate,
        "regret_upper": certificate.regret_upper,
        "witness": certificate.witness,
        "confidence": certificate.confidence,
    }


@legal
def certify(
    mechanism: Any,
    truth: StatementOfWork,
    *,
    confidence: OpenShare = 0.99,
    samples: Annotated[int, Whole(1, 10_000_000)] | None = None,
    exact: bool | Literal["auto"] = "auto",
    rng: np.random.Generator | int | None = None,
) -> Certificate:
    """Bound the gain of the owner of ``truth`` from any misreport submitted now. The mechanism is not changed.

    Parameters
    ----------
    mechanism : PostedPriceMechanism
        At the moment of the submission: after the earlier ones of the round, before its arrivals.
    truth : StatementOfWork
        The owner's true statement, born in the current round.
    confidence : float
        In (0, 1): of both ends together.
    samples : int, optional
        Fresh paths to draw; 10,000 by default. The width falls like 1 / samples where
        failures are rare, and like 1 / sqrt(samples) elsewhere.
    exact : bool or "auto"
        Enumerate the outcomes of the earlier jobs instead of drawing paths. ``"auto"``: if there are
        few, or the mechanism's own oracle does.
    rng : Generator or int, optional
        Source of the fresh paths.

    Raises
    ------
    InvalidParameterError
        If the mechanism is not a `PostedPriceMechanism` as it stands, its prices depend on the report, or a
        parameter is out of range.
    CertificateError
        If the lower end comes out above the upper one.
    InvalidReportError
        If the truth is outside the announced limits.
    EventError
        If the truth is not born now, or no report is accepted now.
    TooLargeError
        With ``exact=True``, if there are too many joint outcomes.

    Examples
    --------
    Durations hidden: two nodes are declared instead of one, since failing saves the owner the high price
    of a long run (gap G1).

    >>> from marketsched.mechanisms import ExactOracle, PostedPricing, TableValue
    >>> market = PostedPriceMechanism(2, 6, PostedPricing([1.0, 4.0, 100.0]), ExactOracle(), max_concurrency=2,
    ...     max_duration=2, max_value=10.0, max_delay=6, epsilon=-0.5)
    >>> _ = market.submit("earlier", StatementOfWork(1, 1, TableValue({3: 10.0}), [(2, 1, 1.0)]))
    >>> found = certify(market, StatementOfWork(1, 1, TableValue({2: 10.0}), [(1, 1, 0.5, None), (1, 2, 0.5, None)]))
    >>> found.regret_lower, found.regret_upper, found.witness
    (2.0, 2.0, 'declares 2 nodes instead of 1; the launch plan stays as it is')
    """
    samples = SAMPLES if samples is None else samples
    view = inspection(mechanism, truth, exact)
    rng = generator_of(rng)
    options = alternatives(view, truth)
    if enumerates(view, exact):
        try:
            return _enumerated(view, options)
        except TooLargeError:
            if exact is True:
                raise
    return _sampled(view, options, count_failures(view, options, samples, rng), 1 - confidence)


def inspection(mechanism: Any, truth: StatementOfWork, exact: object = "auto") -> Inspection:
    """Return the moment to certify at, all arguments checked; errors as of `certify`."""
    require_menu(mechanism)
    if exact not in (True, False, "auto"):
        raise InvalidParameterError(f"exact = {exact!r}: expected True, False or 'auto'")
    view: Inspection = mechanism.inspect()
    limits = view.limits
    check_report("of the truth", truth, view.now, limits.max_concurrency, limits.max_duration, view.max_value)
    require_fixed_prices(view, truth)
    return view


def require_menu(mechanism: Any) -> None:
    """Raise InvalidParameterError unless the mechanism is `PostedPriceMechanism` as it stands, with any prices."""
    if not isinstance(mechanism, PostedPriceMechanism):
        raise InvalidParameterError(
            f"{type(mechanism).__name__} posts no menu at birth, and none at arrival that is kept: expected a "
            "PostedPriceMechanism, or keep_menus; marketsched.audit takes any mechanism"
        )
    changed = changed_members(mechanism, PostedPriceMechanism)
    if type(mechanism._planner) is not Planner:
        changed.append("the planner")
    if changed:
        raise InvalidParameterError(
            f"mechanism = {type(mechanism).__name__}: it changes {', '.join(changed)} of PostedPriceMechanism, which "
            "the certificate relies on: expected the mechanism as it is; marketsched.audit takes any mechanism"
        )


def enumerates(view: Inspection, exact: object) -> bool:
    """Tell whether to try enumerating the outcomes of the earlier jobs."""
    return exact is True or (
        exact == "auto" and (view.exact_estimates or view.n_outcomes(FEW_OUTCOMES) <= FEW_OUTCOMES)
    )


def _enumerated(view: Inspection, options: Alternatives) -> Certificate:
    """Return the certificate under the true failure probabilities."""
    failures = exact_failures(view, options)
    utilities = options.utilities(failures)
    plans = best_responses(options, utilities)
    truthful = options.truthful(utilities)
    cases = np.arange(truthful.size)

    def gain_of(plan: BestResponse) -> float:
        return float((utilities[plan.width, cases, plan.columns] - truthful).sum())

    lower, report = _surest_report(view, options, plans, gain_of)
    return _certificate(options, failures, max(plans[0].gain, 0.0), lower, report, 1.0, None)


def _sampled(view: Inspection, options: Alternatives, counts: FailureCounts, error: float) -> Certificate:
    """Return the certificate that holds with probability ``1 - error`` over the fresh paths."""
    compared = compare(options, counts)
    upper = regret_ceiling(options, compared, counts, error)
    plans = likely_plans(options, compared, error)
    lower, report = _surest_report(view, options, plans, lambda plan: plan_floor(compared, options.open, plan, error))
    return _certificate(options, counts.shares(), upper, lower, report, 1 - error, counts.samples)


def _certificate(
    options: Alternatives,
    failures: NDArray[np.float64],
    upper: float,
    lower: float,
    report: StatementOfWork | None,
    confidence: float,
    samples: int | None,
) -> Certificate:
    """Return the certificate by these failure probabilities; CertificateError if the two ends cross."""
    if lower > upper + negligible_gain(options.truth):
        raise CertificateError(
            f"a report gains at least {lower:g} credits, and none more than {upper:g}: "
            "what the certificate takes for granted does not hold"
        )
    utilities = options.utilities(failures)
    best = best_responses(options, utilities)[0]
    return Certificate(
        regret_upper=upper,
        regret_lower=lower,
        confidence=confidence,
        witness=words_of(options, best) if best.gain > negligible_gain(options.truth) else "",
        report=report,
        regret_estimate=best.gain,
        truthful_utility=float(options.truthful(utilities).sum()),
        highest_value=options.truth.value.highest,
        samples=samples,
    )


def _surest_report(
    view: Inspection,
    options: Alternatives,
    plans: Sequence[BestResponse],
    gain_of: Callable[[BestResponse], float],
) -> tuple[float, StatementOfWork | None]:
    """Return the largest gain among reports made for ``plans``, with the report; (0, None) if none gains.

    A report counts with what it really selects, which may be another plan.
    """
    best, found = 0.0, None
    for plan in plans:
        if plan.gain <= max(best, negligible_gain(options.truth)):
            continue  # what is aimed at would not be more
        for report in reports_for(view, options, plan):
            columns = selected_columns(view, options, plan, report)
            if columns is None:
                continue
            gain = gain_of(BestResponse(plan.gain, plan.width, columns))
            if gain > max(best, negligible_gain(options.truth)):
                best, found = gain, report
    return best, found


def negligible_gain(truth: StatementOfWork) -> float:
    """Return the gain up to which a difference is rounding, credits."""
    return NEGLIGIBLE * max(1.0, truth.value.highest)
