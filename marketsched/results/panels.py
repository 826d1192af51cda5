"""What all figures share: colours, fonts, frames, and how they become files.

Figures use matplotlib's objects alone (no ``pyplot``, no global state), colours that colour-blind readers
can tell apart, and the fonts that come with matplotlib, so that equal results give equal bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

INK, GREY, MUTED = "#1b1b1b", "#8a8a8a", "#555555"
# Okabe and Ito's palette, for what is not an order.
OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999")
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "axes.edgecolor": "#555555",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "svg.hashsalt": "marketsched",
}


def figure_style() -> dict[str, Any]:
    """Return matplotlib's settings of the figures here, for figures of one's own beside them.

    Returns
    -------
    dict
        For ``matplotlib.rc_context`` or ``pyplot.rcParams.update``: fonts, lines without a box, and the colours
        of Okabe and Ito, which colour-blind readers can tell apart.

    Examples
    --------
    >>> figure_style()["axes.prop_cycle"].by_key()["color"][:2]
    ['#0072b2', '#e69f00']
    """
    return {**STYLE, "font.size": 11, "axes.prop_cycle": cycler(color=OKABE_ITO)}


def save_figure(figure: Figure, path: str | PathLike[str], *, dpi: int = 160) -> None:
    """Write ``figure`` to ``path`` (PNG, SVG or PDF by its ending), equal figures as equal bytes."""
    # Left in, these say which matplotlib wrote the file, and when.
    unsaid: dict[str, dict[str, Any]] = {
        ".png": {"Software": None},
        ".svg": {"Date": None},
        ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    }
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, dpi=dpi, metadata=unsaid.get(Path(path).suffix.lower()))


class ShownFigure(Figure):
    """A figure that a notebook draws where it is the last line of a cell, without ``pyplot``."""

    def _repr_png_(self) -> bytes:
        """Return the figure as it is drawn in a notebook."""
        drawn = BytesIO()
        with matplotlib.rc_context(STYLE):
            self.savefig(drawn, format="png", dpi=80)
        return drawn.getvalue()


def shown(figure: Figure) -> Figure:
    """Return the same figure, as one that notebooks draw."""
    if type(figure) is Figure:
        figure.__class__ = ShownFigure  # its maker need not know of notebooks
    return figure


DASHES: tuple[Any, ...] = ("-", "-", "-", (0, (5, 2)), (0, (2, 2)), (0, (6, 2, 1, 2)), (0, (1, 1.5)))


def look(place: int) -> dict[str, Any]:
    """Return colour and dashes of the policy at a place; later ones are dashed, as equal lines lie on each other."""
    again = 3 * (place // len(OKABE_ITO))  # a colour that comes again comes with other dashes
    return {"color": OKABE_ITO[place % len(OKABE_ITO)], "linestyle": DASHES[(place + again) % len(DASHES)]}


def frame(n_panels: int, title: str, about: str = "", **margins: float) -> tuple[Figure, list[Axes]]:
    """Return a figure of 12 x 4.6 inches with panels beside each other, a headline, and a caption."""
    figure = Figure(figsize=(12, 4.6), facecolor="white")
    panels = list(np.atleast_1d(figure.subplots(1, n_panels)))
    figure.subplots_adjust(**{"left": 0.06, "right": 0.975, "top": 0.76, "bottom": 0.17, "wspace": 0.3, **margins})
    figure.text(0.012, 0.975, title, fontsize=16, fontweight="bold", va="top", color=INK)
    figure.text(0.988, 0.965, about, fontsize=11, va="top", ha="right", color=MUTED)
    return figure, panels


def legend(
    figure: Figure, labels: Sequence[str], *more: Any, handles: Sequence[Any] | None = None, rows: int = 1, **style: Any
) -> None:
    """Name the policies in ``rows`` rows below the headline, in the look of their places; ``more``: further handles."""
    if handles is None:
        handles = [Line2D([], [], linewidth=2, label=label, **look(place)) for place, label in enumerate(labels)]
    shown = [*handles, *more]
    style = {"frameon": False, "handlelength": 1.8, "columnspacing": 1.1, "fontsize": 11, **style}
    figure.legend(handles=shown, loc="upper left", bbox_to_anchor=(0.005, 0.915), ncols=-(-len(shown) // rows), **style)


def short(x: float, _: Any = None) -> str:
    """Write the number at a tick in a few characters."""
    if x == 0 or 0.1 <= abs(x) < 1e5:
        return f"{x:,.5g}"
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(x) >= size:
            return f"{x / size:.4g}{unit}"
    return f"{x:.2g}"
