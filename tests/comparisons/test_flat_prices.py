"""First come at flat prices beside everybody: the best price in hindsight, and paired differences to it."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import two_kinds
from compared_markets import LONG_AND_SHORT, market, one
from marketsched.comparisons.comparing import compare
from marketsched.comparisons.flat_prices import (
    FirstComeOnCluster,
    FlatPrices,
    bounded_runs,
    flat_shares,
    paired_differences,
)
from marketsched.config.named_mechanisms import named_mechanisms
from marketsched.config.scenario import Scenario
from marketsched.play.optimum import Bracket
from marketsched.play.running import run


def test_everybody_is_compared_with_first_come_at_flat_prices():
    found = compare(LONG_AND_SHORT, ["bid-price", "first-come", "first-come:price=3"], runs=2)
    assert found.runs["first_come"].tolist() == [8.0] * 3  # nothing is drawn
    assert found.runs["best_flat"].tolist() == [30.0] * 3
    assert ((found.runs["best_flat_price"] >= 2) & (found.runs["best_flat_price"] < 30)).all()
    assert found.runs["best_flat_known"].isna().all()  # durations are revealed: it is the same
    table = found.summary.set_index("mechanism")
    assert table.loc["first-come", ["over_first_come", "over_best_flat"]].tolist() == [0.0, -22 / 30]
    assert table.loc["first-come:price=3", ["over_first_come", "over_best_flat"]].tolist() == [22 / 30, 0.0]


def test_jobs_that_fit_into_no_columns_have_a_best_flat_price_too():
    """The signal of the long one is a number, and not its duration."""
    odd = market([one("long", 8, duration=4, signal=2), one("short", 30, birth=2)])
    assert Scenario.from_dict(odd).setup(np.random.default_rng(0)).table.columns(12) is None
    runs = compare(odd, ["bid-price"], runs=1, optimum_seconds=0).runs
    assert runs[["first_come", "best_flat"]].values.tolist() == [[8.0, 30.0]] and 2 <= runs["best_flat_price"][0] < 30


def test_a_contestant_that_is_first_come_at_the_price_does_not_play_again():
    played, base = [], Scenario.from_dict(LONG_AND_SHORT)

    def play(setup):
        played.append(setup.mechanism.price)
        return 10.0 + setup.mechanism.price

    def flat(*noted):
        found = FlatPrices(base, lambda each: each.setup(np.random.default_rng(0)), play)
        for each in named_mechanisms(base, noted) if noted else ():
            found.note(each.scenario.setup(np.random.default_rng(0)), 5.0)
        return found.figures()

    price = flat()["best_flat_price"]
    assert played == [0.0, price] or played == [price, 0.0]
    played.clear()
    assert flat("first-come", f"first-come:price={price}", "bid-price")["best_flat"] == 5.0 and not played
    assert flat("bid-price")["first_come"] == 10.0


def test_where_durations_are_hidden_the_price_that_knows_them_stands_apart():
    """A long job of expected 2.5 rounds and value 8, then a short one of value 9, which cannot wait."""
    hidden = one("long", 8, duration=4, signal=None, deadline=12)
    hidden["requirements"] = [{"arrival": 1, "duration": d, "probability": 0.5, "signal": None} for d in (1, 4)]
    base = market([hidden, one("short", 9, birth=2, signal=None)])
    found = compare(base, ["first-come"], runs=6, optimum_seconds=0)
    first, best, known = (found.runs[name].to_numpy() for name in ("first_come", "best_flat", "best_flat_known"))
    long_lasts = first == 8.0  # else both are done, one after the other
    assert long_lasts.any() and not long_lasts.all()
    assert best[long_lasts].tolist() == known[long_lasts].tolist() == [9.0] * long_lasts.sum()
    assert (best[~long_lasts] == 17.0).all()
    # A price between 2 and 3.2 keeps out four rounds worth 8 only if it is known that they are four.
    prices = found.runs[["best_flat_price", "best_flat_known_price"]][long_lasts]
    assert (prices["best_flat_price"] >= 3.2).all() and (prices["best_flat_known_price"] < 3.2).all()


def test_on_a_cluster_there_is_first_come_at_price_0_and_the_dual_bound():
    found = compare(two_kinds.SCENARIO, ["cluster-bid-price", "cluster-first-come"], runs=1)
    alone = run(Scenario.of(two_kinds.SCENARIO).with_mechanism("cluster-first-come"), 0).outcome
    assert set(found.runs["first_come"]) == {alone["welfare"]} and found.runs["best_flat"].isna().all()
    assert set(found.runs["opt_kind"]) == {"dual"} and set(found.runs["opt_high"]) == {alone["bounds"]["dual"]}
    assert set(found.tables["pools"]["mechanism"]) == {"cluster-bid-price", "cluster-first-come"}
    nobody = FirstComeOnCluster(Scenario.of(two_kinds.SCENARIO).workload_of(0).cluster)  # all have refused
    assert np.isnan(nobody.figures()["first_come"]) and nobody.bracket(1.0) == Bracket(0.0, np.inf, "dual")


# -- differences -------------------------------------------------------------------------------------------


def test_differences_are_paired_and_have_students_interval():
    runs = pd.DataFrame({"welfare": [9.0, 6.0], "opt_high": [10.0, 10.0], "first_come": [8.0, 6.0], "best_flat": 9.0})
    found = paired_differences(runs, 0.95)
    half = stats.t.ppf(0.975, 1) * 0.05  # times the standard error of .1 and 0
    assert found["over_first_come"] == pytest.approx(0.05)
    assert [found["over_first_come_low"], found["over_first_come_high"]] == pytest.approx([0.05 - half, 0.05 + half])
    assert found["over_best_flat"] == pytest.approx(-0.15)
    assert np.isnan(found["over_best_flat_known"]) and "over_rival" not in found
    shares = flat_shares(runs, 0.95)
    assert [shares["first_come_share"], shares["best_flat_share"]] == pytest.approx([0.7, 0.9])
    # Seeds of the rival are paired by name, in whatever order they stand.
    rival = pd.DataFrame({"seed": [1, 0], "welfare": [5.0, 8.0]})
    assert paired_differences(runs.assign(seed=[0, 1]), 0.95, rival)["over_rival"] == pytest.approx((1 + 1) / 20)


def test_runs_of_other_sizes_are_weighed_by_what_could_be_earned():
    """A mechanism that is better in three small runs and loses the large one is not the better one."""
    runs = pd.DataFrame({"welfare": [10.0, 10.0, 10.0, 0.0], "opt_high": [10.0, 10.0, 10.0, 600.0]})
    found = paired_differences(runs.assign(first_come=[0.0, 0.0, 0.0, 600.0]), 0.95)
    assert found["over_first_come"] == pytest.approx((30 - 600) / 630)
    assert found["over_first_come_low"] < found["over_first_come"] < found["over_first_come_high"]


def test_runs_in_which_nothing_could_be_earned_are_in_no_interval():
    runs = pd.DataFrame({"welfare": [9.0, 6.0], "opt_high": [10.0, 10.0], "first_come": [8.0, 6.0]})
    empty = pd.DataFrame({"welfare": [0.0] * 4, "opt_high": 0.0, "first_come": 0.0})
    both = pd.concat([runs, empty])
    assert paired_differences(both, 0.95) == pytest.approx(paired_differences(runs, 0.95), nan_ok=True)
    assert bounded_runs(both) == 2
