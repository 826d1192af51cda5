"""What repairs of fair share cost in welfare: accounts tied to persons, charging by reservation, two offers.

    python benchmarks/repairs.py --out repairs.csv [--logs hpc2n nasa openb] [--load 1] [--seeds 410 411] [--jobs 1500]

Every row is a log, a seed and a rule: welfare in % of the dual bound (29). ``fair tree`` is what clusters have, under
the truth; tying accounts to persons changes nothing in it. What that is worth is lost in ``an account a job``: all
owners open an account for each job. Rows that the file has are not played again. Printed are the means, and differences
to ``fair tree`` paired over seeds with Student's 95 % interval. Logs as in `logs_table`, the last ``--jobs`` of each.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from pathlib import Path

import pandas as pd

import logs_table
from marketsched.results.paired_statistics import spread

FIRST = "fair tree"
RULES = {  # mechanism, and whether each job has an account of its own
    FIRST: ("fair-share:rule=fair-tree", False),
    "an account a job": ("fair-share:rule=fair-tree", True),
    "by reservation": ("fair-share:rule=fair-tree:by_reservation=true", False),
    "two offers": ("two-offers", False),
}
COLUMNS = ("log", "load", "jobs", "seed", "rule", "share", "seconds")


def shown(rows: pd.DataFrame) -> str:
    """Return means, and paired differences to `FIRST`, as lines of a table."""
    lines = []
    for (log, load), own in rows.groupby(["log", "load"]):
        wide = own.pivot_table(index="seed", columns="rule", values="share").dropna()
        cells = [f"{wide[FIRST].mean():.1f}"]
        for rule in list(RULES)[1:]:
            each = spread((wide[rule] - wide[FIRST]).to_numpy(float))
            cells.append(f"{each.mean:+.1f} ({each.low:+.1f} to {each.high:+.1f})")
        lines.append(f"| {log} {load:g} | {' | '.join(cells)} | {len(wide)} seeds")
    return "\n".join([f"| log, load | {' | '.join(RULES)} |", *lines])


def main() -> None:
    """Play, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--logs", nargs="+", default=["hpc2n", "nasa", "openb"], choices=list(logs_table.LOGS))
    parser.add_argument("--load", type=float, default=1.0)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(410, 415)))
    parser.add_argument("--jobs", type=int, default=1500)
    arguments = parser.parse_args()
    known = set()
    if arguments.out.exists():
        known = {tuple(row[name] for name in COLUMNS[:5]) for row in csv.DictReader(arguments.out.open())}
    with arguments.out.open("a", newline="") as file:
        writer = csv.writer(file)
        if not known:
            writer.writerow(COLUMNS)
        for name in arguments.logs:
            path, nodes, _ = logs_table.LOGS[name]
            logs_table.LOGS[name] = (path, nodes, arguments.jobs)
            log = logs_table.log_of(name, 0)
            for seed in arguments.seeds:
                cell = (name, arguments.load, arguments.jobs, seed)
                asked = [rule for rule in RULES if (*map(str, cell), rule) not in known]
                if not asked:
                    continue
                workload = logs_table.market_at(log, name, arguments.load, seed)
                bound = logs_table.bound_of(workload)
                apart = replace(workload, jobs=tuple(replace(job, owner=job.name) for job in workload.jobs))
                for rule in asked:
                    label, own = RULES[rule]
                    found = logs_table.played(label, apart if own else workload)
                    writer.writerow([*cell, rule, 100 * found["welfare"] / bound, round(found["seconds"], 2)])
                    file.flush()
    print(shown(pd.read_csv(arguments.out)))


if __name__ == "__main__":
    main()
