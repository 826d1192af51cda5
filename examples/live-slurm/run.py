"""Three users, a day in a minute: a live market starts, holds and evicts the jobs of your Slurm."""

import sys
import tempfile
import threading
import time
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from marketsched import figure_style
from marketsched.live.client import LiveClient
from marketsched.live.serving import serving
from marketsched.live.slurm import Slurm
from marketsched.live.slurm_actions import BridgeRules
from marketsched.live.slurm_bridge import SlurmBridge

HOURS, SECONDS = 20, 3.0  # rounds, and how long one takes here
CONFIG = {
    "mechanism": "posted-price", "capacity": 4, "max_concurrency": 4, "max_duration": 4, "max_value": 60.0,
    "max_delay": 20, "pricing": {"kind": "posted", "prices": [1.2]},
}  # fmt: skip
DAY = [  # hour, owner, name, nodes, hours announced, hours it really takes, value, hours until it is worth nothing
    (1, "ann", "train", 2, 4, 4, 40.0, 12),
    (1, "bob", "report", 1, 2, 2, 12.0, 6),
    (2, "cat", "sweep", 2, 3, 3, 9.0, 14),
    (3, "bob", "fix", 4, 1, 1, 58.0, 3),
    (4, "ann", "tune", 1, 2, 7, 15.0, 10),  # takes longer than any job may
    (6, "cat", "sweep2", 3, 3, 3, 20.0, 10),
    (7, "bob", "crash", 1, 2, 1, 14.0, 6),
    (8, "cat", "cheap", 4, 4, 4, 1.0, 8),  # not worth its price
    (10, "ann", "night", 3, 4, 4, 45.0, 9),
    (11, "bob", "late", 2, 2, 2, 25.0, 7),
]  # fmt: skip
SCRIPT = """#!/bin/sh
began=$(cat {folder}/clock); touch {folder}/{job}
until [ "$(cat {folder}/clock)" -ge $((began + {hours})) ]; do sleep 0.1; done
exit {status}
"""


def wait_for(what):
    while not what():
        time.sleep(0.05)


def play(folder: Path, table: Path) -> tuple[list[dict], list[dict], list[dict]]:
    """Play the day; return jobs, events and the ledger. ``table``: of the announced jobs, as the plugin reads it."""
    slurm, token, clock = Slurm(), folder / "token", folder / "clock"
    with (
        serving(CONFIG, str(folder / "market.db"), operator_token_file=token) as url,
        LiveClient(url, token.read_text().strip()) as operator,
    ):
        owners = {
            name: LiveClient(url, operator.create_owner(name, deposit=100.0)["token"]) for name in ("ann", "bob", "cat")
        }
        wake, stop = threading.Event(), threading.Event()
        bridge = SlurmBridge(operator, slurm, BridgeRules(check_users=False, announced=table))
        bridge.step()
        thread = threading.Thread(target=bridge.run, args=(wake, stop, 0.1))
        thread.start()
        hours_of = {f"{owner}.{name}": real for _, owner, name, _, _, real, *_ in DAY}
        clock.write_text("0")
        for hour in range(1, HOURS + 1):
            end = time.monotonic() + SECONDS
            for _, owner, name, nodes, hours, _, value, slack in (job for job in DAY if job[0] == hour):
                points = [{"arrival": hour, "duration": hours, "probability": 1.0}]
                worth = {"kind": "deadline", "value": value, "deadline": hour + slack}
                job = owners[owner].submit({"concurrency": nodes, "value": worth, "requirements": points}, name=name)[
                    "job"
                ]
                wait_for(lambda job=job: f"{job} " in table.read_text())
                script = SCRIPT.format(folder=folder, job=job, hours=hours_of[job], status=int(name == "crash"))
                options = [f"--comment=market:{job}", f"--nodes={nodes}", f"--time={hours}", "--output=/dev/null"]
                slurm.submit(script, *options)
            wait_for(lambda: not operator.jobs(state="submitted"))
            running = operator.jobs(state="running")
            wait_for(lambda running=running: all((folder / job["job"]).exists() for job in running))
            time.sleep(max(0.0, end - time.monotonic()))
            clock.write_text(str(hour))  # the hour is over
            over = [job["job"] for job in running if job["start"] + hours_of[job["job"]] <= hour]
            wait_for(lambda over=over: not {job["job"] for job in operator.jobs(state="running")} & set(over))
            operator.advance()
        time.sleep(1.0)
        stop.set()
        thread.join()
        return operator.jobs(), list(operator.events(follow=False)), operator.ledger()["entries"]


announced = Path(sys.argv[1] if sys.argv[1:] else "/var/lib/market/announced")
with tempfile.TemporaryDirectory(prefix="day-", dir=".") as own:  # where the nodes see it, too
    jobs, events, entries = play(Path(own).resolve(), announced)

evictions = sum(each["event"] == "evict" for event in events for each in event["decisions"])
print(f"{HOURS} hours, {len(jobs)} jobs, {evictions} evicted")
for job in jobs:
    hours = f"{job['start']}-{job['end']}" if job["start"] else "never"
    how = job["outcome"] or job["state"]
    paid = f"exit {job['exit_code']!s:5} pays {job['charge'] or 0:6.2f}"
    print(f"{job['job']:12} {job['nodes']} nodes  hours {hours:6} {how:8} {paid}")
for name in ("ann", "bob", "cat", "market"):
    balance = sum(entry["credits"] for entry in entries if entry["account"] == name)
    print(f"{name:12} {balance:8.2f} credits")

plt.rcParams.update(figure_style())
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
colours = {"ann": "C0", "bob": "C1", "cat": "C2"}
for row, job in enumerate(jobs):
    if job["start"]:
        over = {"hatch": "///"} if job["outcome"] == "overrun" else {}
        width = job["end"] - job["start"]
        axes.barh(row, width, 0.2 * job["nodes"], job["start"], color=colours[job["owner"]], edgecolor="white", **over)
    else:
        axes.text(job["submitted"] + 0.3, row, "never started", va="center", fontsize=8, color="#555555")
    axes.text(job["submitted"] - 0.2, row, job["job"], ha="right", va="center", fontsize=9)
    axes.plot(job["submitted"], row, "k|", markersize=9)
axes.set(xlabel="hour", yticks=[], xlim=(-2, HOURS), ylim=(len(jobs) - 0.4, -0.6))
axes.set_xticks(range(0, HOURS + 1, 4))
shown = [Patch(color=colour, label=owner) for owner, colour in colours.items()]
shown += [Patch(facecolor="#999999", hatch="///", edgecolor="white", label="ended over its booking")]
shown += [Line2D([], [], color="k", marker="|", linestyle="", label="submitted")]
axes.set_title("runs; a bar is as thick as the job has nodes (1 to 4)", loc="left", fontsize=11)
axes.legend(handles=shown, loc="lower left", fontsize=9, frameon=False)
figure.savefig("figure.png", dpi=110)
