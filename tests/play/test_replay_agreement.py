"""The replay contract: its twelve examples, and agreement with the slow second implementation."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from draws import many
from marketsched.play.replaying import replay
from reference.compare import difference
from reference.markets import Kind, SmallMarket, markets, seeded_market
from reference.replay import replay as reference_replay

GOLDEN = Path(__file__).parents[1] / "golden" / "replay"
EXAMPLES = sorted(path.name.split(".")[0] for path in GOLDEN.glob("*.config.yaml"))
CLEAN = [Kind(evictions=("all",)), Kind(evictions=("running",))]


def example(name: str) -> tuple[dict, list[str], list[dict]]:
    config = yaml.safe_load((GOLDEN / f"{name}.config.yaml").read_text())
    events = (GOLDEN / f"{name}.events.jsonl").read_text().splitlines()
    decisions = [json.loads(line) for line in (GOLDEN / f"{name}.decisions.jsonl").read_text().splitlines()]
    return config, events, decisions


def agree(market: SmallMarket) -> None:
    ours = list(replay(market.config, market.lines))
    found = difference(ours, reference_replay(market.config, market.lines))
    if found:
        pytest.fail("\n".join([found, json.dumps(market.config), *market.lines]), pytrace=False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_replay_reproduces_the_examples(name):
    config, events, decisions = example(name)
    assert difference(list(replay(config, events)), decisions) is None


@pytest.mark.slow
def test_the_command_reproduces_an_example():
    """Through the command line, the events on standard input."""
    _, events, decisions = example("09")
    command = [sys.executable, "-m", "marketsched", "replay", str(GOLDEN / "09.config.yaml"), "-"]
    done = subprocess.run(command, input="\n".join(events), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert difference([json.loads(line) for line in done.stdout.splitlines()], decisions) is None


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_reference_reproduces_the_examples(name):
    config, events, decisions = example(name)
    assert difference(reference_replay(config, events), decisions) is None


def test_the_comparison_sees_differences():
    _, _, decisions = example("04")
    for i, line in enumerate(decisions):
        wrong = [dict(x) for x in decisions]
        wrong[i]["round"] += 1
        assert difference(wrong, decisions) is not None
        if line["event"] == "complete":
            wrong = [dict(x) for x in decisions]
            wrong[i]["payment"] += 1e-6
            assert difference(wrong, decisions) is not None
    assert difference(decisions[:-1], decisions) is not None
    assert difference(decisions, decisions[:-1]) is not None


def test_the_random_markets_are_not_trivial():
    """Every decision, and every special case of the contract, occurs often enough to be tested."""
    counts = dict.fromkeys(["start", "complete", "drop", "cancel", "evict", "error", "overload", "paid"], 0)
    for seed in range(many(400)):
        market = seeded_market(seed)
        for line in reference_replay(market.config, market.lines):
            counts[line["event"]] = counts.get(line["event"], 0) + 1
            counts["overload"] += line["event"] == "cancel" and line["round"] < market.config["horizon"]
            counts["paid"] += line.get("payment", 0) > 0
    assert min(counts.values()) >= many(400) // 25, counts


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", CLEAN, ids=["all", "running"])
def test_agreement_on_random_markets(kind):
    for seed in range(many(200)):
        agree(seeded_market(seed, kind))


@settings(max_examples=many(50), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(markets())
def test_agreement_on_drawn_markets(market):
    agree(market)
