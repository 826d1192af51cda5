"""Certificates with enumerated failure probabilities: equal to brute force."""

from dataclasses import asdict

import numpy as np
import pytest

from certificate_moments import Moment, ShakenOracle, moment, moments
from draws import many
from marketsched.mechanisms import (
    DeadlineValue,
    ExactOracle,
    ExponentialPricing,
    MonteCarloOracle,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    TableValue,
)
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.errors import EventError, InvalidParameterError, TooLargeError
from marketsched.papers.hidden import g1_market, g1_report
from marketsched.truthfulness import certify
from reference.bridge import mechanism, play, statement
from reference.markets import Kind, TrueJob, log_of, seeded_market
from refusals import refused

REVEALED = Kind(revealed_only=True, faithful=True, external=False, max_jobs=5)
THEOREM = Kind(revealed_only=True, faithful=True, external=False, max_jobs=5, pricings=("posted",))
ANY = Kind(faithful=True, external=False, max_jobs=5)


def scale(found: Moment) -> float:
    return max(1.0, found.settings.max_value)


# --- durations revealed, exact oracle: no lie pays ---------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", [THEOREM, Kind(**{**asdict(REVEALED), "fits_formula": True})], ids=["posted", "curve"])
def test_revealed_and_exact_no_lie_pays_and_brute_force_agrees(kind):
    n = 0
    for found in moments(range(many(200)), kind, threshold=0.0):
        certificate = certify(found.market, found.truth)
        assert certificate.confidence == 1.0
        assert 0 <= certificate.regret_upper <= 1e-9
        assert certificate.regret_lower == 0.0
        assert certificate.witness == "" and certificate.report is None
        assert certificate.truthful_utility == pytest.approx(found.truthful(), abs=1e-9 * scale(found))
        assert found.regret_over_plans() <= 1e-9 * scale(found)
        n += 1
    assert n >= many(150)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{"threshold": 0.0}, {"threshold": 0.5}, {"threshold": 0.25, "eviction": "running"}], ids=str
)
@pytest.mark.parametrize("kind", [REVEALED, ANY], ids=["revealed", "any"])
@pytest.mark.parametrize("mu", [0.0, 0.2])
def test_the_best_lie_is_the_one_that_brute_force_finds(kind, mu, changes):
    """The upper end bounds all reports tried; the lower one is what its report gains; they nearly always meet."""
    paying = meeting = 0
    for seed in range(many(100)):
        found = moment(seed, kind, oracle=ShakenOracle(mu, seed), **changes)
        if found is None:
            continue
        slack = 1e-9 * scale(found)
        certificate = certify(found.market, found.truth)
        assert found.regret_over_reports() <= certificate.regret_upper + slack
        assert certificate.regret_upper <= found.regret_over_plans() + slack
        if certificate.report is not None:
            gain = found.utility(found.selected(certificate.report), certificate.report.concurrency) - found.truthful()
            assert certificate.regret_lower == pytest.approx(gain, abs=slack)
        if certificate.regret_upper > slack:
            paying += 1
            meeting += certificate.width <= slack
    assert meeting >= 0.9 * paying
    assert paying >= 1 or (mu == 0 and changes["threshold"] == 0)


def test_an_oracle_off_by_mu_costs_at_most_what_theorem_t_says():
    largest = 0.0
    for mu in (0.02, 0.1, 0.3):
        for seed in range(many(60)):
            found = moment(seed, THEOREM, threshold=0.0, oracle=ShakenOracle(mu, seed))
            if found is None:
                continue
            certificate = certify(found.market, found.truth)
            assert found.regret_over_plans() >= certificate.regret_upper - 1e-9 * scale(found)
            assert certificate.regret_upper <= 2 * mu * found.settings.max_value
            largest = max(largest, certificate.regret_upper / (2 * mu * found.settings.max_value))
    assert largest > 0.05  # the errors do cost something


# --- the real mechanism, played in full --------------------------------------------------------------


