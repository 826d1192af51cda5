"""A live market beside others: how long one owner waits for answers while others send much, or much at once."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench_live import CONFIG, Caller, served
from harness import Row, benchmark, on_request
from live_load import Load

SECONDS, MINUTE = 4.0, 60.0
HEAVY = 8  # accounts with large statements, each with its next as soon as the last is answered
LIGHT_RATE = 40  # submissions a second of the one owner that is timed
OFTEN, SUBMISSIONS = 20, 1000  # owners; submissions a second together
QUOTING, QUOTES = 4, 40
BID_PRICE = {key: each for key, each in CONFIG.items() if key != "oracle"} | {"mechanism": "bid-price"}


@contextmanager
def _market(config: dict[str, Any], accounts: int) -> Iterator[tuple[int, list[str], Any]]:
    """Serve a market; give its port, owners' tokens, and a function that tells its processor seconds so far."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "market.yaml").write_text(json.dumps(config))
        process, port, _ = served(folder)
        try:
            operator = Caller(port, Path(folder, "operator.token").read_text().strip())
            tokens = [operator.post("/v1/owners", {"owner": f"o{n}"})["token"] for n in range(accounts)]
            yield port, tokens, lambda: _processor_seconds(process.pid)
        finally:
            process.terminate()
            process.wait()


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _small(rng: np.random.Generator, last: int = 50) -> dict[str, Any]:
    d = int(rng.integers(1, 11))
    rows = [{"arrival": last - d - 2, "duration": d, "probability": 0.9}]
    value = {"kind": "deadline", "value": float(rng.uniform(1, 100)), "deadline": last}
    return {"sow": {"concurrency": int(rng.integers(1, 5)), "value": value, "requirements": rows}}


def _large(n: int, cases: int, padding: int) -> dict[str, Any]:
    """Return a statement of so many cases, whose signals have so many characters more than they need (0: none)."""
    rows: list[dict[str, Any]] = [
        {"arrival": 2 + i % 25, "duration": 1 + i // 25, "probability": round(0.9 / cases, 6)} for i in range(cases)
    ]
    for i, row in enumerate(rows if padding else ()):
        row["signal"] = f"{i:03d}" + "x" * padding
    value = {"kind": "deadline", "value": 50.0 + n, "deadline": 50}
    return {"sow": {"concurrency": 1 + n % 4, "value": value, "requirements": rows}}


def _lines(tokens: list[str], path: str, rate: float, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"token": token, "path": path, "bodies": bodies, "rate": rate} for token in tokens]


@benchmark
@on_request
def beside_large_statements() -> Iterator[Row]:
    """Time an owner's submissions alone, and beside eight accounts that send large statements all the time."""
    rng = np.random.default_rng(7)
    light = [_small(rng) for _ in range(50)]
    for name, config in (("posted-price", CONFIG), ("bid-price", BID_PRICE)):
        for kind, large in (("250 cases", (250, 0)), ("62 KB", (250, 85)), ("62 KB, refused", (900, 0))):
            with _market(config, HEAVY + 1) as (port, tokens, _):
                alone = Load(port, SECONDS, _lines(tokens[:1], "/v1/jobs", LIGHT_RATE, light)).waits()["201"]
                bodies = [_large(n, *large) for n in range(4)]
                heavy = Load(port, SECONDS + 1, _lines(tokens[1:], "/v1/jobs", 0, bodies))
                beside = Load(port, SECONDS, _lines(tokens[:1], "/v1/jobs", LIGHT_RATE, light)).waits()["201"]
                sent = heavy.waits()
                alone += Load(port, SECONDS, _lines(tokens[:1], "/v1/jobs", LIGHT_RATE, light)).waits()["201"]
            label = f"live, {name}: submissions beside {HEAVY} x {kind}"
            yield Row(f"{label}, half", 1e3 * float(np.median(beside)), "ms")
            yield Row(f"{label}, over alone", float(np.median(beside) / np.median(alone)), at_most=2)
            yield Row(f"{label}, sent", sum(map(len, sent.values())) / SECONDS, "/s")


@benchmark
@on_request
def quotes_beside_a_thousand_submissions() -> Iterator[Row]:
    """Time quotes while 1,000 submissions come a second, for a minute."""
    rng = np.random.default_rng(8)
    config = BID_PRICE | {"clock": {"kind": "wall", "round_seconds": 60}}
    with _market(config, OFTEN + QUOTING) as (port, tokens, spent):
        began = spent()
        bodies = [_small(rng) for _ in range(50)]
        load = Load(port, MINUTE, _lines(tokens[:OFTEN], "/v1/jobs", SUBMISSIONS / OFTEN, bodies))
        quotes = Load(port, MINUTE, _lines(tokens[OFTEN:], "/v1/quotes", QUOTES / QUOTING, bodies)).waits()
        submissions, took = load.waits(), spent() - began
    waits = np.array(quotes["200"])
    yield Row("live, minute: submissions answered", len(submissions["201"]) / MINUTE, "/s", at_least=990)
    yield Row("live, minute: quotes, half", 1e3 * float(np.median(waits)), "ms")
    yield Row("live, minute: quotes, 99 %", 1e3 * float(np.quantile(waits, 0.99)), "ms", at_most=50)
    yield Row("live, minute: submissions, 99 %", 1e3 * float(np.quantile(submissions["201"], 0.99)), "ms")
    yield Row("live, minute: processor seconds a second", took / MINUTE)
