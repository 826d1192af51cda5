"""A live market on a cluster: shapes through HTTP, what is booked by node and device, restart, export and replay."""

import re
from collections import Counter
from pathlib import Path

import pytest

from live_tools import CLUSTER, check_journal, config, play, refused, replayed
from marketsched.config.strict_yaml import parse_yaml
from marketsched.live.client import LiveClient
from marketsched.live.configuration import live_config
from marketsched.live.costs import fee
from marketsched.live.machine import LiveMarket
from marketsched.live.playing import check_market
from marketsched.live.serving import serving
from marketsched.live.slurm_bridge import SlurmBridge
from marketsched.live.statements import nodes_of
from marketsched.live.times import in_rounds
from marketsched.mechanisms.errors import EventError, InvalidParameterError, InvalidReportError

RULES = {
    "mechanism": "cluster-first-come", "max_concurrency": 4, "max_duration": 6, "max_value": 50, "max_delay": 20,
    "cluster": CLUSTER, "parameters": {"prices": {"a100": {"gpu": 1.5}, "v100": {"gpu": 0.5}}},
}  # fmt: skip
WIDE = {"each": {"cpu": 8, "gpu": 2}, "on": {"a100": 2}}
NARROW = {"each": {"gpu": 0.5}, "tasks": 3, "per_node": 1, "on": {"v100": 4}}


def statement(*shapes, arrival=1, deadline=9, **more):
    curve = {"kind": "linear", "value": 20.0, "from": 2, "slope": 1.0, "deadline": deadline}
    return {"value": curve, "arrival": arrival, "shapes": list(shapes), **more}


@pytest.mark.slow
def test_a_day_on_a_cluster(tmp_path):
    database, token = f"{tmp_path}/m.db", tmp_path / "token"
    with serving(RULES, database, operator_token_file=token, snapshot_rows=5) as url:
        operator = LiveClient(url, token.read_text().strip())
        ann = LiveClient(url, (own := operator.create_owner("ann", deposit=100)["token"]))
        here = operator.market(rounds=3)
        assert here["limits"]["capacity"] == 6 and here["cluster"]["groups"] == CLUSTER["groups"]
        assert here["pools"]["a100"]["gpu"][:2] == [1.5, 1.5] and here["pools"]["v100"]["cpu"][0] == 0.0
        offer = ann.quote(statement(WIDE, NARROW))
        assert offer["decided"] == "at arrival" and offer["prices_now"]["pools"]["v100"]["gpu"][0] == 0.5
        assert offer["no_show_fee"] == 3.0  # for three tasks with a part of a device, or one with two
        for name, shapes in {"both": (WIDE, NARROW), "one": (WIDE,), "two": (WIDE,), "none": (WIDE,)}.items():
            ann.submit(statement(*shapes, deadline=4 if name == "none" else 9), name=name)
            ann.arrive(f"ann.{name}", signal=2)
        decisions = operator.advance()["decisions"]
        starts = {each["job"]: each for each in decisions if each["event"] == "start"}
        assert {each["job"] for each in decisions} - starts.keys() == {"ann.none"}  # full until it is worth nothing
        # 17 of 20 by round 5 at 3 credits; on a100 it would be 19 at 6.
        assert (starts["ann.both"]["kind"], starts["ann.both"]["shape"], starts["ann.both"]["length"]) == ("v100", 1, 4)
        assert [each["tasks"] for each in starts["ann.both"]["nodes"].values()] == [1, 1, 1]
        assert starts["ann.one"]["nodes"].keys() | starts["ann.two"]["nodes"].keys() == {"a-0", "a-1"}
        operator.advance()
        assert operator.complete("ann.one", exit_code=0)["charge"] == 6.0
    with serving(None, database, snapshot_rows=5) as url:
        ann, operator = LiveClient(url, own), LiveClient(url, token.read_text().strip())
        nodes = {key: starts["ann.both"][key] for key in ("shape", "kind", "nodes")}
        assert ann.job("ann.both")["booking"] == nodes and ann.job("ann.one")["booking"]["kind"] == "a100"
        operator.advance(3)
        found = ann.job("ann.both")
        assert (found["outcome"], found["charge"], found["booking"]) == ("overrun", 3.0, nodes)
        assert ann.account()["balance"] == 85.0  # 6 + 6 + 3 credits
    check_journal(database)
    check_market(database)


def test_by_default_a_quarter_of_the_devices_may_be_announced_and_any_legal_job():
    """Six nodes have eight devices, the largest two: four tasks of two may be wanted at once."""
    assert live_config(RULES).announced_nodes == 8
    assert live_config({**RULES, "max_concurrency": 1}).announced_nodes == 4
    ten = [{"name": "a", "kind": "a100", "nodes": 10, "each": {"cpu": 16, "gpu": 8}}]
    wide = {**RULES, "max_concurrency": 1, "cluster": {**CLUSTER, "groups": ten}, "parameters": {}}
    assert live_config(wide).announced_nodes == 20
    assert live_config({**wide, "capacity": 10, "announced_nodes": 3}).announced_nodes == 3