def mean_utility(small, earlier, owner, truth, report):
    """Return the owner's mean realised utility over all joint outcomes of the jobs before it, by playing each."""
    law = truth.law
    signals = [o for o, n in zip(law.group_signals, np.diff(law.offsets), strict=True) for _ in range(n)]
    own = list(zip(law.arrivals.tolist(), signals, law.durations.tolist(), law.probabilities.tolist(), strict=True))
    laws = [
        [
            (p["arrival"], p.get("signal", p["duration"]), p["duration"], p["probability"])
            for p in job.sow["requirements"]
        ]
        for job in earlier
    ]
    total = 0.0
    for arrival, signal, duration, probability in own:
        if probability == 0:
            continue
        for weight, outcome in outcomes_of(laws):
            jobs = [
                TrueJob(
                    job.name,
                    job.birth,
                    job.sow,
                    *(drawn[:2] if drawn else (None, None)),
                    duration=drawn[2] if drawn else 1,
                )
                for job, drawn in zip(earlier, outcome, strict=True)
            ]
            jobs.append(TrueJob(owner.name, owner.birth, owner.sow, arrival, signal, duration=duration))
            market = mechanism(small.config)
            if report is not None:
                real_submit = market.submit
                market.submit = lambda name, sow, real=real_submit: real(name, report if name == owner.name else sow)
            paid = [e for e in play(market, jobs) if e.job == owner.name and e.completion is not None]
            for event in paid:
                late = event.completion >= truth.birth + small.config["max_delay"]
                total += probability * weight * ((0.0 if late else truth.value(event.completion)) - event.payment)
    return total


def outcomes_of(laws):
    """Yield (probability, (arrival, signal, duration) of each job; arrival None: never)."""
    if not laws:
        yield 1.0, ()
        return
    first, *rest = laws
    cases = [(p, (a, o, d)) for a, o, d, p in first if p > 0]
    missing = 1.0 - sum(p for p, _ in cases)
    if missing > 1e-12:
        cases.append((missing, (None, None, 1)))
    for weight, later in outcomes_of(rest):
        for p, drawn in cases:
            yield weight * p, (drawn, *later)


def first_round(seed, kind, **changes):
    """Return (market, jobs before the owner, owner) with the owner the last of at most four jobs born in round 1."""
    small = seeded_market(seed, kind)
    config = small.config | changes
    born = [job for job in small.jobs if job.birth == 1][:3]
    if len(born) < 2:
        return None
    return type(small)(config, born, log_of(config, born)), born[:-1], born[-1]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", [REVEALED, ANY], ids=["revealed", "any"])
def test_gains_are_those_of_the_mechanism_played_in_full(kind):
    """Truth and lie, each run with every outcome of the earlier jobs and of the owner's own."""
    lies = 0
    for seed in range(many(300)):
        found = first_round(seed, kind, threshold=1.0, epsilon=-1.0)
        if found is None:
            continue
        small, earlier, owner = found
        market, truth = mechanism(small.config), statement(owner)
        for job in earlier:
            market.submit(job.name, statement(job))
        certificate = certify(market, truth)
        told = mean_utility(small, earlier, owner, truth, None)
        assert told == pytest.approx(certificate.truthful_utility, abs=1e-9 * small.config["max_value"])
        if certificate.report is not None:
            lied = mean_utility(small, earlier, owner, truth, certificate.report)
            assert lied - told == pytest.approx(certificate.regret_lower, abs=1e-9 * small.config["max_value"])
            lies += 1
    assert lies >= many(300) // 75


# --- each cause of a regret, by an example with known numbers ----------------------------------------


def closes_at(certificate, gain):
    """Check that both ends of a certificate are ``gain``."""
    assert certificate.regret_lower == pytest.approx(gain, abs=1e-9)
    assert certificate.regret_upper == pytest.approx(gain, abs=1e-9)


