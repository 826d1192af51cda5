"""The checker of unit allocations catches what is tampered with; N(t); bundles that are made wider."""

from dataclasses import replace

import numpy as np
import pytest

from draws import many
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.errors import MarketschedError, TooLargeError
from marketsched.relaxed_lp import fractional_unit_allocation
from marketsched.relaxed_lp.unit_allocation import Members
from packings import W6, random_family, w6
from refusals import refused

SIZES = {"max_concurrency": 2, "max_duration": 3}

# -- the checker -------------------------------------------------------------------------------------------


def changed(array, index, value):
    copy = array.astype(float) if isinstance(value, float) else array.copy()
    copy[index] = value
    return copy


def with_members(bundles, **changes):
    return replace(bundles, members=bundles.members._replace(**changes))


def overweight(bundles):
    """Move all of C, outcome 2, to the second bundle, and keep the books right."""
    members = Members(np.array([0, 0, 1, 1, 1]), np.array([0, 3, 3, 1, 2]), np.array([1, 2 / 3, 1 / 3, 1, 1.0]))
    return replace(
        bundles,
        first=bundles.first[:2],
        last=bundles.last[:2],
        value=np.array([2.5, 3.25]),
        weight=np.array([1.0, 1.5]),
        members=members,
    )


def without_last_member(bundles):
    """Lose the third bundle, and so two thirds of C."""
    whole = {name: getattr(bundles, name)[:2] for name in ("first", "last", "value", "weight")}
    return replace(bundles, **whole, members=Members(*(array[:-1] for array in bundles.members)))


def without_outcome(bundles):
    """Forget outcome B, with all its weight and value."""
    kept = bundles.members.outcome != 1
    members = Members(*(array[kept] for array in bundles.members))
    weight, value = bundles.weight - [0, 0.5, 0], bundles.value - [0, 1.5, 0]
    return replace(bundles, members=members, weight=weight, value=value)


