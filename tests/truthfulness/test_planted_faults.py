"""A few cells of the table of planted faults (`benchmarks/fault_table.py`): what finds them, and what does not."""

import pytest

from marketsched.config.scenario import Scenario
from marketsched.truthfulness import check_mechanism
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.screening import Screening
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from planted_faults import PLANTED, market, registered


def screened(mechanism, plays=600):
    given = MarketAtHand.of(Scenario.of({**market(), "mechanism": {"name": mechanism}}))
    return Screening(given, Budget(plays, None), lambda share: None).screen(0, plays)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["rate plus a fifth of the bid", "three nodes and more", "deadline divisible by 4"])
def test_the_screen_finds_lies_that_gain_ex_post(fault):
    found = screened(registered(fault))
    assert found.best_ex_post is not None and found.best_ex_post.gain > 0.1
    owner, lie = found.best_ex_post.owner, found.best_ex_post.conduct
    assert owner.play(lie).utility - owner.truthful.utility == pytest.approx(found.best_ex_post.gain)


def test_the_same_market_has_no_such_lie_under_an_honest_rule():
    found = screened("first-come")
    assert found.best_ex_post is None and len(found.gains) > 40


@pytest.mark.slow
def test_a_price_that_quotes_move_is_found_by_the_check_of_quotes_alone():
    assert screened(registered("quotes move the price")).best_ex_post is None
    report = check_mechanism(PLANTED["quotes move the price"], n_markets=2)
    assert [one.name for one in report.failed] == ["quotes change nothing"]
