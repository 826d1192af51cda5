"""Policies of one's own: every core plays them, and says which one decided wrongly, in which slot."""

import numpy as np
import pytest

from marketsched.config.scenario import Scenario
from marketsched.mechanisms import register
from marketsched.mechanisms.errors import DecisionError, InvalidParameterError, MechanismFault, UnknownNameError
from marketsched.play.running import run

MACHINES = {"kind": "gamma", "machines": 12}
JOBS = {"kind": "drawn", "per_slot": 0.2, "stay": 15, "spread": 1.0}
SMALL = {"name": "small", "cluster": {"core": "opm", "slots": 80, "machines": MACHINES, "jobs": JOBS}}

pytestmark = pytest.mark.compiled  # runs of many slots: too long for plain kernels


@register("policy", "test-idle")
class IdleMachines:
    """No machine works, but those that ``kind`` says."""

    core, name, observes = "opm", "idle machines", "jobs"

    def __init__(self, prices, kind: str = "none"):
        self.n, self.kind = len(prices), kind

    def add_job(self, *offer):
        pass

    def allocate(self, *observed):
        assert self.kind in ("none", "raises")
        if self.kind == "raises":
            raise ZeroDivisionError("my bug")
        return np.full(self.n, -1)

    def update(self, *feedback):
        pass


@register("policy", "test-unlearned")
class Unlearned:
    name, observes = "unlearned", "nothing"

    def __init__(self, cluster):
        pass

    def allocate(self):
        return 0.0


@register("policy", "test-careless")
class Careless:
    """The same number for every port, instance and type."""

    name, observes = "careless", "nothing"

    def __init__(self, cluster, number: float = 0.0):
        self.shape, self.number = (cluster.n_ports, cluster.n_instances, cluster.n_types), number

    def allocate(self):
        return np.full(self.shape, np.nan if self.number == 7.0 else self.number)

    def update(self, arrivals):
        pass


def test_machines_of_ones_own_policy_are_scored():
    found = run(SMALL, 4, policies=["fair", "test-idle"]).summary.set_index("policy")
    idle, fair = found.loc["test-idle"], found.loc["fair"]
    assert idle["cost"] == idle["earned"] == 0.0 and idle["fit"] < fair["fit"] <= 1e-9
    assert idle["regret"] == pytest.approx(idle["reference"])


def test_a_parameter_may_be_called_kind():
    with pytest.raises(MechanismFault, match=r"IdleMachines in slot 1: ZeroDivisionError: my bug \(test_own_policies"):
        run(SMALL, 4, policies=["test-idle:kind=raises"])


def test_what_a_policy_lacks_is_said():
    with pytest.raises(InvalidParameterError, match="Unlearned has no update: expected name, observes"):
        run(short("cluster-default"), 0, policies=["test-unlearned"])


@pytest.mark.parametrize("name", ["cluster-default", "cluster-gang"])
@pytest.mark.parametrize("number", [-5.0, 1e9, 7.0])
def test_a_decision_outside_the_rules_is_refused_with_policy_and_slot(name, number):
    with pytest.raises(DecisionError, match=r"policy 'careless(-gang)?': slot 1: "):
        run(short(name), 0, policies=[f"test-careless:number={number}"])
    assert run(short(name), 0, policies=["test-careless"]).summary["reward"].tolist() == [0.0]


def test_a_policy_in_a_file_needs_no_registration(tmp_path, monkeypatch):
    lines = [
        "import numpy as np",
        "class Spare:",
        "    name, observes = 'spare', 'nothing'",
        "    def __init__(self, cluster, share: float = 0.5):",
        "        self.sizes = np.zeros((cluster.n_ports, cluster.n_instances, cluster.n_types)), share",
        "    def allocate(self):",
        "        return self.sizes[0]",
        "    def update(self, arrivals):",
        "        pass",
    ]
    (tmp_path / "own_policy_of_a_test.py").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    tokens = ["fairness", "own_policy_of_a_test.py:Spare:share=0.25"]
    found = run(short("cluster-default"), 0, policies=tokens).summary
    assert found["policy"].tolist() == tokens and found["reward"][1] == 0.0 < found["reward"][0]
    with pytest.raises(UnknownNameError, match=r"expected one of esdp, .*, or a class in a file for this core"):
        run(short("esdp-default"), 0, policies=tokens[1:])
    with pytest.raises(InvalidParameterError, match="no class or function Spar"):
        run(short("cluster-default"), 0, policies=["own_policy_of_a_test.py:Spar"])


def short(name):
    data = Scenario.load(name).to_dict()
    data["cluster"] |= {"slots": 5}
    return Scenario.from_dict(data)
