"""Fractional unit allocations: worked example W6, Theorem FUA, rounding, gap G6, bad input."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms import InvalidParameterError
from marketsched.relaxed_lp import fractional_unit_allocation, star
from packings import (
    W6,
    as_allocation,
    check_theorem,
    family_of,
    height_of,
    random_family,
    star_packing,
    w6,
    window_packing,
)


def members_of(allocation):
    """Return the shares of each bundle's outcomes."""
    shares = [{} for _ in allocation.first]
    for k, i, share in zip(*(array.tolist() for array in allocation.members), strict=True):
        shares[k][i] = share
    return shares


# -- the construction --------------------------------------------------------------------------------------


def test_w6():
    bundles = w6()
    third = 1 / 3
    assert bundles.first.tolist() == [1, 3, 4]
    assert bundles.last.tolist() == [6, 6, 4]
    assert bundles.weight.tolist() == pytest.approx([1, 1, 0.5], abs=1e-15)
    assert bundles.value.tolist() == pytest.approx([2.5, 2.25, 1], abs=1e-15)
    assert members_of(bundles) == [
        pytest.approx({0: 1, 3: 2 * third}, abs=1e-15),
        pytest.approx({3: third, 1: 1, 2: third}, abs=1e-15),
        pytest.approx({2: 2 * third}, abs=1e-15),
    ]
    assert bundles.overlap().tolist() == [1, 1, 2, 3, 2, 2]
    assert bundles.max_overlap == 3
    bundles.verify(supply=3)


@pytest.mark.parametrize("seed", range(many(400)))
def test_star_is_the_construction_word_by_word(seed):
    """Weights are rational, so that ties are exact there, and have to be recognised here."""
    rng = np.random.default_rng(seed)
    unit, longest = int(rng.integers(1, 6)), int(rng.choice([1, 2, 3, 4, 7, 8, 13]))
    below = int(rng.choice([1, 2, 3, 4, 5, 7, 12]))
    n = int(rng.integers(1, 30))
    fractions = [Fraction(int(k), below) for k in rng.integers(0, 2 * below + 1, n)]
    fractions[0] = Fraction(1, below)
    arrays = random_family(rng, n, longest + int(rng.integers(0, 12)), unit, longest, lambda n: np.ones(n))
    exact = family_of(*arrays[:3], fractions, arrays[4])
    reference = star_packing(exact, unit, longest)
    bundles = fractional_unit_allocation(
        *arrays[:3], [float(x) for x in fractions], arrays[4], max_concurrency=unit, max_duration=longest
    )
    assert bundles.first.tolist() == [bundle.first for bundle in reference]
    assert bundles.last.tolist() == [bundle.last for bundle in reference]
    assert members_of(bundles) == [
        pytest.approx({i: float(share) for i, share in bundle.shares.items()}, rel=1e-12) for bundle in reference
    ]
    expected = as_allocation(reference, exact, unit)
    assert bundles.value == pytest.approx(expected.value, rel=1e-12)
    assert bundles.weight == pytest.approx(expected.weight, rel=1e-12)
    bundles.verify()
    expected.verify()


def test_centres_of_distant_rounds():
    far = np.array([2**53 - 3, 2**40 + 1, 2**53 - 1])
    assert star._centres(far, far + np.array([2, 6, 1])).tolist() == [2**53 - 2, 2**40 + 4, 2**53]


# -- Theorem FUA -------------------------------------------------------------------------------------------

NASTY = [1 / 3, 2 / 3, 1 / 7, 0.1, 0.3, 0.7, 0.5, 0.25, 1e-9, 2e-9, 1e-12, 1e-300, 5e-324, 1 - 1e-9, 1 - 1e-16]
NASTY += [1 + 1e-9, 1 + 2e-16, 0.5 + 1e-16, 0.5 - 1e-17, 0.5 - 6e-17, 1 / 3 + 6e-17, 1e6, 1e6 + 1 / 3, 12345.678]
weights = st.one_of(
    st.sampled_from(NASTY),
    st.integers(0, 3).map(float),
    st.integers(0, 9).map(lambda k: k / 3),
    st.floats(0, 3),
    st.floats(0, 1e-6),
)


@st.composite
def families(draw):
    unit, longest = draw(st.sampled_from([1, 2, 3, 5, 10])), draw(st.sampled_from([1, 2, 3, 4, 6, 8, 11, 16]))
    row = st.tuples(st.integers(1, 14), st.integers(0, longest - 1), st.integers(1, unit), weights, st.floats(0, 1e3))
    rows = [(f, f + d, c, x, v) for f, d, c, x, v in draw(st.lists(row, min_size=1, max_size=14))]
    if all(x == 0 for *_, x, _ in rows):
        rows.append((1, 1, 1, 1.0, 1.0))
    return rows, unit, longest


