"""A comparison's rows against single runs, its summary by hand, and what is known of each mechanism."""

import numpy as np
import pandas as pd
import pytest

from compared_markets import JOB, LONG_AND_SHORT, MAYBE, SIX_FOR_FIVE, three_users
from marketsched.comparisons.comparing import compare
from marketsched.comparisons.mechanisms import COUNTED, MechanismContest, summary_table
from marketsched.config.named_mechanisms import named_mechanisms
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.auctions.pay_as_bid import PayAsBid
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.play import optimum as optimum_module
from marketsched.play.running import run
from marketsched.results.answers import answer_of
from marketsched.results.paired_statistics import ratio_of_means
from marketsched.study.learning.comparing import compare_learning
from marketsched.study.learning.markets import contested_market
from marketsched.truthfulness.audit import audit
from refusals import refused

# -- rows of a seed ----------------------------------------------------------------------------------------


def test_every_figure_of_a_row_is_that_of_a_run_alone():
    """Also what owners get, and the rival's; the optimum of a seed is the worth of the two dearest that come."""
    names = ["posted-price", "first-come:price=2", "posted-price:eviction=running"]
    found, base = compare(MAYBE, names, 3, seed=4, against="first-come"), Scenario.from_dict(MAYBE)
    assert found.runs[["seed", "mechanism"]].values.tolist() == [
        [s, m] for s in (4, 5, 6) for m in (*names, "first-come")
    ]
    chosen = {each.label: each.scenario for each in named_mechanisms(base, [*names, "first-come"])}
    alone = {(s, m): run(each, s, optimum=False) for s in (4, 5, 6) for m, each in chosen.items()}
    optima = set()
    for row in found.runs.to_dict("records"):
        seed, played = row["seed"], alone[(row["seed"], row["mechanism"])]
        assert {name: row[name] for name in COUNTED} == {name: played.outcome[name] for name in COUNTED}
        came = [job for job in base.workload_of(seed).jobs if job.arrival is not None]
        best = sum(sorted((job.truth.value.value for job in came), reverse=True)[:2])
        assert (row["opt_low"], row["opt_high"], row["opt_kind"]) == (best, best, "exact")
        assert row["first_come"] == alone[(seed, "first-come")].outcome["welfare"] and row["best_flat"] == best
        assert np.isnan(row["best_flat_known"])
        optima.add(best)
    assert len(optima) > 1
    pairs = found.tables["against"]
    assert pairs["mechanism"].unique().tolist() == names and found.meta["against"] == "first-come"
    for row in pairs.to_dict("records"):
        jobs = [alone[(row["seed"], name)].jobs for name in (row["mechanism"], "first-come")]
        both = jobs[0]["start"].notna() & jobs[1]["start"].notna()
        worth = sum(job.truth.value.value for job in base.workload_of(row["seed"]).jobs if job.arrival is not None)
        assert (row["jobs"], row["both_start"]) == (jobs[0]["arrival"].notna().sum(), both.sum())
        for place, own in zip(("first", "second"), jobs, strict=True):
            assert row[f"{place}_own"] == pytest.approx(own["value"].sum() / worth)
            waits = (own["start"] - own["arrival"])[both].astype(float).mean()
            assert row[f"{place}_wait_rounds"] == pytest.approx(waits, nan_ok=True)


def test_a_best_schedule_is_worth_what_anybody_earned_and_steps_are_named(monkeypatch):
    """A bound that rounding leaves below what a mechanism earned is lifted; each step is told before it begins."""
    contest, told = MechanismContest(Scenario.from_dict(LONG_AND_SHORT), ["bid-price", "first-come"], None, 0.0), []
    monkeypatch.setattr(
        "marketsched.comparisons.flat_prices.optimum_bracket",
        lambda *_, seconds: optimum_module.Bracket(1.0, 2.0, "lp"),
    )
    rows = contest.play(3, 0, told.append)["runs"]
    best = max(row["welfare"] for row in rows)
    assert best > 2.0 and {(row["opt_low"], row["opt_high"], row["opt_kind"]) for row in rows} == {(best, best, "lp")}
    steps = ("bid-price", "first-come", "first-come at flat prices", "best schedule in hindsight")
    assert told == [f"seed 3, {step}" for step in steps] and contest.steps == len(told)


