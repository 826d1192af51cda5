"""Slurm's fair-share factors: its own tests, the examples of its pages, and references."""

import re
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.schedulers.multifactor import HALF, age_factor, billed, job_size_factor, kept
from marketsched.mechanisms.schedulers.share_tree import ShareTree


def tree_of(shares, usage, newcomers=""):
    tree = ShareTree(shares, newcomers)
    for user, used in usage.items():
        tree.use(user, used)
    return tree


def test_classic_fair_share_figure_3():
    """The example of *Classic Fairshare Algorithm*; the 30 % of the machine that it leaves open are Zoe's."""
    shares = {"A/": 40, "D/": 60, "A/B/": 30, "A/C/": 10, "D/E/": 25, "D/F/": 35, "Z/": 0, "Z/zoe": 1}
    shares |= {"A/B/1": 1, "A/C/2": 1, "A/C/3": 1, "D/E/4": 1, "D/F/5": 1}
    found = tree_of(shares, {"1": 0.2, "2": 0.25, "4": 0.25, "zoe": 0.3}).classic()
    printed = {"1": 0.408479, "2": 0.022097, "3": 0.125000, "4": 0.500000, "5": 0.749154}
    assert {name: found[name] for name in printed} == pytest.approx(printed, abs=6e-7)


def test_portions_are_products_of_shares_and_what_has_no_user_is_nobody_s():
    """The tree of figure 3, with an account without users and one of users without shares."""
    shares = {"A/": 40, "D/": 60, "A/B/": 30, "A/C/": 10, "D/E/": 25, "D/F/": 35, "Z/": 0, "Z/zoe": 1, "W/": 100}
    shares |= {"A/B/1": 1, "A/C/2": 1, "A/C/3": 3, "D/E/4": 1, "F/": 50, "F/none": 0}
    tree = tree_of(shares, {"5": 2.0}, "F/")  # a newcomer has one share: 5 has all of F, since "none" has nothing
    due = {"1": 40 * 0.75, "2": 10 / 4, "3": 30 / 4, "4": 25.0, "5": 50.0, "none": 0.0, "zoe": 0.0}
    assert tree.portions() == pytest.approx({name: each / 250 for name, each in due.items()})
    assert tree.usage("5") == 2.0
    tree.scale(0.25)
    assert tree.usage("5") == 0.5 and set(tree) == set(due) and len(tree) == len(due)
    with pytest.raises(InvalidParameterError, match="shares: b = 'parent': expected a number"):
        tree_of({"A/": 1, "A/b": "parent"}, {}).portions()


def test_billing_weights_of_the_multifactor_page():
    """Its three jobs under ``TRESBillingWeights=CPU=1.0,Mem=0.25G``, added up and with ``MAX_TRES``."""
    weights, jobs = {"cpu": 1.0, "mem": 0.25}, [(1, 60), (16, 1), (16, 60)]
    assert [billed({"cpu": c, "mem": m}, weights) for c, m in jobs] == [16, 16.25, 31]
    largest = [billed({"cpu": c, "mem": m}, weights, largest_on_a_node=True) for c, m in ((1, 60), (15, 1), (16, 64))]
    assert largest == [15, 15, 16]
    mixed = {"cpu": 4, "gres/gpu": 2, "license/matlab": 3}
    assert billed(mixed, {"cpu": 1, "gres/gpu": 5, "license/matlab": 7}, largest_on_a_node=True) == 10 + 21


def test_age_size_and_decay():
    assert [age_factor(t, 100.0) for t in (0, 25, 100, 900)] == [0, 0.25, 1, 1]
    assert [job_size_factor(n, 8) for n in (1, 8)] == [0.125, 1]
    assert [job_size_factor(n, 8, favor_small=True) for n in (1, 8)] == [0.875, 0]
    assert job_size_factor(8, 8, limit_minutes=1) == 1
    assert kept(100.0, 3.0) == (1 - HALF / 100.0) ** 3 and kept(0.5, 1.0) == 0


