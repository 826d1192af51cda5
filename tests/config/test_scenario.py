"""Scenarios: what may be written, what is built from it, and what a run of it says."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched import Scenario, run
from marketsched.agents import Truthful
from marketsched.config.scenario_file import built_in_text, scenario_names, with_changes
from marketsched.config.strict_yaml import dump_yaml, parse_yaml
from marketsched.mechanisms import InvalidParameterError, MissingDataError, TableValue, UnknownNameError
from refusals import refused
from tiny_scenarios import TINY, setup, tiny

# -- reading and writing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("-3", -3),
        ("010", 10),
        ("true", True),
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("2011-05-01", "2011-05-01"),
        ("'1e3'", "1e3"),
        ("~", None),
        ("", None),
        (".inf", math.inf),
    ],
)
def test_yaml_means_what_it_looks_like(text, value):
    found = parse_yaml(f"key: {text}", "x")["key"]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: {c: 1, c: 2}", r"^x: line 2, column 11: the key 'c' twice: expected a YAML document$"),
        ("a:\n- name: A\n  birth 1\n  b: 3", r"^x: line 3, column 3: could not find expected ':'"),
        ("a: [1, 2", r"^x: line \d, column \d: .*expected a YAML document$"),
        ("a: !!python/object/apply:os.getpid []", r"^x: line 1, column 4: could not determine a constructor"),
        ("a: *b", r"undefined alias"),
        ("? [1]\n: 2", r"a key must be a plain word"),
    ],
)
def test_broken_yaml_gets_one_line(text, message):
    with pytest.raises(InvalidParameterError, match=message) as caught:
        parse_yaml(text, "x")
    assert "\n" not in str(caught.value)


def test_merged_keys_may_be_overwritten():
    assert parse_yaml("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}", "x")["b"] == {"x": 1, "y": 3}


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12),
    st.sampled_from(
        ["1e3", "no", "010", "0o7", ".5", "12:30", "<<", "=", "null", "1_0", "-", ".inf", "2001-01-01", "y"]
    ),
)


@given(
    st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text("abcxyz019.e-", max_size=5), inner, max_size=4)
        ),
    )
)
def test_what_is_dumped_reads_back_unchanged(data):
    assert parse_yaml(dump_yaml(data), "x") == data


MARKETS = tuple(name for name in scenario_names() if not name.startswith(("cluster-", "esdp-", "opm-")))


@pytest.mark.parametrize("name", MARKETS)
def test_a_built_in_scenario_round_trips(name):
    scenario = Scenario.load(name)
    assert scenario.name == name and scenario.description and scenario.expected
    assert built_in_text(name).startswith("#")
    assert Scenario.from_dict(parse_yaml(scenario.to_yaml(), "x")) == scenario


def test_the_schema_takes_the_built_in_scenarios_and_no_slip():
    jsonschema = pytest.importorskip("jsonschema")
    from marketsched.config.json_schema import scenario_schema

    schema = scenario_schema()
    legal = jsonschema.Draft202012Validator(schema)
    for name in scenario_names():
        assert legal.is_valid(json.loads(json.dumps(parse_yaml(built_in_text(name), name), default=str))), name
    workload = {"kind": "synthetic-pipelines", "recurring_jobs": 4}
    for slip in ({"mechanism": {"epsilonn": 1}}, {"workload": {**workload, "recurring_jobs": "four"}}, {"owner": {}}):
        assert legal.is_valid({"name": "x", "workload": workload})
        assert not legal.is_valid({"name": "x", "workload": workload, **slip}), slip


def test_a_resolved_scenario_keeps_what_was_left_open():
    scenario = Scenario.from_dict(TINY)
    again = Scenario.from_dict(parse_yaml(scenario.to_yaml(), "x"))
    assert again == scenario
    jobs = again.to_dict()["workload"]["jobs"]
    assert "arrival" not in jobs[1] and jobs[2]["arrival"] is None
    assert again.to_dict()["mechanism"]["epsilon"] == 0.0  # defaults are written out


def test_a_scenario_file(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(dump_yaml(TINY))
    assert Scenario.load(path) == Scenario.load(str(path)) == Scenario.from_dict(TINY)
    with pytest.raises(UnknownNameError, match=r"'nowhere.yaml': no such file, and the built-in ones are cluster-de"):
        Scenario.load("nowhere.yaml")
    path.write_bytes(b"name: \xff\xfe")
    refused(lambda: Scenario.load(path), "tiny.yaml: byte 6 is not UTF-8", error=InvalidParameterError)


def test_changes_from_the_command_line():
    changes = ["mechanism.epsilon=1e-1", "workload.jobs.0.value.value=7", "owners.misreporting=1", "resubmit=true"]
    changed = with_changes(TINY, changes)
    assert changed["mechanism"]["epsilon"] == 0.1 and "epsilon" not in TINY["mechanism"]
    assert changed["workload"]["jobs"][0]["value"]["value"] == 7
    assert changed["owners"] == {"misreporting": 1} and changed["resubmit"] is True
    for wrong, message in {
        "epsilon": "expected key=value",
        "=3": "expected key=value",
        "name.x=3": "'x': expected no more parts here",
        "workload.jobs.3.name=x": r"'3': expected a place in 0 .. 2",
        "workload.jobs.name=x": r"'name': expected a place in 0 .. 2",
        "mechanism.epsilon=[": "expected a YAML document",
    }.items():
        with pytest.raises(InvalidParameterError, match=message):
            with_changes(TINY, [wrong])


# -- what is built ------------------------------------------------------------------------------


def test_the_jobs_of_a_list_are_as_written():
    jobs = {job.name: job for job in setup(TINY).jobs}
    assert (jobs["A"].arrival, jobs["A"].duration, jobs["A"].signal, jobs["A"].owner) == (3, 2, 2, "ann")
    assert (jobs["B"].arrival, jobs["B"].duration, jobs["B"].signal) == (2, 2, 2)  # drawn, from a certain law
    assert jobs["C"].arrival is None
    assert jobs["B"].truth.value([3, 4, 5, 6]).tolist() == [0, 8, 6.5, 0]
    hidden = tiny(workload__jobs__1__requirements=[{"arrival": 2, "duration": 2, "probability": 1, "signal": None}])
    assert setup(hidden).jobs[1].signal is None
    told = tiny(workload__jobs__0__signal="late")
    assert setup(told).jobs[0].signal == "late"


def test_open_jobs_are_drawn_from_their_law():
    """A law with 40 % at (2, 1), 30 % at (3, 2) and 30 % missing: 1,500 draws within four standard deviations."""
    rows = [{"arrival": 2, "duration": 1, "probability": 0.4}, {"arrival": 3, "duration": 2, "probability": 0.3}]
    entry = {**TINY["workload"]["jobs"][1], "requirements": rows}
    data = tiny(workload__jobs=[{**entry, "name": f"j{i}"} for i in range(1500)])
    found = [(job.arrival, job.duration if job.arrival else 0) for job in setup(data).jobs]
    for case, p in {(2, 1): 0.4, (3, 2): 0.3, (None, 0): 0.3}.items():
        assert abs(found.count(case) / 1500 - p) < 4 * math.sqrt(p * (1 - p) / 1500), case
    given_arrival = tiny(workload__jobs__0__requirements=[*rows, {"arrival": 3, "duration": 1, "probability": 0.3}])
    del given_arrival["workload"]["jobs"][0]["duration"]
    durations = [setup(given_arrival, seed).jobs[0].duration for seed in range(200)]
    assert {job.arrival for seed in range(20) for job in setup(given_arrival, seed).jobs[:1]} == {3}
    assert 60 < durations.count(1) < 140


def test_one_entry_does_not_move_the_draws_of_others():
    entry = TINY["workload"]["jobs"][0]
    loose = {key: value for key, value in entry.items() if key not in ("arrival", "duration")}
    many = [{**loose, "name": f"j{i}"} for i in range(30)]
    first, second = (
        [job.arrival for job in setup(tiny(workload__jobs=[head, *many])).jobs[1:]]
        for head in (entry, {**loose, "name": "A"})
    )
    assert first == second and len(set(first)) == 2


def test_sizes_are_those_of_the_workload_unless_said():
    mechanism = setup(TINY).mechanism
    assert (mechanism.limits.capacity, mechanism.horizon, mechanism.max_value) == (2, 12, 8.0)
    bigger = setup(tiny(mechanism__capacity=5, mechanism__horizon=20))
    assert (bigger.capacity, bigger.horizon, bigger.mechanism.limits.capacity) == (5, 20, 5)


def test_a_mechanism_that_refuses_its_rules_is_named():
    with pytest.raises(InvalidParameterError, match=r"^mechanism: .*C' > max_concurrency"):
        setup(tiny(mechanism__pricing={"kind": "exponential"}))
    with pytest.raises(InvalidParameterError, match=r"^scenario: mechanism.parameters.colour: unknown key"):
        setup(tiny(mechanism__parameters={"colour": "red"}))


def test_existing_seeds_give_what_they_gave():
    """Figures of version 0.1.0 before laws came in: workload, oracle and owners draw from the same streams."""
    data = {"name": "small", "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 30, "birth_rounds": 60}}
    data["mechanism"] = {"oracle": {"kind": "monte-carlo", "samples": 50}, "threshold": 0.05, "epsilon": -0.2}
    data["owners"] = {"misreporting": 0.5, "strategy": {"kind": "scale-value", "factor": 0.5}}
    golden = {1: (75, 70, 3070.289514091091, 210.56049431689806), 2: (71, 63, 4037.706780600604, 478.4411838525494)}
    for seed, (jobs, completed, welfare, revenue) in golden.items():
        found = run(data, seed).outcome
        assert (found["jobs"], found["completed"]) == (jobs, completed)
        assert (found["welfare"], found["revenue"]) == pytest.approx((welfare, revenue), rel=1e-12)


def test_a_share_of_the_owners_misreports():
    entry = TINY["workload"]["jobs"][0]
    jobs = [{**entry, "name": f"j{i}", "owner": f"o{i // 2}"} for i in range(20)]
    data = tiny(workload__jobs=jobs, owners={"misreporting": 0.3, "strategy": {"kind": "scale-value", "factor": 2}})
    one = setup(data)
    liars = {job.owner for job in one.jobs if not isinstance(one.strategy_of(job), Truthful)}
    assert len(liars) == 3  # of ten owners, and an owner's jobs go together
    assert one.strategy_of(next(job for job in one.jobs if job.owner in liars)).f == 2
    others = [
        {job.owner for job in s.jobs if not isinstance(s.strategy_of(job), Truthful)}
        for s in map(lambda i: setup(data, i), range(9))
    ]
    assert len({frozenset(x) for x in others}) > 1
    honest = setup(tiny(workload__jobs=jobs))
    assert honest.jobs == one.jobs  # who lies does not change what the jobs are
    assert all(isinstance(honest.strategy_of(job), Truthful) for job in honest.jobs)


def test_a_trace_workload_without_data_says_how_to_give_it(monkeypatch):
    monkeypatch.delenv("MARKETSCHED_DATA", raising=False)
    refused(lambda: run("google-recurring"), "--data DIR, or set MARKETSCHED_DATA", error=MissingDataError)


# -- what a run says ----------------------------------------------------------------------------


def test_a_run_that_can_be_counted_by_hand():
    """B (2 nodes, rounds 2-3) and A (3-4) on two nodes at price 0.5; C never arrives."""
    result = run(TINY, seed=3)
    jobs = result.jobs.set_index("name")
    assert jobs.loc["A", ["start", "completion", "value", "payment"]].tolist() == [3, 5, 6.0, 1.0]
    assert jobs.loc["C", "outcome"] == "never_arrived"
    paid = jobs["payment"].sum()
    assert result.outcome["revenue"] == pytest.approx(paid)
    assert result.outcome["welfare"] == pytest.approx(result.outcome["revenue"] + result.outcome["owners_utility"])
    # In hindsight A waits (worth 6 until time 8) for B, worth 8 at time 4: all three yardsticks know it.
    assert result.outcome["bounds"]["dual"] == pytest.approx(14.0, rel=1e-6)
    assert result.outcome["first_come"]["welfare_at_zero"] == pytest.approx(14.0)
    assert result.outcome["load"] == pytest.approx((2 * 2 + 2 * 1) / (2 * 2))


def test_equal_seeds_give_equal_runs_and_others_do_not():
    data = {"name": "small", "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 30, "birth_rounds": 60}}
    data["mechanism"] = {"oracle": {"kind": "monte-carlo", "samples": 50}, "threshold": 0.05, "epsilon": -0.2}
    one, two, other = (run(data, seed) for seed in (1, 1, 2))
    for name in ("events", "jobs", "rounds"):
        assert getattr(one, name).equals(getattr(two, name))
    assert not one.jobs.equals(other.jobs)

    def figures(result):
        return json.dumps({k: v for k, v in result.outcome.items()}, sort_keys=True)

    assert figures(one) == figures(two)
    for result in (one, other):
        found = result.outcome
        bound = found["bounds"]["dual"]
        assert 0 < found["welfare"] <= bound * (1 + 1e-9)
        assert found["first_come"]["welfare_at_zero"] <= found["first_come"]["welfare_at_best"] <= bound * (1 + 1e-9)
        assert found["share_of_best"] == pytest.approx(found["welfare"] / bound)
        assert result.meta["seed"] in (1, 2) and set(result.meta["seconds"]) == {"setup", "market", "bounds", "tables"}


def test_an_interrupted_run_raises_or_returns_what_is_finished():
    def interrupt(played, rounds, what):
        if played == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(TINY, progress=interrupt)
    result = run(TINY, progress=interrupt, keep_interrupted=True)
    assert result.outcome["complete"] is False and result.outcome["rounds"] == 5
    assert result.rounds["round"].tolist() == [1, 2, 3, 4, 5]
    assert "bounds" not in result.outcome
    assert result.events.equals(run(TINY).events.query("round <= 5"))


def test_another_mechanism_leaves_out_the_rules_that_it_does_not_take():
    content = {**TINY, "mechanism": {"name": "posted-price", "epsilon": 0.1, "max_value": 9, "eviction": "running"}}
    changed = with_changes(content, ["mechanism.name=bid-price"])
    assert changed["mechanism"] == {"name": "bid-price", "max_value": 9}
    assert Scenario.from_dict(changed).mechanism.name == "bid-price"
    asked = with_changes(content, ["mechanism.epsilon=0.2", "mechanism.name=vcg"])  # what is asked for is not dropped
    refused(lambda: Scenario.from_dict(asked), "mechanism.epsilon = 0.2: expected nothing", error=InvalidParameterError)


def test_prices_of_a_kind_that_another_mechanism_does_not_know_are_left_out():
    content = {**TINY, "mechanism": {"pricing": {"kind": "exponential", "floor": 0.1, "ceiling": 9}, "epsilon": 0.1}}
    assert with_changes(content, ["mechanism.name=stochastic"])["mechanism"] == {"name": "stochastic", "epsilon": 0.1}
    assert with_changes(content, ["mechanism.name=exponential"])["mechanism"]["pricing"]["floor"] == 0.1


def test_the_values_of_a_curve_can_stand_in_a_scenario():
    worth = TableValue({4: 8.0, 5: 6.5}).values  # nobody can change them
    scenario = Scenario.from_dict(tiny(workload__jobs__1__value={"kind": "table", "values": worth}))
    assert Scenario.from_dict(parse_yaml(scenario.to_yaml(), "text")) == scenario


def test_expected_figures_are_those_of_the_file_as_it_stands():
    """A figure of one mechanism beside what another one found would be a comparison that nobody made."""
    content = {"name": "one", "expected": {"welfare": 3.0}, "mechanism": {"epsilon": 0.1}}
    assert "expected" not in with_changes(content, ["mechanism.name=bid-price"])
    assert "expected" not in with_changes(content, ["mechanism.epsilon=0.2"])
    assert with_changes(content, ["description=mine"])["expected"] == {"welfare": 3.0}
    assert with_changes(content, ["mechanism.epsilon=0.2", "expected.welfare=4.0"])["expected"] == {"welfare": 4.0}


def test_a_value_beyond_the_longest_delay_is_said():
    notes = Scenario.from_dict(tiny(workload__jobs__0__value__deadline=1200)).workload_of(0).notes
    assert notes["warnings"] == "1 of 3 jobs have a value beyond max_delay = 9, A up to 1200: it counts up to 9 alone"
    assert "warnings" not in Scenario.from_dict(tiny()).workload_of(0).notes
