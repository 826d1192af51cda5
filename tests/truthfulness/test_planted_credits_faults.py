"""Faults planted in credits, looked for by lies of an owner about all of its jobs; the rule has none that pays."""

import pandas as pd
import pytest

import faulty_credits  # noqa: F401 - registers them
from credit_markets import HORIZON, NODES, SIZES, drawn_jobs, market_of
from marketsched.agents.setup import MarketSetup
from marketsched.truthfulness.conduct.conduct_audit import BEST, audit_conduct, conduct_table
from marketsched.truthfulness.conduct.conduct_gains import play_conducts


def paying(name, families, seeds):
    """Return the conducts that pay clear of 0 over all owners of some crowded markets, utility without payments."""
    rows = []
    for seed in seeds:
        jobs = drawn_jobs(seed, n=100, span=40, owners=5)
        market = market_of(name, jobs, carry_rounds=40.0)
        setup = MarketSetup("crowd", jobs, market, NODES, HORIZON, SIZES["max_delay"])
        owners = sorted({job.owner for job in jobs})
        found = play_conducts(setup, (), owners, factors=(0.5, 2.0), families=families, paid=False)
        rows.append(pd.DataFrame(found.rows).assign(mechanism=name, seed=seed))
    gains = pd.concat(rows, ignore_index=True)
    table = conduct_table(gains.assign(gain=gains["utility"] - gains["truth"]), [name], relative=True)
    return set(table.loc[table["pays"] & (table["conduct"] != BEST), "conduct"])


FRESH = "half of the jobs from a fresh account"
FAULTS = [
    ("credits-absolute", ["past"], range(300, 308), "values times 2"),
    ("credits-full-purse", ["half"], range(300, 308), FRESH),
    ("credits-by-accounts", ["half"], range(300, 308), FRESH),
    pytest.param("credits-hearing", ["ranks"], range(400, 440), "densities to the power 0.5", marks=pytest.mark.long),
]


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize(("fault", "families", "seeds", "found"), FAULTS)
def test_a_planted_fault_is_found_and_the_rule_itself_is_not(fault, families, seeds, found):
    assert found in paying(fault, families, seeds)
    assert not paying("credits", families, seeds)


def test_the_audit_says_what_owners_care_for():
    market = {"kind": "synthetic-pipelines", "recurring_jobs": 12, "birth_rounds": 24, "durations": "hidden"}
    found = audit_conduct(
        {"name": "day", "workload": market}, ["credits"], past_owners=2, utility="value", families=["half", "trade"]
    )
    assert found.meta["utility"] == "value" and not found.summary["pays"].any()
    words = str([part.plain for part in found.view().renderables if hasattr(part, "plain")])
    assert "without payments" in words and "a gain clear of 0, all conducts together: none" in words
    both = found.gains[found.gains["family"] == "trade"]
    alone = found.gains[found.gains["family"] == "half"].set_index("owner")["truth"]
    assert both["truth"].to_numpy() == pytest.approx([alone.sum()] * len(both))  # two owners, each other's partners
