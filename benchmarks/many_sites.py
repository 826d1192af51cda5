"""Ten markets of a million jobs each: time, memory over time, and whether what they leave can be read.

    python benchmarks/many_sites.py --out sites-run

Writes a file of sites, runs `marketsched sites` on it, and adds up the resident memory of its processes every second.
``--recurring`` sets how many jobs a site has, 11 for each. Sites that are finished are not run again, so that a run
that was ended goes on; memory is then that of the last part.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import psutil

EVERY = 1.0  # seconds between two looks at the memory
TABLES = ("events", "jobs", "rounds")


def memory_of(process: psutil.Process) -> list[float]:
    """Return the resident megabytes of a process and of all that it started."""
    found = []
    with suppress(psutil.Error):
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                found.append(one.memory_info().rss / 1e6)
    return found


def run(command: list[str]) -> tuple[pd.DataFrame, float, int]:
    """Run a command; return its memory over time, its processor seconds and its status."""
    begin = time.perf_counter()
    rows: list[tuple[float, int, int]] = []
    seconds: dict[int, float] = {}
    started = psutil.Popen(command)
    while started.poll() is None:
        each = memory_of(started)
        with suppress(psutil.Error):
            for one in (started, *started.children(recursive=True)):
                with suppress(psutil.Error):
                    spent = one.cpu_times()
                    seconds[one.pid] = spent.user + spent.system
        rows.append((round(time.perf_counter() - begin, 1), round(sum(each)), round(max(each, default=0))))
        time.sleep(EVERY)
    table = pd.DataFrame(rows, columns=["second", "megabytes", "largest_process"])
    return table, sum(seconds.values()), started.returncode


def readable(folder: Path) -> dict[str, int]:
    """Read every table of a site with pandas; return its rows."""
    found = {}
    for name in TABLES:
        (path,) = [p for p in folder.iterdir() if p.stem == name]
        found[name] = len(pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path))
    return found


def main() -> None:
    """Run the sites, and print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sites", type=int, default=10)
    parser.add_argument("--recurring", type=int, default=88_800, help="recurring jobs of a site")
    parser.add_argument("--mechanism", default="first-come")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    workload = {"kind": "synthetic-pipelines", "recurring_jobs": asked.recurring}
    scenario = {"name": "site", "workload": workload, "mechanism": {"name": asked.mechanism}}
    file = asked.out / "sites.yaml"
    content = {"name": "many sites", "sites": {f"site-{k}": scenario for k in range(1, asked.sites + 1)}}
    file.write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
    runs = asked.out / "runs"
    command = [sys.executable, "-m", "marketsched", "sites", str(file), "--jobs", str(asked.jobs), "--out", str(runs)]
    memory, seconds, status = run(command)
    memory.to_csv(asked.out / f"memory-{int(time.time())}.csv", index=False)
    wall = memory["second"].iloc[-1]
    print(f"status {status}: {wall:.0f} s, {seconds:.0f} processor s", end="; ")
    print(f"at most {memory['megabytes'].max()} MB in all, {memory['largest_process'].max()} MB in one process")
    for folder in sorted(runs.glob("site-*")):
        if (folder / "meta.json").is_file():
            print(folder.name, readable(folder))


if __name__ == "__main__":
    main()
