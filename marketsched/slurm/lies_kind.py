"""The display of an audit of Slurm: one row a lie, with its gain on the port and on slurmctld."""

from __future__ import annotations

import math

from rich.console import Group
from rich.text import Text

from marketsched.results.kinds import ResultKind
from marketsched.results.result import Result
from marketsched.results.views import percent, plain_table
from marketsched.slurm.lies import LIES


class SlurmLiesKind(ResultKind):
    """Tables ``screened`` and ``confirmed``; one row of the summary per lie."""

    title = "lies to Slurm"
    table = "summary"
    compared = "lies"
    by = ("lie",)

    def view(self, result: Result) -> Group:
        meta, rows = result.meta, result.records()
        titles = ["jobs", "rounds earlier,\non the port", "of them\ngain", "job played\non slurmctld"]
        table = plain_table(*titles, "gain:\nport", "slurmctld", "confirmed", first="the job ...", room=20)
        for row in rows:
            played = math.isfinite(row["on_port"])
            gain = f"{row['gain']:+.1f}" if math.isfinite(row["gain"]) else "-"
            if math.isfinite(row["gain_low"]):
                gain += f" ({row['gain_low']:+.1f} to {row['gain_high']:+.1f})"
            least, most = row["least_on_slurm"], row["most_on_slurm"]
            span = f"{least:+.0f}" if least == most else f"{least:+.0f} to {most:+.0f}"
            table.add_row(
                LIES[row["lie"]][0],
                str(row["looked_at"]),
                gain,
                percent(row["paying"]) if row["looked_at"] else "-",
                row["job"] or "-",
                f"{row['on_port']:+.0f}" if played else "-",
                span if played else "-",
                ("yes" if row["confirmed"] else "no") if played else "-",
            )
        return Group(Text(_answer(result), style="bold"), table, *(Text(f"- {note}") for note in _notes(meta)))


def _answer(result: Result) -> str:
    rows, meta = result.records(), result.meta
    found = [row["lie"] for row in rows if row["confirmed"]]
    where = f"{meta['scenario']}, Slurm {', '.join(meta['slurm']) or 'by its port'} ({meta['rules']['rule']})"
    if found:
        return f"{where}: {len(found)} lies pay, confirmed on slurmctld: {', '.join(found)}"
    paying = [row["lie"] for row in rows if row["paying"] > 0]
    if not paying:
        return f"{where}: none of these lies pays on the port"
    if meta["slurm"]:
        return f"{where}: no lie that was tried is confirmed"
    return f"{where}: on the port pay {', '.join(paying)}; none was played on slurmctld"


def _notes(meta: dict[str, object]) -> list[str]:
    rules = meta["rules"]
    assert isinstance(rules, dict)
    notes = []
    if meta["missing"]:
        missing = ", ".join(map(str, meta["missing"]))  # type: ignore[call-overload]
        notes.append(
            f"not confirmed: {missing} not found; expected Debian's slurm-wlm, slurmdbd, mariadb-server, faketime"
        )
    notes.append("configuration: " + ", ".join(f"{name} {value}" for name, value in rules.items()))
    notes.append(
        f"{meta['owners']} of the {meta['waiting']} jobs that wait at most 24 rounds, {meta['nodes']} nodes; a round "
        f"is {meta['round_seconds']:g} s; intervals of {meta['confidence']:.0%}"
    )
    if meta["slurm"]:
        notes.append(
            f"slurmctld: the truth and the lie {meta['repetitions']} times each; confirmed: earlier each time; the "
            "script of that name in the folder shows it on another Slurm"
        )
    return notes
