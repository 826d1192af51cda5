"""A live market under load: eight owners that submit at most 220 jobs a second, while quotes come at 100 a second.

The service is a process of its own on SQLite, every answer on the disk; the load comes from this process, on the same
machine. The market is posted-price with 200 sample paths, statements of two cases, and a round a second.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from harness import Row, benchmark

SECONDS = 6.0
CLIENTS, SUBMISSIONS = 8, 220  # owners that submit; at most so many a second together
QUOTING, QUOTES = 4, 100  # owners that ask for quotes; quotes a second
CONFIG = {
    "mechanism": "posted-price",
    "capacity": 400,
    "max_concurrency": 4,
    "max_duration": 20,
    "max_value": 100,
    "max_delay": 60,
    "oracle": {"kind": "monte-carlo", "samples": 200},
    "requests_per_second": 1000000,
    "announced_nodes": "unlimited",
}


class Caller:
    """One connection that is kept."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer; one of 422 as well, others than that from 400 on raise RuntimeError."""
        self._connection.request("POST", path, json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        found: dict[str, Any] = json.loads(answer.read())
        if answer.status >= 400 and answer.status != 422:
            raise RuntimeError(f"{path}: {answer.status} {found}")
        return found


class _Load:
    def __init__(self, port: int, token: str, seconds: float) -> None:
        self.round, self.end = 1, time.monotonic() + seconds
        self.submitted, self.refused = [0] * CLIENTS, 0
        self.quote_seconds: list[float] = []
        operator = Caller(port, token)
        owners = [{"owner": f"o{n}", "deposit": 1e6} for n in range(CLIENTS + QUOTING)]
        tokens = [operator.post("/v1/owners", each)["token"] for each in owners]
        threads = [threading.Thread(target=self._submit, args=(n, Caller(port, tokens[n]))) for n in range(CLIENTS)]
        for n in range(QUOTING):
            threads.append(threading.Thread(target=self._quote, args=(n, Caller(port, tokens[CLIENTS + n]))))
        threads.append(threading.Thread(target=self._rounds, args=(operator,)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _statement(self, rng: np.random.Generator) -> dict[str, Any]:
        arrival, d = self.round + int(rng.integers(2, 10)), int(rng.integers(1, 21))
        rows = [{"arrival": a, "duration": d, "probability": 0.5} for a in (arrival, arrival + 1)]
        value = {"kind": "deadline", "value": float(rng.uniform(1, 100)), "deadline": arrival + d + 10}
        return {"sow": {"concurrency": int(rng.integers(1, 5)), "value": value, "requirements": rows}}

    def _submit(self, n: int, caller: Caller) -> None:
        rng, due = np.random.default_rng(n), time.monotonic()
        while time.monotonic() < self.end:
            due += CLIENTS / SUBMISSIONS
            time.sleep(max(0.0, due - time.monotonic()))
            done = caller.post("/v1/jobs", self._statement(rng))
            self.submitted[n] += "job" in done
            self.refused += "job" not in done

    def _quote(self, n: int, caller: Caller) -> None:
        rng, due = np.random.default_rng(100 + n), time.monotonic()
        while time.monotonic() < self.end:
            due += QUOTING / QUOTES
            time.sleep(max(0.0, due - time.monotonic()))
            begin = time.perf_counter()
            caller.post("/v1/quotes", self._statement(rng))
            self.quote_seconds.append(time.perf_counter() - begin)

    def _rounds(self, caller: Caller) -> None:
        while time.monotonic() < self.end:
            time.sleep(1.0)
            self.round = caller.post("/v1/rounds", {})["round"]


def _under_load(seconds: float) -> tuple[_Load, float]:
    """Return the load, and how long a restart takes after it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "market.yaml").write_text(json.dumps(CONFIG))
        process, port, _ = served(folder)
        try:
            load = _Load(port, Path(folder, "operator.token").read_text().strip(), seconds)
        finally:
            process.terminate()
            process.wait()
        process, _, took = served(folder)
        process.terminate()
        process.wait()
        return load, took


def served(folder: str) -> tuple[subprocess.Popen[str], int, float]:
    """Start the service; return it, its port, and after how many seconds it listened."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "marketsched", "live", "serve", "market.yaml", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    if "http://" not in line:
        raise RuntimeError(line + process.stderr.read())
    return process, int(line.rpartition(":")[2]), time.perf_counter() - begin


@benchmark
def submissions_and_quotes() -> Iterator[Row]:
    """Count submissions, time quotes, and restart on what was submitted."""
    load, restart = _under_load(SECONDS)
    waits = np.array(load.quote_seconds)
    yield Row("live: submissions answered", sum(load.submitted) / SECONDS, "/s", at_least=200)
    yield Row("live: quotes asked", len(waits) / SECONDS, "/s")
    yield Row("live: quotes, 99 %", float(np.quantile(waits, 0.99)) * 1e3, "ms", at_most=50)
    yield Row("live: quotes, half", float(np.median(waits)) * 1e3, "ms")
    yield Row("live: restart after them", restart, "s", at_most=10)
