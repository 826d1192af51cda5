"""OPM scenarios: machines and jobs, who meets what, the columns, and recorded jobs, outages and fleets."""

import numpy as np
import pandas as pd
import pytest

from marketsched.comparisons.comparing import compare
from marketsched.config.scenario import Scenario
from marketsched.cores.results.jobs_figure import jobs_figure, migration_figure, steps_of
from marketsched.cores.worlds.records import google_window, lanl_availability, spot_availability
from marketsched.mechanisms.allocation import GammaAvailability, offline_optimum
from marketsched.mechanisms.allocation.opm.offline import regret
from marketsched.mechanisms.errors import InvalidParameterError, TraceError
from marketsched.play.running import run as run_scenario

MACHINES = {"kind": "gamma", "machines": 12}
JOBS = {"kind": "drawn", "per_slot": 0.2, "stay": 15, "spread": 1.0}
SMALL = {"name": "small", "cluster": {"core": "opm", "slots": 80, "machines": MACHINES, "jobs": JOBS}}


def scenario(**changes):
    """Return the small scenario with other parts of its section ``cluster``."""
    return Scenario.from_dict({**SMALL, "cluster": {**SMALL["cluster"], **changes}})


@pytest.fixture(scope="module")
def run():
    return run_scenario(SMALL, seed=4)


def test_what_is_left_out_is_the_papers():
    paper = Scenario.from_dict({"name": "x", "cluster": {"core": "opm"}}).cluster
    assert (paper.machines.machines, paper.slots) == (1000, 50_000)
    assert (paper.machines.up, paper.machines.down) == ((0.34, 94.35), (0.19, 39.92))
    assert (paper.machines.available, paper.machines.unavailable) == ((0.7, 1.0), (0.0, 0.1))
    assert (paper.jobs.budget, paper.jobs.weight, paper.jobs.exponent) == ((2.0, 100.0), (1.0, 5.0), 0.5)
    default = Scenario.load("opm-default").cluster
    assert default.machines == paper.machines.model_copy(update={"machines": 200})
    assert default.policies == paper.policies


def test_a_world_without_jobs_is_refused():
    with pytest.raises(InvalidParameterError, match=r"cluster\.jobs: no job comes in: expected longer slots"):
        scenario(jobs={**JOBS, "per_slot": 1e-9}).cluster.world(0)


def test_prices_and_rates_are_the_papers():
    world = scenario().cluster.world(0)
    share = GammaAvailability(1).share
    assert world.rates == pytest.approx(np.full(12, 0.85 * share + 0.05 * (1 - share)))
    assert world.prices == pytest.approx(2 * world.rates)
    assert world.jobs.horizon <= 80
    assert ((world.jobs.budgets / world.jobs.durations >= 2) & (world.jobs.budgets / world.jobs.durations <= 100)).all()


def test_a_run_adds_up(run):
    observed = run.summary.set_index("policy")["observes"].to_dict()
    assert observed.pop("state-seeing-fair") == "state" and set(observed.values()) == {"jobs"}
    budgets = float(run.jobs.loc[run.jobs["policy"] == "fair", "budget"].sum())
    fair = next(row for row in run.records() if row["policy"] == "fair")
    for row in run.records():
        own = run.slots[run.slots["policy"] == row["policy"]]
        jobs = run.jobs[run.jobs["policy"] == row["policy"]]
        assert row["reward"] == pytest.approx(own["utility"].sum()) == pytest.approx(jobs["utility"].sum())
        assert row["cost"] == pytest.approx(jobs["cost"].sum()) and row["work"] == pytest.approx(jobs["work"].sum())
        assert row["budget_share"] == pytest.approx(row["cost"] / budgets)
        assert (jobs["cost"] <= jobs["budget"] + 1e-9).all()  # all keep budgets strictly
        assert row["fit"] <= 0 and row["over_baseline"] == pytest.approx(row["reward"] / fair["reward"])
        per_slot = (jobs["stay"] * jobs["utility"] / jobs["stay"] ** 0.5).sum()  # exponent 0.5
        assert row["earned"] == pytest.approx(per_slot)
        assert row["regret"] == pytest.approx(row["reference"] - row["earned"])
    assert run.summary["reference"].nunique() == 1 and run.summary["reference_gap_share"].max() <= 1e-3


