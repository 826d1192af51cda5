"""The picture of one instance: its bounds, and the welfare of mechanisms, as bars."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure


def instance_figure(title: str, bounds: Mapping[str, float], welfare: Mapping[str, float]) -> Figure:
    """Return bars, the first at the top, credits."""
    bars = {**bounds, **welfare}
    figure = Figure(figsize=(6, 0.4 * len(bars) + 1), layout="constrained")
    axes = figure.subplots()
    axes.barh(list(bars), list(bars.values()), color=["C0"] * len(bounds) + ["C1"] * len(welfare))
    axes.invert_yaxis()
    axes.set(xlabel="credits", title=title)
    return figure
