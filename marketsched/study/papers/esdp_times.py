r"""The computing time of ESDP (its paper's Fig. 5): microseconds per slot over the scale of the graph.

The paper prints no times, and seconds of another machine would say nothing here. What its text says is
about ratios: the dynamic program is of complexity O(\|E\| \|S(t)\| prod c) (Section 3.2), denser graphs are
harder (Section 4.2), and the relaxation delta has a strong effect on the computation overhead (on Fig. 7).
Ratios are formed within one seed of one run, settings taking turns, between medians over slots, which
other work on the same machine hardly moves. Still no two runs give the same figures.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd

from marketsched.clusters.scenario import ClusterScenario
from marketsched.config.scenario_file import read_scenario, with_changes
from marketsched.mechanisms.allocation.slot_loop import Policy, play_slots
from marketsched.study.papers.claims import Claim, Row, mean_row
from marketsched.study.papers.runs import Array, Bench, Found, Panel, mean_line

NAME = "esdp-default"
INSTANCE = "cluster.instance"
VARIED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "|R|": (f"{INSTANCE}.servers", (20, 40, 80)),
    "|L|": (f"{INSTANCE}.ports", (4, 8, 16)),
    "density": (f"{INSTANCE}.edge_probability", (0.05, 0.1, 0.2)),
    "delta": ("slack", ("logloglog", "loglog", "log")),  # from the largest delta to the smallest
}
SOURCES = {
    "|R|": "Fig. 5",
    "|L|": "Fig. 5",
    "density": "Section 4.2, Fig. 10",
    "delta": "Section 4.2, Fig. 7",
}

COMPILED = "compiled, the dynamic program is the smaller part of a slot"


class Timed:
    """A policy whose decisions and updates are timed, slot by slot.

    Parameters
    ----------
    policy : Policy
        A fresh one.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.name, self.observes = policy.name, policy.observes
        self.decided: list[int] = []  # nanoseconds of each slot
        self.updated: list[int] = []

    def allocate(self, *args: Any) -> Any:
        """Return the decision of the policy."""
        began = time.perf_counter_ns()
        decision = self._policy.allocate(*args)
        self.decided.append(time.perf_counter_ns() - began)
        return decision

    def update(self, *args: Any) -> None:
        """Let the policy learn."""
        began = time.perf_counter_ns()
        self._policy.update(*args)
        self.updated.append(time.perf_counter_ns() - began)

    @property
    def microseconds(self) -> float:
        """Median over slots of decision and update together."""
        return float(np.median(np.add(self.decided, self.updated))) / 1000


def figure_5(bench: Bench) -> Found:
    """Microseconds per slot over the scale of the graph, and over delta."""
    slots = bench.length(1000, 2000)
    rows = []
    for seed in range(bench.first, bench.first + bench.runs):
        bench.tell(f"seed {seed}")
        for words, (key, values) in VARIED.items():
            rows += [{"seed": seed, "key": words, "value": str(v), **_timed(seed, {key: v}, slots)} for v in values]
    table = pd.DataFrame(rows)
    claims = [row for words, (_, values) in VARIED.items() for row in _rows(table, words, values)]
    panels = [
        Panel(
            f"over {words}",
            words,
            "median microseconds per slot",
            [mean_line("esdp", values, [_column(table, words, v, "microseconds") for v in values])],
        )
        for words, (_, values) in VARIED.items()
    ]
    return Found(claims, panels, f"{slots} slots; seconds depend on the machine", table)


def _timed(seed: int, change: dict[str, Any], slots: int) -> dict[str, float]:
    """Return the time of a slot, and what the complexity is made of: channels and budgets."""
    content, source = read_scenario(NAME)
    changes = [f"{where}={value}" for where, value in change.items() if where != "slack"]
    scenario = ClusterScenario.from_dict(with_changes(content, [*changes, f"cluster.slots={slots}"]), source=source)
    world, (choice,) = scenario.cluster.world(seed), scenario.choices([f"esdp:slack={change.get('slack', 'paper')}"])
    play_slots(world.policy(choice, 1), world.environment(), 1)  # compiled code is loaded before time counts
    policy: Any = world.policy(choice, slots)
    timed = Timed(policy)
    play_slots(timed, world.environment(), slots)
    from marketsched.mechanisms.allocation.esdp.schedules import scale_of

    _, budgets = scale_of(policy.slack((slots + 1) // 2), policy.largest)  # of a slot in the middle
    return {
        "microseconds": timed.microseconds,
        "channels": policy.channels.n_channels,
        "budgets": budgets,
        "work": policy.channels.n_channels * (budgets + 1),
    }


def _column(table: pd.DataFrame, words: str, value: Any, column: str) -> Array:
    own = table[(table["key"] == words) & (table["value"] == str(value))].sort_values("seed")
    return np.asarray(own[column], dtype=np.float64)


def _rows(table: pd.DataFrame, words: str, values: tuple[Any, ...]) -> list[Row]:
    """Return the growth of time from the first value to the last, and the same over that of the complexity."""
    first, last = values[0], values[-1]
    ratio, work = (_column(table, words, last, c) / _column(table, words, first, c) for c in ("microseconds", "work"))
    text = f"ESDP, time of a slot, {words} = {last} over {first}"
    least = 1.05 if words == "delta" else 1.0  # a strong effect: more than the little one of Fig. 7
    grows = Claim(text, SOURCES[words], "above", least, 1.0, why=COMPILED)
    bound = Claim(f"{text}, over the growth of |E| |S(t)| prod c", "Section 3.2, after (27)", "at most", 1.0, 1.0)
    return [mean_row(grows, ratio), mean_row(bound, ratio / work)]