def test_regret_is_that_of_opm_6(run):
    world = Scenario.from_dict(SMALL).cluster.world(4)
    best = offline_optimum(world.jobs, world.prices, world.rates, objective="per-slot", tolerance=1e-6)
    assert run.summary["reference_gap_share"].max() <= 1e-3
    other = offline_optimum(world.jobs, world.prices, world.rates, tolerance=1e-6)  # the best by OPM (7)
    assert world.jobs.utilities_per_slot(other.works).sum() < 0.999 * best.value
    for row in run.records():
        # The optimum of OPM (6) lies between the reference and what its gap adds.
        assert (
            row["reference"] <= best.bound and best.value <= row["reference"] * (1 + row["reference_gap_share"]) + 1e-9
        )
        works = run.jobs.loc[run.jobs["policy"] == row["policy"], "work"].to_numpy()
        assert row["regret"] == pytest.approx(regret(world.jobs, best, works), abs=0.002 * row["reference"])


def test_all_policies_meet_the_same_machines(run):
    """Whoever uses every machine in a slot gets the same work of it."""
    busy = run.slots[run.slots["idle"] == 0].pivot(index="slot", columns="policy", values="work")
    both = busy[["fair", "deadline-aware"]].dropna()
    assert len(both) > 3 and (both["fair"] - both["deadline-aware"]).abs().max() < 1e-9


def test_each_purpose_has_its_stream():
    one = scenario().cluster.world(5)
    other = scenario(machines={**MACHINES, "machines": 3}).cluster.world(5)
    steeper = scenario(jobs={**JOBS, "exponent": 0.9}).cluster.world(5)
    for jobs in (other.jobs, steeper.jobs):
        for name in ("arrivals", "deadlines", "budgets", "weights"):
            assert np.array_equal(getattr(one.jobs, name), getattr(jobs, name)), name
    few = scenario(jobs={**JOBS, "per_slot": 0.1}).cluster.world(5)
    assert np.array_equal(one._availability.next(), few._availability.next())


@pytest.mark.slow
@pytest.mark.compiled
def test_a_comparison_and_what_it_leaves(tmp_path):
    policies = ["opm", "opm:primal_step=0.5", "opm:estimate=false", "fair"]
    found = compare(SMALL, policies, runs=3)
    assert "regrets" not in found.tables and found.meta["horizons"] == [80]  # no growth over horizons
    assert steps_of(found.runs) == ["opm", "opm:primal_step=0.5"]
    summary = found.summary.set_index("policy")
    assert summary.loc["fair", "over_baseline"] == 1.0 and summary.loc["fair", "budget_share_low"] > 0
    own = found.runs[found.runs["policy"] == "opm"]
    assert summary.loc["opm", "migrations_per_slot"] == pytest.approx((own["migrations"] / 80).mean())
    assert found.view() is not None
    found.save(tmp_path / "compared")
    files = {path.name for path in (tmp_path / "compared").iterdir()}
    assert {"jobs.parquet", "jobs.png", "migrations.png", "figure.png", "runs.parquet"} <= files
    table = pd.read_parquet(tmp_path / "compared" / "jobs.parquet")
    assert set(table["seed"]) == {0, 1, 2} and len(table) == len(found.jobs)
    gain, moved = migration_figure(found.runs, title="x", baseline="fair").axes
    assert gain.lines[0].get_ydata()[-1] == pytest.approx(
        100 * (summary.loc["opm:primal_step=0.5", "over_baseline"] - 1)
    )
    assert moved.get_ylim()[0] == 0


def test_shares_of_jobs_by_hand():
    """Two jobs of which one got nothing: its cost over utility is nowhere, its share of the budget is."""
    jobs = pd.DataFrame({"policy": "opm", "budget": [10.0, 10.0], "cost": [5.0, 2.0], "utility": [2.5, 0.0]})
    costs, shares, utilities = jobs_figure(jobs, title="x", lead="opm").axes
    assert (costs.lines[0].get_xdata().tolist(), costs.lines[0].get_ydata().tolist()) == ([2.0], [0.5])
    assert (shares.lines[0].get_xdata().tolist(), shares.lines[0].get_ydata().tolist()) == ([0.2, 0.5], [0.5, 1.0])
    assert utilities.lines[0].get_xdata().tolist() == [0.0, 2.5]


# -- recorded jobs, outages and fleets ---------------------------------------------------------------------


