"""Reports in tiny clusters under `cluster-offers`: in forced entries, bit for bit, and beside the truth; faults.

    python benchmarks/cluster_offers_proofs.py [--entries 5000] [--markets 300] [--first 0]

The markets are in `tests/support/cluster_offers_markets.py`: 9 to 13 jobs with hidden durations on four nodes of two
kinds, with cores and GPUs or shares of one; half of the jobs run at different speeds on the two kinds. One job reports
laws (speeds too), values and deadlines of a grid.

* *moved*: a report in an entry that is drawn moves an event or a place, of any job, before the job has left;
* *better inside*: it brings more than the truth in the same entry, the job's durations enumerated;
* *announced better*: it takes an entry that the truth was offered and that was announced to be worth more to it.

Each planted fault is a rule in which one of these has to be found.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from cluster_offers_markets import GAINING, MOVING, REPORTS, Chosen, findings, moved  # type: ignore[import-not-found]

CONTROL_MARKETS, EACH = 60, 6
COUNTS = ("announced better", "better inside", "not offered")


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=5_000, help="reports in entries that are forced")
    parser.add_argument("--markets", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="seed")
    asked = parser.parse_args()
    control = range(asked.first, asked.first + CONTROL_MARKETS)
    for name, made in MOVING.items():
        counts = [moved(seed, made, EACH) for seed in control]
        print(
            f"control, {name}: {sum(f for _, f in counts)} of {sum(n for n, _ in counts)} moved something", flush=True
        )
    for name, made in GAINING.items():
        print(f"control, {name}: {told(control, made)}", flush=True)
    counts = [moved(seed) for seed in range(asked.first, asked.first + -(-asked.entries // REPORTS))]
    print(f"forced entries: {sum(f for _, f in counts)} of {sum(n for n, _ in counts):,} moved something", flush=True)
    print(told(range(asked.first, asked.first + asked.markets), Chosen))


def told(seeds: range, made: Any) -> str:
    """Return what reports do in these markets, as text."""
    total = Counter[Any]()
    for seed in seeds:
        total.update(findings(seed, made, EACH))
    return f"{total['reports']:,} reports: " + ", ".join(f"{total[name]:,} {name}" for name in COUNTS)


if __name__ == "__main__":
    main()