def test_the_three_rules_of_ties():
    """*Fair Tree Fairshare Algorithm*, Ties: users; a user and an account; accounts, whose children are merged."""
    users = tree_of({"a": 1, "b": 1, "c": 1, "d": 1}, {"a": 5.0, "b": 5.0})
    assert users.fair_tree() == {"a": 0.5, "b": 0.5, "c": 1.0, "d": 1.0}
    beside = tree_of({"A/": 1, "A/low": 1, "A/high": 1, "user": 1}, {"user": 4.0, "low": 3.0, "high": 1.0})
    assert beside.fair_tree() == {"user": 1.0, "high": 1.0, "low": pytest.approx(1 / 3)}
    shares = {"A/": 0, "B/": 0, "A/a1": 1, "A/a2": 1, "B/b1": 1, "B/b2": 1}
    tied = tree_of(shares, {"a1": 3.0, "b1": 3.0})
    assert tied.fair_tree(merged=True) == {"a2": 1.0, "b2": 1.0, "a1": 0.5, "b1": 0.5}
    assert tied.fair_tree() == {"a2": 1.0, "a1": 0.75, "b2": 0.75, "b1": 0.25}  # as slurmctld does, see below
    parents = tree_of({"A/": 1, "A/a": "parent", "A/b": 9}, {"a": 5.0, "b": 1.0})
    assert parents.fair_tree() == {"a": 1.0, "b": 0.5}
    assert parents.classic() == {"a": 0.5, "b": 2 ** -(1 / 6 + (1 - 1 / 6))}


# testsuite/expect/test24.1, 24.3 and 24.4 at the tag slurm-22-05-8-1: rows of users, by shares, usage and factor
CLASSIC = {"A/": 40, "A/B/": 30, "A/C/": 10, "D/": 60, "D/E/": 25, "D/F/": 35, "G/": 0}
OF_24_1 = {
    "A/B/User1": (1, 20, 0.408479), "A/C/User2": (1, 25, 0.022097), "A/C/User3": (1, 0, 0.125000),
    "D/E/User4": (1, 25, 0.500000), "D/F/User5": (1, 0, 0.749154), "G/User6": (0, 30, 0.0),
}  # fmt: skip
OF_24_3 = {
    "A/B/User1": (1, 20, 0.527550), "A/C/User2": (1, 25, 0.065672), "A/C/User3": (1, 0, 0.226431),
    "D/E/User4": (1, 25, 0.609507), "D/F/User5": (1, 0, 0.813594), "G/User6": (0, 30, 0.0),
    "H/UHRA1": ("parent", 20, 0.336475), "H/UHRA2": (40, 20, 0.176777), "H/UHRA3": (50, 25, 0.185749),
    "H/HTA/UHTAStd1": ("parent", 10, 0.336475), "H/HTA/UHTAStd2": (30, 10, 0.211966),
    "H/HTA/UHTAStd3": (50, 25, 0.185749),
}  # fmt: skip
TREE_24_4 = {
    "aA/": 40, "aA/aAA/": 30, "aA/aAB/": 10, "aB/": 60, "aB/aBA/": 25, "aB/aBB/": 35, "aC/": 0, "aD/": 50,
    "aD/aDA/": "parent", "aE/": 10, "aF/": 20, "aG/": 8, "aG/aGA/": 10,
}  # fmt: skip
OF_24_4 = {
    "u1": (10, 0, 21), "u2": (10, 10, 14), "aA/aAA/uAA1": (1, 20, 13), "aA/aAB/uAB1": (1, 25, 11),
    "aA/aAB/uAB2": (1, 0, 12), "aB/aBA/uBA1": (1, 25, 15), "aB/aBB/uBB1": (1, 0, 16), "aC/uC1": (0, 30, 1),
    "aD/uD1": ("parent", 20, 10), "aD/uD2": (40, 20, 5), "aD/uD3": (50, 25, 7), "aD/aDA/uDA1": ("parent", 10, 10),
    "aD/aDA/uDA2": (30, 10, 8), "aD/aDA/uDA3": (50, 25, 7), "aE/aE1": (10, 0, 21), "aE/aE2": (10, 0, 21),
    "aF/uF1": (10, 0, 21), "aF/uF2": (20, 0, 21), "aG/uG1": (10, 10, 4), "aG/aGA/uGA1": (20, 4, 4),
    "aG/aGA/uGA2": (20, 6, 2),
}  # fmt: skip


