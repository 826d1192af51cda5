"""What `audit`, `check_truthful` and `check_mechanism` find of 26 planted faults.

    python benchmarks/fault_table.py --out table.csv [--faults NAME ...] [--plays 2000] [--seed 0] [--show]

One row of the CSV file for each fault: the exit status that the audit would have, what it found, and which checks fail.
Rows that the file has are not made again. ``--show`` prints the table that docs/audit-measured.md sums up. Owners with
several jobs are looked at, too (``per_owner``); what is found of them changes no exit status.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from faults import all_faults
from marketsched.truthfulness import check_mechanism, check_truthful
from marketsched.truthfulness.audit import audit
from marketsched.truthfulness.audit_findings import MechanismAudit
from marketsched.truthfulness.searches.screened import Gain
from planted_faults import market, registered  # type: ignore[import-not-found]

COLUMNS = ("fault", "status", "audit", "check_truthful", "check_mechanism", "seconds")


def found_by_audit(fault: str, plays: int, seed: int) -> tuple[int, str]:
    """Return the exit status of an audit within so many plays, and what it found, in words."""
    whole = audit(market(), [registered(fault, all_faults())], plays=plays, budget=None, seed=seed, per_owner=True)
    (one,) = whole.mechanisms
    return whole.status, _words(one)


def _words(one: MechanismAudit) -> str:
    if one.exact is not None:
        kind = "own law" if one.exact.own_law is not None else "ex post"
        return f"{kind}: {_short(one.exact)}, +{one.exact.counted:.3g}"
    if one.lies:
        return f"confirmed: {one.lies[0].words}, at least +{one.lies[0].gain_low:.3g}"
    if one.seems():
        return f"seems to pay: {one.seems()[0]}"
    luck = None if one.at_hand is None else one.at_hand.best_ex_post
    if luck is not None:
        return f"said, no promise is broken: in this market {_short(luck)}, +{luck.gain:.3g}"
    if one.joint and one.joint[0].gain > 0:
        return f"owners' jobs together: {one.joint[0].words}, +{one.joint[0].gain:.3g}"
    return "nothing"


def _short(gain: Gain) -> str:
    """Return what a lie does, of one that states another report the numbers that differ from the truth."""
    report, truth = gain.conduct.statements[0].report, gain.owner.truth
    if len(gain.words) < 80:
        return gain.words
    numbers = {
        "value": (truth.value.highest, report.value.highest),
        "deadline": (truth.value.last, report.value.last),
        "nodes": (truth.concurrency, report.concurrency),
        "curve": (type(truth.value).__name__, type(report.value).__name__),
    }
    rounds = range(report.birth, int(report.value.last) + 1)
    begins = next((t for t in rounds if report.value(t) > 0), report.birth)
    if begins > report.birth and truth.value(report.birth) > 0:
        return f"worth nothing before round {begins} of {report.birth} to {report.value.last}"
    changed = [f"{name} {new} for {old}" for name, (old, new) in numbers.items() if new != old]
    return ", ".join(changed) or "another curve or other durations"


def row_of(fault: str, plays: int, seed: int) -> dict[str, Any]:
    """Return the row of a fault."""
    began, build = time.process_time(), all_faults()[fault]
    status, words = found_by_audit(fault, plays, seed)
    truthful, general = check_truthful(build, seed=seed), check_mechanism(build, seed=seed)
    return {
        "fault": fault,
        "status": status,
        "audit": words,
        "check_truthful": "; ".join(one.name for one in truthful.failed),
        "check_mechanism": "; ".join(one.name for one in general.failed),
        "seconds": round(time.process_time() - began, 1),
    }


def main() -> None:
    """Make the rows that are missing, and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--faults", nargs="+", default=list(all_faults()), choices=list(all_faults()))
    parser.add_argument("--plays", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    done = set(pd.read_csv(given.out)["fault"]) if given.out.exists() else set()
    with given.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not done:
            writer.writeheader()
        for fault in given.faults:
            if fault not in done:
                row = row_of(fault, given.plays, given.seed)
                writer.writerow(row)
                file.flush()
                print(row, flush=True)
    if given.show:
        print("| fault | `audit` | status | `check_truthful` | `check_mechanism` |\n|---|---|---|---|---|")
        for line in pd.read_csv(given.out, keep_default_na=False).itertuples():
            checks = ("yes" if line.check_truthful else "no", str(line.check_mechanism).replace(";", ",") or "no")
            print(f"| {line.fault} | {line.audit} | {line.status} | {checks[0]} | {checks[1]} |")


if __name__ == "__main__":
    main()
