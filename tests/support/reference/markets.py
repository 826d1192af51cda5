"""Small random markets: a configuration, what each job reports and does, and the lines of the log.

The same code serves seeded numbers (``seeded_market``) and Hypothesis (``markets``): it asks a
``Source`` for every choice. Amounts are mostly quarters and probabilities mostly sixteenths or
thousandths, so that ties, and estimates equal to the threshold, are common.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import hypothesis.strategies as st

from reference.replay import replay
from reference.sources import DrawnSource, SeededSource, Source, chance, pick

MAX_OUTCOMES = 2000  # joint outcomes of all jobs of a market: bounds the work of the enumeration


@dataclass(frozen=True)
class Kind:
    """What a test wants of the markets: which features may appear."""

    max_jobs: int = 8
    evictions: tuple[str, ...] = ("all", "running")
    pricings: tuple[str, ...] = ("exponential", "posted")
    revealed_only: bool = False  # signals are durations
    faithful: bool = False  # everything that happens is in the reported law
    fits_formula: bool = False  # C' >= c_max (1 + log2 R), default ends: Theorem 5.1 applies
    external: bool = True  # some completions come as events


@dataclass(frozen=True)
class TrueJob:
    """One job: its report as in the log, and what happens."""

    name: str
    birth: int
    sow: dict[str, Any]
    arrival: int | None = None
    signal: int | str | None = None
    write_signal: bool = True
    duration: int = 1
    external: bool = False  # its completion is not announced with the arrival


@dataclass(frozen=True)
class SmallMarket:
    """A market: ``jobs`` in order of submission, ``lines`` the log that tells it."""

    config: dict[str, Any]
    jobs: list[TrueJob]
    lines: list[str] = field(default_factory=list)


def make_config(source: Source, kind: Kind, mood: str) -> dict[str, Any]:
    """Choose the market's parameters; always C' > c_max.

    ``crowded``: everybody in a hurry and forecasts ignored, so that overloads are common. ``long``:
    running jobs of unknown duration, overbooked, and forecasts used.
    """
    c_max = pick(source, [1, 1, 2, 2, 3])
    d_max = source.integer(3 if mood == "long" else 1, 4)
    v_max = pick(source, [4.0, 10.0, 50.0])
    epsilon = 0.0 if kind.fits_formula else pick(source, [0.0, 0.0, 0.1, 0.2, -0.25, -1.0, -1.0])
    epsilon = -1.0 if mood == "long" else epsilon
    capacity = c_max + pick(source, [0, 0, 1] if mood == "long" else [0, 0, 1, 1, 2, 3])
    if kind.fits_formula:
        ratio, needed = 2 * c_max * d_max * v_max, 1
        while 2**needed < ratio:
            needed += 1
        capacity = c_max * (1 + needed)
    while (1 - epsilon) * capacity <= c_max + 0.05:
        capacity += 1
    horizon = source.integer(8, 14)
    pricing: dict[str, Any]
    if pick(source, kind.pricings) == "posted":
        n = source.integer(1, horizon)
        pricing = {"kind": "posted", "prices": [source.integer(0, 4) / 4 for _ in range(n)]}
    else:
        pricing = {"kind": "exponential"}
        if not kind.fits_formula and chance(source, 70):
            pricing |= pick(
                source,
                [
                    {"kappa": 0.5},
                    {"kappa": 0.1},
                    {"floor": 0.05},
                    {"floor": 0.01, "ceiling": 2.0},
                    {"floor": 0.01, "ceiling": 0.05},
                    {"ceiling": 0.6},
                    {"kappa": 0.5, "ceiling": 1.5},
                ],
            )
    forecasts = [0.0, 0.05, 0.25, 0.5] if mood == "long" else [0.0, 0.05, 0.5, 1.0, "auto" if epsilon >= 0 else 0.25]
    return {
        "mechanism": "posted-price",
        "capacity": capacity,
        "max_concurrency": c_max,
        "max_duration": d_max,
        "max_value": v_max,
        "max_delay": 4 if mood == "crowded" else pick(source, [6, 8, 10, 12]),
        "horizon": horizon,
        "epsilon": epsilon,
        "threshold": 1.0 if mood == "crowded" else pick(source, forecasts),
        "pricing": pricing,
        "oracle": {"kind": "exact"},
        "eviction": pick(source, kind.evictions),
        "seed": 0,
    }


def make_value(source: Source, birth: int, config: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Choose a value curve: table, deadline or linear; sometimes tiny, sometimes nothing."""
    top = int(4 * config["max_value"])
    value = source.integer(0 if chance(source, 10) else 4, top) / 4
    shape = "deadline" if kind.fits_formula else pick(source, ["table", "deadline", "linear"])
    if kind.fits_formula:
        value = max(1.0, value)
    deadline = birth + source.integer(2, 10)
    if shape == "deadline":
        return {"kind": "deadline", "value": value, "deadline": deadline}
    if shape == "linear":
        slope = pick(source, [0.0, 0.01, 0.25, 0.5, 1.0])
        return {
            "kind": "linear",
            "value": value,
            "from": birth + source.integer(0, 5),
            "slope": slope,
            "deadline": deadline,
        }
    values = {}
    for time in range(birth + 1, birth + 1 + source.integer(3, 9)):
        if not chance(source, 8):  # a gap: worth nothing at that time
            values[str(time)] = value
        value = max(0.0, value - source.integer(0, 8) / 8)
    return {"kind": "table", "values": values or {str(birth + 1): value}}


