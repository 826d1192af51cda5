"""Figures of single jobs, in the manner of Figs. 1 and 3 of the OPM paper."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from marketsched.results.paired_statistics import spread
from marketsched.results.panels import GREY, INK, MUTED, STYLE, frame, legend, look

FARTHEST = 0.98  # quantile of the jobs of all policies at which the axis of costs over utilities ends


def jobs_figure(jobs: pd.DataFrame, *, title: str, lead: str) -> Figure:
    """Draw the distributions over jobs of cost divided by utility, of the share of the budget spent, and of utility.

    ``jobs`` has one row per policy and job, perhaps of several seeds: ``policy, budget, cost, utility``. The ratio of
    cost to utility is not defined for a job without utility; a curve that ends below 1 leaves out such jobs and the
    jobs beyond the end of the axis. 12 x 4.6 inches.
    """
    labels = jobs["policy"].drop_duplicates().tolist()
    positive = jobs["utility"] > 0
    table = jobs.assign(
        cost_over_utility=np.divide(jobs["cost"], jobs["utility"], out=np.full(len(jobs), np.inf), where=positive),
        share=jobs["cost"] / jobs["budget"],
    )
    with matplotlib.rc_context(STYLE):
        figure, panels = frame(3, title, bottom=0.15, wspace=0.25)
        for place, label in reversed(list(enumerate(labels))):
            own = table[table["policy"] == label]
            for axes, name in zip(panels, ("cost_over_utility", "share", "utility"), strict=True):
                _draw_shares(axes, own[name].to_numpy(), width=2.4 if label == lead else 1.5, **look(place))
        reached = table["cost_over_utility"].to_numpy()
        reached = reached[np.isfinite(reached)]
        if reached.size:
            panels[0].set_xlim(0, max(float(np.quantile(reached, FARTHEST)), 1e-9))
        panels[1].set_xlim(0, 1.02)
        if positive.any():
            panels[2].set_xscale("log")
            panels[2].set_xlim(left=float(jobs.loc[positive, "utility"].quantile(1 - FARTHEST)))
        titles = ("cost over utility, at most", "share of the budget spent, at most", "utility, at most")
        for axes, name in zip(panels, titles, strict=True):
            axes.set_title("share of the jobs", fontsize=12, loc="left")
            axes.set_xlabel(name)
            axes.set_ylim(0, 1.02)
        legend(figure, labels, fontsize=11 if sum(map(len, labels)) < 90 else 9, labelcolor=MUTED)
    return figure


def steps_of(runs: pd.DataFrame) -> list[str]:
    """Return the policies that differ in their primal step alone, if there are two or more."""
    if "step" not in runs:
        return []
    stepping = runs[runs["step"].notna()].drop_duplicates("policy")
    others = stepping["rules"].str.replace(r"primal_step=\S+", "", regex=True)
    alike = stepping[others == others.mode().iloc[0]] if len(stepping) else stepping
    return alike["policy"].tolist() if alike["step"].nunique() > 1 else []


def migration_figure(runs: pd.DataFrame, *, title: str, baseline: str) -> Figure:
    """Draw utility and migrations against the primal step alpha (Fig. 3), means over seeds with their intervals.

    ``runs`` has one row per seed and policy: ``policy, rules, step, machines, slots, reward, over_baseline,
    migrations``; ``baseline`` is the policy of ``over_baseline``: without it in the comparison utility a slot is drawn.
    12 x 4.6 inches.
    """
    labels = steps_of(runs)
    own = runs[runs["policy"].isin(labels)]
    based = bool(own["over_baseline"].notna().any())
    shown = own.assign(
        gain=100 * (own["over_baseline"] - 1) if based else own["reward"] / own["slots"],
        moved=100 * own["migrations"] / own["slots"] / own["machines"],
    )
    with matplotlib.rc_context(STYLE):
        figure, panels = frame(2, f"{title}; lines: 95 % interval of the mean over seeds", bottom=0.15, wspace=0.25)
        for axes, name in zip(panels, ("gain", "moved"), strict=True):
            _draw_steps(axes, shown, name)
        if based:
            panels[0].axhline(0.0, color=GREY, linewidth=1)
        panels[0].set_title(
            f"utility over that of {baseline}, per cent" if based else "utility a slot", fontsize=12, loc="left"
        )
        panels[1].set_title("machines that change their job in a slot, per cent", fontsize=12, loc="left")
        panels[1].set_ylim(bottom=0)
    return figure


def _draw_steps(axes: Axes, table: pd.DataFrame, name: str) -> None:
    x = np.unique(table["step"].to_numpy(dtype=np.float64))
    groups = [(step, spread(table.loc[table["step"] == step, name])) for step in x]
    mean = [found.mean for _, found in groups]
    low = [found.mean - found.low if np.isfinite(found.low) else 0.0 for _, found in groups]
    axes.errorbar(x, mean, yerr=low, marker="o", markersize=6, linewidth=2, color=look(0)["color"], ecolor=INK,
                  elinewidth=1.2, capsize=3)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel("primal step alpha")


def _draw_shares(axes: Axes, values: np.ndarray[Any, np.dtype[np.float64]], *, width: float, **style: Any) -> None:
    """Draw which share of all values is at most so much; infinite ones count, but are nowhere."""
    finite = np.sort(values[np.isfinite(values)])
    axes.step(finite, np.arange(1, finite.size + 1) / max(values.size, 1), where="post", linewidth=width, **style)
