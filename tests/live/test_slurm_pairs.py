"""What a bridge decides from the two lists, without any daemon: every row of its table, and where it ends."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.live.slurm import SlurmJob
from marketsched.live.slurm_bridge import SlurmBridge
from marketsched.live.slurm_demand import NodeDemand
from marketsched.live.slurm_pairs import decide
from marketsched.live.slurm_plugin import plugin_text, write_announced
from marketsched.live.slurm_shapes import SlurmShape
from marketsched.live.slurm_sides import MarketJob, View, successor

WAITS = SlurmJob(7, "run", "ann", "market:ann.a", "PENDING", "", True, 1, 1.0, 0.0, 0.0, 0, 0, 5)
STATES = {
    "held": WAITS,
    "free": replace(WAITS, held=False),
    "depends": replace(WAITS, depends=True),
    "runs": replace(WAITS, held=False, state="RUNNING", started=2.0),
    "done": replace(WAITS, held=False, state="COMPLETED", started=2.0, ended=3.0),
    "died": replace(WAITS, held=False, state="FAILED", started=2.0, ended=3.0, exit_code=3),
    "node": replace(WAITS, held=False, state="NODE_FAIL", started=2.0, ended=3.0),
}
JOB = MarketJob("ann.a", "ann", "submitted", 1, start=4)
GONE = ("completed", "dropped", "cancelled", "evicted", "missed", "withdrawn")


def view_of(job, mates, **more):
    known = {} if job is None else {job.job: job}
    return View(known, mates, 5, 2, **{"usable": 2, **more})


def kinds(job, *mates, **more):
    return [action.kind for action in decide(view_of(job, mates, **more)).actions]


@pytest.mark.parametrize(
    ("state", "mate", "expected"),
    [
        ("submitted", "held", ["arrive"]),
        ("submitted", "free", ["hold", "arrive"]),
        ("submitted", "runs", ["stop"]),
        ("submitted", "done", []),
        ("submitted", "depends", []),
        ("arrived", "held", []),
        ("arrived", "free", ["hold"]),
        ("arrived", "runs", ["stop"]),
        ("running", "held", ["release"]),
        ("running", "free", []),
        ("running", "runs", []),
        ("running", "done", ["complete"]),
        ("running", "died", ["complete"]),
        ("running", "node", ["complete"]),
        ("dropped", "held", ["cancel"]),
        ("cancelled", "held", ["cancel"]),
        ("evicted", "runs", ["stop"]),
        ("evicted", "held", []),
        ("evicted", "free", ["hold"]),
        ("completed", "runs", ["cancel"]),
        ("missed", "held", ["cancel"]),
        ("withdrawn", "held", ["cancel"]),
        ("completed", "done", []),
    ],
)
def test_every_pair_of_states_has_its_action(state, mate, expected):
    assert kinds(replace(JOB, state=state), STATES[mate]) == expected


@pytest.mark.parametrize(
    "several",
    [
        {"partitions": ("market", "other")},
        {"parts": "an array", "leader": 7},
        {"parts": "a heterogeneous job", "leader": 6},
    ],
)
@pytest.mark.parametrize("mate", ["held", "free", "runs"])
def test_what_could_be_several_jobs_is_cancelled_by_its_leader(several, mate):
    (action,) = decide(view_of(replace(JOB, state="arrived"), [replace(STATES[mate], **several)])).actions
    assert (action.kind, action.number) == ("cancel", several.get("leader", 7))


def test_completions_say_how_it_went():
    running = replace(JOB, state="running")
    for mate, outcome, code in (("done", "done", 0), ("died", "failed", 3), ("node", "node-failed", None)):
        (action,) = decide(view_of(running, [STATES[mate]])).actions
        assert (action.outcome, action.exit_code) == (outcome, code)
    (action,) = decide(view_of(running, [])).actions
    assert (action.kind, action.outcome) == ("complete", "failed")
    moved = replace(WAITS, comment="market:ann.a.r1")
    (first, *_) = decide(view_of(running, [moved])).actions
    assert first.kind == "cancel"  # here ann.a.r1 was not announced

    def outcomes(**more):
        return {x.outcome for x in decide(view_of(running, [moved], **more)).actions if x.job == "ann.a"}

    assert outcomes() == {"failed"}  # whoever placed a job of that name: it is charged
    assert outcomes(renewed=frozenset({"ann.a.r1"})) == {"node-failed"}  # the bridge itself announced it


@pytest.mark.parametrize(("by", "found"), [("ann", set()), ("operator", {"ann.a.r1"})])
def test_a_name_alone_does_not_say_that_a_job_was_submitted_again(by, found):
    class Market:
        def job(self, name):
            return {"history": [{"by": by}]}

    bridge = object.__new__(SlurmBridge)
    bridge.market = Market()
    running, again = replace(JOB, state="running"), replace(JOB, job="ann.a.r1", state="arrived")
    known = {each.job: each for each in (running, again)}
    assert bridge._renewed(known, {"ann.a.r1"}) == found
    assert not bridge._renewed(known, {"ann.a", "ann.a.r1"}) and not bridge._renewed({"ann.a": running}, {"ann.a.r1"})


def test_who_has_no_place_is_cancelled_and_a_statement_is_announced():
    assert kinds(None, WAITS) == ["cancel"]
    for comment in ("hello", "market:", "market:../owners", "market:ann", "market:ann.a?x=1", "market:ann.a/arrival"):
        assert kinds(JOB, replace(WAITS, comment=comment)) == ["cancel"]
    assert kinds(None, replace(WAITS, comment='market:{"value": 1}')) == ["announce"]
    assert kinds(JOB, replace(WAITS, user="bob")) == ["cancel"]
    assert kinds(JOB, replace(WAITS, user="bob"), check_users=False) == ["arrive"]
    assert kinds(JOB, replace(WAITS, nodes=2)) == ["cancel"]
    assert sorted(kinds(JOB, WAITS, replace(WAITS, id=8))) == ["arrive", "cancel"]
    assert kinds(replace(JOB, state="running"), STATES["runs"], replace(WAITS, id=8)) == ["cancel"]


def test_with_fewer_nodes_starts_wait_and_the_last_submitted_goes():
    first, last = (replace(JOB, job=f"ann.{x}", state="running", order=i) for i, x in enumerate("ab"))
    mates = [replace(STATES["runs"], id=i, comment=f"market:{job.job}") for i, job in enumerate((first, last), 1)]
    view = View({job.job: job for job in (first, last)}, mates, 5, 2, 1)
    decision = decide(view)
    assert [(action.kind, action.job) for action in decision.actions] == [("again", "ann.b")]
    assert decision.removed == ("ann.b",) and decision.held == ()
    held = View(view.market, [mates[0], replace(mates[1], state="PENDING", held=True, started=0.0)], 5, 2, 1)
    assert decide(held).held == ("ann.b",) and decide(held).actions == ()
    assert [action.kind for action in decide(replace(held, round=6)).actions] == ["take_back"]
    assert [action.kind for action in decide(replace(held, usable=2)).actions] == ["release"]


def apply(action, jobs, mates):
    """Do to two toy sides what an action does to the real ones."""
    mate, job = mates.get(action.number), jobs.get(action.job)
    if action.kind == "arrive":
        jobs[action.job] = replace(job, state="arrived")
    elif action.kind in ("hold", "stop"):
        mates[mate.id] = replace(mate, state="PENDING", held=True, started=0.0)
    elif action.kind == "release":
        mates[mate.id] = replace(mate, held=False)
    elif action.kind == "cancel":
        mates[mate.id] = replace(mate, state="CANCELLED", held=False)
    elif action.kind == "complete":
        assert job.state == "running"
        jobs[action.job] = replace(job, state="completed")
    elif action.kind in ("again", "take_back"):
        new = successor(action.job)
        jobs[new] = replace(job, job=new, state="submitted", start=None)
        mates[mate.id] = replace(mate, comment=f"market:{new}", state="PENDING", held=True, started=0.0)
        jobs[action.job] = replace(job, state="completed")


@given(
    st.lists(st.sampled_from(["submitted", "arrived", "running", *GONE]), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(sorted(STATES)), st.integers(1, 2)), max_size=6),
    st.integers(0, 4),
    st.integers(4, 7),
)
def test_from_any_two_lists_it_comes_to_rest_with_nothing_on_nodes_unasked(states, drawn, usable, now):
    jobs = {f"ann.j{i}": replace(JOB, job=f"ann.j{i}", state=x, order=i) for i, x in enumerate(states)}
    mates = {
        i: replace(STATES[state], id=i, comment=f"market:ann.j{of}", nodes=nodes)
        for i, (of, state, nodes) in enumerate(drawn, 1)
    }
    for _ in range(6):
        decision = decide(View(dict(jobs), list(mates.values()), now, 4, usable))
        if not decision.actions:
            break
        for action in decision.actions:
            apply(action, jobs, mates)
    assert not decision.actions
    for mate in mates.values():
        if mate.active:
            job = jobs[mate.comment.removeprefix("market:")]
            assert job.state == "running" and job.nodes == mate.nodes
    if usable < 4:
        assert sum(mate.nodes for mate in mates.values() if mate.active) <= usable


SHAPE = SlurmShape(1, {"gpu": 2.0}, ("a100",), True)
MANY = replace(JOB, shapes=(SHAPE, replace(SHAPE, each={"gpu": 1.0}), SHAPE))
GPUS = NodeDemand(gpus={"": 2}), NodeDemand(gpus={"": 1}), NodeDemand(gpus={"": 2})
TYPES = {"a100": frozenset({"a100"})}


def ways(**states):
    """Return jobs of Slurm, in these states, for shapes of `MANY`: ``a`` is the first one."""
    return [
        replace(STATES[state], id=i + 1, comment=f"market:ann.a/{i}", demand=GPUS[i])
        for i, state in (("abc".index(name), state) for name, state in states.items())
    ]


@pytest.mark.parametrize(
    ("state", "shape", "mates", "expected"),
    [
        ("submitted", None, ways(a="held", b="held"), []),  # the third has not come yet
        ("submitted", None, ways(a="held", b="held", c="held"), [("arrive", 1)]),
        ("submitted", None, ways(a="held", b="free", c="held"), [("arrive", 1), ("hold", 2)]),
        ("submitted", None, ways(a="held", b="held", c="done"), []),
        ("arrived", None, ways(a="held", b="runs", c="held"), [("stop", 2)]),
        ("running", 1, ways(a="held", b="held", c="free"), [("cancel", 1), ("cancel", 3), ("release", 2)]),
        ("running", 1, ways(a="held", b="free", c="done"), [("cancel", 1)]),
        ("running", 1, ways(a="done", b="done", c="done"), [("complete", 2)]),
        ("running", 1, ways(a="held", c="held"), [("complete", 0), ("cancel", 1), ("cancel", 3)]),
        ("completed", 2, ways(a="held", b="runs", c="done"), [("cancel", 1), ("cancel", 2)]),
        ("missed", None, ways(a="held", b="held"), [("cancel", 1), ("cancel", 2)]),
    ],
)
def test_of_several_shapes_the_one_that_is_booked_is_let_go(state, shape, mates, expected):
    job = replace(MANY, state=state, shape=shape, places=("a-0",) if shape is not None else ())
    found = decide(view_of(job, mates, types=TYPES)).actions
    assert [(action.kind, action.number) for action in found] == expected


def test_a_run_is_its_job_with_fewer_nodes_once_one_of_them_failed():
    """Slurm lists what runs with the nodes that are left; more than were announced end it, and so does a wait."""
    two = replace(JOB, nodes=2, state="running")
    (over,) = decide(view_of(two, [STATES["node"]])).actions
    assert (over.kind, over.outcome) == ("complete", "node-failed")
    assert kinds(two, replace(STATES["runs"], state="COMPLETING")) == []
    assert "cancel" in kinds(two, replace(STATES["runs"], nodes=3))
    assert "cancel" in kinds(two, STATES["held"])


def test_what_is_no_shape_of_its_job_is_cancelled():
    (wide,) = ways(a="held")
    for mate, why in (
        (replace(wide, comment="market:ann.a/3"), "ann.a has no shape 3"),
        (replace(wide, comment="market:ann.a/1"), "shape 1: announced with 1 GPUs a node, not 2"),
        (replace(wide, nodes=2), "announced with 1 nodes, not 2"),
        (replace(wide, demand=NodeDemand(gpus={"v100": 2})), "GPUs of type v100, and may be booked on a100"),
        (replace(wide, demand=NodeDemand(gpus={"": 2}, unclear="--gpus")), "not --gpus"),
    ):
        (action,) = decide(view_of(MANY, [mate], types=TYPES)).actions
        assert action.kind == "cancel" and why in action.why
    assert kinds(JOB, replace(WAITS, comment="market:ann.a/0")) == ["cancel"]  # identical nodes
    crowded = replace(MANY, shapes=(replace(SHAPE, nodes=2, spread=False),))
    assert "per_node: 1" in decide(view_of(crowded, [wide])).actions[0].why


def test_a_start_waits_for_the_nodes_that_it_booked():
    job = replace(MANY, state="running", shape=0, places=("a-0",))
    view = replace(view_of(job, ways(a="held")), down=frozenset({"a-1"}), types=TYPES)
    assert [action.kind for action in decide(view).actions] == ["release"]
    down = replace(view, down=frozenset({"a-0"}), round=5)
    assert decide(down).held == ("ann.a",) and not decide(down).actions
    assert [action.kind for action in decide(replace(down, round=6)).actions] == ["take_back"]
    runs = replace(down, queue=ways(a="runs"))
    assert not decide(runs).actions  # Slurm ends what ran on a node that failed


@given(
    st.sampled_from(["submitted", "arrived", "running", "completed", "dropped", "missed"]),
    st.integers(0, 2),
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(sorted(STATES))), max_size=6),
)
def test_from_any_two_lists_at_most_the_shape_that_is_booked_has_nodes(state, shape, drawn):
    booked = state in ("running", "completed")
    jobs = {"ann.a": replace(MANY, state=state, shape=shape if booked else None)}
    mates = {
        i: replace(STATES[how], id=i, comment=f"market:ann.a/{of}", demand=GPUS[of])
        for i, (of, how) in enumerate(drawn, 1)
    }
    released = set()
    for _ in range(6):
        decision = decide(replace(view_of(None, list(mates.values()), types=TYPES), market=dict(jobs)))
        if not decision.actions:
            break
        for action in decision.actions:
            released |= {mates[action.number].comment} if action.kind == "release" else set()
            apply(action, jobs, mates)
    assert not decision.actions
    assert released <= {f"market:ann.a/{shape}"} and (booked or not released)
    on_nodes = [mate for mate in mates.values() if mate.active or (mate.state == "PENDING" and not mate.held)]
    assert len(on_nodes) <= 1 and all(mate.comment == f"market:ann.a/{shape}" for mate in on_nodes)
    if on_nodes:
        assert jobs["ann.a"].state == "running"


def test_the_plugin_and_its_table(tmp_path):
    text = plugin_text(tmp_path / 'a "b"', partition="m", default=True, check_users=False, operator=7)
    assert f'local ANNOUNCED = "{tmp_path}/a \\"b\\""' in text and 'local PARTITION = "m"' in text
    assert "local IS_DEFAULT = true" in text and "local CHECK_USERS = false" in text and "local OPERATOR = 7" in text
    table = tmp_path / "announced"
    write_announced(table, [JOB, replace(JOB, job="ann.b", nodes=3)])
    assert table.read_text() == "ann.a ann 1\nann.b ann 3\n" and list(tmp_path.iterdir()) == [table]
    write_announced(table, [MANY])
    assert table.read_text() == "ann.a/0 ann 1\nann.a/1 ann 1\nann.a/2 ann 1\n"
