"""Parts of the dashboard in a page of one's own: drawn from any market, anew after each step, and changing nothing."""

import sys
import warnings

import pytest

from marketsched import Market, Scenario
from marketsched.dashboard import market_components
from marketsched.dashboard.components import PARTS, seen
from marketsched.mechanisms import MarketschedError, UnknownNameError
from refusals import refused


@pytest.fixture
def market():
    return Market(Scenario.load("stochastic-mix"), 7)


def pictures(widget):
    """Return the HTML inside a widget and all below it."""
    own = getattr(widget, "unsafe_innerHTML", None)
    below = [
        each for child in getattr(widget, "children", ()) if not isinstance(child, str) for each in pictures(child)
    ]
    return ([own] if own else []) + below


def test_parts_are_drawn_anew_after_a_step(market):
    solara = pytest.importorskip("solara", reason="the extra viz is not installed")
    parts, stepped = market_components(), solara.reactive(0)
    assert [part.__name__ for part in parts] == list(PARTS)

    def page():
        stepped.get()  # as SolaraViz does around each component
        for part in parts:
            part(market)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Solara's own, about a component defined in a function
        box, rc = solara.render(solara.component(page)(), handle_error=False)
    try:
        assert len(pictures(box)) < len(PARTS)  # nothing was played
        for _ in range(60):
            market.step()
        stepped.value = 1
        first = pictures(box)
        assert len(first) == len(PARTS) and all(each.startswith("<svg") for each in first)
        market.step()
        stepped.value = 2
        assert pictures(box) != first
    finally:
        rc.close()
    watched, alone = market.run(), Market(Scenario.load("stochastic-mix"), 7).run()
    assert watched.events.equals(alone.events)


def test_unknown_names_are_refused():
    with pytest.raises(UnknownNameError, match="component 'lod' is unknown: expected one of load, prices"):
        market_components("lod")


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "solara", None)
    refused(market_components, "pip install 'marketsched[viz]'", error=MarketschedError)


def test_what_is_seen_is_computed_once_a_round(market):
    market.step()
    first = seen(market)
    assert seen(market) is first and first.round == 1
    market.step()
    assert seen(market).round == 2
