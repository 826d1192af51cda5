"""A site's Slurm configuration as parameters: what is read, and what is said not to be modelled."""

import pytest
import yaml
from typer.testing import CliRunner

from marketsched.config.scenario import Scenario
from marketsched.config.slurm_conf import site_rule
from marketsched.show.cli import app
from refusals import refused

CONF = """
# a site
ClusterName=blue
PriorityDecayHalfLife={half}
PriorityMaxAge=1-12
PriorityFavorSmall=YES
PriorityFlags={flags}
PriorityWeightAge=1000
PriorityWeightFairshare=100000   # most
PriorityWeightPartition=10
SchedulerParameters=bf_continue
NodeName=DEFAULT CPUs=64
NodeName=c[001-010,020],login1 \\
  RealMemory=256000
NodeName=r[1-2]n[1-3]
PartitionName=batch Default=YES
PartitionName=gpu TRESBillingWeights="CPU=1.0,GRES/gpu=16"
"""
SSHARE = """Account|User|RawShares|NormShares
root|||0.0
 root|root|1|0.3
 physics||2|0.5
  physics|ann|1|0.5
  optics||1|0.5
   optics|eve|parent|0.5
 biology||1|0.2
  biology|ann|4|0.2
"""


def conf_of(folder, half="14-0", flags="NO_FAIR_TREE,CALCULATE_RUNNING"):
    path = folder / "slurm.conf"
    path.write_text(CONF.format(half=half, flags=flags))
    return path


def test_weights_times_accounts_and_nodes_are_read(tmp_path):
    (tmp_path / "sshare.txt").write_text(SSHARE)
    found = site_rule(conf_of(tmp_path), tmp_path / "sshare.txt")
    assert found.nodes == 10 + 1 + 1 + 6
    assert found.mechanism["parameters"] == {
        "weight_age": 1000.0, "weight_fair_share": 100_000.0, "weight_size": 0.0, "weight_qos": 0.0,
        "rule": "classic", "half_life_hours": 336.0, "max_age_hours": 36.0, "favor_small": True,
        "shares": {"root": 1.0, "physics/": 2.0, "physics/ann": 1.0, "physics/optics/": 1.0,
                   "physics/optics/eve": "parent", "biology/": 1.0},
    }  # fmt: skip
    for said in (
        "priorityweightpartition=10",
        "schedulerparameters=bf_continue",
        "priorityflags=calculate_running",
        "partition gpu: tresbillingweights=CPU=1.0,GRES/gpu=16",
        "several partitions: their nodes are one pool here",
        "sshare: biology/ann: ann has one account here, that of physics/ann",
    ):
        assert said in found.not_modelled


@pytest.mark.parametrize(("text", "hours"), [("90", 1.5), ("2:30:00", 2.5), ("7-0", 168), ("1-12:30:00", 36.5)])
def test_times_of_slurm(tmp_path, text, hours):
    parameters = site_rule(conf_of(tmp_path, half=text, flags="")).mechanism["parameters"]
    assert parameters["half_life_hours"] == hours and parameters["rule"] == "fair-tree"


def test_order_of_arrival_and_limits_of_qos(tmp_path):
    (tmp_path / "basic.conf").write_text("PriorityType=priority/basic\nSchedulerType=sched/builtin\n")
    assert site_rule(tmp_path / "basic.conf").mechanism == {
        "name": "easy-backfill",
        "parameters": {"reserve": "strict"},
    }
    (tmp_path / "qos.txt").write_text("Name|Priority|PreemptMode|MaxJobsPU\nnormal|0|cluster|\nhigh|100|cluster|2\n")
    left = site_rule(conf_of(tmp_path), qos=tmp_path / "qos.txt").not_modelled
    assert left[-2:] == ["QOS high: priority 100", "QOS high: MaxJobsPU=2"]


def test_files_that_are_something_else_are_refused_by_line(tmp_path):
    refused(lambda: site_rule(conf_of(tmp_path, half="a fortnight")), "slurm.conf:4", legal="a time, as 7-0")
    (tmp_path / "other.txt").write_text("Name|Shares\n")
    refused(lambda: site_rule(conf_of(tmp_path), tmp_path / "other.txt"), "other.txt", legal="Account, User, RawShares")
    refused(lambda: site_rule(tmp_path / "other.txt"), "no setting of Slurm", legal="the file slurm.conf")


def test_the_command_writes_a_scenario_that_can_be_compared(tmp_path):
    (tmp_path / "jobs.csv").write_text("submit,start,end,nodes,user\n0,60,600,2,ann\n30,60,900,1,eve\n")
    answer = CliRunner().invoke(app, ["scheduler", str(conf_of(tmp_path)), "--log", str(tmp_path / "jobs.csv")])
    assert answer.exit_code == 0 and "# not modelled: several partitions" in answer.stdout
    scenario = Scenario.from_dict(yaml.safe_load(answer.stdout))
    assert scenario.workload_of(0).capacity == 18 and scenario.mechanism.name == "fair-share"