@pytest.mark.slow
def test_opt_is_enclosed_where_it_is_not_known(monkeypatch):
    exact = compare(MAYBE, ["posted-price"], runs=4)
    bounds = compare(MAYBE, ["posted-price"], runs=4, optimum_seconds=0)
    assert set(bounds.runs["opt_kind"]) == {"dual"}
    monkeypatch.setattr(optimum_module, "MOST_EXACT", 0)
    programs = compare(MAYBE, ["posted-price"], runs=4)
    assert set(programs.runs["opt_kind"]) <= {"lp", "dual"}
    for other in (bounds, programs):
        assert (other.runs["opt_low"] <= exact.runs["opt_low"] + 1e-9).all()
        assert (other.runs["opt_high"] >= exact.runs["opt_high"] - 1e-9).all()
        row, known = other.summary.iloc[0], exact.summary.iloc[0]
        assert row["ratio_low"] <= known["ratio_low"] + 1e-12
        assert row["ratio_high"] >= known["ratio_high"] - 1e-12


# -- the summary -------------------------------------------------------------------------------------------


def hand_made():
    rows = []
    for seed, (optimum, high, welfare) in enumerate([(10, 10, {"a": 8, "b": 5}), (20, 22, {"a": 8, "b": 15})]):
        kind = "exact" if optimum == high else "dual"
        for name, earned in welfare.items():
            about = {"seed": seed, "mechanism": name, "welfare": float(earned), "revenue": 1.0, "jobs": 4}
            about |= {"completed": 2, "seconds": 0.5 + seed, "opt_low": float(optimum), "opt_high": float(high)}
            about |= {"opt_kind": kind, "own": earned / 20, "own_q10": 0.25, "own_worst": 0.0}
            rows.append(dict.fromkeys(COUNTED, 0) | about)  # also of columns that somebody adds
    return pd.DataFrame(rows)


def test_the_summary_of_hand_made_runs():
    table = summary_table(hand_made(), ["a", "b"], 0.95, "b").set_index("mechanism")
    assert table.loc["a", ["ratio_low", "ratio_high"]].tolist() == [30 / 16, 2.0]
    assert table.loc["b", ["ratio_low", "ratio_high"]].tolist() == [1.5, 1.6]
    assert table["behind"].tolist() == [1 - 16 / 20, 0.0]  # b wins: 20 against 16
    assert not (table["interval_low"] > table["ratio_low"]).any()  # none for b: two runs tell too little
    assert table["losses_seen"].tolist() == [2, 2] and table["bounded_runs"].tolist() == [2, 2]
    assert table["exact_optima"].tolist() == [1, 1] and table["runs"].tolist() == [2, 2]
    assert table["welfare_share"].tolist() == [8 / 16, 10 / 16] and table["revenue_share"].tolist() == [1 / 16] * 2
    assert table["welfare"].tolist() == [8.0, 10.0] and table["revenue"].tolist() == [1.0, 1.0]
    assert table["completed_share"].tolist() == [0.5, 0.5] and table["seconds"].tolist() == [1.0, 1.0]
    assert table["own"].tolist() == [8 / 20, 10 / 20]
    assert table["over_rival"].tolist() == [(3 - 7) / 32, 0.0]
    more = pd.concat([hand_made().assign(seed=lambda runs, k=k: runs["seed"] + 2 * k) for k in range(8)])
    ends = summary_table(more, ["a", "b"], 0.95)[["behind_low", "behind", "behind_high"]].to_numpy()
    a, b = (more.loc[more["mechanism"] == name, "welfare"] for name in "ab")
    share = ratio_of_means(a, b, confidence=0.95)
    assert ends[0] == pytest.approx([1 - share.high, 0.2, 1 - share.low]) and ends[1].tolist() == [0, 0, 0]
    assert ends[0][0] < 0.2 < ends[0][2]
    nothing = summary_table(hand_made().assign(opt_low=0.0, opt_high=0.0, jobs=0, completed=0), ["a"], 0.95)
    assert nothing[["welfare_share", "revenue_share"]].isna().all(axis=None) and nothing["completed_share"].item() == 0
    assert nothing["bounded_runs"].item() == 0


