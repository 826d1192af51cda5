"""The summary of a run, as a person reads it: what happened, and how far from the best it can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

Expected = Mapping[str, tuple[float, float]]
Show = Callable[[float], str]


def percent(x: float) -> str:
    """Show a share: 0.1234 as ``12.3 %``."""
    return f"{100 * x:.1f} %"


def amount(x: float) -> str:
    """Show a number with three or more digits: ``337,632``, ``11.7``, ``0.001``."""
    return f"{x:,.0f}" if abs(x) >= 1000 or x == round(x) else f"{x:.3g}"


def summary_view(summary: Mapping[str, Any], expected: Expected | None = None) -> Group:
    """Return the tables and remarks of a run's summary, ready to print with rich.

    Parameters
    ----------
    summary : mapping
        ``RunResult.summary`` as :func:`marketsched.play.running.run` fills it.
    expected : mapping of str to (float, float), optional
        Mean and standard deviation of figures by their name in the summary; shown beside what was
        found.
    """
    parts: list[Any] = [_headline(summary), _events_table(summary, expected or {})]
    if summary.get("bounds"):
        parts.append(_yardstick_table(summary, expected or {}))
    parts += [Text(f"- {remark}") for remark in remarks(summary)]
    return Group(*parts)


def _headline(summary: Mapping[str, Any]) -> Text:
    state = "" if summary["complete"] else f", INTERRUPTED after round {summary['rounds']}"
    again = f" (+ {summary['resubmitted']:,} resubmitted)" if summary["resubmitted"] else ""
    return Text(
        f"{summary['name']}: {summary['jobs']:,} statements of work{again}, {summary['horizon']:,} rounds, "
        f"{summary['capacity']:,} nodes{state}",
        style="bold",
    )


def _events_table(summary: Mapping[str, Any], expected: Expected) -> Table:
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim")
    table.add_column("")
    table.add_column("found", justify="right")
    if expected:
        table.add_column("expected", justify="right", style="dim")

    def row(label: str, key: str, show: Show, found: str | None = None) -> None:
        value = summary.get(key)
        if value is None:
            return
        cells = [label, show(value) if found is None else found]
        table.add_row(*cells, *([_expectation(expected.get(key), show)] if expected else []))

    row("welfare, credits", "welfare", amount)
    row("revenue, credits", "revenue", amount)
    row("  share of welfare", "revenue_share", percent)
    row("owners' utility, credits", "owners_utility", amount)
    row("load asked for, share of capacity", "load", percent)
    row("  at its peak", "peak_demand_share", percent)
    row("utilisation", "utilisation", percent)
    row("completed", "completed", amount)
    row("  share of jobs", "completed_share", percent)
    row("dropped", "dropped", amount)
    row("cancelled", "cancelled", amount)
    row("evicted", "evicted", amount)
    row("price of a node, lowest", "price_lowest", amount)
    row("  median", "price_median", amount)
    row("  highest", "price_highest", amount)
    row("failure estimates above 0", "estimates_positive_share", percent)
    row("  of these zeroed", "estimates_zeroed_share", percent)
    return table


def _yardstick_table(summary: Mapping[str, Any], expected: Expected) -> Table:
    """Welfare of the run and of first come, first served, against two upper bounds on any schedule."""
    bounds, first_come = summary["bounds"], summary["first_come"]
    dual, certificate = bounds["dual"], bounds.get("certificate")
    covered = bounds.get("certificate_valid", False) and bounds["certificate_jobs"] == bounds["certificate_of"]
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim")
    table.add_column("")
    table.add_column("welfare", justify="right")
    table.add_column("at least, of the best\nin hindsight (29)", justify="right")
    table.add_column("at least, of the best\nlaunch plans (22)", justify="right")
    if "share_of_best" in expected:
        table.add_column("expected", justify="right", style="dim")

    def row(label: str, welfare: float, key: str | None = None) -> None:
        by_dual = percent(welfare / dual) if dual > 0 else "-"
        by_reports = percent(min(1.0, welfare / certificate)) if certificate and covered else "-"
        told = [_expectation(expected.get(key or ""), percent)] if "share_of_best" in expected else []
        table.add_row(label, amount(welfare), by_dual, by_reports, *told)

    row("this market", summary["welfare"], "share_of_best")
    row("first come, first served, price 0", first_come["welfare_at_zero"], "first_come_share")
    label = f"  at the best price in hindsight, {amount(first_come['best_price'])}"
    row(label, first_come["welfare_at_best"], "first_come_best_share")
    limits = ["", amount(dual), amount(certificate) if certificate is not None else "-"]
    table.add_row("no schedule is worth more than", *limits, *([""] if "share_of_best" in expected else []))
    return table


def _expectation(figure: tuple[float, float] | None, show: Show) -> str:
    if figure is None:
        return ""
    mean, deviation = figure
    return f"{show(mean)} ± {show(deviation)}" if deviation else show(mean)


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """Return what a reader of the figures must be told, one sentence each."""
    found = []
    bounds, counts = summary.get("bounds", {}), summary.get("mechanism", {})
    share = summary.get("share_of_best")
    if share is not None:
        found.append(
            f"welfare is at least {percent(share)} of the best schedule in hindsight (dual bound (29), over what "
            "really happened)"
        )
    if bounds.get("certificate_valid") and bounds["certificate_jobs"] < bounds["certificate_of"]:
        found.append(
            f"the certificate (22) covers {bounds['certificate_jobs']:,} of {bounds['certificate_of']:,} reports, "
            "those whose plan no failure estimate moved"
        )
    elif bounds.get("certificate") is not None and not bounds["certificate_valid"]:
        found.append(
            f"the certificate (22), {amount(bounds['certificate'])}, does not hold: {bounds['certificate_reason']}"
        )
    if summary.get("first_come_best_share", 0.0) > (share or 0.0):
        found.append(
            "first come, first served (durations known, best price in hindsight) is worth more than this market here"
        )
    if counts.get("bias_probes", 0) > 1:  # one probe has no spread
        found.append(
            f"failure estimates of kept paths are off by {counts['bias']:+.2g} ± {counts['bias_half_width']:.1g} "
            f"({counts['bias_probes']:,} probes against fresh paths)"
        )
    if summary.get("proven"):
        found.append(summary["proven"])
    return found
