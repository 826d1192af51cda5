"""What an audit prints encloses the truth: all reports on a grid, played one by one, in small random markets."""

import itertools

import numpy as np
import pytest

from marketsched.agents.conduct import plain
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.truthfulness import MarketAtHand, replay_gain
from marketsched.truthfulness.audit import audit

NAMES = ("pay-as-bid", "armada:version=2026", "armada:version=2024", "spot", "vcg", "posted-price", "bid-price")
HAIR = 1e-4  # by which a bid on the grid lies above or below another's


def market(seed):
    """Return three or four owners of one round's work, born in rounds 1 and 2, and a mechanism."""
    rng = np.random.default_rng([71, seed])
    n = int(rng.integers(3, 5))
    births = np.sort(rng.integers(1, 3, n)).tolist()
    jobs = [
        {
            "name": f"job {i}",
            "owner": f"owner {i}",
            "birth": birth,
            "concurrency": 1,
            "value": {
                "kind": "deadline",
                "value": int(rng.integers(1, 11)),
                "deadline": birth + int(rng.integers(1, 4)),
            },
            "requirements": [{"arrival": birth, "duration": 1, "probability": 1}],
        }
        for i, birth in enumerate(births)
    ]
    sizes = {"capacity": int(rng.integers(1, 3)), "horizon": 6, "max_concurrency": 1, "max_duration": 1}
    workload = {"kind": "jobs", **sizes, "max_value": 11, "max_delay": 5, "jobs": jobs}
    name = NAMES[seed % len(NAMES)]
    prices = {"pricing": {"kind": "posted", "prices": [int(rng.integers(0, 4))]}} if name == "posted-price" else {}
    return {"name": f"market {seed}", "workload": workload, "mechanism": {"name": "posted-price", **prices}}, name


def largest_gain(scenario, name):
    """Return the most that an owner gains by any report on the grid: around all bids, with all deadlines."""
    mechanism, *pairs = name.split(":")
    parameters = {"parameters": {"version": int(pairs[0].partition("=")[2])}} if pairs else {}
    own = scenario["mechanism"] if mechanism == "posted-price" else {"name": mechanism, **parameters}
    jobs = scenario["workload"]["jobs"]
    prices = scenario["mechanism"].get("pricing", {}).get("prices", [])
    bids = {b + d for b in [*(job["value"]["value"] for job in jobs), *prices] for d in (-HAIR, 0.0, HAIR)}
    best = 0.0
    for job in jobs:
        (owner,) = MarketAtHand.of({**scenario, "mechanism": own}).owners([job["name"]])
        birth = job["birth"]
        for bid, last in itertools.product(
            sorted({HAIR, 11.0, *(b for b in bids if b > 0)}), range(birth + 1, birth + 5)
        ):
            lie = StatementOfWork(birth, 1, DeadlineValue(bid, last), [(birth, 1, 1.0)])
            best = max(best, owner.play(plain(lie, 1)).utility - owner.truthful.utility)
    return best


def enclosed(seed, folder):
    scenario, name = market(seed)
    found = audit(scenario, [name], owners=4, plays=800, seed=seed)
    (row,) = found.summary.to_dict(orient="records")
    true = largest_gain(scenario, name)
    assert row["audited"], row["errors"]
    assert row["regret_lower"] <= true + 2 * HAIR, (seed, name)  # a bid just above another's is a hair above it here
    assert np.isnan(row["regret_upper"]) or true <= row["regret_upper"] + 1e-9, (seed, name)
    for file, text in found.result().texts.items():
        if file.startswith(("exact-", "lie-")):
            path = folder / f"{seed}.yaml"
            path.write_text(text)
            again = replay_gain(path)
            assert again.same and again.recorded <= row["regret_lower"] + 1e-12
    return true, row["regret_lower"]


@pytest.mark.slow
@pytest.mark.long
def test_printed_ends_enclose_the_true_gain(tmp_path):
    gains = [enclosed(seed, tmp_path) for seed in range(7)]
    assert max(true for true, _ in gains) > 1