TAMPERED = {
    "share moved": (lambda b: with_members(b, share=changed(b.members.share, [1, 2], [0.6, 0.4])), "the nodes in"),
    "share moved, same weight": (
        lambda b: replace(
            with_members(b, share=changed(b.members.share, [1, 2], [0.6, 0.4])), weight=np.array([0.95, 1.05, 0.5])
        ),
        "bundle 1 weighs 1.05",
    ),
    "share lost": (lambda b: with_members(b, share=changed(b.members.share, 5, 0.5)), "the shares of outcome 2"),
    "negative share": (lambda b: with_members(b, share=changed(b.members.share, 5, -0.5)), "member 5 is a share"),
    "share not a number": (lambda b: with_members(b, share=changed(b.members.share, 5, np.nan)), "member 5 is a share"),
    "no such bundle": (lambda b: with_members(b, bundle=changed(b.members.bundle, 5, 3)), "in bundle 3"),
    "no such outcome": (lambda b: with_members(b, outcome=changed(b.members.outcome, 5, 4)), "of outcome 4"),
    "fractional outcome": (lambda b: with_members(b, outcome=changed(b.members.outcome, 5, 2.0)), "whole numbers"),
    "bundle shrunk": (lambda b: replace(b, last=changed(b.last, 0, 5)), "outcome 3 has the rounds 4 to 6"),
    "bundle cut on the left": (lambda b: replace(b, first=changed(b.first, 1, 4)), "outcome 1 has the rounds 3 to 5"),
    "gap in its rounds": (lambda b: replace(b, last=changed(b.last, 2, 3)), "bundle 2 has the rounds 4 to 3"),
    "half a round": (lambda b: replace(b, last=changed(b.last, 2, 4.5)), "bundle 2 has the rounds 4 to 4.5"),
    "overweight": (overweight, "bundle 1 weighs 1.5"),
    "lost outcome": (without_outcome, "the shares of outcome 1 add up to 0: expected 1"),
    "lost bundle": (without_last_member, "the shares of outcome 2"),
    "value made up": (lambda b: replace(b, value=changed(b.value, 0, 2.6)), "the values in bundle 0"),
    "value infinite": (lambda b: replace(b, value=changed(b.value, 0, np.inf)), "the values in bundle 0"),
    "weight hidden": (lambda b: replace(b, weight=changed(b.weight, 0, 0.9)), "the nodes in bundle 0"),
    "arrays of different length": (lambda b: replace(b, value=b.value[:2]), "have shapes"),
    "members of different length": (lambda b: with_members(b, share=b.members.share[:5]), "members have shapes"),
    "no bundles": (lambda b: replace(b, **{n: getattr(b, n)[:0] for n in ("first", "last", "value", "weight")}), "not"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_the_checker_catches(how):
    tamper, message = TAMPERED[how]
    with pytest.raises(MarketschedError, match=message):
        tamper(w6()).verify()


def test_the_checker_counts_bundles_against_the_supply():
    bundles = fractional_unit_allocation(*W6, max_concurrency=1, max_duration=4)
    bundles.verify(supply=3.0)
    for supply in (2.0, 2.999, 0.5):
        with pytest.raises(InvalidParameterError, match="3 bundles lie over one round: expected at most"):
            bundles.verify(supply=supply)
    for supply in (-1.0, np.nan, np.inf, "3"):
        with pytest.raises(InvalidParameterError, match="supply = "):
            bundles.verify(supply=supply)


# -- overlap and wider bundles -----------------------------------------------------------------------------


def test_overlap_by_its_definition():
    rng = np.random.default_rng(5)
    for _ in range(30):
        arrays = random_family(rng, 30, 40, 2, 9, lambda n: rng.random(n))
        bundles = fractional_unit_allocation(*arrays, max_concurrency=2, max_duration=9)
        for horizon in (1, 7, 40, 55):
            counted = [int(((bundles.first <= t) & (t <= bundles.last)).sum()) for t in range(1, horizon + 1)]
            assert bundles.overlap(horizon).tolist() == counted
        assert bundles.overlap().size == bundles.last.max()
        assert bundles.max_overlap == bundles.overlap().max()


def test_far_away_rounds_need_no_table():
    far = 2**50
    bundles = fractional_unit_allocation([far] * 3, [far + 2] * 3, [1] * 3, [0.7] * 3, [1] * 3, **SIZES)
    assert bundles.max_overlap == 2
    bundles.verify(supply=4)
    for ask in (bundles.overlap, lambda: bundles.widened(2, far + 5)):
        with pytest.raises(TooLargeError, match="rounds"):
            ask()


def widened_slowly(bundles, limit, horizon):
    """Let all bundles grow to the right, then to the left, a round at a time; the latest to begin go on."""
    first, last = bundles.first.tolist(), bundles.last.tolist()

    def room(t):
        return limit - sum(a <= t <= b for a, b in zip(first, last, strict=True))

    n, value = len(first), bundles.value.tolist()
    for t in range(2, horizon + 1):
        growing = [k for k in range(n) if last[k] == t - 1]
        growing.sort(key=lambda k: (last[k] - int(bundles.last[k]), -value[k], k))
        for k in growing[: room(t)]:
            last[k] = t
    for t in range(horizon - 1, 0, -1):
        growing = [k for k in range(n) if first[k] == t + 1]
        growing.sort(key=lambda k: (int(bundles.first[k]) - first[k], -value[k], k))
        for k in growing[: room(t)]:
            first[k] = t
    return first, last


@pytest.mark.parametrize("seed", range(many(40)))
def test_wider_bundles(seed):
    rng = np.random.default_rng(seed)
    arrays = random_family(rng, int(rng.integers(1, 25)), 24, 2, 8, lambda n: rng.random(n))
    if seed % 2:  # a crowd at the end, and hardly anyone before: they compete for the rounds on their left, too
        arrays = tuple(np.append(column, row) for column, row in zip(arrays, (1, 2, 1, 0.1, 1.0), strict=True))
        arrays[0][:-1] += 16
        arrays[1][:-1] += 16
    bundles = fractional_unit_allocation(*arrays, max_concurrency=2, max_duration=8)
    limit, horizon = bundles.max_overlap + int(rng.integers(0, 3)), int(bundles.last.max() + rng.integers(0, 6))
    wide = bundles.widened(limit, horizon)
    wide.verify(supply=2 * limit)
    assert (wide.first <= bundles.first).all() and (wide.last >= bundles.last).all()
    assert wide.first.min() >= 1 and wide.last.max() <= horizon
    overlap = wide.overlap(horizon)
    assert overlap.max() <= limit
    for a, b in zip(wide.first.tolist(), wide.last.tolist(), strict=True):  # none could grow any further
        assert a == 1 or overlap[a - 2] == limit
        assert b == horizon or overlap[b] == limit
    assert wide.members is bundles.members
    assert wide.value is bundles.value
    assert (wide.first.tolist(), wide.last.tolist()) == widened_slowly(bundles, limit, horizon)


def test_widening_needs_room():
    refused(lambda: w6().widened(2, 8), place="limit", seen=2, legal="a whole number >= 3", error=InvalidParameterError)
    refused(lambda: w6().widened(3, 5), "horizon = 5: expected a whole number >= 6", error=InvalidParameterError)
    assert w6().widened(3, 6).overlap().tolist() == [3, 3, 3, 3, 3, 3]