@pytest.mark.slow
@given(families())
@settings(max_examples=many(400))
def test_theorem_fua_in_exact_arithmetic(case):
    rows, unit, longest = case
    columns = list(zip(*rows, strict=True))
    bundles = fractional_unit_allocation(*columns, max_concurrency=unit, max_duration=longest)
    bundles.verify()
    family = family_of(*columns)
    check_theorem(family, unit, longest, bundles.overlap().tolist())
    assert bundles.weight.max() <= unit * (1 + 3e-9)
    assert float(sum(w.value * w.weight for w in family)) == pytest.approx(bundles.value.sum(), rel=1e-12)


def sweep(rng, n_families):
    """Check the theorem on random families, with sums as NumPy makes them."""
    for _ in range(n_families):
        unit, longest = int(rng.integers(1, 6)), int(rng.integers(1, 33))
        n, rounds = int(rng.integers(1, 60)), longest + int(rng.integers(0, 40))
        scale, kind = rng.choice([0.01, 0.3, 3.0]), rng.integers(3)
        thirds, evenly, heavy = rng.integers(0, 5, n) / 3, rng.random(n) * scale, rng.exponential(scale, n)
        weights = (thirds, evenly, heavy)[kind]
        arrays = random_family(rng, n, rounds, unit, longest, lambda n, weights=weights: weights)
        arrays[3][0] = 0.5
        first, last, width, weight, _ = arrays
        bundles = fractional_unit_allocation(*arrays, max_concurrency=unit, max_duration=longest)
        bundles.verify()
        height, t = height_of(longest), np.arange(1, rounds + 1)
        powers = 2 ** np.arange(height + 1)
        divisible = (t[:, None] % powers == 0).sum(axis=1)  # the height of each round, and 1
        covers = (first[:, None] <= t) & (t <= last[:, None])
        centres = np.where(covers, divisible, -1).argmax(axis=1)
        loads = np.zeros((rounds, rounds))  # of each star on each round
        np.add.at(loads, centres, covers * (width * weight / unit)[:, None])
        in_stars = np.ceil(2 * loads - 1e-12).sum(axis=0)
        overlap = bundles.overlap(rounds)
        assert (overlap <= in_stars).all()
        assert (in_stars <= 2 * loads.sum(axis=0) + height + 2).all()


def test_theorem_fua_on_random_families():
    sweep(np.random.default_rng(0), many(500))


# -- rounding ----------------------------------------------------------------------------------------------


def test_products_lose_nothing():
    rng = np.random.default_rng(7)
    width = np.append(rng.integers(1, 2**26, 500), [1, 3, 2**26])
    weight = np.append(rng.random(500) * 10.0 ** rng.integers(-12, 6, 500), [5e-324, 1e-300, 1 / 3])
    for c, x, high, low in zip(width.tolist(), weight.tolist(), *star._products(width, weight), strict=True):
        assert Fraction(high) + Fraction(low) == c * Fraction(x)


@pytest.mark.parametrize(("weight", "each"), [(0.1, 10), (1 / 3, 3), (1 / 7, 7), (0.7, 10)])
def test_rounding_makes_no_slivers(weight, each):
    """Whole bundles fill up exactly, many times over: none is left with a crumb of an outcome."""
    n = each * 3000
    ones = np.ones(n, int)
    bundles = fractional_unit_allocation(ones, ones, ones, np.full(n, weight), ones, max_concurrency=1, max_duration=1)
    assert bundles.first.size == round(n * weight)
    assert bundles.members.share.min() >= 0.1 - 1e-9
    assert bundles.weight == pytest.approx(1, abs=1e-9)


def test_a_crumb_beyond_a_full_bundle_stays_in_it():
    one = [1, 1]
    bundles = fractional_unit_allocation(one, one, one, [1.0, 5e-10], one, max_concurrency=1, max_duration=1)
    assert bundles.weight.tolist() == [1 + 5e-10]
    bundles = fractional_unit_allocation(one, one, one, [1.0, 5e-9], one, max_concurrency=1, max_duration=1)
    assert bundles.weight.tolist() == [1, 5e-9]


@pytest.mark.parametrize("weight", [1.5, 2.5, 3.0, 1000.25, 999_999.5, 2_000_000 / 3])
def test_heavy_outcomes_are_split(weight):
    bundles = fractional_unit_allocation([2], [3], [2], [weight], [3.0], max_concurrency=3, max_duration=2)
    assert bundles.first.size == math.ceil(round(2 * weight / 3, 6))
    assert bundles.members.share.sum() == pytest.approx(1, abs=1e-12)
    assert bundles.value.sum() == pytest.approx(3 * weight, rel=1e-12)
    assert set(bundles.first.tolist()) == {2}
    bundles.verify()


# -- other packings (G6) -----------------------------------------------------------------------------------


def g6():
    """Return the family on which class windows overlap without bound, c_max = 1 and D_max = 2^14."""
    t0, rows = 30_000, []
    for g in (5, 7, 9, 11, 13):
        for i in range(8):
            u = t0 - 2 ** (g + 1) + 2 + i
            rows += [(u, u + 2**g - 1, 1, 0.999, 1.0), (u, t0, 1, 0.001, 1.0)]
    return tuple(np.array(column) for column in zip(*rows, strict=True)), t0


