"""What experiments have in common: sizes, cluster comparisons that are made once, and lines to draw."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.comparisons.comparing import Comparison, compare
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import read_scenario, with_changes
from marketsched.papers.claims import CheckedClaim, Claim, ratio_row
from marketsched.results.paired_statistics import spread

Tell = Callable[[str], None]
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a panel, with its interval over seeds; ``low`` and ``high`` may be empty."""

    label: str
    x: list[Any]
    y: list[float]
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of a figure. ``x`` of the lines may be numbers, or words for bars."""

    title: str
    x: str
    y: str
    lines: list[Line]
    log: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """The result of an experiment: claims with measurements, panels, and the settings in one line."""

    rows: list[CheckedClaim]
    panels: list[Panel]
    sizes: str
    runs: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table or figure: its name here and in the paper, its content, and its function."""

    name: str
    place: str
    shows: str
    play: Callable[[Bench], Found]
    runs: int  # seeds by default
    timed: bool  # measures time: figures differ from run to run and machine to machine


Register = Callable[[Callable[..., Found]], Callable[["Bench"], Found]]
REGISTERED: list[Experiment] = []
SEEDS = 20


def experiment(
    name: str, place: str, shows: str, *, seeds: int = SEEDS, timed: bool = False, at: Sequence[Any] = ()
) -> Register:
    """Make a function an experiment that is known by ``name``; see `Experiment`.

    With settings ``at`` it is a function of a bench and a setting: the claims at the first, the paper's, are counted;
    those at the others, each with its ``words``, stand beside it.
    """

    def register(play: Callable[..., Found]) -> Callable[[Bench], Found]:
        @wraps(play)
        def played(bench: Bench) -> Found:
            if not at:
                return play(bench)
            own = play(bench, at[0])
            return beside(own, {other.words: play(bench, other) for other in at[1:]})

        REGISTERED.append(Experiment(name, place, shows, played, seeds, timed))
        return played

    return register


def beside(own: Found, others: Mapping[str, Found]) -> Found:
    """Return an experiment at the paper's setting, with the claims of the same at other ones beside it.

    Keys say in words what is other there; figures are those of the paper's setting, runs of all.
    """
    rows = [uncounted(row, setting) for setting, other in others.items() for row in other.rows]
    runs = [own.runs.assign(setting=""), *(other.runs.assign(setting=words) for words, other in others.items())]
    return Found([*own.rows, *rows], own.panels, own.sizes, pd.concat(runs, ignore_index=True))


def uncounted(row: CheckedClaim, because: str) -> CheckedClaim:
    """Return a row whose verdict is not counted, with the reason in front of one that it has already."""
    setting = "; ".join(words for words in (because, row.claim.setting) if words)
    return CheckedClaim(replace(row.claim, setting=setting), row.measured)


@dataclass(slots=True)
class Bench:
    """The arguments of an experiment: how large it is to be, and cluster comparisons made so far."""

    full: bool  # the paper's sizes
    runs: int  # seeds, >= 2: one has no interval
    first: int = 0  # the first seed
    slots: int | None = None  # in place of every experiment's own number of slots
    data: str | PathLike[str] | None = None  # folder of recorded traces
    tell: Tell = lambda what: None  # called with the current step
    # comparisons by their arguments, shared between experiments
    made: dict[str, Comparison] = field(default_factory=dict)

    @property
    def seeds(self) -> list[int]:
        """The seeds of all runs."""
        return list(range(self.first, self.first + self.runs))

    def length(self, default: int, full: int) -> int:
        """Return the number of slots to play."""
        return self.slots if self.slots is not None else full if self.full else default

    def pick(self, default: list[Any], full: list[Any]) -> list[Any]:
        """Return the values of a key: fewer by default, all of the paper's in full."""
        return full if self.full else default

    def compared(
        self, scenario: str, changes: Sequence[str], policies: Sequence[str], slots: int, *, growth: bool = False
    ) -> Comparison:
        """Return the policies (the first leads) in the worlds of all seeds of a built-in scenario, changed; made once.

        With ``growth`` the regret at T/8, T/4, T/2 and T slots is measured, too.
        """
        key = json.dumps([scenario, list(changes), list(policies), slots, self.runs, self.first, growth])
        if key not in self.made:
            content, source = read_scenario(scenario)
            chosen = Scenario.from_dict(with_changes(content, [*changes, f"cluster.slots={slots}"]), source=source)

            def notify(done: int, total: int, what: str) -> None:
                self.tell(f"{' '.join(changes) or scenario}: {done} of {total}, {what}")

            self.made[key] = compare(
                chosen,
                policies,
                self.runs,
                self.first,
                data=self.data,
                optimum_seconds=None if growth else 0,
                growth=growth,
                progress=notify,
            )
        return self.made[key]


def totals(found: Comparison, policy: str, column: str = "reward") -> Array:
    """Return one figure of a policy per slot, seed by seed, shape (n_seeds,)."""
    own = found.runs[found.runs["policy"] == policy].sort_values("seed")
    return np.asarray(own[column] / own["slots"], dtype=np.float64)


def best_of(found: Comparison, policies: Sequence[str]) -> Array:
    """Return the reward per slot of the best of these policies in each seed."""
    return np.asarray(np.max([totals(found, policy) for policy in policies], axis=0), dtype=np.float64)