def test_g1_is_found_from_both_sides():
    certificate = certify(g1_market(), g1_report(1))
    closes_at(certificate, 2.0)
    assert certificate.report.concurrency == 2
    assert certificate.witness == "declares 2 nodes instead of 1; the launch plan stays as it is"
    assert certify(g1_market(), g1_report(1, signals=(1, 2))).regret_upper == 0.0


def busy_market(**changes):
    """Round 2 is taken with probability 0.4, round 3 is free; one node, S = 6."""
    settings = dict(max_concurrency=1, max_duration=2, max_value=10.0, max_delay=6, epsilon=-0.5)
    oracle = changes.pop("oracle", None) or ExactOracle()
    market = PostedPriceMechanism(1, 8, changes.pop("pricing", PostedPricing([0.0])), oracle, **settings | changes)
    market.submit("earlier", StatementOfWork(1, 1, TableValue({3: 10.0}), [(2, 1, 0.4)]))
    return market


FLEXIBLE = StatementOfWork(1, 1, TableValue({3: 10.0, 4: 9.0}), [(2, 1, 1.0)])


def test_zeroing_what_the_threshold_covers():
    """The truth starts in round 2 for 0.6 * 10; a claim of round 3 alone brings 9."""
    certificate = certify(busy_market(threshold=0.5), FLEXIBLE)
    closes_at(certificate, 3.0)
    assert certificate.witness == "declares 1 node; arriving in round 2 with signal 1: starts in round 3 instead of 2"
    assert certify(busy_market(threshold=0.3), FLEXIBLE).regret_upper == 0.0


def capped_market():
    """The hard cap closes round 2 (1.2 of 2 nodes are committed), at a price far below what it is worth."""
    market = PostedPriceMechanism(
        4,
        8,
        ExponentialPricing(floor=0.01, ceiling=0.05),
        ExactOracle(),
        max_concurrency=1,
        max_duration=2,
        max_value=10.0,
        max_delay=6,
        epsilon=0.5,
    )
    for name in "ab":
        market.submit(name, StatementOfWork(1, 1, TableValue({3: 10.0}), [(2, 1, 0.6)]))
    return market


def test_a_false_duration_opens_what_the_hard_cap_took_off_sale():
    """Two rounds from round 1 on are not on sale; one round is, and a run that lasts two pays the formula's price."""
    market, truth = capped_market(), StatementOfWork(1, 1, TableValue({3: 10.0}), [(1, 2, 1.0)])
    menu = market.menu(1)
    assert menu.price(1, 2) == np.inf and menu.failure(1, 2) == 0.0
    certificate = certify(market, truth)
    quoted = market.inspect().charge(1, 1, 2)
    closes_at(certificate, 10.0 - quoted)
    assert certificate.truthful_utility == 0.0
    lied = capped_market()
    plan = lied.submit("owner", certificate.report)
    assert plan.start(1, 2) == 1
    lied.arrive("owner", 2)
    lied.advance()
    lied.advance()
    assert lied.complete("owner").payment == pytest.approx(quoted)
    assert quoted < 0.1


# --- certifying changes nothing ----------------------------------------------------------------------

ORACLES = {
    "exact": ExactOracle,
    "kept": lambda: MonteCarloOracle(96, 0.0, rng=1),
    "rotated": lambda: MonteCarloOracle(96, 0.3, probe_every=2, rng=1),
    "fresh": lambda: MonteCarloOracle(96, "submission", rng=1),
}


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("exact", [True, False])
def test_a_mechanism_runs_on_as_if_nobody_had_asked(oracle, exact):
    asked = 0

    def run(seed, *, certified):
        nonlocal asked
        small = seeded_market(seed, Kind(max_jobs=6))
        market, plans = mechanism(small.config, oracle=ORACLES[oracle]()), []

        def before(job, sow):
            nonlocal asked
            if certified:
                certify(market, sow, exact=exact, samples=70, rng=seed)
                asked += 1

        events = play(market, small.jobs, before=before, after=lambda job, sow, plan: plans.append(plan))
        return events, plans, market.slot_prices(1, market.horizon).tolist(), repr(market.statistics())

    for seed in range(12):
        assert run(seed, certified=True) == run(seed, certified=False)
    assert asked > 20


