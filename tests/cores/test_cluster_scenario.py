"""Cluster scenarios as files: strict, named faults, round trips, and one stream of random numbers per purpose."""

import subprocess
import sys

import numpy as np
import pytest

from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import built_in_text, scenario_names
from marketsched.config.strict_yaml import parse_yaml
from marketsched.cores.sections.policies import policy_choices
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from refusals import refused

CLUSTERS = tuple(name for name in scenario_names() if Scenario.load(name).kind != "market")
SMALL = {"name": "small", "cluster": {"slots": 40, "instance": {"kind": "published", "ports": 4, "instances": 6}}}


def scenario(**changes):
    """Return the small scenario with other parts of its section ``cluster``."""
    return Scenario.from_dict({**SMALL, "cluster": {**SMALL["cluster"], **changes}})


def test_the_built_in_ones():
    ogasched = ("cluster-default", "cluster-gang", "cluster-linear", "cluster-openb", "cluster-pai")
    channels, machines = (
        ("esdp-default", "esdp-gang", "esdp-google", "esdp-pai"),
        ("opm-default", "opm-general", "opm-google", "opm-lanl", "opm-spot", "opm-unequal"),
    )
    assert (*ogasched, *channels, *machines) == CLUSTERS
    default = Scenario.load("cluster-default").cluster
    instance = default.instance
    paper = (10, 128, 10.0, (1.0, 1.5), (0.3, 0.5), 0.7, 2000)  # Table 1 of the OgaSched paper
    assert paper == (instance.ports, instance.instances, instance.contention, instance.alpha, instance.overhead,
                     default.arrivals.probability, default.slots)  # fmt: skip
    assert Scenario.load("cluster-linear").cluster.instance.gain == "linear"
    pai = Scenario.load("cluster-pai").cluster.instance
    assert (pai.kind, pai.contention, pai.gain) == ("pai-mix", 1.0, "mixed")
    assert Scenario.load("cluster-openb").cluster.arrivals.kind == "openb"


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_built_in_one_round_trips(name):
    found = Scenario.load(name)
    assert found.kind == found.cluster.core
    assert found.name == name and found.description and built_in_text(name).startswith("#")
    assert Scenario.from_dict(parse_yaml(found.to_yaml(), "x")) == found
    assert (
        found.cluster.policies[0]
        == found.cluster.core
        == {"cluster": "ogasched"}.get(name.partition("-")[0], name.partition("-")[0])
    )
    assert Scenario.from_dict(found.to_dict()) == found


def test_what_is_left_out_is_the_papers():
    found = Scenario.from_dict({"name": "x", "cluster": {}})
    assert found.cluster == Scenario.load("cluster-default").cluster
    assert found.to_dict()["cluster"]["instance"]["contention"] == 10.0  # defaults are written out


def test_scenarios_of_the_other_sort_are_refused_in_words():
    with pytest.raises(InvalidParameterError, match="cluster-pai: a cluster scenario: expected one of jobs"):
        Scenario.load("cluster-pai", kind="market")
    with pytest.raises(InvalidParameterError, match="saturated: a scenario of jobs: expected one with a cluster"):
        Scenario.load("saturated", kind="cluster")
    for scenario, kind in ((Scenario.load("saturated"), "cluster"), (Scenario.load("cluster-pai"), "market")):
        with pytest.raises(InvalidParameterError, match=f"{scenario.name}: a .* expected one "):
            Scenario.of(scenario, kind=kind)
    with pytest.raises(InvalidParameterError, match="mechanism: unknown key in a scenario with a cluster"):
        Scenario.from_dict({"name": "x", "cluster": {}, "mechanism": {"name": "first-come"}})
    assert Scenario.from_dict({"name": "x", "cluster": {}}).kind == "ogasched"
    refused(lambda: Scenario.from_dict({"name": "x"}), "workload is missing", error=InvalidParameterError)


def test_a_list_of_probabilities_is_one_for_each_port():
    with pytest.raises(InvalidParameterError, match="probability has 3 entries: expected one number, or 4, one a port"):
        scenario(arrivals={"kind": "bernoulli", "probability": [1, 1, 1]}).cluster.world(0)
    world = scenario(arrivals={"kind": "bernoulli", "probability": [1, 0, 1, 0]}).cluster.world(0)
    assert world.arrival_counts(40).tolist() == [40, 0, 40, 0]


# -- policies ----------------------------------------------------------------------------------------------


def test_tokens():
    theory, step, peek, drf = policy_choices(["ogasched", "ogasched:step=25:decay=0.9999", "ogasched:peek=true", "drf"])
    assert (theory.rules.step, theory.rules.decay, theory.rules.peek) == ("theory", 1.0, False)
    assert (step.label, step.rules.step, step.rules.decay) == ("ogasched:step=25:decay=0.9999", 25.0, 0.9999)
    assert peek.rules.peek and "peek=true" in peek.in_one_line() and "peek=false" in theory.in_one_line()
    assert drf.in_one_line() == "demand=per-node"
    refused(lambda: policy_choices("drf"), "expected at least one name", error=InvalidParameterError)
    refused(lambda: policy_choices(["x"]), "policy 'x' is unknown", error=UnknownNameError)


# -- streams of random numbers -----------------------------------------------------------------------------


def test_the_instance_does_not_depend_on_arrivals_slots_or_policies():
    one = scenario().cluster.world(5).cluster
    other = (
        scenario(arrivals={"kind": "bernoulli", "probability": 0.1}, slots=7, policies=["drf"]).cluster.world(5).cluster
    )
    for name in ("requirements", "capacities", "channels", "gain", "alpha", "overhead"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert not np.array_equal(one.requirements, scenario().cluster.world(6).cluster.requirements)


def test_arrivals_do_not_depend_on_the_instance():
    one = scenario().cluster.world(5)
    other = scenario(instance={"kind": "small-integer", "ports": 4, "instances": 9}).cluster.world(5)
    for slots in (1, 13, 40):
        assert one.arrival_counts(slots).tolist() == other.arrival_counts(slots).tolist()


@pytest.mark.slow
def test_describing_a_cluster_loads_no_engine():
    code = (
        "import sys; from marketsched.config.scenario import Scenario; from marketsched import run\n"
        "Scenario.load('cluster-openb').cluster.choices(); Scenario.load('cluster-pai').to_yaml()\n"
        "print({'mesa', 'cvxpy', 'matplotlib'} & set(sys.modules))"
    )
    # The function itself needs pandas; the scenario does not even need that.
    alone = code.replace("; from marketsched import run", "").replace("'matplotlib'", "'matplotlib', 'pandas'")
    for each in (code, alone):
        done = subprocess.run([sys.executable, "-c", each], capture_output=True, text=True, timeout=60)
        assert done.stdout == "set()\n", done.stdout + done.stderr