def test_g6_class_windows_overlap_where_star_does_not():
    arrays, t0 = g6()
    first, last, _, weight, _ = arrays
    loads = [weight[(first <= t) & (t <= last)].sum() for t in sorted({*first.tolist(), *last.tolist()})]
    assert max(loads) == pytest.approx(8.032, abs=1e-12)
    decimal = [Fraction("0.999"), Fraction("0.001")] * 40
    family = family_of(*arrays[:3], decimal, arrays[4])
    windows = as_allocation(window_packing(family, 1), family, 1)
    windows.verify()
    assert windows.first.size == 40
    assert windows.overlap(t0)[-1] == 40
    bundles = fractional_unit_allocation(*arrays, max_concurrency=1, max_duration=2**14)
    bundles.verify(supply=12)
    assert bundles.overlap(t0)[-1] == 4
    assert bundles.max_overlap == 12


def test_the_bound_of_the_theorem_can_be_broken():
    arrays, t0 = g6()
    family = family_of(*arrays[:3], [Fraction("0.999"), Fraction("0.001")] * 40, arrays[4])
    load = float(sum(w.weight for w in family if w.covers(t0)))
    windows = as_allocation(window_packing(family, 1), family, 1)
    assert windows.overlap(t0)[-1] > 2 * load + 14 + 2


# -- kernels, copies, bad input ----------------------------------------------------------------------------


def test_results_are_our_own_and_read_only():
    arrays = [np.array(column) for column in W6]
    before = [array.copy() for array in arrays]
    bundles = fractional_unit_allocation(*arrays, max_concurrency=1, max_duration=4)
    wide = bundles.widened(4, 9)
    assert all((now == then).all() for now, then in zip(arrays, before, strict=True))
    own = (bundles.first, bundles.last, bundles.value, bundles.weight, *bundles.members, *bundles.outcomes)
    assert not any(array.flags.writeable for array in (*own, wide.first, wide.last))
    assert not any(np.shares_memory(mine, given) for mine in own for given in arrays)


GOOD = {"first": [1, 2], "last": [2, 2], "width": [1, 2], "weight": [0.5, 0.25], "value": [1.0, 0.0]}
SIZES = {"max_concurrency": 2, "max_duration": 3}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first": [1, 0]}, r"first\[1\] = 0: expected a whole number in \[1, 9007199254740992\]"),
        ({"first": [1, 1.5]}, r"first\[1\] = 1.5: expected a whole number"),
        ({"first": [1, np.nan]}, r"first\[1\] = nan: expected a whole number"),
        ({"last": [2, np.inf]}, r"last\[1\] = inf: expected a whole number"),
        ({"last": [2, 1]}, r"last\[1\] = 1 with first\[1\] = 2: expected a round in \[2, 4\], as max_duration = 3"),
        ({"last": [2, 5]}, r"last\[1\] = 5 with first\[1\] = 2: expected a round in \[2, 4\], as max_duration = 3"),
        ({"width": [1, 3]}, r"width\[1\] = 3: expected a whole number in \[1, 2\]"),
        ({"width": [0, 1]}, r"width\[0\] = 0: expected a whole number in \[1, 2\]"),
        ({"weight": [0.5, -1e-9]}, r"weight\[1\] = -1e-09: expected a finite number >= 0"),
        ({"weight": [0.5, np.nan]}, r"weight\[1\] = nan: expected a finite number >= 0"),
        ({"weight": [0.5, np.inf]}, r"weight\[1\] = inf: expected a finite number >= 0"),
        ({"weight": [0.0, 0]}, "weight: none of 2 is positive: expected at least one outcome"),
        ({"weight": [1e8, 1]}, "width \\* weight adds up to 5e\\+07 bundles of max_concurrency = 2 nodes: expected"),
        ({"weight": [1e308, 1e308]}, "width \\* weight adds up to inf bundles"),
        ({"value": [1.0, -1]}, r"value\[1\] = -1.0: expected a finite number >= 0"),
        ({"value": [1.0, np.nan]}, r"value\[1\] = nan"),
        ({"weight": [9, 9], "value": [1e308, 1e308]}, "value \\* weight adds up to inf: expected a finite number"),
        ({"value": [1.0]}, "value has 1 entries: expected 2, as many as first"),
        ({"value": 1.0}, r"value has shape \(\): expected \(any,\)"),
        ({"first": [[1, 2]]}, r"first has shape \(1, 2\): expected \(any,\)"),
        ({"first": [1, [2]]}, "first is not an array"),
        ({"first": ["1", "2"]}, "first has entries of type <U1: expected an array of whole numbers"),
        ({"width": [True, True]}, "width has entries of type bool: expected an array of whole numbers"),
        ({"weight": [None, 1]}, "weight has entries of type object: expected a numeric array"),
        ({name: [] for name in GOOD}, "first is empty: expected at least one outcome"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        fractional_unit_allocation(**{**GOOD, **SIZES, **changes})


def test_good_input_is_not():
    fractional_unit_allocation(**GOOD, **SIZES).verify()
    as_floats = {name: np.array(column, dtype=np.float32) for name, column in GOOD.items()}
    fractional_unit_allocation(**as_floats, **SIZES).verify()
