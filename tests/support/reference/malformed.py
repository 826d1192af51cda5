"""Wrong lines for the log of a small market, and right ones at odd places."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from reference.replay import replay
from reference.sources import Source, pick

Event = dict[str, Any]


def spoil(source: Source, lines: Sequence[str], config: dict[str, Any]) -> list[str]:
    """Insert one to four lines here and there."""
    lines = list(lines)
    for _ in range(source.integer(1, 4)):
        place = source.integer(0, len(lines) - 1)
        what = source.integer(0, 5)
        if what == 0:
            place, line = about_a_running_job(source, lines, config, place)
        elif what == 1:
            place, line = submit_after_arrive(source, lines, place)
        else:
            line = pick(source, wrong_lines(source, lines, config, place))
        lines.insert(place, line)
    return lines


def event_of(line: str) -> Event:
    """Return the event of a line, or nothing."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def round_of(line: str) -> int:
    """Return the round of a line, or 1."""
    t = event_of(line).get("round")
    return t if isinstance(t, int) else 1


def good_sow(t: int) -> Event:
    """Return a statement of work that can be submitted in round ``t``."""
    return {
        "concurrency": 1,
        "value": {"kind": "deadline", "value": 2.0, "deadline": t + 3},
        "requirements": [{"arrival": t, "duration": 1, "probability": 1.0}],
    }


def wrong_sow(source: Source, t: int, config: dict[str, Any]) -> Event:
    """Return a statement of work with one fault."""
    sow = good_sow(t)
    row = sow["requirements"][0]
    linear = {"kind": "linear", "value": 2.0, "from": t + 1, "slope": 0.5, "deadline": t + 3}
    fault: Event = pick(
        source,
        [
            {"concurrency": 0},
            {"concurrency": config["max_concurrency"] + 1},
            {"concurrency": "two"},
            {"requirements": []},
            {"requirements": [row | {"duration": 0}]},
            {"requirements": [row | {"duration": config["max_duration"] + 1}]},
            {"requirements": [row | {"arrival": t - 1}]},
            {"requirements": [row | {"probability": -0.25}]},
            {"requirements": [row | {"probability": float("nan")}]},
            {"requirements": [row, row | {"arrival": t + 1, "probability": 0.01}]},
            {"requirements": [{"arrival": t, "probability": 1.0}]},
            {"value": {"kind": "deadline", "value": config["max_value"] + 0.5, "deadline": t + 3}},
            {"value": {"kind": "deadline", "value": -1.0, "deadline": t + 3}},
            {"value": {"kind": "deadline", "value": 2.0}},
            {"value": {"kind": "table", "values": {str(t + 2): 2.0, str(t + 3): 3.0}}},
            {"value": {"kind": "cubic", "value": 2.0, "deadline": t + 3}},
            {"value": linear | {"slope": -0.5}},
            {"value": {k: v for k, v in linear.items() if k != "from"}},
        ],
    )
    return sow | fault


def wrong_lines(source: Source, lines: Sequence[str], config: dict[str, Any], place: int) -> list[str]:
    """Return lines that are wrong (the last three: perhaps) before line ``place``."""
    t, here = round_of(lines[place]), lines[place]
    before = [event_of(line) for line in lines[:place]]
    known = [e["job"] for e in before if e.get("event") == "submit" and "sow" in e]
    arrived = [e["job"] for e in before if e.get("event") == "arrive" and e.get("job") in known]
    name = pick(source, known) if known else "nobody"
    events: list[Any] = [
        [t, "submit"],
        {"event": "end"},
        {"round": t, "event": "stop"},
        {"round": t, "event": "arrive"},
        {"round": str(t), "event": "end"},
        {"round": t - 1, "event": "arrive", "job": "nobody", "signal": 1},
        {"round": config["horizon"] + 1, "event": "end"},
        {"round": t, "event": "arrive", "job": "nobody", "signal": 1, "duration": 1},
        {"round": t, "event": "complete", "job": "nobody"},
        {"round": t, "event": "submit", "job": "bad", "sow": wrong_sow(source, t, config)},
        {"round": t + 1, "event": "submit", "job": "bad", "sow": wrong_sow(source, t + 1, config)},
        {"round": t, "event": "submit", "job": "bad"},
        {"round": t, "event": "submit", "job": name if known else "bad", "sow": good_sow(t + 1)},
        {"round": t, "event": "arrive", "job": pick(source, arrived) if arrived else "nobody", "signal": 1},
        {"round": t, "event": "submit", "job": f"extra{place}", "sow": good_sow(t)},
        {"round": max(1, t - 1), "event": "end"},
        {"round": t, "event": "complete", "job": name},
    ]
    return [here[: source.integer(1, max(1, len(here) - 1))], *map(json.dumps, events)]


def submit_after_arrive(source: Source, lines: Sequence[str], place: int) -> tuple[int, str]:
    """Return where, and a line: a good report right after an ``arrive`` of its round."""
    arrives = [i for i, line in enumerate(lines) if event_of(line).get("event") == "arrive"]
    if not arrives:
        return place, "{"
    i = pick(source, arrives)
    t = max(1, round_of(lines[i]))
    return i + 1, json.dumps({"round": t, "event": "submit", "job": f"extra{i}", "sow": good_sow(t)})


def about_a_running_job(source: Source, lines: Sequence[str], config: dict[str, Any], place: int) -> tuple[int, str]:
    """Return where, and a line: ``complete`` of a job in one of its first rounds."""
    starts = [d for d in replay(config, lines) if d["event"] == "start"]
    if not starts:
        return place, "{"
    start = pick(source, starts)
    t = min(start["round"] + source.integer(0, 2), config["horizon"])
    later = [i for i, line in enumerate(lines) if round_of(line) > t]
    return (min(later) if later else len(lines) - 1), json.dumps({"round": t, "event": "complete", "job": start["job"]})
