"""The first lines of a comparison on a log: how it ran, and how far the simulated schedules can be believed."""

from __future__ import annotations

import math

from marketsched.results.result import Result

RECORDED = "recorded"  # the name of the schedule of the log
MOST_FACTOR = 2.0  # a typical factor above which sizes of differences are not to be believed

# Causes (`marketsched.recorded.causes.CAUSES`): a row of the table, the head of a column.
WORDS = {
    "ineligible": "a begin time, a hold or a dependency, as the log says",
    "ahead": "nodes held by jobs that came earlier",
    "overtaken": "nodes held by jobs that came later",
    "smaller": "more nodes than ran at once within half a week",
    "pause": "nobody started: an outage or reserved time",
    "twin": "a later job of the same user, as wide and as long, went first",
    "calendar": "jobs of its length do not start at this hour of the week",
    "queue_limit": "its queue was at a limit",
    "user_limit": "its user was at a limit",
    "kept": "nodes kept for an older, wider job",
    "own": "an own job ended within the minute before: a limit or a dependency",
    "unexplained": "unexplained, with enough nodes free",
}
HEADS = {
    "ineligible": "not yet\neligible",
    "ahead": "earlier\njobs",
    "overtaken": "later\njobs",
    "smaller": "machine\nsmaller",
    "pause": "nobody\nstarted",
    "twin": "own like\njob first",
    "calendar": "closed\nhours",
    "queue_limit": "limit of\nits queue",
    "user_limit": "limit of\nits user",
    "kept": "kept for an\nolder job",
    "own": "until an own\njob ended",
    "unexplained": "unex-\nplained",
}


def recorded_sentences(result: Result) -> list[str]:
    """Return the waits of the recorded schedule, and the fidelity of the simulated one; empty where none is recorded.

    Parameters
    ----------
    result : Result
        Of kind ``mechanisms``.
    """
    rows = {row["mechanism"]: row for row in result.records()}
    if RECORDED not in rows:
        return []
    windows = int(result.meta.get("windows", 1))  # each of which has another record; draws do not
    of_windows = [
        table[table["mechanism"] == RECORDED].drop_duplicates("seed").head(windows)
        for table in (result.runs, result.waits[result.waits["by"] == "all"])
    ]
    runs, waits = (table.select_dtypes("number").mean() for table in of_windows)
    hours = waits["wait_rounds"] * result.meta["round_seconds"] / 3600
    longest = of_windows[0]["longest_wait_hours"].max()
    ran = as_it_ran(
        hours, runs["median_wait_hours"], runs["q90_wait_hours"], longest, runs["utilisation_open"], windows
    )
    free = runs["wait_with_nodes_free"]
    said = [result.meta["waits"]] if result.meta.get("waits") else []
    if math.isfinite(free) and not said:
        ran = f"{ran}; {free:.0%} of this waiting was while enough nodes were free"
    found = [f"{ran}.", *said]
    judge = next((name for name in ("scenario", "easy-backfill", *rows) if name in rows and name != RECORDED), None)
    if judge is not None and math.isfinite(rows[judge]["fidelity_ratio"]):
        row = rows[judge]
        believed = "the direction of differences can be believed, not their size"
        if row["fidelity_factor"] > MOST_FACTOR:
            believed = "differences between rules are not to be believed for this cluster"
        ranks = f", ranks {row['fidelity_ranks']:.2f}" if math.isfinite(row["fidelity_ranks"]) else ""
        found.append(
            f"Fidelity: {judge} on these nodes gives {row['fidelity_ratio']:.2g} of the recorded mean wait, typical "
            f"factor {row['fidelity_factor']:.1f}, {row['fidelity_near']:.0%} of jobs within 15 min{ranks}: {believed}."
        )
    if runs["beyond"] > 0 and not math.isfinite(rows[RECORDED]["welfare_share"]):
        rounded = "" if runs["beyond_in_seconds"] > 0.5 * runs["beyond"] else ", in whole rounds alone"
        found.append(
            f"The record used more nodes than there are here for {runs['beyond']:.1%} of its node time{rounded}: "
            "it has no share of the best possible value."
        )
    return found


def as_it_ran(mean: float, median: float, tenth: float, longest: float, utilisation: float, windows: int = 1) -> str:
    """Say how long jobs of a recorded schedule waited, hours, without a full stop; of several windows their means."""
    means = f"; means of {windows} windows" if windows > 1 else ""
    return (
        f"As it ran, jobs waited {_time(mean)} on average (half of them at most {_time(median)}, "
        f"a tenth more than {_time(tenth)}, one {_time(longest)}{means}), with {utilisation:.0%} of the nodes busy"
    )


def _time(hours: float) -> str:
    """Return a time in hours, or in minutes where it is short."""
    return f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.0f} min"