def test_google_jobs_by_hand(tmp_path):
    rows = ["0,1,1,0,,50,4", "1,1,1,100,1,20,4", "1,1,1,130,1,,0", "1,1,1,140,1,7,5", "1,1,1,160,1,1,4"]
    lines = [f"{i},{row.split(',')[0]},0,{','.join(row.split(',')[3:])}" for i, row in enumerate(rows)]
    (tmp_path / "google2011_jobs_29d.csv").write_text(
        "user,group,sched_class,submit_s,wait_s,run_s,end_event\n" + "\n".join(lines) + "\n"
    )
    found = google_window(np.random.default_rng(0), tmp_path, seconds=60)
    assert (found.submitted.tolist(), found.ran.tolist()) == ([0.0, 40.0], [20.0, 7.0])
    with pytest.raises(InvalidParameterError, match="slots last 61 s together: expected at most 60"):
        google_window(np.random.default_rng(0), tmp_path, seconds=61)
    jobs = scenario(slots=6, jobs={"kind": "google", "slot_seconds": 10}).cluster.world(0, data=tmp_path).jobs
    assert (jobs.arrivals.tolist(), jobs.deadlines.tolist()) == ([0, 4], [2, 5])


LANL = "system,node,sys_nodes,procs_per_node,node_prod,node_decom,purpose,fail_start,fail_fixed,cause,detail\n"


def test_outages_by_hand(tmp_path):
    rows = [
        "5,0,2,4,2001-01,current,compute,2001-01-01 00:00,2001-01-01 01:00,hardware,Disk",
        '5,0,2,4,2001-01,current,compute,2001-01-01 02:30,2001-01-01 03:00,software,"MPI, PVM, Array services"',
        "5,1,2,4,2001-01,current,compute,2001-01-01 04:00,2001-01-01 09:00,,",
        "17,,,,,,,2001-01-01 00:00,2001-01-01 01:00,human,",
    ]
    path = tmp_path / "lanl_outages_1996_2005.csv"
    path.write_text(LANL + "\n".join(rows) + "\n")
    shape = {"system": 5, "n_machines": 2, "slot_hours": 1.0}
    found = lanl_availability(np.random.default_rng(1), tmp_path, slots=4, **shape)
    expected = [[0.0, 1.0, 0.5, 1.0], [1.0, 1.0, 1.0, 1.0]]
    assert sorted(found.T.tolist()) == sorted(expected)
    for changes, message in (
        ({"system": 17}, "system = 17: expected one of 5"),
        ({"n_machines": 3}, "machines = 3: expected at most 2, the nodes"),
        ({"slot_hours": 2.0}, "slots last 8 hours together: expected at most 4"),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            lanl_availability(np.random.default_rng(1), tmp_path, slots=4, **{**shape, **changes})
    path.write_text(LANL + rows[0].replace("2001-01-01 01:00", "2001-01-01 01:00:30") + "\n")
    with pytest.raises(TraceError, match=r"fail_fixed = '2001-01-01 01:00:30': expected a time YYYY-MM-DD HH:MM$"):
        lanl_availability(np.random.default_rng(1), tmp_path, slots=4, **shape)


def test_a_fleet_by_hand(tmp_path):
    events = (
        "trace,time_ms,event,node\np3,0,add,a\np3,10000,add,b\np3,25000,remove,a\np3,40000,remove,c\ng4dn,0,add,z\n"
    )
    (tmp_path / "spot_nodes_aws.csv").write_text(events)
    found = spot_availability(tmp_path, fleet="p3", slots=4, slot_seconds=10.0)
    assert found.T.tolist() == [[1.0, 1.0, 0.5, 0.0], [0.0, 1.0, 1.0, 1.0]]
    with pytest.raises(InvalidParameterError, match="slots last 50 s together: expected at most 40, the record"):
        spot_availability(tmp_path, fleet="p3", slots=5, slot_seconds=10.0)


@pytest.mark.parametrize("name", ["opm-lanl", "opm-spot"])
def test_the_recorded_scenarios_build(data_folder, name):
    one, other = (Scenario.load(name).cluster.world(seed, data=data_folder) for seed in (0, 1))
    assert one.jobs.size > 20 and one.jobs.horizon <= one.slots
    assert one.sizes()["available"] == pytest.approx({"opm-lanl": 0.997, "opm-spot": 0.137}[name], abs=0.01)
    assert not np.array_equal(one.jobs.arrivals, other.jobs.arrivals)
    assert one.environment().slots == one.slots
