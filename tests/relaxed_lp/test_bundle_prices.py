"""The bundle menu (24) against its definition, and what the relaxed problem asks of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms.limits import MarketLimits
from marketsched.relaxed_lp.bundle_prices import BundlePricing

HORIZON, LONGEST, WIDEST = 8, 3, 2
LIMITS = MarketLimits(40, HORIZON, WIDEST, LONGEST, max_value=9.0, max_delay=6)


class Plain:
    """(24) word by word, one dictionary per bundle."""

    def __init__(self, bundles):
        self.bundles = [{"rounds": set(range(a, b + 1)), "price": q, "used": 0.0} for a, b, q in bundles]

    def price(self, start, concurrency, duration):
        run = set(range(start, start + duration))
        fitting = [b["price"] for b in self.bundles if b["used"] < WIDEST and run <= b["rounds"]]
        return concurrency * min(fitting) if fitting else np.inf

    def commit(self, concurrency, tasks):
        taken = []
        for start, duration, weight in tasks:
            run = set(range(start, start + duration))
            fitting = [b for b in self.bundles if b["used"] < WIDEST and run <= b["rounds"]]
            if fitting:
                taken.append((min(fitting, key=lambda b: b["price"]), weight * concurrency))
        for bundle, width in taken:  # all tasks of one job see the same open bundles
            bundle["used"] += width


@st.composite
def menus(draw):
    bundles = []
    for _ in range(draw(st.integers(1, 6))):
        a = draw(st.integers(1, HORIZON))
        bundles.append((a, draw(st.integers(a, HORIZON)), draw(st.sampled_from([0.5, 1.0, 1.0, 3.0]))))
    jobs = draw(
        st.lists(
            st.tuples(
                st.integers(1, WIDEST),
                st.lists(
                    st.tuples(
                        st.integers(1, HORIZON), st.integers(1, LONGEST), st.sampled_from([0.0, 0.25, 0.4, 0.5, 1.0])
                    ),
                    min_size=1,
                    max_size=3,
                ),
            ),
            max_size=8,
        )
    )
    return bundles, jobs


def opened(bundles, **others):
    first, last, prices = (np.array(column) for column in zip(*bundles, strict=True))
    return BundlePricing(first, last, prices.astype(float), 40.0, LIMITS, **others)


def table_of(pricing, concurrency):
    prices, longest = pricing.price_table(concurrency, 1, HORIZON, LONGEST)
    on_sale = np.arange(1, LONGEST + 1) <= longest[:, None]
    assert np.array_equal(on_sale, np.isfinite(prices))
    return prices


def commit(pricing, concurrency, tasks):
    starts, durations, weights = zip(*tasks, strict=True)
    pricing.commit(concurrency, np.array(starts), np.array(durations), np.array(weights, dtype=float))


@pytest.mark.slow
@settings(max_examples=many(200), deadline=None)
@given(menus())
def test_prices_follow_the_definition_after_every_plan(menu):
    bundles, jobs = menu
    pricing, plain = opened(bundles), Plain(bundles)
    before = {c: np.full((HORIZON, LONGEST), 0.0) for c in (1, 2)}
    for job in [None, *jobs]:
        if job is not None:
            commit(pricing, *job)
            plain.commit(*job)
        assert pricing.used.tolist() == [b["used"] for b in plain.bundles]
        tables = {}
        for c in (1, 2):
            tables[c] = table_of(pricing, c)
            expected = [[plain.price(s, c, d) for d in range(1, LONGEST + 1)] for s in range(1, HORIZON + 1)]
            assert tables[c].tolist() == expected
            assert (tables[c] >= before[c]).all()  # never falls in time
            assert (tables[c][:, 1:] >= tables[c][:, :-1]).all()  # nor along the durations
        assert (tables[2] >= tables[1]).all()
        assert pricing.slot_prices(1, HORIZON).tolist() == tables[1][:, 0].tolist()
        before = tables


@settings(max_examples=many(200), deadline=None)
@given(menus())
def test_no_bundle_sells_more_than_twice_its_weight(menu):
    """Section 8: used_k < c_max + c_j, so a round with N bundles over it carries less than 2 c_max N."""
    bundles, jobs = menu
    pricing = opened(bundles)
    overlap = np.array([sum(a <= t <= b for a, b, _ in bundles) for t in range(1, HORIZON + 1)])
    for concurrency, tasks in jobs:
        total = sum(w for _, _, w in tasks)
        prices = table_of(pricing, concurrency)
        on_sale = [(s, d, w / max(total, 1.0)) for s, d, w in tasks if np.isfinite(prices[s - 1, d - 1])]
        if on_sale:
            commit(pricing, concurrency, on_sale)
        assert (pricing.used <= 2 * WIDEST).all()  # below it, but for rounding
        assert (pricing.usage(1, HORIZON) <= 2 * WIDEST * overlap).all()
    assert pricing.usage(1, 2 * HORIZON).sum() == pytest.approx(pricing.usage(1, HORIZON).sum())


def test_a_quote_keeps_the_bundles_of_its_moment():
    pricing = opened([(1, 4, 1.0), (2, 6, 2.0)])
    early = pricing.quote(2, 1, 6)
    commit(pricing, 2, [(2, 2, 1.0)])  # takes all of the first bundle
    late = pricing.quote(2, 1, 6)
    assert (early.price(2, 3), late.price(2, 3)) == (2.0, 4.0)
    assert pricing.price_table(1, 2, 1, 3)[0].tolist() == [[2.0, 2.0, 2.0]]


def test_what_was_never_on_sale_is_charged_so_that_no_lie_pays():
    pricing = opened([(1, 4, 1.0), (2, 6, 7.0)])
    quote = pricing.quote(2, 1, 6)
    assert quote.price(3, 6) == 14.0  # two nodes of the dearest bundle
    assert pricing.quote(1, 1, 6).price(3, 6) == 9.0  # V_max
    prices, _ = pricing.price_table(2, 3, 1, LONGEST)
    assert quote.price(3, 6) >= prices.max()


def test_ties_go_to_the_first_bundle():
    pricing = opened([(1, 4, 1.0), (1, 4, 1.0)])
    commit(pricing, 1, [(1, 1, 0.5)])
    assert pricing.used.tolist() == [0.5, 0.0]


def test_nothing_is_asked_for():
    pricing = opened([(1, 4, 1.0)])
    prices, longest = pricing.price_table(1, 3, 0, LONGEST)
    assert prices.shape == (0, LONGEST)
    assert longest.shape == (0,)
    pricing.commit(1, np.array([-1, 2]), np.array([1, 1]), np.array([1.0, 0.0]))
    assert pricing.usage(1, HORIZON).sum() == 0


def test_figures_are_told():
    pricing = opened([(1, 4, 1.0), (2, 5, 2.0)], figures={"lp_value": 3.0})
    commit(pricing, 2, [(2, 2, 1.0)])
    assert pricing.statistics() == {"bundles": 2, "bundles_open": 1, "lp_value": 3.0}
