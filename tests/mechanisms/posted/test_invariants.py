"""The invariants of section 14 of docs/mathematics.md, on random markets driven through the public API."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from draws import many
from marketsched.mechanisms import EventKind
from reference.bridge import mechanism, play
from reference.markets import Kind, SmallMarket, markets, seeded_market

ANY = Kind()
CURVE = Kind(pricings=("exponential",))
THEOREM = Kind(revealed_only=True, pricings=("exponential",), fits_formula=True)
thorough = settings(
    max_examples=many(60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def last_slot(config):
    return config["horizon"] + 2 * config["max_duration"]


# --- 1: relaxed feasibility -------------------------------------------------------------------------


def assert_supply_is_kept(market: SmallMarket) -> float:
    """Return the largest share of the supply that was committed."""
    product = mechanism(market.config)
    supply = (1 - market.config["epsilon"]) * market.config["capacity"]
    peaks = [0.0]

    def after(job, sow, plan):
        committed = product.committed(1, last_slot(market.config))
        assert committed.max() <= supply + 1e-6
        peaks.append(committed.max() / supply)

    play(product, market.jobs, after=after)
    return max(peaks)


@thorough
@given(markets(CURVE))
def test_1_committed_usage_never_exceeds_the_relaxed_supply(market):
    """Also with hidden durations and with plans forced by failure estimates: the hard cap sees to it."""
    assert_supply_is_kept(market)


def test_1_is_tested_at_the_limit():
    peaks = [assert_supply_is_kept(seeded_market(seed, CURVE)) for seed in range(many(100))]
    assert max(peaks) > 0.9


# --- 2 and 3: menus ---------------------------------------------------------------------------------


@thorough
@given(markets(ANY))
def test_2_and_3_menus_grow_with_width_length_and_time(market):
    config = market.config
    product = mechanism(config)
    widths = range(1, config["max_concurrency"] + 1)
    earlier = {}

    def look(*_):
        if product.round > product.horizon:
            return
        menus = [product.menu(c) for c in widths]
        prices = np.array([menu.prices for menu in menus])
        failures = np.array([menu.failures for menu in menus])
        assert (prices >= 0).all()
        assert (prices[1:] >= prices[:-1] - 1e-12).all()
        assert (prices[:, :, 1:] >= prices[:, :, :-1] - 1e-12).all()
        assert ((failures >= 0) & (failures <= 1)).all()
        assert (failures[1:] >= failures[:-1] - 1e-12).all()
        assert (failures[:, :, 1:] >= failures[:, :, :-1] - 1e-12).all()
        for c, menu in zip(widths, menus, strict=True):
            for i, k in np.ndindex(menu.prices.shape):
                launch = (c, menu.first_start + i, k + 1)
                assert menu.prices[i, k] >= earlier.get(launch, 0.0) - 1e-12
                earlier[launch] = menu.prices[i, k]

    play(product, market.jobs, before=look, after=look, cleared=look)


# --- 4: realised load -------------------------------------------------------------------------------


@thorough
@given(markets(ANY))
def test_4_realised_load_fits(market):
    product = mechanism(market.config)
    width = {job.name: job.sow["concurrency"] for job in market.jobs}
    loads = []
    events = play(product, market.jobs, cleared=lambda: loads.append(product.load))
    assert max(loads) <= market.config["capacity"]
    running: set[str] = set()
    for t in range(1, market.config["horizon"]):  # the same, from the events alone
        now = [event for event in events if event.round == t]
        running |= {e.job for e in now if e.kind is EventKind.START}
        running -= {e.job for e in now if e.kind is EventKind.EVICT}
        assert loads[t - 1] == sum(width[name] for name in running)
        running -= {e.job for e in now if e.kind is EventKind.COMPLETE}


# --- 5: payments ------------------------------------------------------------------------------------


@thorough
@given(markets(ANY))
def test_5_only_completed_jobs_pay_and_they_pay_the_menu_of_their_submission(market):
    product = mechanism(market.config)
    menus, slots = {}, {}

    def before(job, sow):
        menus[job.name] = product.menu(sow.concurrency)
        slots[job.name] = product.slot_prices(1, last_slot(market.config))

    events = play(product, market.jobs, before=before)
    starts = {event.job: event.round for event in events if event.kind is EventKind.START}
    for event in events:
        if event.kind is not EventKind.COMPLETE:
            assert event.payment == 0.0
            continue
        start, menu = starts[event.job], menus[event.job]
        duration = event.completion - start
        price = menu.price(start, duration)
        if math.isinf(price):  # outside the report, and not on sale: the formula's price without the cap
            price = menu.concurrency * slots[event.job][start - 1 : start - 1 + duration].sum()
        assert event.payment == pytest.approx(price, abs=1e-9)


# --- 6: Claim 4.2 -----------------------------------------------------------------------------------


def effective_value(sow, config):
    def value(f):
        late = f >= sow.birth + config["max_delay"] or f > config["horizon"] + 1
        return 0.0 if late else sow.value(f)

    return value


def cases_of(sow):
    cases = {}
    for row in sow.requirements:
        if row.probability > 0:
            cases.setdefault((row.arrival, row.signal), []).append((row.duration, row.probability))
    return cases


def against_the_relaxed_optimum(menu, sow, plan, config):
    """Return (relaxed utility of the plan, best relaxed utility (10), all relevant estimates are 0)."""
    value = effective_value(sow, config)
    got, best, zero = 0.0, 0.0, True
    for (a, o), points in cases_of(sow).items():
        options = {None: 0.0}
        for s in range(a, sow.birth + config["max_delay"]):
            if not any(value(s + d) > 0 for d, _ in points):
                continue
            # Beyond the horizon nothing is worth anything; with one duration per case that launch is no option.
            zero = zero and all(menu.failure(s, d) == 0 for d, _ in points)
            prices = [menu.price(s, d) for d, _ in points]
            if not any(math.isinf(price) for price in prices):
                options[s] = sum(p * (value(s + d) - price) for (d, p), price in zip(points, prices, strict=True))
        best += max(options.values())
        got += options[plan.start(a, o)]
    return got, best, zero


@thorough
@given(markets(ANY))
def test_6_a_plan_with_no_relevant_failures_is_the_menu_choice(market):
    product = mechanism(market.config)
    menus = {}
    followers = []

    def before(job, sow):
        menus[job.name] = product.menu(sow.concurrency)

    def after(job, sow, plan):
        got, best, zero = against_the_relaxed_optimum(menus[job.name], sow, plan, market.config)
        if zero:
            assert got == pytest.approx(best, abs=1e-9)
        followers.append(got >= best - 1e-9 * max(1.0, best))

    play(product, market.jobs, before=before, after=after)
    assert product.certificate().in_j_prime == sum(followers)


# --- 7: the certificate (22) ------------------------------------------------------------------------


def relaxed_optimum(sows, config):
    """Return (11) for these reports, at the relaxed supply, by a plain LP."""
    supply, last = (1 - config["epsilon"]) * config["capacity"], last_slot(config)
    gains, usage, tasks, limits = [], [], [], 0
    for sow in sows:
        value = effective_value(sow, config)
        for (arrival, _), points in cases_of(sow).items():
            limits += 1
            for s in range(arrival, config["horizon"] + 1):
                if any(value(s + d) > 0 for d, _ in points):
                    gains.append(sum(p * value(s + d) for d, p in points))
                    tasks.append(limits - 1)
                    rounds = [sum(p for d, p in points if s <= t < s + d) for t in range(1, last + 1)]
                    usage.append([sow.concurrency * share for share in rounds])
    if not gains:
        return 0.0
    by_task = (np.arange(limits)[:, None] == np.array(tasks)[None, :]).astype(float)
    found = linprog(
        -np.array(gains),
        A_ub=np.vstack([np.array(usage, dtype=float).T, by_task]),
        b_ub=np.concatenate([np.full(last, supply), np.ones(limits)]),
        bounds=(0, None),
        method="highs",
    )
    assert found.status == 0, found.message
    return -found.fun


def certified(market: SmallMarket):
    """Return (certificate, OPTrel over the jobs that follow the menu)."""
    product = mechanism(market.config)
    menus, sows = {}, []

    def before(job, sow):
        menus[job.name] = product.menu(sow.concurrency)

    def after(job, sow, plan):
        got, best, _ = against_the_relaxed_optimum(menus[job.name], sow, plan, market.config)
        if got >= best - 1e-9 * max(1.0, best):
            sows.append(sow)

    play(product, market.jobs, before=before, after=after)
    return product.certificate(), relaxed_optimum(sows, market.config)


@thorough
@given(markets(THEOREM))
def test_7_the_certificate_bounds_the_relaxed_optimum(market):
    """With the curve and the supply of Theorem 5.1 and values of at least 1 it is always valid."""
    certificate, optimum = certified(market)
    assert certificate.valid, certificate.reason
    assert optimum <= certificate.bound + 1e-6


@thorough
@given(markets(CURVE))
def test_7_a_certificate_that_calls_itself_valid_is(market):
    """Any curve, any supply, values below 1, durations hidden or not: it may decline, it may not be wrong."""
    certificate, optimum = certified(market)
    if certificate.valid:
        assert optimum <= certificate.bound + 1e-6


def test_7_is_not_vacuous():
    """The bound is within a small factor of the optimum on some market, and is sometimes declined."""
    ratios, declined = [], 0
    for seed in range(many(150)):
        certificate, optimum = certified(seeded_market(seed, CURVE))
        declined += not certificate.valid
        if certificate.valid and optimum > 0:
            ratios.append(certificate.bound / optimum)
    assert len(ratios) > many(20, least=5)
    assert declined > many(5, least=1)
    assert min(ratios) < 3


# --- 9: later submissions ---------------------------------------------------------------------------


def fates(events, names):
    return [event for event in events if event.job in names]


def assert_later_jobs_do_not_matter(market: SmallMarket, kept: int) -> int:
    """Drop the jobs after the first ``kept``; return how many events the others had."""
    first = market.jobs[:kept]
    names = {job.name for job in first}
    whole = fates(play(mechanism(market.config), market.jobs), names)
    alone = fates(play(mechanism(market.config), first), names)
    assert whole == alone
    return len(alone)


@thorough
@given(markets(ANY), st.integers(0, 8))
def test_9_later_submissions_leave_earlier_jobs_alone(market, kept):
    assert_later_jobs_do_not_matter(market, min(kept, len(market.jobs)))
