"""The replay contract, line by line, over the slow market.

Where the contract leaves a choice, the reading taken is:

* an erroneous line changes nothing at all, so it does not bring the market to its round either: the
  rounds before it are cleared only when a correct line asks for it;
* the last round mentioned is that of the last correct line;
* ``end`` for a round that a ``complete`` has cleared closes it; a second ``end`` of one round is an error;
* an ``arrive`` that names no signal for a report without signals must give a duration;
* an ``arrive`` of a cancelled job is ignored, a second one is an error like any second ``arrive``;
* jobs left after the last round are removed when ``end`` of that round, or the end of the file, is read;
* a line of white space alone is skipped.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reference.market import Market, Report, Settings, Signal

Line = dict[str, Any]


class Malformed(Exception):
    """The line is an error line."""


def need(condition: bool, message: str) -> None:
    """Raise unless ``condition`` holds."""
    if not condition:
        raise Malformed(message)


def whole(x: Any, lowest: int, highest: float = math.inf) -> int:
    """Return ``x`` if it is a whole number in range."""
    need(isinstance(x, int) and not isinstance(x, bool) and lowest <= x <= highest, f"{x!r} out of range")
    return int(x)


def amount(x: Any, highest: float = math.inf) -> float:
    """Return ``x`` if it is a finite number in [0, highest]."""
    need(isinstance(x, int | float) and not isinstance(x, bool), f"{x!r} is not a number")
    need(math.isfinite(x) and 0 <= x <= highest, f"{x!r} out of range")
    return float(x)


def get(record: Any, name: str) -> Any:
    """Return a field that must be there."""
    need(isinstance(record, dict) and name in record, f"{name} is missing")
    return record[name]


def signal_in(x: Any) -> Signal:
    """Return a signal: nothing, a number or a label."""
    need(x is None or (isinstance(x, int | str) and not isinstance(x, bool)), f"{x!r} is not a signal")
    return x  # type: ignore[no-any-return]


def settings_of(config: Mapping[str, Any]) -> Settings:
    """Read a configuration (which is trusted to be legal)."""
    known = {
        name: config[name]
        for name in ("capacity", "max_concurrency", "max_duration", "max_value", "max_delay", "horizon")
    }
    epsilon = config.get("epsilon", 0.0)
    threshold = config.get("threshold", 0.0)
    if threshold == "auto":
        threshold = epsilon / (2 * config["max_value"])
    return Settings(
        **known,
        epsilon=epsilon,
        threshold=threshold,
        pricing=config["pricing"],
        eviction=config.get("eviction", "all"),
    )


def value_of(spec: Any, max_value: float) -> Callable[[int], float]:
    """Return V(completion time)."""
    kind = get(spec, "kind")
    if kind == "table":
        values = get(spec, "values")
        need(isinstance(values, dict) and len(values) > 0, "values is not a table")
        need(all(time.isdecimal() for time in values), "a time is not a whole number")
        table = {int(time): amount(v, max_value) for time, v in values.items()}
        in_time = [table[time] for time in sorted(table)]
        need(in_time == sorted(in_time, reverse=True), "values increase")
        return lambda f: table.get(f, 0.0)
    value = amount(get(spec, "value"), max_value)
    deadline = whole(get(spec, "deadline"), 0)
    if kind == "deadline":
        return lambda f: value if f <= deadline else 0.0
    need(kind == "linear", f"unknown kind {kind!r}")
    begin, slope = whole(get(spec, "from"), 0), amount(get(spec, "slope"))
    return lambda f: 0.0 if f > deadline else max(0.0, value - slope * max(0, f - begin))


def report_of(sow: Any, birth: int, known: Settings) -> Report:
    """Read a statement of work."""
    c = whole(get(sow, "concurrency"), 1, min(known.max_concurrency, known.capacity))
    value = value_of(get(sow, "value"), known.max_value)
    requirements = get(sow, "requirements")
    need(isinstance(requirements, list) and len(requirements) > 0, "requirements is empty")
    law: dict[tuple[int, Signal, int], float] = {}
    for row in requirements:
        a = whole(get(row, "arrival"), birth)
        d = whole(get(row, "duration"), 1, known.max_duration)
        p = amount(get(row, "probability"), 1 + 1e-9)
        o = signal_in(row.get("signal", d))
        law[(a, o, d)] = law.get((a, o, d), 0.0) + p
    need(math.fsum(law.values()) <= 1 + 1e-9, "the mass exceeds 1")
    return Report(birth, c, value, law, all("signal" not in row for row in requirements))


class Replayer:
    """Feeds lines to a market and collects what it says."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.market = Market(settings_of(config))
        self.decisions: list[Line] = []
        self.latest = 0  # the last round mentioned
        self.arrivals_in = 0  # the last round with an arrive
        self.ended = 0  # the last round that an end has closed
        self.swept = False

    def clear_through(self, market: Market, last: int) -> list[Line]:
        """Clear the rounds up to and including ``last`` that are not cleared yet."""
        lines = []
        while market.round <= last:
            lines += market.clear()
        return lines

    def feed(self, number: int, text: str) -> None:
        """Take one line of the events file."""
        if not text.strip():
            return
        event: Any = None
        try:
            try:
                event = json.loads(text)
            except ValueError as error:
                raise Malformed(f"not JSON: {error}") from None
            self.handle(event)
        except Malformed as error:
            at = event.get("round") if isinstance(event, dict) else None
            self.decisions.append({"round": at, "event": "error", "line": number, "message": str(error)})

    def handle(self, event: Any) -> None:
        """Check one event completely, then act on it."""
        t = whole(get(event, "round"), 1, self.market.settings.horizon)
        kind = get(event, "event")
        need(kind in ("submit", "arrive", "complete", "end"), f"unknown event {kind!r}")
        need(t >= self.latest, "the round goes back")
        open_still = self.market.round <= t or (kind == "end" and t > self.ended)
        need(kind == "complete" or open_still, "the round is already cleared")
        if kind == "end":
            self.decisions += self.clear_through(self.market, t)
            self.latest = self.ended = t
            self.finish()
            return
        name = get(event, "job")
        need(isinstance(name, str), "the job's name is not a text")
        job = self.market.job(name)
        if kind == "submit":
            need(job is None, "second submission under one name")
            need(t > self.arrivals_in, "submit after an arrive of the same round")
            report = report_of(get(event, "sow"), t, self.market.settings)
            self.decisions += self.clear_through(self.market, t - 1)
            utility = self.market.submit(name, report)
            starts = [[a, o, s] for (a, o), s in self.market.jobs[-1].plan.items()]
            line = {"round": t, "event": "plan", "job": name, "starts": starts, "estimated_utility": utility}
            self.decisions.append(line)
        elif kind == "arrive":
            need(job is not None, "arrive of an unknown job")
            assert job is not None
            need(not job.arrive_seen, "second arrive")
            duration = whole(event["duration"], 1) if "duration" in event else None
            if "signal" in event:
                signal = signal_in(event["signal"])
            elif job.report.signals_left_out:
                need(duration is not None, "neither signal nor duration")
                signal = duration
            else:
                signal = None
            self.decisions += self.clear_through(self.market, t - 1)
            self.market.arrive(job, signal, duration)
            self.arrivals_in = t
        else:
            need(job is not None, "complete of an unknown job")
            trial = copy.deepcopy(self.market)  # whether it runs in round t is known only after clearing it
            lines = self.clear_through(trial, t)
            job = trial.job(name)
            assert job is not None
            need(job.duration is None, "complete of a job that was given a duration")
            need(job.status == "running", "complete of a job that is not running")
            self.market = trial
            self.decisions += [*lines, trial.complete(job)]
        self.latest = t

    def finish(self) -> None:
        """Clear the last round mentioned; remove who is left after the horizon."""
        self.decisions += self.clear_through(self.market, self.latest)
        if self.latest == self.market.settings.horizon and not self.swept:
            self.swept = True
            self.decisions += self.market.sweep()


def replay(config: Mapping[str, Any], lines: Iterable[str]) -> list[Line]:
    """Return the decisions for an events file, given as lines of text."""
    replayer = Replayer(config)
    for number, text in enumerate(lines, 1):
        replayer.feed(number, text)
    replayer.finish()
    return replayer.decisions
