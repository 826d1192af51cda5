"""What an audit leaves on disk: tables, a picture, and one file per lie that replays it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from marketsched.results.output import INCOMPLETE, META, whole_folder, write_json, write_table
from marketsched.results.panels import GREY, INK, OKABE_ITO, STYLE, save_figure
from marketsched.show.commands.tools import file_name

if TYPE_CHECKING:
    from marketsched.truthfulness.audited import Audit


def write_audit(folder: Path, audit: Audit, *, force: bool = False) -> None:
    """Write an audit into ``folder``, whole or not at all.

    ``summary.parquet`` and ``summary.json`` (one row per mechanism), ``certificates-LABEL.parquet``,
    ``lie-LABEL-JOB.yaml`` (each replays with `replay_witness`), ``scenario.yaml``, ``figure.png``,
    ``meta.json``, and a file ``INCOMPLETE`` if the audit was interrupted.

    Raises
    ------
    InvalidParameterError
        If the folder may not be written.
    OSError
        If the disk does not take it; nothing is left then.
    """
    from marketsched.truthfulness.witness_file import save_witness

    about = {name: audit.meta[name] for name in ("scenario", "seed", "confidence", "versions")}
    with whole_folder(folder, force=force) as partial:
        write_table(audit.summary(), partial / "summary.parquet", about)
        write_json(audit.to_dict()["mechanisms"], partial / "summary.json")
        for each in audit.mechanisms:
            label = file_name(each.label)
            if len(each.certificates):
                write_table(each.certificates, partial / f"certificates-{label}.parquet", about)
            for one in each.searched:
                if one.lie is not None:
                    save_witness(partial / f"lie-{label}-{file_name(one.job)}.yaml", one.situation, one.lie)
        (partial / "scenario.yaml").write_text(audit.scenario.to_yaml(), encoding="utf-8")
        save_figure(audit_figure(audit), partial / "figure.png")
        write_json(audit.meta, partial / META)
        if not audit.complete:
            (partial / INCOMPLETE).write_text(
                "interrupted: what is here is finished, the rest is missing\n", encoding="utf-8"
            )


def audit_figure(audit: Audit) -> Figure:
    """Draw, per mechanism, the gain of every lie tried against its size; the truth lies at the origin.

    The dashed line is the largest certificate: no lie of a certified owner gains more. Gains are those
    of the search, on the worlds it looked at: the best of many looks better than it is. A ring marks a lie that was
    confirmed on fresh worlds, at its lower end.
    """
    n = len(audit.mechanisms)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(12, 0.9 + 3.1 * n), facecolor="white")
        panels = figure.subplots(n, 1, squeeze=False)[:, 0]
        figure.subplots_adjust(left=0.09, right=0.97, top=1 - 0.75 / (0.9 + 3.1 * n), bottom=0.16 / n, hspace=0.45)
        for axes, each in zip(panels, audit.mechanisms, strict=True):
            axes.axhline(0, color=GREY, linewidth=1)
            for i, one in enumerate(each.searched):
                tried = [(x.size, x.gain) for x in one.deviations.tried if np.isfinite([x.size, x.gain]).all()]
                colour = OKABE_ITO[i % len(OKABE_ITO)]
                if tried:
                    axes.plot(*zip(*tried, strict=True), ".", color=colour, markersize=5, alpha=0.6, label=one.job)
                if one.lie is not None:
                    axes.plot(one.lie.size, one.lie.gain_low, "o", color=colour, markerfacecolor="none", markersize=11)
            axes.plot(0, 0, "D", color=INK, markersize=7, zorder=5)
            if np.isfinite(each.regret_upper):
                axes.axhline(each.regret_upper, color="#a50f15", linewidth=1.4, linestyle="--")
            axes.set_xscale("symlog", linthresh=0.1)
            axes.set_yscale("symlog", linthresh=1.0)
            axes.set_xlim(left=-0.02)
            axes.set_title(each.label, loc="left", fontsize=12, color=INK)
            axes.set_ylabel("gain, credits")
            if axes.get_legend_handles_labels()[0]:
                axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, fontsize=9, ncols=4)
            axes.margins(y=0.08)
        panels[-1].set_xlabel("size of the lie; the truth is the diamond, the dashed line the largest certificate")
        figure.text(0.012, 0.985, audit.meta["scenario"], fontsize=15, fontweight="bold", va="top", color=INK)
    return figure