def test_w4_is_five_fourths_and_first_come_is_best():
    found = compare(SIX_FOR_FIVE, ["exponential", "first-come", "first-come:price=5"], runs=2)
    table = found.summary.set_index("mechanism")
    assert table["welfare"].tolist() == [16.0, 20.0, 0.0]
    assert table["revenue"].tolist() == [3.75, 0.0, 0.0]
    assert table["ratio_low"].tolist() == table["ratio_high"].tolist() == [1.25, 1.0, np.inf]
    assert table.loc["exponential", "promised_ratio"] == pytest.approx(4 * np.log(32))
    assert table["promise_holds"].tolist() == [True, False, False]
    assert set(found.runs["opt_kind"]) == {"exact"}


# -- who takes part ----------------------------------------------------------------------------------------


def test_tokens():
    base = Scenario.from_dict(MAYBE)
    found = named_mechanisms(
        base, ["scenario", "exponential:epsilon=0.25", "first-come:price=0.5", "posted-price:eviction=running"]
    )
    first, exponential, first_come, running = (each.scenario.mechanism for each in found)
    assert first == base.mechanism
    assert (exponential.name, exponential.epsilon, exponential.pricing.kind) == ("exponential", 0.25, "exponential")
    assert (first_come.pricing.kind, first_come.pricing.prices) == ("posted", (0.5,))
    assert (running.eviction, running.pricing) == ("running", base.mechanism.pricing)


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        ([], InvalidParameterError, "expected at least one name"),
        ("posted-price", InvalidParameterError, "expected at least one name"),
        (["posted-price", "posted-price"], InvalidParameterError, "'posted-price' is named twice"),
        (["posted-price:epsilon"], InvalidParameterError, "'epsilon': expected name:key=value"),
        (["posted-price:capacity=9"], InvalidParameterError, "changes capacity: expected the same market for all"),
        (["posted-price:epsilon=2"], InvalidParameterError, r"mechanism 'posted-price:epsilon=2': .*epsilon = 2"),
        (["lottery"], (InvalidParameterError, UnknownNameError), "lottery"),
    ],
)
def test_wrong_tokens(tokens, error, message):
    with pytest.raises(error, match=message):
        named_mechanisms(Scenario.from_dict(MAYBE), tokens)


def test_the_rival_joins_the_others_and_of_two_it_is_the_second():
    base, contest = Scenario.from_dict(MAYBE), MechanismContest
    alone, pair, more = ["posted-price"], ["posted-price", "first-come"], ["posted-price", "first-come", "vcg"]
    found = [(x.labels, x.rival) for x in (contest(base, names, None, 0.0) for names in (alone, pair, more))]
    assert found == [(alone, None), (pair, "first-come"), (more, None)]
    joined = contest(base, ["posted-price"], None, 0.0, against="vcg")
    assert (joined.labels, joined.rival) == (["posted-price", "vcg"], "vcg")
    listed = contest(base, pair, None, 0.0, against="posted-price")
    assert (listed.labels, listed.rival) == (pair, "posted-price")
    message = "against = 'vcg': expected another mechanism than the one compared"
    refused(lambda: contest(base, ["vcg"], None, 0.0, against="vcg"), message, error=InvalidParameterError)
    refused(
        lambda: compare("cluster-pai", against="ogasched"), "against: expected a market", error=InvalidParameterError
    )


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "three.csv"
    path.write_text(three_users())
    return path


def test_who_ran_when_is_kept_of_a_log_for_one_seed(log_file):
    """And waits of every seed; of a market without a log neither."""
    contest = MechanismContest(Scenario.of(log_file), ["first-come"], None, 0.0, drawn_seed=8)
    one, other = (contest.play(seed, 0, lambda what: None) for seed in (8, 9))
    assert "schedules" in one and one["drawn"][0]["seed"] == 8 and "schedules" not in other
    assert [len(found["waits"]) for found in (one, other)] == [1, 1]
    market = MechanismContest(Scenario.of(MAYBE), ["first-come"], None, 0.0, drawn_seed=8)
    assert not {"schedules", "waits", "pools", "against"} & set(market.play(8, 0, lambda what: None))


# -- what is known of each ---------------------------------------------------------------------------------


