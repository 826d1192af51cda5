"""ESDP scenarios: what is built, who meets what, regret against the oracle, and recorded speeds as channels."""

import io

import numpy as np
import pytest

from marketsched.comparisons.comparing import compare
from marketsched.config.scenario import Scenario
from marketsched.cores.sections.policies import policy_names
from marketsched.cores.worlds.records import minibatch_samples, task_samples
from marketsched.mechanisms.allocation.slot_loop import declared_observation
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.play.running import run as run_scenario
from peeking import find_peeking

FAMILY = {"kind": "published", "ports": 4, "servers": 6, "types": 2, "edge_probability": 0.4}
SMALL = {"name": "small", "cluster": {"core": "esdp", "slots": 120, "instance": FAMILY}}


def scenario(**changes):
    """Return the small scenario with other parts of its section ``cluster``."""
    return Scenario.from_dict({**SMALL, "cluster": {**SMALL["cluster"], **changes}})


@pytest.fixture(scope="module")
def run():
    return run_scenario(SMALL, seed=2, policies=["esdp", "longest-waiting-first", "thompson", "cucb"])


def test_what_is_left_out_is_the_papers():
    paper = scenario(instance={"kind": "published"}, slots=2000).cluster
    default = Scenario.load("esdp-default").cluster
    assert (paper.instance, paper.arrivals, paper.slots) == (default.instance, default.arrivals, default.slots)
    drawn = paper.instance
    assert (drawn.ports, drawn.servers, drawn.types, drawn.edge_probability) == (8, 40, 3, 0.1)
    assert (drawn.capacity, drawn.requests, paper.arrivals.probability) == (2, (1, 2), 0.9)
    (esdp,) = paper.choices(["esdp"])
    assert esdp.in_one_line() == "alpha=0.5 slack=paper exploration=paper arrivals=zero"


def test_a_run_adds_up(run):
    assert set(run.summary["observes"]) == {"arrivals"}
    for row in run.records():
        own = run.slots[run.slots["policy"] == row["policy"]]
        assert row["reward"] == pytest.approx(own["utility"].sum())
        assert row["earned"] == pytest.approx(own["expected"].sum())
        assert row["reference"] == pytest.approx(own["oracle"].sum())
        assert row["regret"] == pytest.approx(own["regret"].sum())
        assert own["regret"].min() >= -1e-12 and row["reference_gap"] == 0.0
        assert row["reference_ratio"] == pytest.approx(row["reference"] / row["earned"])
        assert np.isnan(row["over_baseline"]) and np.isnan(row["regret_bound"])
    assert "jobs" not in run.tables and run.meta["channels"] >= 1


def test_all_policies_meet_the_same_arrivals_and_utilities(run):
    oracle = run.slots.pivot(index="slot", columns="policy", values="oracle")
    assert (oracle.nunique(axis=1) == 1).all()
    world = scenario().cluster.world(2)
    channels = world.channels.n_channels
    seen = []
    for _ in range(2):  # two channels of ports with a job used one by one: the same draws in both environments
        environment = world.environment()
        (arrived,) = environment.observation("arrivals")
        picked = int(np.flatnonzero(arrived[world.channels.ports])[0])
        seen.append(environment.play(np.arange(channels) == picked).measures["utility"])
    assert seen[0] == seen[1]


def test_each_purpose_has_its_stream():
    one, other = (
        scenario().cluster.world(7),
        scenario(arrivals={"kind": "bernoulli", "probability": 0.1}, slots=9).cluster.world(7),
    )
    assert np.array_equal(one.channels.requests, other.channels.requests)
    assert np.array_equal(one._utilities.draw(), other._utilities.draw())
    assert one._utilities.means.size != 0 and not np.array_equal(
        one.channels.ports, scenario().cluster.world(8).channels.ports
    )


@pytest.mark.parametrize("name", policy_names("esdp"))
def test_policies_see_arrivals_and_not_the_utilities_to_come(name):
    """Worlds of one seed with other utilities agree in the first decision, whatever comes after it."""
    base = scenario(slots=25)
    (choice,) = base.cluster.choices([name])
    worlds = base.cluster.world(1), scenario(slots=25, instance={**FAMILY, "unit": 3.0}).cluster.world(1)
    assert declared_observation(worlds[0].policy(choice, 25), worlds[0].environment()) == "arrivals"
    first, second = ((world.policy(choice, 25), world.environment()) for world in worlds)
    assert find_peeking(first, second, 1) is None


