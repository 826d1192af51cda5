"""The dashboard's words and figures: the numbers of a market, and the reasons for a job's placement."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from marketsched.dashboard.player import Frame
from marketsched.dashboard.session import Story
from marketsched.dashboard.view import MarketView

MOST_ROWS = 120  # of the table of starts


HELP = {
    "load": "Busy nodes, and nodes that the plans have reserved so far. Marks on top: jobs cancelled before their "
    "first round, or evicted while running; a larger mark stands for more jobs.",
    "prices": "The price of one node for one round. Horizontal: the current round. Vertical: how many rounds ahead the "
    "node is used. Dark is a high price; white is not on sale.",
    "welfare": "The value of completed jobs so far, the payments for them, and an upper bound on the value of any "
    "schedule up to this round, even one made with full knowledge of the run.",
    "utilities": "Value minus payment of completed jobs, per owner, with 95 % intervals over owners. The groups have "
    "different owners and jobs, so their difference does not measure the gain of a lie; marketsched audit does.",
    "why": "The menu this job had for the arrival and duration that occurred: at its submission where the mechanism "
    "plans then, else at its arrival. The start with the highest expected surplus, (1 - failure) x (value - price), is "
    "taken.",
}
MEANINGS = {
    "round": "Rounds played, and rounds in all.",
    "load": "Busy nodes in the last round, and nodes in all.",
    "asked": "Node-rounds that the jobs need, as a share of those available until the last submission.",
    "jobs": "Jobs submitted so far, and jobs in the workload.",
    "completed": "Jobs that ran to their end. Dropped: jobs that became ready and that their plan does not run.",
    "removed": "Jobs stopped while running because nodes were short. Cancelled: stopped before their first round.",
    "welfare": "The value of completed jobs, in credits, and its share of the upper bound.",
    "revenue": "Credits paid for completed jobs.",
    "price": "The price of one node in the next round, as announced now.",
}


class StripFigure(NamedTuple):
    """One figure of the strip: name, value, reference, and meaning."""

    key: str
    label: str
    value: str
    beside: str = ""
    meaning: str = ""


def numbers(view: MarketView) -> tuple[StripFigure, ...]:
    """Return the figures of a market, so far."""
    load = int(view.load[-1]) if view.round else 0
    welfare = float(view.welfare[-1]) if view.round else 0.0
    revenue = float(view.revenue[-1]) if view.round else 0.0
    share = view.share_of_bound
    against = "bound is 0" if share is None else f"{share:.1%} of bound"
    against = "bound pending" if view.bound is None else against if view.round else "before round 1"
    counts = view.counts
    price = _price_now(view)
    of_welfare = "" if welfare <= 0 else f"{revenue / welfare:.0%} of welfare"
    per = "is announced" if price == "none" else "per node-round"
    figures = (
        ("round", "round", f"{view.round:,}", f"of {view.horizon:,}"),
        ("load", "busy nodes", f"{load:,}", f"of {view.capacity:,}"),
        ("asked", "demand", f"{view.asked:.0%}", "of capacity"),
        ("jobs", "submitted", f"{counts['submit']:,}", f"of {view.jobs:,} jobs"),
        ("completed", "completed", f"{counts['complete']:,}", f"{counts['drop']:,} dropped"),
        ("removed", "evicted", f"{counts['evict']:,}", f"{counts['cancel']:,} cancelled"),
        ("welfare", "welfare", amount(welfare), against),
        ("revenue", "revenue", amount(revenue), of_welfare),
        ("price", "price, next round", price, per),
    )
    return tuple(StripFigure(*figure, MEANINGS[figure[0]]) for figure in figures)


def state(frame: Frame) -> str:
    """Return the state of the player in words."""
    if frame.building:
        return "building the market ..."
    if frame.view is None:
        return "no market"
    view = frame.view
    if frame.playing or frame.stepping:
        return f"playing, round {view.round:,} of {view.horizon:,}"
    if view.complete:
        return f"over: all {view.horizon:,} rounds are played"
    pending = ", computing the bound ..." if frame.bounding else ""
    return f"paused after round {view.round:,} of {view.horizon:,}{pending}"


def bound_rows(view: MarketView) -> list[tuple[str, ...]]:
    """Return welfare, the bound and the share by now, and the bound at the end."""
    welfare = float(view.welfare[-1]) if view.round else 0.0
    share = view.share_of_bound
    by_now = "-" if view.bound is None else amount(float(view.bound[view.round - 1]) if view.round else 0.0)
    rows: list[tuple[str, ...]] = [
        (f"by round {view.round:,}", amount(welfare), by_now, "-" if share is None else f"{share:.1%}")
    ]
    if view.bound is not None and not view.complete:
        rows.append((f"by round {view.horizon:,}, the last", "", amount(float(view.bound[-1])), ""))
    return rows


def group_rows(view: MarketView) -> list[tuple[str, ...]]:
    """Return strategy, owners, jobs, completed, and mean utility with its interval."""
    return [
        (
            group.name,
            f"{group.owners:,}",
            f"{group.jobs:,}",
            f"{group.completed:,}",
            amount(group.mean) + (f" ± {amount(group.half_width)}" if math.isfinite(group.half_width) else ""),
        )
        for group in view.groups
    ]


def sentences(story: Story) -> list[str]:
    """Describe a job: its report, its entry of the menu, and how it ended."""
    return [_report(story), _case(story), _choice(story), _fate(story)]


def start_rows(story: Story) -> list[tuple[bool, tuple[str, ...]]]:
    """Return (chosen, cells) for each start: round, value, price, failure, expected surplus.

    At most ``MOST_ROWS``, around the chosen start.
    """
    reason = story.reason
    n = reason.starts.size
    centre = 0 if reason.chosen is None else int(reason.chosen - reason.starts[0])
    first = max(0, min(centre - MOST_ROWS // 2, n - MOST_ROWS))
    rows: list[tuple[bool, tuple[str, ...]]] = []
    for i in range(first, min(n, first + MOST_ROWS)):
        start = int(reason.starts[i])
        sold = not math.isinf(reason.prices[i])
        cells = (
            f"{start:,}",
            amount(float(reason.values[i])),
            amount(float(reason.prices[i])) if sold else "not on sale",
            "-" if math.isnan(reason.failures[i]) else f"{reason.failures[i]:.1%}",
            amount(float(reason.surpluses[i])) if sold else "-",
        )
        rows.append((start == reason.chosen, cells))
    return rows


def amount(credits: float) -> str:
    """Write an amount of money in a few characters; '-' if there is none."""
    if math.isnan(credits):
        return "-"
    if math.isinf(credits):
        return "inf"
    if abs(credits) >= 1e7:
        return f"{credits:.4g}"
    return f"{credits:,.0f}" if abs(credits) >= 1000 else f"{credits:.2f}"


def _price_now(view: MarketView) -> str:
    if math.isnan(view.price):
        return "none"
    return "sold out" if math.isinf(view.price) else amount(view.price)


def _report(story: Story) -> str:
    reason = story.reason
    how = "reports the truth" if story.strategy == "truthful" else f"misreports ({story.strategy})"
    nodes = _count(reason.report.concurrency, "node")
    cases = _count(reason.report.law.group_arrivals.size, "case")
    return f"{reason.name} of {story.owner}, who {how}: submitted in round {reason.round:,}, {nodes}, {cases}."


def _case(story: Story) -> str:
    reason, job = story.reason, story.outcome
    if not reason.foreseen:
        return (
            "What really happens is not among these cases, so the plan cannot run it; below is the likeliest case: "
            f"ready in round {reason.arrival:,}, {reason.probability:.1%} likely by the report."
        )
    rounds = _count(int(job["duration"]), "round")
    likely = f"{reason.probability:.1%} likely by the report"
    return f"It becomes ready in round {reason.arrival:,} and runs {rounds}: {likely}."


def _choice(story: Story) -> str:
    reason = story.reason
    if not reason.has_menu:
        return (
            "This mechanism plans nothing at submission: a job is placed when it is ready, by what is free then. "
            "Prices are those at submission."
        )
    if not reason.starts.size:
        return "No start is worth anything any more, so the job is not run in this case."
    best = int(reason.surpluses.argmax())
    if reason.chosen is None:
        worth = reason.surpluses[best]
        missing = "none has enough free nodes" if reason.at_arrival else "none is on sale"
        seen = missing if math.isinf(worth) else f"the best has an expected surplus of {amount(float(worth))}"
        how = "It is not run" if reason.at_arrival else "The plan does not run it in this case"
        return f"{how}: of {_count(reason.starts.size, 'start')}, {seen}."
    i = int(reason.chosen - reason.starts[0])
    waits = int(reason.chosen - reason.arrival)
    failure = "" if math.isnan(reason.failures[i]) else f"failure {reason.failures[i]:.1%}, "
    when = "at once" if waits == 0 else f"after {_count(waits, 'round')} of waiting"
    how = "At its arrival it books a start" if reason.at_arrival else "The plan starts it"
    return (
        f"{how} {when}, in round {reason.chosen:,}: value {amount(float(reason.values[i]))}, price "
        f"{amount(float(reason.prices[i]))}, {failure}expected surplus {amount(float(reason.surpluses[i]))}, "
        f"the highest of {_count(reason.starts.size, 'start')}."
    )


def _fate(story: Story) -> str:
    job = story.outcome
    started = "" if job["start"] is None else f"started in round {job['start']:,}, "
    match job["outcome"]:
        case "completed":
            return (
                f"So far: {started}completed at time {job['completion']:,}; really worth {amount(job['value'])}, paid "
                f"{amount(job['payment'])}, utility {amount(job['utility'])}."
            )
        case "dropped" | "cancelled" | "evicted" as how:
            return f"So far: {started}{how} in round {job['removed']:,}; utility 0."
    return f"So far: {started}running." if started else "So far: not started."


def _count(n: Any, word: str) -> str:
    return f"{int(n):,} {word}" + ("" if n == 1 else "s")
