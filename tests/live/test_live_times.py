"""Times as people say them become the rounds that a clock says."""

from datetime import UTC, datetime, timedelta

import pytest

from live_tools import refused
from marketsched.live.clock import Clock
from marketsched.live.configuration import live_config
from marketsched.live.times import in_rounds
from marketsched.mechanisms.errors import InvalidReportError

NOW = datetime(2026, 11, 22, 12, 0, 30, tzinfo=UTC)
RULES = {"capacity": 1, "max_concurrency": 1, "max_duration": 9, "max_value": 9, "max_delay": 99}
WALL = {"kind": "wall", "round_seconds": 90, "first_round": "2026-11-22T06:00:00Z"}


def market(clock=WALL, now=NOW):
    """Return what a market with this clock says of itself, in the round that is open at a moment."""
    found = Clock(live_config({**RULES, "clock": clock}), "2026-11-22T06:00:00Z", system=lambda: now)
    round_ = 1
    while found.end_of(round_) is not None and found.end_of(round_) <= now:
        round_ += 1
    end = found.end_of(round_)
    said = {"now": now.isoformat(), "round_ends": None if end is None else end.isoformat()}
    return {"round": round_, "clock": {**said, "round_seconds": found.round_seconds}}, found


def said(arrival="now", duration=1, deadline=99):
    value = {"kind": "linear", "value": 2.0, "from": arrival, "slope": 1.0, "deadline": deadline}
    rows = [{"arrival": arrival, "duration": duration, "probability": 1.0}]
    return {"concurrency": 1, "value": value, "requirements": rows}


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("in 2 h", NOW + timedelta(hours=2)),
        ("in 45 s", NOW + timedelta(seconds=45)),
        ("in 1.5 d", NOW + timedelta(days=1.5)),
        ("2026-11-22T18:00:00Z", datetime(2026, 11, 22, 18, tzinfo=UTC)),
        ("by 2026-11-22T18:00:00+02:00", datetime(2026, 11, 22, 16, tzinfo=UTC)),
        ("2026-11-22T05:00:00Z", datetime(2026, 11, 22, 5, tzinfo=UTC)),
    ],
)
def test_a_moment_is_the_round_that_it_lies_in(text, moment):
    answer, clock = market()
    found = in_rounds(said(text, deadline=text), answer)
    round_ = found["requirements"][0]["arrival"]
    assert clock.end_of(round_ - 1) <= moment < clock.end_of(round_)
    assert found["value"]["from"] == found["value"]["deadline"] == round_


def test_an_hour_is_the_next_one_here():
    answer, clock = market()
    here = NOW.astimezone()
    for minutes in (-30, 30):
        text = (here + timedelta(minutes=minutes)).strftime("%H:%M")
        round_ = in_rounds(said(f"by {text}"), answer)["requirements"][0]["arrival"]
        begins = clock.end_of(round_ - 1) - NOW
        assert timedelta(0) < begins < timedelta(days=1) and (begins > timedelta(hours=1)) == (minutes < 0)


def test_rounds_and_durations():
    answer, _ = market()
    found = in_rounds(said("in 3 rounds", "2 min"), answer)["requirements"][0]
    assert (found["arrival"], found["duration"]) == (answer["round"] + 3, 2)
    whole = said(5, 2)
    assert in_rounds(whole, answer) == whole and in_rounds({"value": 3, "requirements": 4}, answer)["value"] == 3


def test_rounds_that_end_by_request_have_no_times():
    answer, _ = market({"kind": "manual"})
    assert in_rounds(said("now"), answer)["requirements"][0]["arrival"] == 1
    for bad in (said("in 2 h"), said("18:00"), said("now", "5 min")):
        assert "end by request" in str(refused(InvalidReportError, in_rounds, bad, answer))


@pytest.mark.parametrize("text", ["soon", "25:00", "in -2 h", "2 h", "in 2 weeks", "", "0001-01-01T00:00:00+14:00"])
def test_what_is_no_time_is_refused_with_its_place(text):
    error = refused(InvalidReportError, in_rounds, said(text), market()[0])
    assert error.place == "value.from" and "in 2 h" in error.legal
