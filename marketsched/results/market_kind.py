"""A market that was run, as a person reads it: what happened, and how far from the best it can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Group
from rich.text import Text

from marketsched import results
from marketsched.results.kinds import ResultKind
from marketsched.results.owners import FEWEST
from marketsched.results.tables import columns_of
from marketsched.results.views import (
    View,
    WordTable,
    amount,
    at_least_percent,
    flat,
    log_remarks,
    percent,
    plain_table,
    warnings_of,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from marketsched.results.result import Result

Expected = Mapping[str, Sequence[float]]
Show = Callable[[float], str]
ROUNDING = 1e-9  # of a welfare that is a sum in another order


class MarketKind(ResultKind):
    """A market: tables ``events``, ``jobs``, ``rounds``, ``prices`` where prices moved, ``pools`` of a cluster."""

    title = "market run"
    table = "jobs"

    def how_far(self, result: Result) -> str:
        return f"after round {result.outcome['rounds']} of {result.outcome['horizon']}"

    def view(self, result: Result) -> View:
        found = summary_view(result.outcome, result.meta.get("expected"))
        first, more = log_remarks(result.meta)
        users = _users(result) if first else []
        said, detailed = ([Text(f"- {remark}") for remark in each] for each in (first, more))
        moved = [Text(f"- {remark}") for remark in _most_preempted(result)]
        return View(*warnings_of(result.meta), *found.renderables, *moved, *said, *users, details=detailed)

    def figures(self, result: Result) -> dict[str, Figure]:
        prices = result.tables["prices"].to_numpy() if "prices" in result.tables else None
        title = f"{result.meta['scenario']}, seed {result.meta['seed']}"
        drawn = _DrawnTables(
            columns_of(result.tables, "jobs", results.market_figure.DRAWN), result.rounds, result.outcome
        )
        length = result.meta.get("round_seconds")
        drawn_figures = {
            "figure": results.market_figure.run_figure(
                drawn, prices, round_seconds=length, title=title, shared="pools" in result.tables
            )
        }
        if "pools" in result.tables:
            pools = result.tables["pools"]
            drawn_figures["pools"] = results.pools_figure.pools_figure(pools, title=title, round_seconds=length)
        return drawn_figures

    def details(self, result: Result) -> Mapping[str, Any]:
        leaves = {name: value for name, value in flat(result.outcome) if name != "proven"}  # a remark says it
        return {"All figures of the run": leaves, **results.owners_view.tables_of_owners(result)}


def _most_preempted(result: Result) -> list[str]:
    """Say which job was preempted most often, where any was."""
    if not result.outcome.get("requeues") or "runs" not in result.jobs:
        return []
    times = result.jobs["runs"] - result.jobs["start"].notna()  # the run that has a start was not preempted
    at, n = int(times.to_numpy().argmax()), int(times.max())
    name, owner = result.jobs["name"].iloc[at], result.jobs["owner"].iloc[at]
    return [f"preempted most often: job {name} of {owner}, {n} time{'s' if n > 1 else ''}"] if n else []


def _users(result: Result) -> list[Any]:
    """Return the table by user of a log that was played."""
    length = results.waits_view.round_length(result.meta)
    return results.waits_view.users_view(results.waits.waits_table(result.jobs, length), length)


class _DrawnTables(NamedTuple):
    """What the figure shows of a result."""

    jobs: pd.DataFrame
    rounds: pd.DataFrame
    outcome: Mapping[str, Any]


def prices_table(surface: NDArray[np.float32] | None) -> dict[str, pd.DataFrame]:
    """Return the table ``prices``, by its name: one row per round, a column for each round ahead.

    Rounds so far ahead that they are as good as free are left out; no table where no price ever moved.
    """
    import pandas as pd

    shown = results.market_figure.worth_drawing(surface)
    if shown is None:
        return {}
    columns = [str(ahead) for ahead in range(shown.shape[1])]
    return {"prices": pd.DataFrame(shown, columns=columns)}


def summary_view(summary: Mapping[str, Any], expected: Expected | None = None) -> Group:
    """Return the tables and remarks of a run's summary, ready to print with rich.

    Parameters
    ----------
    summary : mapping
        As :func:`marketsched.play.running.run` fills it.
    expected : mapping of str to (float, float), optional
        Mean and standard deviation of figures by their name in the summary; shown beside what was
        found.
    """
    parts: list[Any] = [_headline(summary), _events_table(summary, expected or {})]
    if summary.get("bounds"):
        parts.append(_bounds_table(summary, expected or {}))
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


def _events_table(summary: Mapping[str, Any], expected: Expected) -> WordTable:
    table = plain_table("")
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
    in_use: Mapping[str, float] = summary.get("in_use") or {}  # of a cluster, where jobs may share a node
    of = "of the scarcest resource" if in_use else "share of capacity"
    row(f"load asked for, {of}", "load", percent)
    row("  at its peak", "peak_demand_share", percent)
    for name, share in in_use.items():
        row(f"{name} in use until the last submission", "in_use", percent, percent(share))
    said = "nodes in use, at least in part, until then" if in_use else "utilisation until the last submission"
    row(said, "utilisation_open", percent)
    row("  of all rounds", "utilisation", percent)
    row(f"owners' own value ({FEWEST} jobs or more), mean", "own", percent)
    row("  worst tenth of owners", "own_q10", percent)
    row("  worst owner", "own_worst", percent)
    row("completed", "completed", amount)
    row("  share of jobs", "completed_share", percent)
    row("dropped", "dropped", amount)
    row("cancelled", "cancelled", amount)
    row("evicted", "evicted", amount)
    for label, key in (("still running or waiting at the end", "unfinished"), ("never arrived", "never_arrived")):
        if summary.get(key):
            row(label, key, amount)
    if summary.get("requeues"):
        row("runs taken back", "requeues", amount)
        row("  node-rounds lost, with evictions", "lost_node_rounds", amount)
    row("price of a node, lowest", "price_lowest", amount)
    row("  median", "price_median", amount)
    row("  highest", "price_highest", amount)
    row("failure estimates above 0", "estimates_positive_share", percent)
    row("  of these zeroed", "estimates_zeroed_share", percent)
    return table


def _bounds_table(summary: Mapping[str, Any], expected: Expected) -> WordTable:
    """Welfare of the run and of first come, first served, against two upper bounds on any schedule."""
    bounds, first_come = summary["bounds"], summary["first_come"]
    dual, certificate = bounds["dual"], bounds.get("certificate")
    covered = bounds.get("certificate_valid", False) and bounds["certificate_jobs"] == bounds["certificate_of"]
    hindsight, plans = "at least, of the best\nin hindsight", "at least, of the best\nlaunch plans"
    planned = bool(certificate and covered)
    table = plain_table("welfare", hindsight, *([plans] if planned else []))
    if "share_of_best" in expected:
        table.add_column("expected", justify="right", style="dim")

    def row(label: str, welfare: float, key: str | None = None) -> None:
        by_dual = at_least_percent(welfare / dual) if dual > 0 else "-"
        by_reports = [at_least_percent(min(1.0, welfare / certificate))] if planned else []
        expectation = [_expectation(expected.get(key or ""), percent)] if "share_of_best" in expected else []
        table.add_row(label, amount(welfare), by_dual, *by_reports, *expectation)

    row("this market", summary["welfare"], "share_of_best")
    if "welfare_at_zero" in first_come:
        knows = "knowing all durations" if first_come.get("knows_durations") else "first served"
        row(f"first come, {knows}, price 0", first_come["welfare_at_zero"], "first_come_share")
    if "welfare_at_best" in first_come:
        label = f"  at the best price in hindsight, {amount(first_come['best_price'])}"
        row(label, first_come["welfare_at_best"], "first_come_best_share")
    limits = ["", amount(dual), *([amount(certificate)] if planned else [])]
    table.add_row("no schedule is worth more than", *limits, *([""] if "share_of_best" in expected else []))
    return table


def _expectation(figure: Sequence[float] | None, show: Show) -> str:
    if figure is None:
        return ""
    mean, deviation = figure
    return f"{show(mean)} ± {show(deviation)}" if deviation else show(mean)


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """Return the notes below the figures, one sentence each."""
    found = []
    bounds, counts = summary.get("bounds", {}), summary.get("mechanism", {})
    share = summary.get("share_of_best")
    if share is not None:
        found.append(
            f"welfare is at least {at_least_percent(share)} of the best schedule in hindsight (a dual bound, over what "
            "really happened)"
        )
    if bounds.get("certificate_valid") and bounds["certificate_jobs"] < bounds["certificate_of"]:
        found.append(
            f"the certificate of this run covers {bounds['certificate_jobs']:,} of {bounds['certificate_of']:,} "
            "reports, those whose plan no failure estimate moved"
        )
    elif bounds.get("certificate") is not None and not bounds["certificate_valid"]:
        found.append(
            f"the certificate of this run, {amount(bounds['certificate'])}, does not hold: "
            f"{bounds['certificate_reason']}"
        )
    if summary.get("first_come_best_share", 0.0) > (share or 0.0) * (1 + ROUNDING) + ROUNDING:
        found.append(
            "first come, first served (durations known, best price in hindsight) is worth more than this market here"
        )
    if counts.get("bias_probes", 0) > 1:  # one probe has no spread
        found.append(
            f"failure estimates of kept paths are off by {counts['bias']:+.2g} ± {counts['bias_half_width']:.1g} "
            f"({counts['bias_probes']:,} probes against fresh paths)"
        )
    found += _credits_remarks(counts)
    if summary.get("proven"):
        found.append(summary["proven"])
    return found


def _credits_remarks(counts: Mapping[str, float]) -> list[str]:
    """Say what became of the credits of a market of purses."""
    if not counts.get("credits_earned"):
        return []
    spent, undone = counts["credits_spent"], counts.get("credits_undone", 0.0)
    lost = f", {percent(undone / spent)} of them for jobs that were stopped undone" if undone and spent else ""
    found = [
        f"purses (revenue is money, and there is none): {amount(counts['credits_earned'])} credits earned, "
        f"{amount(spent)} spent{lost}, {amount(counts['credits_expired'])} expired, {amount(counts['credits_held'])} "
        f"held; jobs that became regular: {counts['upgrades']:,.0f}"
    ]
    if too_dear := counts.get("beyond_purse"):
        found.append(f"jobs that cost more than their owner's purse can hold, and stay free: {too_dear:,.0f}")
    return found
