"""What all figures share: colours, fonts, frames, and how they become files.

Figures use matplotlib's objects alone (no ``pyplot``, no global state), colours that colour-blind readers
can tell apart, and the fonts that come with matplotlib, so that equal results give equal bytes.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

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
