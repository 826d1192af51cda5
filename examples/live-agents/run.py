"""Thirty agents over HTTP, two of which lie, in a market of four nodes; then the same day with each liar truthful."""

import tempfile
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from marketsched import figure_style
from marketsched.live.client import LiveClient
from marketsched.live.serving import serving

ROUNDS, AGENTS, JOBS = 60, 30, 4
LIARS = {"agent-07": "value", "agent-19": "deadline"}  # says five times its value; says its job has time
SIZES = {"capacity": 4, "max_concurrency": 2, "max_duration": 6, "max_value": 100, "max_delay": 30}
CONFIG = {**SIZES, "mechanism": "bid-price", "seed": 1, "announced_nodes": "unlimited"}


def day():
    """Draw every agent's jobs: birth, nodes, value, deadline, arrival, duration."""
    rng, jobs = np.random.default_rng(19), []
    for agent in range(AGENTS):
        for birth in sorted(rng.integers(1, ROUNDS - 20, size=JOBS).tolist()):
            arrival, duration = birth + int(rng.integers(0, 6)), int(rng.integers(1, 7))
            value, patience = float(rng.uniform(2, 20)), int(rng.integers(1, 9))
            nodes = int(rng.integers(1, 3))
            jobs.append((birth, f"agent-{agent:02}", nodes, value, arrival + duration + patience, arrival, duration))
    return sorted(jobs)


def report(job, lie):
    """Return the statement of work that an agent makes of its job."""
    _, _, nodes, value, deadline, arrival, _ = job
    value = 5 * value if lie == "value" else value
    deadline = deadline + 8 if lie == "deadline" else deadline
    durations = range(1, SIZES["max_duration"] + 1)  # known when it arrives
    rows = [{"arrival": arrival, "duration": d, "probability": round(1 / 6 - 1e-6, 6)} for d in durations]
    return {
        "concurrency": nodes,
        "value": {"kind": "deadline", "value": value, "deadline": deadline},
        "requirements": rows,
    }


def play(liars):
    """Let all agents play a day in a market over HTTP; return what each got and paid, and the sums of the ledger."""
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder, "operator.token")
        with serving(CONFIG, f"{folder}/market.db", operator_token_file=token) as url:
            operator, agents = LiveClient(url, token.read_text().strip()), {}
            for n in range(AGENTS):
                name = f"agent-{n:02}"
                agents[name] = LiveClient(url, operator.create_owner(name, deposit=100)["token"])
            truth = run_day(operator, agents, liars)
            paid = {name: 100 - each.account()["balance"] for name, each in agents.items()}
            got = dict.fromkeys(agents, 0.0)
            for name, job in truth.items():
                done = agents[job[1]].job(name)
                if done["state"] == "completed" and done["end"] <= job[4]:
                    got[job[1]] += job[3]
            return got, paid, operator.ledger()["sums"]


def run_day(operator, agents, liars):
    """Play all rounds: births, arrivals, the end of the round, completions."""
    born, arriving, ending, truth = {}, {}, {}, {}
    for job in day():
        born.setdefault(job[0], []).append(job)
    for now in range(1, ROUNDS + 1):
        for job in born.get(now, ()):
            name = agents[job[1]].submit(report(job, liars.get(job[1])))["job"]
            truth[name] = job
            arriving.setdefault(job[5], []).append(name)
        for name in arriving.get(now, ()):
            agents[truth[name][1]].arrive(name, signal=truth[name][6])
        for decision in operator.advance()["decisions"]:
            if decision["event"] == "start":
                ending.setdefault(now + truth[decision["job"]][6] - 1, []).append(decision["job"])
        for name in ending.get(now, ()):
            operator.complete(name)
    return truth


def main():
    """Print the ledger and what the liars gained, and draw it."""
    got, paid, sums = play(LIARS)
    print(f"{AGENTS} agents, {AGENTS * JOBS} jobs, {ROUNDS} rounds")
    print(f"deposited {sums['deposited']:.2f}; owners have {sums['owners']:.2f}, the market {sums['market']:.2f}")
    print("owner       value got   paid    left")
    for name in sorted(got):
        print(f"{name}  {got[name]:9.2f} {paid[name]:6.2f} {got[name] - paid[name]:7.2f}{' *' * (name in LIARS)}")
    gains = {}
    for name, lie in LIARS.items():
        others = {other: each for other, each in LIARS.items() if other != name}
        got_by_truth, paid_by_truth, _ = play(others)
        left, by_truth = got[name] - paid[name], got_by_truth[name] - paid_by_truth[name]
        gains[name] = (lie, left, by_truth)
        print(f"{name}, which lies about its {lie}: {left:.2f}; had it told the truth: {by_truth:.2f}")
    draw(gains)


def draw(gains):
    """Draw what each liar had, and what the truth would have brought."""
    with matplotlib.rc_context(figure_style()):
        figure = Figure(figsize=(7, 3.2), layout="constrained")
        axes = figure.subplots()
        for i, (name, (lie, left, by_truth)) in enumerate(gains.items()):
            axes.bar(i - 0.2, by_truth, 0.4, color="C0", label="truth" if i == 0 else None)
            axes.bar(i + 0.2, left, 0.4, color="C1", label="lie" if i == 0 else None)
            axes.text(i, max(left, by_truth), f"{name} lies about its {lie}", ha="center", va="bottom")
        axes.set(xticks=[], ylabel="value less payment, credits")
        axes.margins(y=0.15)
        axes.legend(loc="lower left")
        axes.axhline(0, color="gray", linewidth=0.8)
        figure.savefig(Path(__file__).with_name("figure.png"), dpi=110)


if __name__ == "__main__":
    main()