NODES = {"concurrency": 1, "value": {"kind": "deadline", "value": 1, "deadline": 3}, "requirements": []}
AT_SPEED = {"each": {"gpu": 1}, "on": ["a100"], "law": [[2, 1.0]]}
REFUSED = {
    "no shapes": (NODES, "concurrency: unknown key"),
    "an empty list": (statement(), "shapes = []"),
    "another kind": (statement({"each": {"gpu": 1}, "on": {"h100": 2}}), "shapes[0].on.h100 is no kind"),
    "another resource": (statement({"each": {"tpu": 1}, "on": {"a100": 2}}), "shapes[0].each.tpu = 1"),
    "too large for a node": (statement({"each": {"gpu": 4}, "on": {"a100": 2}}), "fits no node of a100: gpu 4 of 2"),
    "too long": (statement({"each": {"gpu": 1}, "on": {"a100": 7}}), "shapes[0].on.a100 = 7"),
    "too wide": (statement({"each": {"cpu": 1}, "tasks": 5, "on": {"a100": 2}}), "shapes[0].tasks = 5"),
    "a field that is none": (statement(WIDE, hidden=True), "hidden: unknown key"),
    "speed of another kind": (statement({**AT_SPEED, "speed": {"v100": [[]]}}), "shapes[0].speed.v100"),
    "no speed": (statement({**AT_SPEED, "speed": {"a100": 1e-300}}), "shapes[0].speed.a100"),
    "endless": (statement({**AT_SPEED, "law": [[10**400, 1.0]]}), "shapes[0].law"),
    "no kind": (statement({**AT_SPEED, "on": [{"gpu": 1}]}), "shapes[0].on"),
    "no truth value": (statement(WIDE, revealed=1), "revealed = 1"),
    "too late": (statement(WIDE, arrival=0), "arrival = 0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_statement_that_does_not_fit_changes_nothing(case):
    report, words = REFUSED[case]
    market = LiveMarket(live_config(RULES))
    market.apply({"event": "owner", "owner": "ann", "role": "owner"}, 1)
    assert words in str(refused(InvalidReportError, market.quote, market.accounts.get("ann"), "ann.1", report))
    submission = {"event": "submit", "owner": "ann", "job": "ann.1", "sow": report}
    assert words in str(refused(InvalidReportError, market.apply, submission, 2))
    assert not market.jobs and not market.tally.total()


def test_the_fee_counts_devices_where_a_task_takes_several():
    config_ = live_config({**RULES, "no_show_fee": 2.0})
    two, half = (
        {"each": {"gpu": 2}, "tasks": 2, "on": {"a100": 1}},
        {"each": {"gpu": 0.5}, "tasks": 3, "on": {"a100": 1}},
    )
    none = {"each": {"cpu": 8}, "on": {"a100": 1}}
    for shapes, counted in ({(0,): 4, (1,): 3, (2,): 1, (1, 0, 2): 4}).items():
        said = statement(*((two, half, none)[i] for i in shapes))
        market = LiveMarket(config_)
        market.apply({"event": "owner", "owner": "ann", "role": "owner"}, 1)
        assert nodes_of(said, config_) == counted
        market.apply({"event": "submit", "owner": "ann", "job": "ann.1", "sow": said}, 2)
        assert fee(market.config, market.jobs["ann.1"].nodes) == 2_000_000 * counted


def test_a_duration_that_is_no_case_is_refused():
    market = LiveMarket(live_config(RULES))
    market.apply({"event": "owner", "owner": "ann", "role": "owner"}, 1)
    market.apply({"event": "submit", "owner": "ann", "job": "ann.1", "sow": statement(WIDE)}, 2)
    arrival = {"event": "arrive", "owner": "ann", "job": "ann.1", "duration": 3}
    assert "one of the first shape's on a100: 2" in str(refused(EventError, market.apply, arrival, 3))
    market.apply({**arrival, "duration": 2}, 3)  # then the market itself completes it
    market.apply({"event": "advance"}, 4)
    decisions = market.apply({"event": "advance"}, 5).decisions
    assert [(each["event"], each["completion"]) for each in decisions] == [("complete", 3)]


CONFIGURATIONS = {
    "no such mechanism": (
        {"mechanism": "bid-price", "parameters": {}},
        "mechanism = 'bid-price': expected with a cluster",
    ),
    "another capacity": ({"capacity": 7}, "capacity = 7: expected 6"),
    "no such resource": (
        {"cluster": {**CLUSTER, "groups": [{"name": "a", "kind": "a", "nodes": 1, "each": {"tpu": 1}}]}},
        "tpu = 1",
    ),
    "no groups": ({"cluster": {**CLUSTER, "groups": []}}, "cluster.groups"),
    "no parameter": ({"parameters": {"cluster": {}}}, "parameters.cluster"),
}


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_a_configuration_that_does_not_fit_is_refused(case):
    changes, words = CONFIGURATIONS[case]
    assert words in str(refused(InvalidParameterError, live_config, {**RULES, **changes}))


@pytest.mark.parametrize("name", ["cluster-bid-price", "cluster-queue"])
def test_nothing_is_booked_twice(name):
    """By books of our own: in every round no node gives more cores than it has, and no device more than its parts."""
    chosen, rows = config(name, no_show_fee=0.0), []
    decisions = play(LiveMarket(chosen), 100, 5, rows=rows)
    reports = {row.job: row.body["sow"] for row in rows if row.event == "submit"}
    ends = {each["job"]: each["completion"] for each in decisions if each["event"] == "complete"}
    ends |= {each["job"]: each["round"] for each in decisions if each["event"] == "evict"}
    used, starts = Counter(), [each for each in decisions if each["event"] == "start"]
    for each in starts:
        shape = reports[each["job"]]["shapes"][each["shape"]]
        assert sum(node["tasks"] for node in each["nodes"].values()) == shape.get("tasks", 1)
        last = min(ends.get(each["job"], 101), each["round"] + each["length"])
        for t in range(each["round"], last):
            for node, held in each["nodes"].items():
                used[t, node, "cpu"] += held["tasks"] * shape["each"].get("cpu", 0)
                taken = held["devices"]["gpu"]
                assert sum(parts for _, parts in taken) == held["tasks"] * shape["each"]["gpu"] * 1000
                for device, parts in taken:
                    used[t, node, device] += parts
    most = {"cpu": {"a": 16, "v": 8}}
    assert len(starts) > 50 and {each["kind"] for each in starts} == {"a100", "v100"}
    for (_, node, what), amount in used.items():
        assert amount <= (most["cpu"][node[0]] if what == "cpu" else 1000), (node, what, amount)
    assert max(used.values()) == 1000
    assert replayed(chosen, rows) == decisions


class OneSide:
    """A market of a cluster, and a Slurm without nodes that is configured as given."""

    def __init__(self, resources, **configuration):
        self.shown = {"cluster": {**CLUSTER, "resources": resources}, "last_event": 0}
        self.found = {"ProctrackType": "proctrack/cgroup", **configuration}

    def market(self):
        return self.shown

    def nodes(self, partition):
        return []

    def node_states(self, partition):
        return {"n1": "idle"}

    def configuration(self):
        return self.found


def test_the_bridge_to_slurm_wants_nodes_and_whole_devices_as_slurm_has_them():
    whole = {"cpu": {}, "gpu": {"device": True}}
    for resources, words in (
        (CLUSTER["resources"], "cluster.resources.cpu.parts = 1000: expected 1"),
        ({**whole, "tpu": {}}, "cluster.resources.tpu: expected of cpu, memory, gpu"),
        (whole, "group a: nodes = 2: expected as Slurm has them: 0 of this kind"),
    ):
        side = OneSide(resources)
        assert words in str(refused(InvalidParameterError, SlurmBridge(side, side).check_market))


CONSTRAINED = {
    "SelectType": "select/cons_tres", "TaskPlugin": "task/cgroup,task/affinity", "ConstrainCores": "yes",
    "ConstrainDevices": "yes", "ConstrainRAMSpace": "yes", "SelectTypeParameters": "CR_CORE_MEMORY",
}  # fmt: skip


@pytest.mark.parametrize("lacks", [*CONSTRAINED, None])
def test_where_a_cluster_is_sold_slurm_has_to_hold_jobs_to_what_they_booked(lacks):
    side = OneSide({"cpu": {}, "memory": {}}, **{key: said for key, said in CONSTRAINED.items() if key != lacks})
    bridge = SlurmBridge(side, side)
    bridge._cluster = side.shown["cluster"]
    if lacks is None:
        bridge.check_cluster()
    else:
        assert f"{lacks} = 'none'" in str(refused(InvalidParameterError, bridge.check_cluster))


def test_the_page_on_clusters_shows_a_market_that_takes_its_statement():
    page = (Path(__file__).parents[2] / "docs/resources.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", page[page.index("## Live") :], re.M | re.S)
    config_, report = (parse_yaml(block, "docs/resources.md") for block in blocks)
    market = LiveMarket(live_config(config_))
    market.apply({"event": "owner", "owner": "ann", "role": "owner"}, 1)
    clock = {"now": "2026-11-22T12:00:30+00:00", "round_ends": "2026-11-22T12:10:00+00:00", "round_seconds": 600.0}
    offer = market.quote(market.accounts.get("ann"), "ann.1", in_rounds(report, {"round": 1, "clock": clock}))
    assert offer.plan.starts == ((1, 12, None),)


def test_durations_of_shapes_may_be_times():
    clock = {"now": "2026-11-22T12:00:30+00:00", "round_ends": "2026-11-22T12:01:00+00:00", "round_seconds": 60.0}
    said = statement({"each": {"gpu": 1}, "on": {"a100": "90 s", "v100": ["1 min", 5]}}, arrival="in 2 h")
    said["shapes"].append({"each": {"gpu": 1}, "on": ["a100"], "law": [["3 min", 0.5], [9, 0.5]]})
    found = in_rounds(said, {"round": 7, "clock": clock})
    assert found["arrival"] == 127 and found["shapes"][0]["on"] == {"a100": 2, "v100": [1, 5]}
    assert found["shapes"][1]["law"] == [[3, 0.5], [9, 0.5]]