# --- special truths ----------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
def test_a_job_that_is_worth_nothing(exact):
    worthless = StatementOfWork(1, 1, DeadlineValue(0.0, 4), [(2, 1, 1.0)])
    late = StatementOfWork(1, 1, DeadlineValue(5.0, 2), [(4, 2, 1.0)])
    certain_not = StatementOfWork(1, 1, DeadlineValue(5.0, 6), [(2, 1, 0.0)])
    for truth in (worthless, late, certain_not):
        certificate = certify(busy_market(), truth, exact=exact, rng=0)
        assert certificate.regret_lower == certificate.regret_upper == certificate.truthful_utility == 0.0


@pytest.mark.compiled
def test_auto_enumerates_where_that_is_cheap_and_draws_where_it_is_not(monkeypatch):
    market = busy_market(oracle=MonteCarloOracle(64))
    assert certify(market, FLEXIBLE, rng=0).samples is None
    assert certify(market, FLEXIBLE, exact=False, samples=500, rng=0).samples == 500
    crowd = PostedPriceMechanism(
        40,
        40,
        PostedPricing([0.0]),
        MonteCarloOracle(64),
        max_concurrency=1,
        max_duration=4,
        max_value=9.0,
        max_delay=30,
    )
    for k in range(20):
        crowd.submit(
            k, StatementOfWork(1, 1, DeadlineValue(9.0, 30), [(a, d, 0.1) for a in (2, 3) for d in range(1, 5)])
        )
    truth = StatementOfWork(1, 1, DeadlineValue(9.0, 30), [(2, 2, 1.0)])
    assert certify(crowd, truth, rng=0).samples == 10_000
    monkeypatch.setattr("marketsched.mechanisms.posted.exact_oracle.MAX_STATES", 10_000)
    refused(lambda: certify(crowd, truth, exact=True), "joint outcomes", error=TooLargeError)


# --- bad input ---------------------------------------------------------------------------------------


def test_a_moment_without_submissions():
    market = busy_market()
    for _ in range(7):
        market.advance()
    market.advance()
    refused(lambda: certify(market, FLEXIBLE), "inspect in round 9: expected at most the horizon 8", error=EventError)
    arrived = busy_market()
    arrived.advance()
    arrived.arrive("earlier", 1)
    with pytest.raises(EventError, match="after an arrival of round 2"):
        certify(arrived, StatementOfWork(2, 1, DeadlineValue(5.0, 4), [(2, 1, 1.0)]))


def test_a_mechanism_without_a_menu_is_sent_to_the_search():
    limits = {"max_concurrency": 1, "max_duration": 2, "max_value": 10.0, "max_delay": 6}
    with pytest.raises(InvalidParameterError, match=r"FirstCome.*marketsched\.audit"):
        certify(FirstCome(1, 8, 0.0, **limits), FLEXIBLE)


class PaysTheReport(PostedPriceMechanism):
    def complete(self, job):
        return super().complete(job)


class Renamed(PostedPriceMechanism):
    """Nothing is changed."""


def test_a_changed_mechanism_is_not_vouched_for():
    arguments = (1, 8, PostedPricing([0.0]), ExactOracle())
    limits = {"max_concurrency": 1, "max_duration": 2, "max_value": 10.0, "max_delay": 6}
    with pytest.raises(InvalidParameterError, match=r"PaysTheReport: it changes complete .*marketsched\.audit"):
        certify(PaysTheReport(*arguments, **limits), FLEXIBLE)
    assert certify(Renamed(1, 8, PostedPricing([0.0]), ExactOracle(), **limits), FLEXIBLE).regret_upper == 0.0