def test_what_is_promised():
    hidden = {**SIX_FOR_FIVE, "workload": {**SIX_FOR_FIVE["workload"]}}
    points = [{"arrival": 1, "duration": d, "probability": 0.5, "signal": None} for d in (1, 2)]
    hidden["workload"]["jobs"] = [{"name": "A", **JOB, "requirements": points}]
    assert "durations hidden" in compare(hidden, ["exponential"], runs=1).summary["promise_conditions"][0]
    liars = {**SIX_FOR_FIVE, "owners": {"misreporting": 1.0, "strategy": {"kind": "scale-value", "factor": 0.5}}}
    assert "some owners misreport" in compare(liars, ["exponential"], runs=1).summary["promise_conditions"][0]


def test_bundles_for_known_laws_carry_their_guarantee():
    job = {"name": "batch", "birth": 1, "copies": 30, "statements": [{"probability": 1, **JOB}]}
    job["statements"][0].pop("birth")
    market = {
        "name": "known",
        "workload": {**SIX_FOR_FIVE["workload"], "kind": "mixtures", "capacity": 16, "jobs": [job]},
    }
    table = compare(market, ["stochastic", "first-come"], runs=2).summary.set_index("mechanism")
    assert not table.loc["stochastic", "promise_holds"]  # in the relaxed problem it does
    assert table.loc["stochastic", "ratio_high"] <= table.loc["stochastic", "promised_ratio"]
    assert "Lemma E.3" in table.loc["stochastic", "promise_conditions"]


def test_a_class_is_taken_where_a_name_is(tmp_path):
    class Mine(PayAsBid):
        """A rule of somebody's own, in no file."""

    found = compare(MAYBE, [Mine, "pay-as-bid"], 1, optimum_seconds=0, keep=tmp_path)
    assert found.meta["mechanisms"] == ["Mine", "pay-as-bid"] and not list(tmp_path.iterdir())  # it may be another soon
    assert found.runs["welfare"].nunique() == 1 and run(MAYBE, mechanism=Mine, optimum=False).outcome["jobs"]
    assert Scenario.from_dict(MAYBE).with_mechanism(Mine).mechanism.name == "Mine"
    assert contested_market(Mine, n_owners=2).name == "2 owners, 3 nodes, Mine"
    assert compare_learning([Mine], owners=2, nodes=1, days=4, runs=2).meta["mechanisms"] == ["Mine"]
    assert audit(MAYBE, [Mine], owners=1, plays=100).mechanisms[0].label == "Mine"
    with pytest.raises(InvalidParameterError, match="or a class, as Mine"):
        compare(MAYBE, [lambda **sizes: Mine(**sizes)], 1)
    with pytest.raises(InvalidParameterError, match="the class dict is no mechanism"):
        compare(MAYBE, [dict], 1)


def test_a_small_market_takes_the_text_of_the_command_and_says_what_one_node_lacks():
    assert contested_market("posted-price:price=2", capacity=1).name == "8 owners, 1 nodes, posted-price:price=2"
    with pytest.raises(
        InvalidParameterError, match=r"prices that rise with the load.* or flat prices \(posted-price:pri"
    ):
        contested_market("exponential", capacity=1)


@pytest.mark.slow
def test_a_rule_that_goes_through_a_set_of_names_is_not_ranked(tmp_path):
    """Its names are its own: plays in this process are all alike, and another process orders them otherwise."""
    (tmp_path / "order.py").write_text(
        "from marketsched.mechanisms import ArrivalMarket\n\n\n"
        "class Order(ArrivalMarket):\n"
        "    def foresee(self, x, signal):\n"
        "        x.agreed, x.limit = int(x.sow.durations.max()), self.max_duration\n\n"
        "    def serve(self, waiting):\n"
        "        starts, free = [0] * len(waiting), self.capacity - self.load\n"
        "        for name in set(f'job {i}' for i in range(len(waiting))):\n"
        "            i = int(name[4:])\n"
        "            if waiting[i].sow.concurrency <= free:\n"
        "                starts[i], free = self.round, free - waiting[i].sow.concurrency\n"
        "        return starts\n\n"
        "    def charge(self, x):\n"
        "        return 0.0\n"
    )
    name = f"{tmp_path / 'order.py'}:Order"
    result = compare("stochastic-mix", [name, "first-come"], 3, optimum_seconds=0)
    assert "in the order of hashes" in result.meta["unrepeatable"][name]
    assert "cannot be ranked" in answer_of(result.records(), result.meta)
