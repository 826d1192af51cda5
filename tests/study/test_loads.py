"""Comparisons by load, and against first-come at flat prices."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from marketsched.comparisons.comparing import compare
from marketsched.comparisons.flat_prices import paired_differences
from marketsched.comparisons.loads import LoadContest, load_table
from marketsched.config.scenario import Scenario
from marketsched.config.sections import WorkloadSection
from marketsched.config.strict_yaml import dump_yaml
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.play.hindsight import load_asked
from marketsched.results.loads_kind import FLAT
from marketsched.results.result import load as load_result
from marketsched.results.views import parts_of_view
from marketsched.show.cli import app
from refusals import refused


def one(name, value, birth=1, duration=1, nodes=1, deadline=None, **point):
    return {
        "name": name,
        "birth": birth,
        "concurrency": nodes,
        "value": {"kind": "deadline", "value": value, "deadline": deadline or birth + duration},
        "requirements": [{"arrival": birth, "duration": duration, "probability": 1, **point}],
    }


def market(jobs, capacity=1, **more):
    sizes = {"horizon": 12, "max_concurrency": 1, "max_duration": 4, "max_value": 50, "max_delay": 12}
    return {"name": "small", "workload": {"kind": "jobs", "capacity": capacity, **sizes, **more, "jobs": jobs}}


# Four rounds of work come in rounds 1 and 2. On one node a long job keeps a valuable short one out, unless the
# price is 2 or more.
LONG_AND_SHORT = market([one("long", 8, duration=4), one("short", 30, birth=2)])
PERHAPS = {
    **market([{**one(f"job {i}", 4 - i / 6), "birth": 1 + i // 9} for i in range(18)], 2),
    "name": "perhaps eighteen",
}
for job in PERHAPS["workload"]["jobs"]:
    job["requirements"] = [{"arrival": job["birth"], "duration": 1, "probability": 0.6}]
    job["value"]["deadline"] = job["birth"] + 2


# -- flat prices -------------------------------------------------------------------------------------------


def test_everybody_is_compared_with_first_come_at_flat_prices():
    found = compare(LONG_AND_SHORT, ["bid-price", "first-come", "first-come:price=3"], runs=2)
    assert found.runs["first_come"].tolist() == [8.0] * 6
    assert found.runs["best_flat"].tolist() == [30.0] * 6
    assert ((found.runs["best_flat_price"] >= 2) & (found.runs["best_flat_price"] < 30)).all()
    assert found.runs["best_flat_known"].isna().all()  # durations are revealed: it is the same
    table = found.summary.set_index("mechanism")
    assert table.loc["first-come", ["over_first_come", "over_best_flat"]].tolist() == [0.0, -22 / 30]
    assert table.loc["first-come:price=3", ["over_first_come", "over_best_flat"]].tolist() == [22 / 30, 0.0]
    text = parts_of_view(found.view())
    assert any("+73.33" in cell for table in text[1] for row in table.rows for cell in row)


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
    assert any("cannot be run" in remark for remark in parts_of_view(found.view(), details=True)[2])


def test_differences_are_paired_and_have_students_interval():
    runs = pd.DataFrame({"welfare": [9.0, 6.0], "opt_high": [10.0, 10.0], "first_come": [8.0, 6.0], "best_flat": 9.0})
    found = paired_differences(runs, 0.95)
    half = 12.706204736432095 * 0.05  # t(1) times the standard error of .1 and 0
    assert found["over_first_come"] == pytest.approx(0.05)
    assert [found["over_first_come_low"], found["over_first_come_high"]] == pytest.approx([0.05 - half, 0.05 + half])
    assert found["over_best_flat"] == pytest.approx(-0.15)
    assert np.isnan(found["over_best_flat_known"])


def test_runs_of_other_sizes_are_weighed_by_what_could_be_earned():
    """A mechanism that is better in three small runs and loses the large one is not the better one."""
    runs = pd.DataFrame({"welfare": [10.0, 10.0, 10.0, 0.0], "opt_high": [10.0, 10.0, 10.0, 600.0]})
    found = paired_differences(runs.assign(first_come=[0.0, 0.0, 0.0, 600.0]), 0.95)
    assert found["over_first_come"] == pytest.approx((30 - 600) / 630)
    assert found["over_first_come_low"] < found["over_first_come"] < found["over_first_come_high"]


def test_runs_in_which_nothing_could_be_earned_are_in_no_interval():
    runs = pd.DataFrame({"welfare": [9.0, 6.0], "opt_high": [10.0, 10.0], "first_come": [8.0, 6.0]})
    empty = pd.DataFrame({"welfare": [0.0] * 4, "opt_high": 0.0, "first_come": 0.0})
    assert paired_differences(pd.concat([runs, empty]), 0.95) == pytest.approx(
        paired_differences(runs, 0.95), nan_ok=True
    )


# -- loads -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_load():
    return compare(PERHAPS, ["exponential", "first-come"], runs=4, seed=3, loads=[2, 0.5, 1])


@pytest.mark.slow
def test_nodes_make_the_load(by_load):
    base = Scenario.from_dict(PERHAPS)
    assert by_load.runs["load"].unique().tolist() == [0.5, 1.0, 2.0]
    for seed, load, nodes in by_load.runs[["seed", "load", "capacity"]].drop_duplicates().values.tolist():
        workload = base.workload_of(int(seed))
        work = sum(job.truth.concurrency * job.duration for job in workload.jobs if job.arrival is not None)
        exact = work / 2 / load  # the last two are born in round 2
        assert nodes == max(1, round(exact))
        setup = base.with_capacity(int(nodes)).setup(np.random.default_rng(np.random.SeedSequence(int(seed))))
        assert setup.capacity == setup.mechanism.capacity == nodes
        assert load_asked(setup) == work / (nodes * 2)


@pytest.mark.slow
def test_a_row_at_a_load_is_the_run_on_so_many_nodes(by_load):
    row = by_load.runs[(by_load.runs["load"] == 1) & (by_load.runs["seed"] == 4)].iloc[0]
    alone = compare({**PERHAPS, "mechanism": {"capacity": int(row["capacity"])}}, ["exponential"], runs=1, seed=4)
    names = ["welfare", "revenue", "completed", "first_come", "best_flat", "best_flat_price"]
    assert alone.runs.loc[0, names].tolist() == row[names].tolist()


def test_the_workload_of_a_seed_is_built_once(monkeypatch):
    base, built = Scenario.from_dict(PERHAPS), []
    build = type(base.workload).build
    assert issubclass(type(base.workload), WorkloadSection)
    monkeypatch.setattr(type(base.workload), "build", lambda self, *rest: built.append(1) or build(self, *rest))
    compare(base, ["exponential", "first-come"], runs=2, loads=[1, 2])
    assert len(built) == 2


def test_an_interrupted_comparison_keeps_seeds_of_which_all_loads_are_played():
    def stop(done, total, what):
        if what == "load 2, seed 1, exponential":
            raise KeyboardInterrupt

    interrupted = {"runs": 3, "loads": [1, 2], "progress": stop, "keep_interrupted": True}
    found = compare(PERHAPS, ["exponential", "first-come"], **interrupted)
    assert not found.complete
    assert found.runs[["seed", "load"]].drop_duplicates().values.tolist() == [[0, 1.0], [0, 2.0]]


@pytest.mark.long
@pytest.mark.slow
def test_processes_share_the_loads_of_a_seed(tmp_path):
    alone, heard = compare(PERHAPS, ["exponential", "first-come"], runs=1, loads=[0.5, 1, 2]), []
    sure = {"workers": 2, "keep": tmp_path, "progress": lambda *step: heard.append(step)}
    found = compare(PERHAPS, ["exponential", "first-come"], runs=1, loads=[0.5, 1, 2], **sure)
    pd.testing.assert_frame_equal(found.runs.drop(columns="seconds"), alone.runs.drop(columns="seconds"))
    assert sorted(what.split(" is finished")[0] for _, _, what in heard) == [
        f"seed 0, load {x}" for x in ("0.5", "1", "2")
    ]
    assert [done for done, _, _ in heard] == [4, 8, 12]


def test_the_summary_is_tidy_and_paired(by_load):
    table = by_load.summary
    assert table[["load", "mechanism"]].values.tolist() == [
        [load, name] for load in (0.5, 1.0, 2.0) for name in ("exponential", "first-come")
    ]
    own = by_load.runs[(by_load.runs["load"] == 2) & (by_load.runs["mechanism"] == "exponential")]
    row = table[(table["load"] == 2) & (table["mechanism"] == "exponential")].iloc[0]
    assert row["share"] == pytest.approx(own["welfare"].sum() / own["opt_high"].sum())
    over = own["welfare"].sum() - own["best_flat"].sum()
    assert row["over_best_flat"] == pytest.approx(over / own["opt_high"].sum())
    assert (table.loc[table["mechanism"] == "first-come", "over_first_come"] == 0).all()
    assert set(by_load.runs["opt_kind"]) == {"dual"}


def test_figures_of_a_load_are_those_of_its_runs(by_load):
    mixed = by_load.runs.assign(opt_kind=np.where(by_load.runs["seed"] == 4, "exact", "dual"))
    for row in load_table(mixed, ["exponential", "first-come"], 0.95).to_dict("records"):
        own = mixed[(mixed["load"] == row["load"]) & (mixed["mechanism"] == row["mechanism"])]
        assert (row["runs"], row["refused"], row["exact_optima"]) == (4, 0, 1) and row["why"] == ""
        assert row["completed_share"] == own["completed"].sum() / own["jobs"].sum()
        assert row["revenue_share"] == pytest.approx(own["revenue"].sum() / own["opt_high"].sum())
        means = ["utilisation", "utilisation_open", "evicted", "seconds", "best_flat_price"]
        assert [row[name] for name in means] == pytest.approx(own[means].mean().tolist())
        assert row["nodes"] == own["capacity"].mean()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_progress_counts_every_step_once_and_names_it(elsewhere):
    """Before each step here; where others play, after each load of a seed."""
    heard, more = [], {"executor": ThreadPoolExecutor(1)} if elsewhere else {}
    names = ["first-come"]
    found = compare(PERHAPS, names, runs=2, loads=[1, 2], progress=lambda *step: heard.append(step), **more)
    parts = [
        f"{seed}, {load}" if elsewhere else f"{load}, {seed}"
        for seed in ("seed 0", "seed 1")
        for load in ("load 1", "load 2")
    ]
    steps = len(heard) // 4 if not elsewhere else heard[0][0]
    assert {total for _, total, _ in heard} == {4 * steps} and found.complete
    assert [done for done, *_ in heard] == (
        [steps, 2 * steps, 3 * steps, 4 * steps] if elsewhere else [*range(4 * steps)]
    )
    assert all(
        what.startswith(part) for (_, _, what), part in zip(heard, np.repeat(parts, len(heard) // 4), strict=True)
    )
    assert {what.rpartition(", ")[2] for _, _, what in heard} >= set([] if elsewhere else names)


def test_a_contest_goes_to_another_process_and_plays_the_same():
    contest = LoadContest(Scenario.from_dict(PERHAPS), ["bid-price", "first-come"], [1, 2], None, 0.0)
    here, there = (each.play(3, 1, lambda what: None) for each in (contest, pickle.loads(pickle.dumps(contest))))
    for row in [*here["runs"], *there["runs"]]:
        row.pop("seconds")
    pd.testing.assert_frame_equal(pd.DataFrame(here["runs"]), pd.DataFrame(there["runs"]))


@pytest.mark.slow
@pytest.mark.long
def test_two_processes_find_what_one_does(by_load):
    twice = compare(PERHAPS, ["exponential", "first-come"], runs=4, seed=3, loads=[0.5, 1, 2], workers=2)
    columns = [name for name in by_load.runs if name != "seconds"]
    pd.testing.assert_frame_equal(twice.runs[columns], by_load.runs[columns])
    plain, shared = (compare(PERHAPS, ["exponential"], runs=3, workers=workers) for workers in (1, 2))
    for name in ("runs", "summary"):
        ours, theirs = plain.to_frame(name), shared.to_frame(name)
        pd.testing.assert_frame_equal(ours.drop(columns="seconds"), theirs.drop(columns="seconds"))


def test_too_few_nodes_for_the_widest_job_are_named():
    wide = market([one("wide", 9, nodes=3, deadline=6), *(one(f"job {i}", 3) for i in range(6))], 4, max_concurrency=3)
    found = compare(wide, ["first-come"], runs=2, loads=[1, 4])
    at_four = found.runs[found.runs["load"] == 4]
    assert at_four["capacity"].tolist() == [2, 2] and at_four["welfare"].isna().all()
    rows = found.summary.set_index("load")
    assert rows["refused"].tolist() == [0, 2] and rows.loc[1.0, "share"] == 1.0
    _, tables, notes = parts_of_view(found.view())
    assert any("refused" in cell for row in tables[0].rows for cell in row)
    refused = "2 nodes, and jobs may be 3 wide (loads up to 3 leave enough)"
    assert f"first-come at load 4: no figures of 2 of 2 seeds: {refused}" in notes
    assert compare(wide, ["first-come"], runs=1, loads=[3]).runs["welfare"].notna().all()
    found.plot()
    with pytest.raises(
        InvalidParameterError,
        match=r"at 4, first-come: 2 nodes, and jobs may be 3 wide \(loads up to 3 leave enough\): expected lower",
    ):
        compare(wide, ["first-come"], runs=1, loads=[4])


def test_a_mechanism_that_does_not_take_so_few_nodes_is_named_and_the_others_go_on():
    found = compare(PERHAPS, ["exponential", "first-come"], runs=2, loads=[0.5, 6])  # Algorithm 3 wants two at least
    rows = found.summary.set_index(["load", "mechanism"])
    assert rows.loc[(6.0, "exponential"), "runs"] == 0 and rows.loc[(6.0, "first-come"), "runs"] == 2
    assert any(
        "exponential at load 6" in note and "expected C'" in note
        for note in parts_of_view(found.view(), details=True)[2]
    )
    found.plot()


@pytest.mark.parametrize("loads", [[], [1, 1], [0], [-1], ["many"], [float("nan")]])
def test_wrong_loads(loads):
    refused(lambda: compare(PERHAPS, ["first-come"], runs=1, loads=loads), "loads", error=InvalidParameterError)


def test_an_interrupted_comparison_keeps_whole_seeds_of_all_loads():
    def stop(done, total, what):
        if "seed 1, first-come" in what and "load 2" in what:
            raise KeyboardInterrupt

    found = compare(PERHAPS, ["first-come"], runs=3, loads=[1, 2], progress=stop, keep_interrupted=True)
    assert not found.complete and found.runs[["seed", "load"]].values.tolist() == [[0, 1], [0, 2]]


def test_a_row_without_runs_has_no_figures():
    own = {"load": [1.0], "mechanism": ["a"], "seed": [0], "welfare": [np.nan], "capacity": [2], "refused": ["few"]}
    row = load_table(pd.DataFrame(own), ["a"], 0.95).iloc[0]
    assert (row["runs"], row["refused"], row["nodes"], row["why"]) == (0, 1, 2.0, "few")


# -- what is seen and written ------------------------------------------------------------------------------


def test_the_figure_shows_every_row(by_load):
    figure = by_load.plot()
    flat = by_load.summary.drop_duplicates("load").sort_values("load")
    assert flat["best_flat_known_share"].isna().all()  # durations are no secret here: no line of its own
    shares = {name: 100 * flat[f"{name}_share"].to_numpy() for name in ("first_come", "best_flat")}
    for axes, name, base in zip(figure.axes, ("share", "over_best_flat"), (0, shares["best_flat"]), strict=True):
        places = []
        for bars, mechanism in zip(axes.containers, ("exponential", "first-come"), strict=True):
            rows = by_load.summary[by_load.summary["mechanism"] == mechanism].sort_values("load")
            (x, y), ends = bars.lines[0].get_data(), [each[:, 1] for each in bars.lines[2][0].get_segments()]
            assert y == pytest.approx(100 * rows[name])
            places.append(x.astype(float))
            assert np.array(ends) == pytest.approx(100 * rows[[f"{name}_low", f"{name}_high"]].to_numpy())
        assert np.mean(places, axis=0) == pytest.approx([0, 1, 2]) and 0 < np.ptp(places, axis=0).max() < 0.3  # beside
        lines = [line.get_ydata() for line in axes.lines if line.get_linestyle() == "--"]
        for wanted in (each - base for each in shares.values()):
            assert any(np.allclose(line, wanted[: len(line)]) for line in lines)
        assert len(lines) == 2 and [label.get_text() for label in axes.get_xticklabels()] == ["0.5", "1", "2"]
        assert axes.get_xlim()[0] < -0.1 and axes.get_xlim()[1] > 2.1
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["exponential", "first-come", FLAT["first_come"][0], FLAT["best_flat"][0]]


def test_the_table_of_loads_has_every_figure(by_load):
    _, (table, *_), _ = parts_of_view(by_load.view())
    rows, cells = iter(table.rows), lambda x: f"{100 * x:.2f}"
    for load, at_load in by_load.summary.groupby("load"):
        first, best = next(rows), next(rows)
        assert first[0] == f"{load:g}" and first[1] == f"{at_load['nodes'].iloc[0]:,.4g}" and best[:2] == ("", "")
        assert first[3].startswith(cells(at_load["first_come_share"].iloc[0])) and first[2] == FLAT["first_come"][0]
        assert best[3].startswith(cells(at_load["best_flat_share"].iloc[0])) and best[2] == FLAT["best_flat"][0]
        for _, row in at_load.iterrows():
            _, _, name, share, over_first, over_best = next(rows)
            assert name == row["mechanism"] and share.startswith(cells(row["share"]))
            assert over_first.lstrip("+").startswith(cells(row["over_first_come"]))
            assert over_best.lstrip("+").startswith(cells(row["over_best_flat"]))
        next(rows, None)


@pytest.mark.slow
def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "market.yaml").write_text(dump_yaml(PERHAPS))
    call = ["compare", "market.yaml", "--mechanisms", "exponential,first-come", "--runs", "2", "--loads", "1,2"]
    done = CliRunner().invoke(app, [*call, "--out", "out"])
    assert done.exit_code == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 110
    kept = load_result("out")
    assert kept.kind == "loads" and kept.meta["loads"] == [1.0, 2.0]
    assert parts_of_view(kept.view()) == parts_of_view(compare(PERHAPS, runs=2, loads=[1, 2]).view())
    assert (tmp_path / "out" / "figure.png").is_file()
    json.dumps(kept.to_dict(), allow_nan=False)
    for wrong, message in [("1,x", "expected numbers above 0"), ("0", "loads")]:
        done = CliRunner().invoke(app, ["compare", "market.yaml", "--loads", wrong])
        assert done.exit_code == 2 and message in done.stderr
    done = CliRunner().invoke(app, ["compare", "cluster-default", "--loads", "1"])
    assert done.exit_code == 2 and "expected a scenario of jobs" in done.stderr


@pytest.mark.slow
@pytest.mark.long
def test_of_a_log_the_nodes_stay_and_arrivals_come_closer(tmp_path):
    rng = np.random.default_rng(5)
    rows = {"submit_s": np.cumsum(rng.exponential(400.0, 120)), "run_s": rng.uniform(60, 4000, 120)}
    log = tmp_path / "runs.csv"
    pd.DataFrame({**rows, "processors": rng.choice([1, 2, 8], 120)}).to_csv(log, index=False)
    scenario = {"name": "log", "workload": {"kind": "csv", "path": str(log), "capacity": 8, "rule": {"slack": 2.0}}}
    assert Scenario.from_dict(scenario).mechanism.name == "two-offers"  # none is named
    found = compare(scenario, ["scenario", "first-come"], runs=1, loads=[0.6, 1.8])
    assert (found.tables["runs"]["capacity"] == 8).all() and (found.tables["runs"]["jobs"] == 120).all()
    share = found.summary[found.summary["mechanism"] == "first-come"].set_index("load")["share"]
    assert share[0.6] > share[1.8]
    at = {f: Scenario.from_dict(scenario | {"workload": scenario["workload"] | {"stretch": f}}) for f in (1.0, 0.5)}
    births = {f: [job.truth.birth for job in base.workload_of(0).jobs] for f, base in at.items()}
    assert births[0.5][-1] == pytest.approx(births[1.0][-1] / 2, abs=1)
