"""The replay driver: what a faulty line may not do, who completes whom, and when rounds are cleared."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from marketsched.config.sow_codec import sow_from_json, sow_to_json, value_to_json
from marketsched.mechanisms import (
    DeadlineValue,
    InvalidParameterError,
    InvalidReportError,
    LinearValue,
    Requirement,
    StatementOfWork,
    TableValue,
)
from marketsched.play.replaying import replay

CONFIG = {
    "mechanism": "posted-price",
    "capacity": 2,
    "max_concurrency": 2,
    "max_duration": 3,
    "max_value": 8,
    "max_delay": 12,
    "horizon": 9,
    "threshold": 1.0,
    "pricing": {"kind": "posted", "prices": [0.5]},
    "oracle": {"kind": "exact"},
}

SIZES = {
    key: CONFIG[key] for key in ("capacity", "max_concurrency", "max_duration", "max_value", "max_delay", "horizon")
}


def sow(*rows, nodes=1, value=8.0, deadline=9):
    requirements = [dict(zip(("arrival", "duration", "probability", "signal"), row, strict=False)) for row in rows]
    return {
        "concurrency": nodes,
        "value": {"kind": "deadline", "value": value, "deadline": deadline},
        "requirements": requirements,
    }


def submit(t, job, report):
    return {"round": t, "event": "submit", "job": job, "sow": report}


def arrive(t, job, **more):
    return {"round": t, "event": "arrive", "job": job, **more}


def complete(t, job):
    return {"round": t, "event": "complete", "job": job}


def end(t):
    return {"round": t, "event": "end"}


def story(events, config=CONFIG, **options):
    """Return the decisions in short: (round, event, job)."""
    return [(d["round"], d["event"], d.get("job")) for d in replay(config, events, **options)]


LOG = [
    submit(1, "A", sow((2, 2, 1.0))),
    submit(2, "B", sow((2, 1, 0.5), (3, 1, 0.5))),
    arrive(2, "A", duration=2),
    arrive(3, "B", signal=1),
    complete(3, "B"),
    submit(5, "C", sow((5, 3, 1.0, None))),
    arrive(5, "C"),
    complete(6, "C"),
    end(9),
]
STORY = [
    (1, "plan", "A"),
    (2, "plan", "B"),
    (2, "start", "A"),
    (3, "start", "B"),
    (3, "complete", "A"),
    (3, "complete", "B"),
    (5, "plan", "C"),
    (5, "start", "C"),
    (6, "complete", "C"),
]


def test_a_log_read_in_its_four_forms(tmp_path):
    text = "".join(json.dumps(event) + "\n" for event in LOG)
    path, config = tmp_path / "events.jsonl", tmp_path / "config.yaml"
    path.write_text(text)
    config.write_text(yaml.safe_dump(CONFIG))
    assert story(LOG) == STORY
    assert story(text.splitlines()) == STORY
    assert story(text.encode().splitlines()) == STORY
    assert story(path, config) == story(str(path), str(config)) == STORY


def test_payments_are_for_the_rounds_used():
    paid = {d["job"]: (d["completion"], d["payment"]) for d in replay(CONFIG, LOG) if d["event"] == "complete"}
    assert paid == {"A": (4, 1.0), "B": (4, 0.5), "C": (7, 1.0)}


ROW = (9, 1, 1.0)
FAULTY = {
    "not JSON": '{"round": 1, "event": "sub',
    "empty object": "{}",
    "not an object": "[1, 2]",
    "NaN": '{"round": NaN, "event": "end"}',
    "twice the same field": '{"round": 1, "round": 2, "event": "end"}',
    "not UTF-8": b'{"round": 1, "event": "\xff"}',
    "too deep": "[" * 100_000,
    "number of 5000 digits": '{"round": ' + "9" * 5000 + "}",
    "round without event": '{"round": 1}',
    "round as text": {"round": "1", "event": "end"},
    "half a round": {"round": 1.5, "event": "end"},
    "round true": {"round": True, "event": "end"},
    "round 0": end(0),
    "round beyond the horizon": end(10),
    "huge round": {"round": 10**400, "event": "end"},
    "unknown event": {"round": 9, "event": "pause"},
    "no job": {"round": 9, "event": "arrive"},
    "job is a number": arrive(9, 7),
    "unknown arrives": arrive(9, "nobody", duration=1),
    "unknown completes": complete(9, "nobody"),
    "no sow": {"round": 9, "event": "submit", "job": "X"},
    "sow is a list": submit(9, "X", [1]),
    "no value": submit(9, "X", {"concurrency": 1, "requirements": [{"arrival": 9, "duration": 1, "probability": 1}]}),
    "unknown field in sow": submit(9, "X", sow(ROW) | {"owner": "me"}),
    "misspelt signal": submit(9, "X", sow(ROW) | {"requirements": [sow(ROW)["requirements"][0] | {"signl": 1}]}),
    "no requirements": submit(9, "X", sow()),
    "requirements is text": submit(9, "X", sow(ROW) | {"requirements": "none"}),
    "no probability": submit(9, "X", sow((9, 1))),
    "probability -0.1": submit(9, "X", sow((9, 1, -0.1))),
    "probability as text": submit(9, "X", sow((9, 1, "1"))),
    "mass above 1": submit(9, "X", sow((9, 1, 0.6), (9, 2, 0.6))),
    "duration 0": submit(9, "X", sow((9, 0, 1.0))),
    "duration above max_duration": submit(9, "X", sow((9, 4, 1.0))),
    "duration true": submit(9, "X", sow((9, True, 1.0))),
    "arrival before birth": submit(9, "X", sow((8, 1, 1.0))),
    "arrival in a million years": submit(9, "X", sow((10**12, 1, 1.0))),
    "concurrency 0": submit(9, "X", sow(ROW, nodes=0)),
    "concurrency above max_concurrency": submit(9, "X", sow(ROW, nodes=3)),
    "value above max_value": submit(9, "X", sow(ROW, value=8.5)),
    "negative value": submit(9, "X", sow(ROW, value=-1.0)),
    "unknown kind of value": submit(9, "X", sow(ROW) | {"value": {"kind": "cubic"}}),
    "value without kind": submit(9, "X", sow(ROW) | {"value": {"value": 1.0, "deadline": 3}}),
    "increasing values": submit(9, "X", sow(ROW) | {"value": {"kind": "table", "values": {"4": 1, "5": 2}}}),
    "one time twice": submit(9, "X", sow(ROW) | {"value": {"kind": "table", "values": {"4": 1, "04": 1}}}),
    "time is no number": submit(9, "X", sow(ROW) | {"value": {"kind": "table", "values": {"soon": 1}}}),
    "no times": submit(9, "X", sow(ROW) | {"value": {"kind": "table", "values": {}}}),
    "signal is a list": submit(9, "X", sow((9, 1, 1.0, [1]))),
}


@pytest.mark.slow_after(22)
@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_line_changes_nothing_wherever_it_stands(name):
    faulty = FAULTY[name]
    known = faulty if isinstance(faulty, dict) else {"round": 1} if name == "round without event" else {}
    shown = known.get("round") if type(known.get("round")) in (int, float) else None
    for place in range(len(LOG) + 1):
        told = list(replay(CONFIG, [*LOG[:place], faulty, *LOG[place:]]))
        errors = [d for d in told if d["event"] == "error"]
        assert [(d["round"], d["line"]) for d in errors] == [(shown, place + 1)]
        assert set(errors[0]) == {"round", "event", "line", "message"}
        assert errors[0]["message"] and "\n" not in errors[0]["message"] and len(errors[0]["message"]) < 300
        assert [(d["round"], d["event"], d.get("job")) for d in told if d["event"] != "error"] == STORY


@pytest.mark.parametrize(
    ("place", "faulty"),
    [
        (2, end(1)),  # the round goes back
        (3, submit(2, "X", sow((2, 1, 1.0)))),  # after an arrive of the same round
        (5, arrive(3, "A", duration=1)),  # round 3 is cleared; and A has arrived
        (6, submit(5, "A", sow((5, 1, 1.0)))),  # the name was used
        (3, arrive(2, "A", duration=1)),  # a second arrive
        (3, complete(2, "A")),  # it was given a duration
        (3, complete(2, "B")),  # it has not arrived
        (5, complete(3, "A")),  # has just completed
        (6, complete(5, "B")),  # completed long ago
        (1, arrive(1, "A")),  # neither signal nor duration
        (1, arrive(1, "A", duration=0)),
        (1, arrive(1, "A", signal=[2], duration=2)),
        (7, complete(8, "C")),  # it will have been evicted: max_duration is 3
    ],
)
def test_a_line_at_fault_where_it_stands(place, faulty):
    told = story([*LOG[:place], faulty, *LOG[place:]])
    assert [x for x in told if x[1] != "error"] == STORY
    assert [x for x in told if x[1] == "error"] == [(faulty["round"], "error", None)]


CROWD = [
    submit(1, "A", sow((1, 3, 1.0), nodes=2)),
    submit(2, "B", sow((3, 2, 1.0))),  # both want round 3; B is the later one
    arrive(3, "B", signal=2),
]


def test_completing_a_job_that_is_removed_in_that_very_round_changes_nothing():
    """Only clearing round 3 shows that B does not run; and round 3 must still be open afterwards."""
    start = [*CROWD[:1], arrive(1, "A", signal=3), *CROWD[1:]]
    told = story([*start, complete(3, "B"), arrive(3, "B", signal=2), complete(3, "A"), end(9)])
    assert told == [
        (1, "plan", "A"),
        (1, "start", "A"),
        (2, "plan", "B"),
        (3, "error", None),
        (3, "error", None),  # a second arrive: the round is open, the arrival was taken
        (3, "cancel", "B"),
        (3, "complete", "A"),
    ]


def test_an_arrival_of_a_cancelled_job_is_ignored_once():
    crowd = [
        submit(1, "A", sow((2, 2, 1.0), nodes=2)),
        submit(1, "B", sow((2, 2, 1.0), nodes=2)),
        submit(1, "C", sow((3, 1, 1.0))),
        arrive(2, "A", duration=2),
        arrive(2, "B", duration=2),
        arrive(3, "C", duration=1),
        arrive(3, "C", duration=1),
        end(9),
    ]
    assert story(crowd)[3:] == [
        (2, "cancel", "C"),
        (2, "cancel", "B"),
        (2, "start", "A"),
        (3, "error", None),
        (3, "complete", "A"),
    ]


def test_a_job_that_outlives_max_duration_is_evicted_and_pays_nothing():
    log = [submit(1, "A", sow((1, 1, 1.0, None))), arrive(1, "A"), end(6)]
    assert story(log) == [(1, "plan", "A"), (1, "start", "A"), (4, "evict", "A")]
    assert story([*log[:1], arrive(1, "A", duration=5), end(6)])[1:] == [(1, "start", "A"), (4, "evict", "A")]
    assert story([*log[:2], complete(3, "A"), end(6)])[-1] == (3, "complete", "A")
    assert story([*log[:2], complete(4, "A"), end(6)])[1:] == [(4, "error", None), (1, "start", "A"), (4, "evict", "A")]


def test_after_the_horizon_everybody_goes():
    log = [
        submit(7, "A", sow((9, 1, 1.0), deadline=12)),
        submit(8, "B", sow((9, 1, 0.5, None), deadline=12)),
        submit(8, "C", sow((8, 1, 0.5), deadline=12)),
        arrive(9, "A", duration=1),
        arrive(9, "B"),
    ]
    plans = [(7, "plan", "A"), (8, "plan", "B"), (8, "plan", "C")]
    last = [(9, "start", "A"), (9, "start", "B"), (9, "complete", "A"), (9, "cancel", "C"), (9, "evict", "B")]
    assert story([*log, end(9)]) == plans + last
    assert story(log) == plans + last  # without end the last round mentioned is cleared, here the horizon
    # A completion of the last round comes first, and then B is not among those that go.
    external = [*last[:3], (9, "complete", "B"), (9, "cancel", "C")]
    assert story([*log, complete(9, "B")]) == plans + external
    # Before the horizon nobody goes.
    assert story([*log[:3], end(8)]) == plans
    # end at the horizon is answered when it is read, not at the end of the log
    decisions = replay(CONFIG, iter([*log, end(9), "garbage"]))
    assert [d["event"] for d in decisions][-2:] == ["evict", "error"]


def test_rounds_without_events_are_cleared():
    log = [submit(1, "A", sow((1, 2, 1.0))), arrive(1, "A", duration=2), end(4), submit(8, "B", sow((8, 1, 1.0)))]
    assert story(log)[1:] == [(1, "start", "A"), (2, "complete", "A"), (8, "plan", "B")]
    assert story(log[:2]) == [(1, "plan", "A"), (1, "start", "A")]  # round 2 was never mentioned


def test_decisions_come_as_soon_as_they_are_known():
    lines = []
    seen = []

    def live():
        for event in LOG:
            lines.append(event)
            yield event

    for decision in replay(CONFIG, live()):
        seen.append((len(lines), decision["event"], decision["job"]))
    assert seen[:3] == [(1, "plan", "A"), (2, "plan", "B"), (4, "start", "A")]
    assert (5, "complete", "B") in seen and (8, "complete", "C") in seen


def test_strict_stops_at_the_first_fault():
    assert story([LOG[0], "garbage", *LOG[1:]], strict=True) == [(1, "plan", "A"), (None, "error", None)]


def test_blank_lines_count_but_say_nothing():
    told = list(replay(CONFIG, ["\n", json.dumps(LOG[0]), "  ", "{", ""]))
    assert [d.get("line") for d in told] == [None, 4]


def test_a_missing_key_is_named():
    with pytest.raises(InvalidParameterError, match=r"^config: horizon is missing$"):
        replay({key: value for key, value in CONFIG.items() if key != "horizon"}, [])


def test_the_sampling_oracle_repeats_itself_by_seed():
    config = CONFIG | {"threshold": 0.0, "oracle": {"kind": "monte-carlo", "samples": 64}}
    log = [
        submit(1, name, sow((2, 2, 0.4), (3, 2, 0.3), value=v, deadline=5))
        for name, v in (("A", 8.0), ("B", 7.0), ("C", 6.0))
    ]
    found = [list(replay(config | {"seed": seed}, log)) for seed in (1, 1, 2)]
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_parameters_reach_the_mechanism():
    """First-come at a flat price of its own parameters: 2 nodes for 2 rounds at 0.25."""
    config = SIZES | {"mechanism": "first-come", "parameters": {"price": 0.25}}
    log = [submit(1, "A", sow((1, 2, 1.0), nodes=2)), arrive(1, "A", duration=2), end(3)]
    assert list(replay(config, log))[-1]["payment"] == 1.0


def test_other_mechanisms_replay_too():
    """First come, first served plans nothing: its starts are known when they happen."""
    config = CONFIG | {"mechanism": "first-come", "capacity": 2, "threshold": 0.0}
    log = [
        submit(1, "A", sow((1, 2, 1.0), nodes=2)),
        submit(1, "B", sow((1, 2, 1.0))),
        arrive(1, "A", signal=2),
        arrive(1, "B", signal=2),
        complete(1, "B"),  # it waits for A
        complete(2, "A"),
        complete(3, "A"),  # gone
        complete(4, "B"),
        end(9),
    ]
    assert story(log, config)[2:] == [
        (1, "error", None),
        (1, "start", "A"),
        (2, "complete", "A"),
        (3, "error", None),
        (3, "start", "B"),
        (4, "complete", "B"),
    ]


@pytest.mark.parametrize("digits", [31, 400, 5_000])
def test_a_number_of_many_digits_is_one_error_line_and_the_next_line_is_answered(digits):
    report = sow((1, 2, 1.0))
    long = {**report, "value": {"kind": "table", "values": {"9" * digits: 1.0}}}
    lines = [json.dumps(submit(1, "A", long)), json.dumps(submit(1, "B", report))]
    lines.append(json.dumps(submit(1, "C", report)).replace('"duration": 2', f'"duration": {"9" * digits}'))
    assert story(lines)[:3] == [(1, "error", None), (1, "plan", "B"), (1 if digits < 4_300 else None, "error", None)]
    infinite = '{"round": 1e999, "event": "end"}'
    assert json.dumps(next(replay(CONFIG, [infinite]))["round"]) == "null"


def test_end_after_the_last_job_was_completed_by_hand():
    """A `complete` clears its round; the log may still be closed in that round, once."""
    log = [submit(1, "A", sow((1, 2, 1.0), (1, 3, 0.0))), arrive(1, "A", signal=2), complete(9, "A")]
    config = {**CONFIG, "max_duration": 9}
    short = [*log[:2], complete(2, "A")]
    assert story([*short, end(2)]) == [(1, "plan", "A"), (1, "start", "A"), (2, "complete", "A")]
    assert story([*short, end(2), end(2)])[3:] == [(2, "error", None)]
    # In the last round of all, closing the market removes who is left, once.
    last = [*log[:2], submit(2, "B", sow((2, 7, 1.0))), arrive(2, "B", signal=7, duration=9), complete(9, "A"), end(9)]
    assert story(last, config)[-2:] == [(9, "complete", "A"), (9, "evict", "B")]


amounts = st.floats(0, 100, allow_nan=False)
rounds = st.integers(1, 40)
values = st.one_of(
    st.builds(DeadlineValue, amounts, rounds),
    st.builds(LinearValue, amounts, rounds, amounts, rounds),
    st.dictionaries(rounds, amounts, min_size=1).map(
        lambda table: TableValue(dict(zip(sorted(table), sorted(table.values(), reverse=True), strict=True)))
    ),
)
signals = st.one_of(st.none(), st.integers(0, 9), st.sampled_from(["a", "b"]))
requirements = st.lists(st.tuples(rounds, rounds, st.floats(0, 0.1)), min_size=1, max_size=8)


styles = st.sampled_from(["revealed", "hidden", "signals"])


@given(
    values,
    requirements,
    st.lists(signals, min_size=8, max_size=8),
    styles,
    st.booleans(),
    st.none() | st.integers(0, 99),
    st.none() | st.integers(1, 99),
)
def test_statements_survive_json(value, rows, own, style, restarts, patience, checkpoint):
    told = {"revealed": [()] * 8, "hidden": [(None,)] * 8, "signals": [(signal,) for signal in own]}[style]
    law = [Requirement(*row, *signal) for row, signal in zip(rows, told, strict=False)]
    report = StatementOfWork(1, 3, value, law, restarts=restarts, patience=patience, checkpoint=checkpoint)
    fields = json.loads(json.dumps(sow_to_json(report), allow_nan=False))
    assert sow_from_json(1, fields) == report
    assert style == "signals" or any("signal" in row for row in fields["requirements"]) == (style == "hidden")


SAVING = {
    "concurrency": 1,
    "value": {"kind": "deadline", "value": 9.0, "deadline": 30},
    "requirements": [{"arrival": 1, "duration": 6, "probability": 1.0, "signal": None}],
}


@pytest.mark.parametrize(
    ("checkpoint", "said"),
    [
        ({"every": 2, "cost": 0.1}, r"checkpoint\.cost = 0\.1: expected 0, or nothing: durations"),
        ({"every": 2, "cost": True}, r"checkpoint\.cost = True"),
        ({"every": 0}, r"checkpoint\.every = 0: expected a whole number"),
        ({"cost": 0}, r"checkpoint\.every is missing"),
        ({"every": 2, "after": 1}, r"checkpoint\.after: unknown key"),
        (2, r"checkpoint = 2: expected a table of keys"),
    ],
)
def test_a_checkpoint_that_is_no_checkpoint_is_refused(checkpoint, said):
    with pytest.raises(InvalidReportError, match=said):
        sow_from_json(1, SAVING | {"checkpoint": checkpoint})


def test_a_checkpoint_without_a_cost_is_read():
    for said in ({"every": 2}, {"every": 2, "cost": 0}):
        assert sow_from_json(1, SAVING | {"checkpoint": said}).checkpoint == 2
    assert sow_from_json(1, SAVING | {"checkpoint": None}).checkpoint is None


def test_a_replayed_run_that_is_taken_back_keeps_its_saved_work():
    """Of six rounds four are saved when a job that is in a hurry takes the node; two are left when it is free again."""
    config = {
        "mechanism": "two-offers", "capacity": 1, "max_concurrency": 1, "max_duration": 6, "max_value": 99.0,
        "max_delay": 40, "horizon": 40, "parameters": {"counts_saved": True},
    }  # fmt: skip
    hurry = {
        "concurrency": 1,
        "value": {"kind": "deadline", "value": 90.0, "deadline": 8},
        "requirements": [{"arrival": 5, "duration": 2, "probability": 1.0, "signal": None}],
    }
    ends = {}
    for every in (None, 2):
        sow = SAVING if every is None else SAVING | {"checkpoint": {"every": every}}
        log = [
            {"round": 1, "event": "submit", "job": "A", "sow": sow},
            {"round": 1, "event": "arrive", "job": "A", "duration": 6},
            {"round": 5, "event": "submit", "job": "B", "sow": hurry},
            {"round": 5, "event": "arrive", "job": "B", "duration": 2},
            {"round": 30, "event": "end"},
        ]
        decided = list(replay(config, [json.dumps(line) for line in log]))
        told = [(each["event"], each["round"]) for each in decided if each["job"] == "A" and each["event"] != "plan"]
        ends[every] = told
    assert ends == {
        None: [("start", 1), ("complete", 6)],
        2: [("start", 1), ("requeue", 5), ("start", 7), ("complete", 8)],
    }


def test_a_curve_of_another_kind_becomes_a_table():
    class Stairs:
        highest, last = 3.0, 6

        def __call__(self, completion):
            return self.table(completion, 1)[0]

        def table(self, first, count):
            import numpy as np

            times = np.arange(first, first + count)
            return np.where(times <= 3, 3.0, np.where(times <= 6, 1.0, 0.0))

    assert value_to_json(Stairs())["values"] == {str(t): 3.0 if t <= 3 else 1.0 for t in range(7)}


def test_a_fault_deep_inside_a_report_is_placed():
    fields = sow((2, 1, 0.5), (3, 0, 0.5))
    with pytest.raises(
        InvalidReportError, match=r"^requirements\[1\]\.duration = 0: expected a whole number >= 1|in \[1"
    ):
        sow_from_json(2, fields)
