"""False alarms of the audit on clean markets, and how often it finds gains that are planted.

    python benchmarks/audit_power.py clean --out clean.csv --markets 500 [--seconds 500]
    python benchmarks/audit_power.py screen --out screen.csv --runs 100
    python benchmarks/audit_power.py worlds --out worlds.csv --runs 100

``clean``: small markets under rules in which no lie pays; a row of the CSV file for each. ``screen``: a share of the
owners gains, .5, 1 and 2 times the share that a clean result calls detectable. ``worlds``: a lie gains on average
.5, 1 and 2 times what a clean result says it would have confirmed. Rows that the file has are not made again, so that a
run which ``--seconds`` has ended goes on. Printed are counts, with exact binomial bounds.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta

from marketsched.agents.job import Job
from marketsched.agents.lies import ScaleValue
from marketsched.mechanisms import DeadlineValue, StatementOfWork, register
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.truthfulness.audit import audit
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.on_worlds import OnWorlds, lies_on_worlds
from marketsched.truthfulness.searches.screening import Screening
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand

TIMES = (0.5, 1.0, 2.0)  # the printed size
SCREEN_PLAYS, WORLDS_PLAYS = 200, 1000
LOW = 5.0  # true values are above it, their halves below
SIZES: dict[str, Any] = {"capacity": 40, "horizon": 16, "max_delay": 10}
LIMITS: dict[str, Any] = {"max_concurrency": 2, "max_duration": 3, "max_value": 10.0}


class DrawnFee(FirstCome):
    """Charges a fee that it draws, whatever is reported, and less than any job is worth."""

    truthful = truthful_hidden = "none"

    def __init__(self, *sizes: Any, rng: np.random.Generator, **limits: Any) -> None:
        super().__init__(*sizes, **limits)
        self.rng = rng

    def charge(self, x: Any) -> float:
        """Draw it."""
        self.give_back(x)
        return float(self.rng.random())


class Gift(DrawnFee):
    """Draws a fee, another one for low values, and gives a share of twice a low value back: what half the truth is."""

    share = 0.0

    def charge(self, x: Any) -> float:
        """Draw both fees."""
        self.give_back(x)
        first, second = self.rng.random(2)
        value = x.sow.value.highest
        return 1 + 2 * float(first) if value >= LOW else 1 + 2 * float(second) - self.share * 2 * value


class Waives(FirstCome):
    """Charges some jobs nothing if they report a low value."""

    favoured: frozenset[Any] = frozenset()

    def charge(self, x: Any) -> float:
        """Waive it."""
        paid = super().charge(x)
        return 0.0 if x.job in self.favoured and x.sow.value.highest < LOW else paid


# --- clean markets ----------------------------------------------------------------------------------------


def clean_market(seed: int, n: int = 10) -> dict[str, Any]:
    """Return jobs of three nodes and more than there is room for; durations are hidden in every other market."""
    rng, jobs = np.random.default_rng([0xC1EA, seed]), []
    for i in range(n):
        birth = 1 + i // 2
        first, second = (int(d) for d in rng.permutation([1, 2, 3])[:2])
        hidden = {"signal": None} if seed % 2 else {}
        points = [
            {"arrival": birth + int(rng.integers(0, 2)), "duration": d, "probability": p, **hidden}
            for d, p in ((first, 0.6), (second, 0.4))
        ]
        came = points[0 if rng.random() < 0.6 else 1]
        value = {"kind": "deadline", "value": float(rng.uniform(1, 10)), "deadline": birth + int(rng.integers(4, 8))}
        happened = {"arrival": came["arrival"], "duration": came["duration"]}
        ordinary = {"name": f"job-{i}", "owner": f"owner-{i}", "birth": birth, "concurrency": int(rng.integers(1, 3))}
        jobs.append({**ordinary, "value": value, "requirements": points, **happened})
    sizes = {"capacity": 3, "horizon": 14, "max_concurrency": 2, "max_duration": 3, "max_value": 10, "max_delay": 9}
    return {"name": "clean", "workload": {"kind": "jobs", **sizes, "jobs": jobs}}


CLEAN = ("first-come:price=.4:stop_at_deadline=false", "bid-price:stop_at_deadline=false", "drawn-fee")


def clean_row(seed: int) -> dict[str, Any]:
    """Audit one market within 150 plays."""
    rule = CLEAN[seed // 2 % len(CLEAN)]
    found = audit(clean_market(seed), [rule], plays=150, budget=None, seed=seed, owners=10)
    (one,) = found.mechanisms
    words = [*one.errors, *one.seems(), "" if one.exact is None else one.exact.words][:1]
    return {"run": seed, "mechanism": rule, "status": found.status, "plays": one.plays, "words": " ".join(words)}


# --- planted gains ----------------------------------------------------------------------------------------


def _market(seed: int, build: Callable[..., FirstCome], n: int = 48) -> MarketAtHand:
    """Return a market with room for all jobs, worth 5 to 10 credits."""
    rng, jobs = np.random.default_rng([0x6A17, seed]), []
    for i in range(n):
        birth, duration = 1 + i // 6, int(rng.integers(1, 4))
        curve = DeadlineValue(float(rng.uniform(LOW + 0.01, 10.0)), birth + 6)
        truth = StatementOfWork(birth, int(rng.integers(1, 3)), curve, [(birth, duration, 1.0)])
        jobs.append(Job(f"job {i}", f"owner {i}", truth, birth, duration, duration))
    return MarketAtHand(build, jobs, **SIZES, seed=seed)


def screen_row(run: int) -> dict[str, Any]:
    """Screen markets in which a share of the owners gains by halving its value; say in which one was found."""
    row: dict[str, Any] = {"run": run}
    for times in (0.0, *TIMES):
        share = times * row.get("size", 0.0)
        rng = np.random.default_rng([0x5C, run, int(10 * times)])
        favoured = frozenset(f"job {i}" for i in range(48) if rng.random() < share)

        def build(_: Any, favoured: frozenset[Any] = favoured) -> FirstCome:
            made = Waives(SIZES["capacity"], SIZES["horizon"], 0.2, max_delay=SIZES["max_delay"], **LIMITS)
            made.favoured = favoured
            return made

        screening = Screening(_market(run, build), Budget(SCREEN_PLAYS, None), lambda share: None)
        found = screening.screen(run, SCREEN_PLAYS)
        if not times:
            row["size"] = found.detectable_share
        row[f"found {times:g}"] = found.best_counted is not None
    return row


def worlds_row(run: int) -> dict[str, Any]:
    """Score half the value on fresh worlds in which it gains a share of it on average; say which are confirmed."""
    row: dict[str, Any] = {"run": run}

    def halved(share: float, seed: int) -> OnWorlds:
        def build(rng: np.random.Generator) -> FirstCome:
            made = Gift(SIZES["capacity"], SIZES["horizon"], 0.0, max_delay=SIZES["max_delay"], rng=rng, **LIMITS)
            made.share = share
            return made

        market = _market(seed, build)
        (owner,) = market.owners([market.setup.jobs[0].name])
        plays = Budget(WORLDS_PLAYS, None), Budget(0, None)
        return lies_on_worlds([owner], {owner.name: [ScaleValue(0.5)]}, *plays, seed=seed)

    for times in (0.0, *TIMES):
        found = halved(times * row.get("size", 0.0), 10 * run + int(2 * times))
        if not times:
            row["size"] = found.claims[0].detectable
        row[f"found {times:g}"] = bool(found.confirmed)
    return row


# --- rows ---------------------------------------------------------------------------------------------------


def _missing(out: Path, runs: int) -> Iterator[int]:
    done = set(pd.read_csv(out)["run"]) if out.exists() and out.stat().st_size else set()
    return (run for run in range(runs) if run not in done)


def _bounds(found: int, n: int) -> str:
    low = float(beta.ppf(0.025, found, n - found + 1)) if found else 0.0
    high = float(beta.ppf(0.975, found + 1, n - found)) if found < n else 1.0
    return f"{found} of {n} ({100 * low:.1f} to {100 * high:.1f} %)"


def main() -> None:
    """Make the rows that are missing, and print counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["clean", "screen", "worlds"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", "--markets", type=int, default=100, dest="runs")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    register("drawn-fee")(_drawn_fee)
    make = {"clean": clean_row, "screen": screen_row, "worlds": worlds_row}[given.what]
    began = time.monotonic()
    for run in _missing(given.out, given.runs):
        if time.monotonic() - began > given.seconds:
            break
        row, fresh = make(run), not given.out.exists()
        with given.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            if fresh:
                writer.writeheader()
            writer.writerow(row)
    table = pd.read_csv(given.out)
    if given.what == "clean":
        print(table.groupby(["mechanism", "status"]).size().to_string())
        for status in (3, 5):
            print(f"status {status}: {_bounds(int((table['status'] == status).sum()), len(table))}")
        return
    print(f"printed size: median {table['size'].median():.3g}")
    for times in (0.0, *TIMES):
        print(f"{times:g} times: found in {_bounds(int(table[f'found {times:g}'].sum()), len(table))}")


def _drawn_fee(
    *,
    capacity: int,
    horizon: int,
    max_concurrency: int,
    max_duration: int,
    max_value: float,
    max_delay: int,
    rng: Any = None,
) -> DrawnFee:
    limits = {"max_concurrency": max_concurrency, "max_duration": max_duration, "max_delay": max_delay}
    return DrawnFee(capacity, horizon, max_value=max_value, rng=rng, **limits)


if __name__ == "__main__":
    main()