def make_law(source: Source, birth: int, config: dict[str, Any], points: int, style: str) -> list[dict[str, Any]]:
    """Choose requirements: shares of 16 or of 1000; ``style`` says what the signals are."""
    whole = pick(source, [16, 1000])
    cuts = sorted(source.integer(0, whole) for _ in range(points - 1))
    shares: list[float] = [b - a for a, b in zip([0, *cuts], [*cuts, whole], strict=True)]
    if chance(source, 35):  # missing mass
        shares = [share * source.integer(1, 9) / 10 for share in shares]
    rows = []
    for share in shares:
        d = source.integer(1, config["max_duration"])
        wait = pick(source, [0, 0, 0, 1] if style == "soon" else [0, 0, 0, 1, 1, 2, 4])
        row: dict[str, Any] = {"arrival": birth + wait, "duration": d, "probability": share / whole}
        if style in ("null", "soon"):
            row["signal"] = None
        elif style == "label":
            row["signal"] = pick(source, ["short", "long"])
        elif style == "mixed":
            row["signal"] = pick(source, [None, d, 1, "x"])
        rows.append(row)
    return rows


def make_job(
    source: Source, index: int, birth: int, config: dict[str, Any], points: int, kind: Kind, mood: str
) -> TrueJob:
    """Choose a report, and what happens to the job."""
    styles = ["left out", "left out", "null", "label", "mixed"]
    style = "left out" if kind.revealed_only else "soon" if mood == "long" else pick(source, styles)
    law = make_law(source, birth, config, points, style)
    sow = {
        "concurrency": source.integer(1, config["max_concurrency"]),
        "value": make_value(source, birth, config, kind),
        "requirements": law,
    }
    job = TrueJob(f"j{index}", birth, sow)
    possible = [row for row in law if row["probability"] > 0]
    if not possible or chance(source, 10):  # it never arrives
        certain = sum(row["probability"] for row in law) > 1 - 1e-9
        if not (kind.faithful and certain):
            return job
    row = pick(source, possible)
    arrival, duration, signal = row["arrival"], row["duration"], row.get("signal", row["duration"])
    if not kind.faithful and chance(source, 12):  # outside the reported support, perhaps
        arrival, signal = birth + source.integer(0, 6), pick(source, [signal, 1, None, "other"])
    if not kind.faithful and chance(source, 15):
        duration = source.integer(1, config["max_duration"] + 2)
    if arrival > config["horizon"]:
        return job
    derived = duration if "signal" not in row else None
    write = signal != derived or chance(source, 50)
    external = kind.external and chance(source, 25)
    if external and "signal" not in row:
        write = True  # nothing to derive the signal from
    return replace(job, arrival=arrival, signal=signal, write_signal=write, duration=duration, external=external)


def make_market(source: Source, kind: Kind | None = None) -> SmallMarket:
    """Choose a whole market."""
    kind = kind or Kind()
    moods = ["mixed", "mixed", "crowded"] + ["long"] * (not kind.revealed_only)
    mood = pick(source, moods)
    config = make_config(source, kind, mood)
    jobs: list[TrueJob] = []
    birth, outcomes = 1, 1
    for index in range(source.integer(min(3, kind.max_jobs), kind.max_jobs)):
        birth += pick(source, [0, 1, 1] if mood == "long" else [0, 0, 0, 0, 1, 1, 2])
        if chance(source, 3):  # a late submission
            birth = max(birth, config["horizon"] - source.integer(0, 3))
        if birth > config["horizon"]:
            break
        points = source.integer(1, 4)
        if outcomes * (points + 1) > MAX_OUTCOMES:
            points = 1
        outcomes *= points + 1
        jobs.append(make_job(source, index, birth, config, points, kind, mood))
    return SmallMarket(config, jobs, log_of(config, jobs))


def log_of(config: dict[str, Any], jobs: Sequence[TrueJob]) -> list[str]:
    """Write the log; the completions that come as events are found by playing it."""
    events: list[tuple[int, int, dict[str, Any]]] = []  # (round, place within the round, event)
    for job in jobs:
        events.append((job.birth, 0, {"round": job.birth, "event": "submit", "job": job.name, "sow": job.sow}))
        if job.arrival is not None:
            arrive: dict[str, Any] = {"round": job.arrival, "event": "arrive", "job": job.name}
            if job.write_signal:
                arrive["signal"] = job.signal
            if not job.external:
                arrive["duration"] = job.duration
            events.append((job.arrival, 1, arrive))
    end = (config["horizon"], 3, {"round": config["horizon"], "event": "end"})

    def lines() -> list[str]:
        return [json.dumps(event) for _, _, event in sorted([*events, end], key=lambda e: e[:2])]

    pending = {job.name: job for job in jobs if job.external and job.arrival is not None}
    while pending:
        started = [d for d in replay(config, lines()) if d["event"] == "start" and d["job"] in pending]
        if not started:
            break
        job = pending.pop(started[0]["job"])
        last = started[0]["round"] + job.duration - 1
        if last < config["horizon"]:
            events.append((last, 2, {"round": last, "event": "complete", "job": job.name}))
    return lines()


def seeded_market(seed: int, kind: Kind | None = None) -> SmallMarket:
    """Return the market of a seed: the same every time."""
    return make_market(SeededSource(seed), kind)


@st.composite
def markets(draw: st.DrawFn, kind: Kind | None = None) -> SmallMarket:
    """Hypothesis strategy for small markets."""
    return make_market(DrawnSource(draw), kind)
