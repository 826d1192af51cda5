"""Clusters and arrivals from recorded traces: types of pods, machines, hours, and who fits where."""

import numpy as np
import pytest

from marketsched.config.scenario import Scenario
from marketsched.cores.worlds.pods import (
    common_pod_types,
    eligible_channels,
    machine_capacities,
    pai_mix,
    recorded_counts,
)
from marketsched.mechanisms.errors import InvalidParameterError, MissingDataError

PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
SMALL, LARGE = "1000,2048,1,500,,BE", "4000,8192,2,1000,,LS"
DAY = 86_400


@pytest.fixture
def trace(tmp_path):
    """Write a trace of two types of pods over three days and of three machines."""
    times = [(SMALL, 0), (LARGE, DAY), (SMALL, 2 * DAY), (SMALL, 2 * DAY + 1800), (LARGE, 2.5 * DAY), (SMALL, 3 * DAY)]
    lines = [f"pod-{i},{kind},Running,{at},{at + 60},{at}" for i, (kind, at) in enumerate(times)]
    (tmp_path / "openb2023_pods.csv").write_text(PODS + "\n".join(lines) + "\n")
    nodes = "sn,cpu_milli,memory_mib,gpu,model\na,2000,4096,1,P100\nb,8000,16384,8,T4\nc,64000,262144,0,\n"
    (tmp_path / "openb2023_nodes.csv").write_text(nodes)
    return tmp_path


def test_types_are_ranked_by_their_pods(trace):
    found = common_pod_types(trace, 2)
    assert found.requirements.tolist() == [[1.0, 2.0, 0.5], [4.0, 8.0, 2.0]]
    assert common_pod_types(trace, 1).requirements.tolist() == [[1.0, 2.0, 0.5]]
    with pytest.raises(InvalidParameterError, match="ports = 3: expected at most 2, the types of pods in the trace"):
        common_pod_types(trace, 3)


def test_pods_are_counted_slot_by_slot(trace):
    """The last two days begin after the pod created exactly two days before the last one, and end with that."""
    counts = recorded_counts(trace, 2, days=2, slot_seconds=DAY / 2)
    assert counts.tolist() == [[0, 0], [1, 0], [1, 1], [1, 0]]
    assert recorded_counts(trace, 1, days=2, slot_seconds=DAY).tolist() == [[1], [2]]
    assert recorded_counts(trace, 2, days=1.9, slot_seconds=DAY).tolist() == [[2, 0]]  # whole slots only
    with pytest.raises(InvalidParameterError, match="days = 4: expected at most 3, the trace's length"):
        recorded_counts(trace, 2, days=4, slot_seconds=3600)
    with pytest.raises(InvalidParameterError, match="slot_seconds = 10"):
        recorded_counts(trace, 2, days=1, slot_seconds=1e6)


def test_a_port_uses_machines_that_could_run_its_pod():
    rng = np.random.default_rng(0)
    requirements, capacities = (
        np.array([[1.0, 0.5], [4.0, 2.0], [9.0, 0.0]]),
        np.array([[2.0, 1.0], [8.0, 8.0], [64.0, 0.0]]),
    )
    fits = [[True, True, False], [False, True, False], [False, False, True]]
    assert eligible_channels(requirements, capacities, 1.0, rng).tolist() == fits
    kept = [eligible_channels(requirements, capacities, 1e-9, rng) for _ in range(50)]
    assert all((each <= np.array(fits)).all() and (each.sum(axis=1) == 1).all() for each in kept)
    assert {int(each[0].argmax()) for each in kept} == {0, 1}  # drawn, not the first
    with pytest.raises(InvalidParameterError, match="port 1 asks for 9, 1 and fits on none of the 1 machines drawn"):
        eligible_channels(np.array([[1.0, 1.0], [9.0, 1.0]]), np.array([[8.0, 8.0]]), 1.0, rng)


def cluster(trace, slots=None, **changes):
    part = {"kind": "recorded", "ports": 2, "instances": 3, "memory_unit_gib": 2, "contention": 3}
    arrivals = {"kind": "openb", "days": 2, "slot_seconds": DAY / 2, **changes}
    slots = slots or int(2 * DAY / arrivals["slot_seconds"])
    content = {
        "name": "x",
        "cluster": {"instance": part, "arrivals": arrivals, "slots": slots, "policies": ["ogasched"]},
    }
    return Scenario.from_dict(content).cluster.world(0, data=trace)


def test_a_recorded_world(trace):
    world = cluster(trace)
    assert world.cluster.requirements.tolist() == [[3.0, 3.0, 1.5], [12.0, 12.0, 6.0]]  # contention, and units of 2 GiB
    assert sorted(world.cluster.capacities.tolist()) == [[2.0, 2.0, 1.0], [8.0, 8.0, 8.0], [64.0, 128.0, 0.0]]
    assert sorted(world.cluster.channels.sum(axis=1).tolist()) == [1, 2]  # contention does not decide who fits
    assert world.arrival_counts(4).tolist() == [3, 1] and world.arrival_counts(2).tolist() == [1, 0]


def test_every_job_of_a_port_may_get_a_port_of_its_own(trace):
    world = cluster(trace, at_most=2, slot_seconds=DAY)
    assert world.cluster.requirements.tolist() == [[3.0, 3.0, 1.5], [3.0, 3.0, 1.5], [12.0, 12.0, 6.0]]
    assert world.arrival_counts(2).tolist() == [2, 1, 1] and world.sizes()["jobs_per_slot"] == 2.0
    assert cluster(trace, at_most=1, slot_seconds=DAY).arrival_counts(2).tolist() == [2, 1]


def test_recorded_rates(trace):
    world = cluster(trace, kind="openb-rates")
    assert world._arrivals.probabilities.tolist() == [0.75, 0.25]


def test_more_slots_than_were_recorded_are_refused(trace):
    with pytest.raises(
        InvalidParameterError, match=r"cluster.slots = 4: expected at most 2, the slots in 1 recorded days"
    ):
        cluster(trace, days=1)


def test_a_missing_trace_is_said(tmp_path):
    with pytest.raises(MissingDataError, match=r"openb2023_nodes.csv: no such file"):
        Scenario.load("cluster-openb").cluster.world(0, data=tmp_path)


# -- the recorded traces themselves ------------------------------------------------------------------------


def test_the_hours_of_the_last_thirty_days(data_folder):
    """Shares of hours with an arrival, and counts, as the description of the data has them."""
    counts = recorded_counts(data_folder, 20, days=30, slot_seconds=3600)
    assert counts.shape == (720, 20) and counts.sum() == 5600
    shares = (counts > 0).mean(axis=0).round(3).tolist()
    assert shares[:6] == [0.372, 0.222, 0.251, 0.264, 0.172, 0.300]
    requirements = common_pod_types(data_folder, 1).requirements[0]
    assert requirements.tolist() == [3.152, 5600 / 1024, 0.81]
    assert recorded_counts(data_folder, 150, days=30, slot_seconds=3600).sum() == 7355


def test_the_mix_is_that_of_the_recorded_machines(data_folder):
    recorded, mix = machine_capacities(data_folder, "pai"), pai_mix()
    assert np.array_equal(recorded[np.lexsort(recorded.T)], mix[np.lexsort(mix.T)])
    assert machine_capacities(data_folder, "openb").sum(axis=0).tolist() == [125_514.0, 612_028_416 / 1024, 6_212.0]