def test_a_comparison_tells_growth_and_the_oracle():
    found = compare(SMALL, ["esdp:exploration=log:arrivals=plan", "lowest-cost-first"], runs=3)
    assert found.meta["horizons"] == [30, 60, 120] and len(found.regrets) == 3 * 2 * 3
    whole = found.regrets[found.regrets["slots"] == 120].sort_values(["seed", "policy"])
    runs = found.runs.sort_values(["seed", "policy"])
    assert whole["regret"].to_numpy() == pytest.approx(runs["regret"].to_numpy())
    learning, cheapest = found.records()
    assert np.isfinite(cheapest["growth"]) and cheapest["used_per_slot"] > 0 and learning["ratio"] == 1.0
    assert cheapest["reference_ratio_least"] >= 1.0 - 1e-9
    figure = found.plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "average utility so far, share of oracle",
        "esdp:exploration=log:arrivals=plan over the others",
        "regret to oracle, mean over seeds",
    ]
    assert found.view() is not None


def test_views_and_pictures_speak_of_utility(run):
    from rich.console import Console

    console = Console(width=200, file=io.StringIO())
    console.print(run.view())
    text = console.file.getvalue()
    assert "oracle" in text and "y*" not in text and "utility: (Z - " in text and "cut off at 0 and 1" in text
    assert run.plot().axes[0].get_title(loc="left") == "utility a slot, average so far"


# -- recorded speeds ---------------------------------------------------------------------------------------

TASKS = "sched_s,wait_s,run_s,end_event,job_id,user,group,task,machine,sched_class,priority,cpu_req,mem_req\n"


def test_minibatches_by_hand(tmp_path):
    rows = ["2,0,50,2,40", "2,0,50,1,20", "2,1,50,1,80", "1,0,25,1,10", "1,0,25,3,30"]
    (tmp_path / "pai2020_minibatch_jobs.csv").write_text(
        "job,worker,gpu,time,batch_time_norm\n" + "\n".join(rows) + "\n"
    )
    found = minibatch_samples(tmp_path)
    assert [one.tolist() for one in found.samples] == [[1.0, 1 / 3], [1.0, 0.5], [0.25]]
    assert (found.ports.tolist(), found.requests[:, 0].tolist(), found.n_ports) == ([0, 1, 1], [25.0, 50.0, 50.0], 2)


def test_task_runs_by_hand(tmp_path):
    """Machines 3 and 7 are one group, 9 and 12 the other; medians 2 and 10; evicted and 0 s runs do not count."""
    runs = [(5, 2, 4, 1, 3), (4, 4, 4, 1, 7), (6, 1, 4, 1, 12), (1, 2, 4, 1, 9), (2, 9, 2, 1, 3), (3, 0, 4, 1, 3),
            (9, 10, 4, 2, 3), (8, 5, 4, 2, 3), (7, 20, 4, 2, 12)]  # fmt: skip
    lines = [f"{at},0,{ran},{end},{job},1,1,{at},{machine},0,0,0.03,0.0{job}" for at, ran, end, job, machine in runs]
    (tmp_path / "google2011_task_runs_3h.csv").write_text(TASKS + "\n".join(lines) + "\n")
    shape = {"n_groups": 2, "edge_probability": 1.0, "least_tasks": 3, "unit": 2.0}
    found = task_samples(np.random.default_rng(0), tmp_path, n_ports=2, least_samples=1, largest_request=0.1, **shape)
    assert list(zip(found.ports.tolist(), found.servers.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [one.tolist() for one in found.samples] == [[0.25, 0.5], [0.5, 1.0], [1.0, 0.5], [0.25]]
    assert found.requests.tolist() == [[0.03, 0.01], [0.03, 0.01], [0.03, 0.02], [0.03, 0.02]]
    few = task_samples(np.random.default_rng(0), tmp_path, n_ports=2, least_samples=2, largest_request=0.1, **shape)
    assert few.ports.tolist() == [0, 0, 1]
    with pytest.raises(InvalidParameterError, match="ports = 3: expected at most 2, the jobs with 3 finished tasks"):
        task_samples(np.random.default_rng(0), tmp_path, n_ports=3, least_samples=1, largest_request=0.1, **shape)
    with pytest.raises(InvalidParameterError, match="expected at most 0"):
        task_samples(np.random.default_rng(0), tmp_path, n_ports=1, least_samples=1, largest_request=0.01, **shape)
    with pytest.raises(InvalidParameterError, match="samples = 9: no job has as many"):
        task_samples(np.random.default_rng(0), tmp_path, n_ports=1, least_samples=9, largest_request=0.1, **shape)


def test_the_recorded_jobs_are_as_described(data_folder):
    found = minibatch_samples(data_folder)
    assert len(found.samples) == 40 and found.n_ports == 4 and sum(map(len, found.samples)) == 29_720
    assert all(0.0 < one.min() and one.max() <= 1.0 for one in found.samples)
    world = Scenario.load("esdp-pai").cluster.world(0, data=data_folder)
    assert world.channels.requests[[0, 10, 20, 30], 0].tolist() == [1, 1, 1, 2]
    google = Scenario.load("esdp-google").cluster.world(0, data=data_folder)
    assert google.channels.n_ports == 8 and google.channels.n_types == 2 and (google.channels.requests >= 1).all()