def own_test(accounts, users):
    """Return the tree of one of Slurm's own tests, and what it expects of each user."""
    names = {place: place.rpartition("/")[2] for place in users}
    tree = tree_of(
        accounts | {place: shares for place, (shares, _, _) in users.items()},
        {names[place]: used for place, (_, used, _) in users.items()},
    )
    return tree, {names[place]: expected for place, (_, _, expected) in users.items()}


@pytest.mark.parametrize(
    ("accounts", "users"),
    [(CLASSIC, OF_24_1), (CLASSIC | {"H/": 50, "H/HTA/": "parent"}, OF_24_3)],
    ids=["test24.1", "test24.3"],
)
def test_classic_factors_of_its_own_tests(accounts, users):
    tree, expected = own_test(accounts, users)
    assert tree.classic() == pytest.approx(expected, abs=6e-7)


@pytest.mark.parametrize("merged", [False, True])
def test_fair_tree_of_its_own_test24_4(merged):
    tree, ranks = own_test(TREE_24_4, OF_24_4)
    assert tree.fair_tree(merged=merged) == {name: rank / 21 for name, rank in ranks.items()}


@st.composite
def trees(draw):
    """Draw a tree of two levels of accounts with users, and usages."""
    shares, users = {}, []
    for a in range(draw(st.integers(1, 3))):
        shares[f"A{a}/"] = draw(st.integers(1, 5))
        for b in range(draw(st.integers(0, 2))):
            shares[f"A{a}/B{b}/"] = draw(st.integers(1, 5))
            users += [f"A{a}/B{b}/u{a}{b}{i}" for i in range(draw(st.integers(1, 3)))]
        users += [f"A{a}/v{a}{i}" for i in range(draw(st.integers(1, 2)))]
    shares |= {place: draw(st.integers(1, 5)) for place in users}
    usage = {place.rpartition("/")[2]: draw(st.floats(1.0, 100.0)) for place in users}
    return shares, usage


def by_paths(shares, usage):
    """Return places by the levels along their paths, and all levels of each group of siblings: without recursion."""
    used = {
        p: sum(usage[q.rpartition("/")[2]] for q in shares if not q.endswith("/") and q.startswith(p)) for p in shares
    }
    groups = {}
    for place in shares:
        groups.setdefault(place.rstrip("/").rpartition("/")[0], []).append(place)
    level = {}
    for group in groups.values():
        all_shares, all_used = sum(shares[p] for p in group), sum(used[p] for p in group)
        level |= {p: shares[p] / all_shares / (used[p] / all_used) for p in group}
    paths = {}
    for place in (p for p in shares if not p.endswith("/")):
        parts = place.split("/")
        above = ["/".join(parts[:i]) + "/" for i in range(1, len(parts))]
        paths[parts[-1]] = [-level[p] for p in (*above, place)]
    return paths, [sorted(level[p] for p in group) for group in groups.values()]


@given(trees())
@settings(max_examples=many(200), deadline=None)
def test_ranks_are_those_of_the_paths(drawn):
    shares, usage = drawn
    paths, levels = by_paths(shares, usage)
    assume(all(b - a > 1e-9 * b for group in levels for a, b in pairwise(group)))
    order = sorted(paths, key=paths.__getitem__)
    expected = {name: (len(order) - i) / len(order) for i, name in enumerate(order)}
    for merged in (False, True):
        assert tree_of(shares, usage).fair_tree(merged=merged) == expected


def test_bad_trees():
    cases = {
        "accounts that stand in shares themselves": ({"lab/ann": 1}, ""),
        "one place for the user 'ann'": ({"a/": 1, "ann": 1, "a/ann": 1}, ""),
        "'parent' or a finite number >= 0": ({"ann": -1}, ""),
        "a place in the tree": ({"/": 1}, ""),
        "one of '', 'a/'": ({"a/": 1}, "b/"),
    }
    for message, (shares, newcomers) in cases.items():
        with pytest.raises(InvalidParameterError, match=re.escape(message)):
            ShareTree(shares, newcomers)
