"""A live market beside others: how long one owner waits for answers while others send much."""

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

MINUTE = 60.0
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
            tokens = [operator.post("/v1/owners", {"owner": f"o{n}", "deposit": 1e6})["token"] for n in range(accounts)]
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


def _lines(tokens: list[str], path: str, rate: float, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"token": token, "path": path, "bodies": bodies, "rate": rate} for token in tokens]


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