def leads(
    quantity: str, source: str, found: Comparison, lead: str, others: Sequence[str], why: str = ""
) -> CheckedClaim:
    """Return the row of "performs best": the best other policy of each seed over the leading one is below 1."""
    claim = Claim(quantity, source, "below", 1.0, 1.0, why=why)
    return ratio_row(claim, best_of(found, others), totals(found, lead))


def rises(
    quantity: str, source: str, before: Array, after: Array, scale: Array, *, falls: bool = False, why: str = ""
) -> CheckedClaim:
    """Return the row of "increases" (or "decreases"): the change in shares of ``scale``, seed by seed."""
    claim = Claim(quantity, source, "below" if falls else "above", 0.0, 0.0, why=why)
    return ratio_row(claim, after - before, scale)


def averages_at(
    found: Comparison, policies: Sequence[str], slots: int, parts: Sequence[int]
) -> tuple[list[int], list[dict[str, Array]]]:
    """Return the slots at these parts of a run and at its end, and the policies' averages up to each, seed by seed."""
    curves = found.curves.pivot_table(index="slot", columns=["policy", "seed"], values="average_reward")
    whens = [*(curves.index[int(np.searchsorted(curves.index, slots / part))] for part in parts), slots]
    return whens, [{p: np.asarray(curves[p].loc[when], dtype=float) for p in policies} for when in whens]


class Over:
    """Comparisons, one for each value of a key, and the claims about them.

    Calling it returns the figure of a policy at a value, per slot and seed by seed.
    """

    def __init__(self, values: Sequence[Any], found: Sequence[Comparison]) -> None:
        self.values, self.found = list(values), list(found)
        self.rows: list[CheckedClaim] = []

    def __call__(self, value: Any, policy: str, column: str = "reward") -> Array:  # noqa: D102 - the class says it
        return totals(self.found[self.values.index(value)], policy, column)

    def ahead(
        self, text: str, source: str, lead: str, others: Sequence[str], why: Any, default: Any, again: str
    ) -> None:
        """Claim at each value, which ends the text, that ``lead`` is best; not counted ``again`` at the default.

        ``why`` is a text, or makes one of a comparison.
        """
        for value, each in zip(self.values, self.found, strict=True):
            row = leads(f"{text}{value}", source, each, lead, others, why(each) if callable(why) else why)
            self.rows.append(uncounted(row, again) if value == default else row)

    def grows(self, text: str, source: str, low: Any, high: Any, policy: str, scale: Array, **more: Any) -> None:
        """Claim that a policy's reward rises (or falls) from one value to another; see `rises`."""
        self.rows.append(rises(text, source, self(low, policy), self(high, policy), scale, **more))

    def finding(self, title: str, x: str, y: str, sizes: str, key: str) -> Found:
        """Return the claims, with the reward per slot drawn against the key."""
        panel = key_panel(title, x, self.values, self.found, y)
        return Found(self.rows, [panel], sizes, stacked(key, self.values, self.found))


def lines_table(panels: Sequence[Panel]) -> pd.DataFrame:
    """Return what panels show, a row for each point; ``x`` is a number, or ``word`` a word."""
    rows = []
    for panel in panels:
        about = {"panel": panel.title, "x_label": panel.x, "y_label": panel.y, "log": panel.log}
        for line in panel.lines:
            worded = any(isinstance(x, str) for x in line.x)
            for i, (x, y) in enumerate(zip(line.x, line.y, strict=True)):
                place = {"x": math.nan if worded else float(x), "word": str(x) if worded else None}
                ends = {"low": line.low[i], "high": line.high[i]} if line.low else {"low": math.nan, "high": math.nan}
                rows.append({**about, "line": line.label, **place, "y": float(y), **ends})
    return pd.DataFrame(rows)


def mean_line(label: str, x: Sequence[Any], values: Sequence[Array]) -> Line:
    """Return a line through means over seeds, with their intervals."""
    each = [spread(v) for v in values]
    return Line(label, list(x), [e.mean for e in each], [e.low for e in each], [e.high for e in each])


def curve_panel(found: Comparison, title: str, policies: Sequence[str], y: str) -> Panel:
    """Return the average so far against slots."""
    lines = []
    for policy in policies:
        table = found.curves[found.curves["policy"] == policy].pivot(
            index="slot", columns="seed", values="average_reward"
        )
        lines.append(mean_line(policy, table.index.tolist(), list(table.to_numpy())))
    return Panel(title, "slots", y, lines)


def key_panel(title: str, key: str, values: Sequence[Any], found: Sequence[Comparison], y: str) -> Panel:
    """Return the reward per slot of every policy against a key."""
    policies = found[0].meta["policies"]
    lines = [mean_line(policy, values, [totals(each, policy) for each in found]) for policy in policies]
    return Panel(title, key, y, lines)


def stacked(key: str, values: Sequence[Any], found: Sequence[Comparison]) -> pd.DataFrame:
    """Return the runs of several comparisons below each other, with the value in front."""
    tables = [each.runs.assign(key=key, value=str(value)) for value, each in zip(values, found, strict=True)]
    return pd.concat(tables, ignore_index=True)
