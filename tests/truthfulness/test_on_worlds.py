"""Lies on fresh worlds: small gains under rules that draw are confirmed, and nobody else is accused."""

import pytest

from drawing_faults import CLEAN, DRAWING, registered_drawing
from marketsched.agents.lies import ScaleValue, ShiftDeadline
from marketsched.config.scenario import Scenario
from marketsched.truthfulness import replay_gain
from marketsched.truthfulness.audit import audit
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.on_worlds import lies_on_worlds
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from planted_faults import market


def owners(rule, *jobs):
    return MarketAtHand.of(Scenario.of({**market(), "mechanism": {"name": registered_drawing(rule)}})).owners(jobs)


def played(rule, lies, *jobs, plays=1500, **given):
    asked = {job: lies for job in jobs}
    return lies_on_worlds(owners(rule, *jobs), asked, Budget(plays, None), Budget(4 * plays, None), **given)


@pytest.mark.slow
@pytest.mark.long
def test_a_lottery_with_a_gain_of_half_a_per_cent_of_the_value_is_confirmed():
    (claim,) = played("a lottery of 2 % of the bid", [ScaleValue(0.5)], "job-4").confirmed
    value = claim.worth
    assert 0 < claim.gain_low < claim.gain_mean
    assert claim.gain_mean == pytest.approx(0.005 * value, rel=0.1)
    assert claim.detectable < 0.05


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("rule", CLEAN)
def test_a_clean_rule_is_not_accused_and_a_gain_of_five_per_cent_would_have_been_seen(rule):
    found = audit(market(), [registered_drawing(rule)], owners=1)
    (row,) = found.summary.to_dict(orient="records")
    assert found.status == 0
    assert row["power"] < 0.05
    assert row["power_worlds"] >= 300
    assert row["power_of"].startswith("job-")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("rule", DRAWING)
def test_rules_that_draw_and_invite_lies_are_found_at_the_default(rule, tmp_path):
    found = audit(market(), [registered_drawing(rule)], owners=1)
    assert found.status == 3
    (claim,) = found.mechanisms[0].worlds.confirmed
    assert claim.gain_low > 0
    found.result().save(tmp_path / "out")
    (file,) = (tmp_path / "out").glob("lie-*.yaml")
    assert replay_gain(file).same


@pytest.mark.slow
@pytest.mark.long
def test_false_alarms_are_as_rare_as_stated():
    """The lies change nothing on average: a fee is drawn, and the draws of others move it."""
    wrong = 0
    for seed in range(20):
        lies = [ScaleValue(0.9), ShiftDeadline(2)]
        wrong += bool(played("a drawn fee", lies, "job-4", plays=300, confidence=0.9, seed=seed).confirmed)
    assert wrong <= 4
