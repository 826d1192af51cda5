"""Explanations of jobs: causes that add up, by hand, from a folder and from a comparison."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import marketsched
from marketsched import config
from marketsched.agents.market_run import MarketRun
from marketsched.config.scenario import Scenario
from marketsched.explanations.changes import Change, Changed, changes_of
from marketsched.explanations.explaining import Explainer
from marketsched.explanations.rules import OWN, PASSED, rule_of
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.mechanisms.registry import get, get_mechanism, mechanism_names
from marketsched.results.result import Result
from marketsched.show.cli import app

RULES = (
    "easy-backfill", "fair-share", "first-come", "two-offers", "credits", "bid-price", "posted-price",
    "largest-value-first",
)  # fmt: skip


def job(name, owner, birth, nodes, rounds, value=9.0, deadline=40, **more):
    """Return a job of a scenario whose duration is hidden."""
    law = [{"arrival": birth, "duration": rounds, "probability": 1, "signal": None}]
    curve = {"kind": "deadline", "value": value, "deadline": deadline}
    job = {"name": name, "owner": owner, "birth": birth, "concurrency": nodes, "value": curve, "requirements": law}
    return {**job, "arrival": birth, "duration": rounds, **more}


def scenario(jobs, mechanism, capacity=4, **parameters):
    sizes = {"capacity": capacity, "horizon": 60, "max_concurrency": capacity, "max_duration": 20, "max_value": 99}
    workload = {"kind": "jobs", **sizes, "max_delay": 60, "jobs": jobs}
    return {"name": "by hand", "workload": workload, "mechanism": {"name": mechanism, "parameters": parameters}}


COUCH = [
    job("before", "ann", 1, 2, 3), job("ahead", "bob", 2, 2, 6), job("couch", "eve", 2, 4, 2),
    job("passes", "dan", 4, 2, 9),
]  # fmt: skip


def test_a_wide_job_that_is_passed_by_hand():
    """Rounds 2 and 3: the first runs; 4 to 7: both; 8 to 12: a later job that fits where four nodes are never free."""
    found = marketsched.run(scenario(COUCH, "easy-backfill", reserve="none")).explain("couch")
    assert found.causes == {"before": 2, "ahead": 4, "passed": 5, "kept": 0, "own": 0, "lost": 0} and found.wait == 11
    assert found.holders["passed"] == (1, (("passes", "dan", 10),)) and found.start == 13
    assert str(found).splitlines()[:5] == [
        "job couch of eve waited 11 rounds (easy-backfill): 45.5 % of it because jobs behind it passed it and "
        "held the nodes",
        "  4 nodes; arrival in round 2; start in round 13; completed in round 15; worth 9 of at most 9 credits, pays 0",
        "      2 rounds  18.2 %  1 job that began before it came; before (ann, 4 node-rounds)",
        "      4 rounds  36.4 %  1 job ahead of it; ahead (bob, 8 node-rounds)",
        "      5 rounds  45.5 %  1 job behind it that passed it: they fitted where it did not; passes (dan, 10 "
        "node-rounds)",
    ]


def test_what_is_said_of_gains_of_users_and_of_jobs_without_a_run():
    """Utility is 9 less 0 as it was; a number is a user."""
    was = marketsched.run(scenario(COUCH, "easy-backfill", reserve="none")).explain("couch")
    for utility, said in ((9.0, "gains nothing"), (4.5, "loses 4.5 credits"), (9.5, "gains 0.5 credits")):
        lie = Changed(Change("twice the value", promised="up to regret"), 13, 15, 0.0, utility)
        assert f"regret that is computed; here it {said})" in str(replace(was, changes=[lie]))
    left = replace(was, owner="6", start=None, outcome="evicted", runs=2).lines()
    assert left[0].startswith("job couch of user 6: no run of it was completed; it waited 11 rounds")
    assert "; 2 starts, taken back; stopped in round 15;" in left[1]
    came = replace(was, start=None, wait=0, causes={}, outcome="dropped", runs=0).lines()
    assert came[0] == "job couch of eve never started (easy-backfill): it came too late to be worth a run"
    sizes = {"max_concurrency": 2, "max_duration": 5, "max_value": 9.0, "max_delay": 15}
    priced = rule_of(get_mechanism("first-come", capacity=2, horizon=20, price=1.0, **sizes), revealed=True)
    assert priced.dropped == "no start, at its price, was worth a run to it"


def test_nodes_kept_for_another_and_a_run_that_was_lost():
    """EASY keeps two nodes for the couch, so `passes` waits; the dearer job takes the nodes of `cheap`, twice."""
    kept = marketsched.run(scenario(COUCH, "easy-backfill")).explain("passes")
    assert kept.causes["kept"] == 4 and kept.kept_for == "couch"
    jobs = [job("cheap", "ann", 1, 1, 8), *(job(f"dear{n}", "bob", n, 1, 2, 90.0, 12) for n in (3, 8))]
    lost = marketsched.run(scenario(jobs, "largest-value-first", capacity=1)).explain("cheap")
    assert lost.causes["lost"] == 2 + 3 and lost.causes["passed"] == 4 and lost.runs == 3
    assert "own runs were taken back (2 runs): in round 3, as dear3 started; in round 8, as dear8 started" in str(lost)
    assert "\n  1 node; arrival in round 1;" in str(lost)


@pytest.mark.parametrize("rule", RULES)
def test_causes_add_up_under_every_rule(rule):
    result = marketsched.run("stochastic-mix", seed=3, mechanism=rule)
    explainer = Explainer(result)
    for name, row in explainer.places.items():
        found = explainer.explain(name, changes=False)
        end = found.start if found.start is not None else found.end or int(result.outcome["rounds"]) + 1
        assert sum(found.causes.values()) == found.wait == end - result.jobs.set_index("name")["arrival"][name], row


@pytest.mark.parametrize("rule", RULES)
def test_every_stated_change_is_what_a_market_of_its_own_gives_and_payments_are_right(rule):
    scenario = Scenario.load("stochastic-mix").with_mechanism(rule)
    explainer, rng = Explainer(marketsched.run(scenario, 3)), np.random.default_rng(5)
    names = rng.choice([*explainer.places], 6, replace=False).tolist()
    explainer.prepare(names)
    apart = 0
    for name in names:
        found = explainer.explain(name)
        assert found.checked.holds, found.checked
        for each in found.changes:
            more = {f"parameters.{key}": value for key, value in each.change.parameters.items()}
            setup = scenario.with_mechanism(rule, more).setup(np.random.default_rng(np.random.SeedSequence(3)))
            place, jobs = explainer.market.place_of[name], list(setup.jobs)
            jobs[place] = each.change.job or jobs[place]
            row = MarketRun(replace(setup, jobs=jobs)).run().jobs.iloc[place]
            assert (None if pd.isna(row["start"]) else row["start"]) == each.start, each
            assert row["payment"] == pytest.approx(each.payment, rel=1e-9), each
            apart += each.start != found.start
    assert apart > 3  # changes do something


def test_changes_of_a_job_with_a_wall_time_and_an_even_width():
    """A wall of 9 for a run of 2 lets the job pass; halved it takes 4 rounds; each is asked once."""
    late = job("late", "dan", 2, 2, 2)
    late["requirements"] = [{"arrival": 2, "duration": 9, "probability": 1, "signal": None}]
    jobs = [job("first", "ann", 1, 2, 6), job("wide", "eve", 2, 4, 3), late]
    explainer = Explainer(marketsched.run(scenario(jobs, "easy-backfill")))
    found = explainer.explain("late")
    starts = {each.change.words: each.start for each in found.changes}
    assert starts == {
        "a wall time of 5 rounds for 9 rounds": 2, "a wall time of 2 rounds for 9 rounds": 2,
        "submission a round earlier": 1,
        "a deadline a round later": 10, "twice the value": 10, "half its nodes, 1, for twice as long": 10,
    }  # fmt: skip
    told = found.lines()
    assert told[-3] == "what would not have, everybody else as they were:"
    assert told[-6] == "what would have started it earlier, everybody else as they were:"
    assert told[-2].startswith("  the same start, in round 10, pays 0: a deadline a round later; twice the value; half")
    walls = "a wall time of 5 rounds for 9 rounds; a wall time of 2 rounds for 9 rounds"
    assert told[-5] == f"  start in round 2 (8 rounds earlier), pays 0: {walls}"
    hours = changes_of(explainer._job("late"), explainer.market.setup, explainer.scenario, "none", 1800.0)
    assert hours[0].words == "a wall time of 2 h 30 min for 4 h 30 min"


def test_twice_the_share_is_a_change_of_the_rules_record():
    """Three jobs for the same nodes: the last one would go second."""
    jobs = [job(name, name, birth, 2, 9) for name, birth in (("a", 1), ("b", 2), ("c", 3))]
    found = marketsched.run(scenario(jobs, "fair-turns", capacity=2)).explain("c")
    (raised,) = (each for each in found.changes if each.change.words == "twice the share for c")
    assert (found.start, raised.start) == (19, 10)


def test_a_class_one_step_up_is_a_change_of_the_log(tmp_path):
    path = tmp_path / "log.csv"
    rows = [f"u{i % 5},{60 * i},1800,{1 + i % 3},10,90000" for i in range(60)]
    path.write_text("\n".join(["user,submit_s,run_s,processors,value,deadline", *rows]))
    log = {"name": "log", "workload": {"kind": "csv", "path": str(path), "capacity": 4}}
    explainer = Explainer(marketsched.run(log, mechanism="easy-backfill:order=class"))
    names = [*explainer.places][10:50:4]
    explainer.prepare(names)
    raised = {name: each.start for name in names for each in explainer.changes(name) if each.change.whole}
    starts = [(start, explainer.explain(name).start) for name, start in raised.items()]
    assert len(starts) > 5 and all(raised <= start for raised, start in starts)
    assert sum(raised < start for raised, start in starts) > 2


def test_a_rule_of_unknown_kind_has_no_limit_in_its_words():
    assert rule_of(type("Unknown", (), {})(), revealed=True).own == "it fitted, and its rule did not start it"


def test_a_job_of_a_log_is_found_by_its_number_there(tmp_path):
    """The second row of a log in each of three formats."""
    swf = ["; MaxNodes: 4", *(f"{k} {k} 0 300 2 -1 -1 2 600 -1 1 6 1 1 1 1 -1 -1" for k in (6811, 6812))]
    (tmp_path / "log.swf").write_text("\n".join(swf) + "\n")
    rows = [f"{k}|ann|2026-03-01T10:00:0{k % 10}|00:05:00|2|COMPLETED" for k in (40000, 40001)]
    (tmp_path / "sacct").write_text("\n".join(["JobID|User|Submit|Elapsed|NNodes|State", *rows]) + "\n")
    (tmp_path / "log.csv").write_text("id,user,submit_s,run_s,processors\na7,ann,0,300,2\nb7,ann,1,300,2\n")
    for log, number in (("log.swf", "6812"), ("sacct", "40001"), ("log.csv", "b7")):
        read = config.scenario_file.read_scenario(str(tmp_path / log))[0]
        explainer = Explainer(marketsched.run(read, 3, mechanism="easy-backfill"))
        found = explainer.explain(number, changes=False)
        assert (found.job, found.log_id) == ("run-1", number) and f"job {number} of the log; " in str(found)
        with pytest.raises(UnknownNameError, match=r"arrived with seed 3, as run-0 \(\w+ in the log\), run-1"):
            explainer.explain("4711")


def test_a_payment_that_is_wrong_is_called_so():
    result = marketsched.run("stochastic-mix", seed=3, mechanism="two-offers")
    paid = result.jobs[result.jobs["payment"] > 0].iloc[4]
    result.jobs.loc[paid.name, "payment"] = paid["payment"] * 1.001
    explainer = Explainer(result)
    found = explainer.explain(str(paid["name"]))
    assert found.changes is None and found.checked.holds is False and "payment: WRONG" in str(found)


def test_every_rule_on_identical_nodes_has_its_words():
    """Named classes exist: a renamed one would lose its words without a sound."""
    kinds = {kind.__name__ for name in mechanism_names() for kind in getattr(get("mechanism", name), "__mro__", ())}
    assert {*PASSED, *OWN} - kinds <= {"FirstCome", "PostedPriceMechanism"}  # made by functions


def test_the_command_reads_a_run_a_comparison_and_a_scenario(tmp_path):
    scenario_of, asked = "stochastic-mix", ["-m", "easy-backfill"]
    marketsched.run(scenario_of, seed=2, mechanism="easy-backfill").save(tmp_path / "run")
    marketsched.compare(scenario_of, ["easy-backfill", "fair-share"], 1, seed=2).save(tmp_path / "compared")
    name = str(marketsched.load(tmp_path / "run").jobs["name"][9])
    command = CliRunner().invoke
    lines = [command(app, ["explain", str(tmp_path / "run"), name])]
    lines += [
        command(app, ["explain", str(each), name, *asked, "--seed", "2"])
        for each in (tmp_path / "compared", scenario_of)
    ]
    assert lines[0].exit_code == 0 and f"job {name} of " in lines[0].stdout
    assert all(each.stdout == lines[0].stdout for each in lines)
    assert "-m" in command(app, ["explain", str(tmp_path / "compared"), name]).stderr


def test_what_cannot_be_explained_is_refused_in_one_line():
    with pytest.raises(UnknownNameError, match="nobody"):
        marketsched.run("stochastic-mix").explain("nobody")
    with pytest.raises(InvalidParameterError, match="a market that was run"):
        marketsched.compare("stochastic-mix", ["first-come"], 1).explain("A")
    with pytest.raises(InvalidParameterError, match="identical nodes"):
        Result("market", {"pools": pd.DataFrame()}).explain("A")
