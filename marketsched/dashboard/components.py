"""Parts of the dashboard for pages of one's own: components of Mesa's ``SolaraViz`` over a `Market`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from marketsched.dashboard.view import TRUTHFUL, MarketView, view_of
from marketsched.mechanisms.errors import MarketschedError, UnknownNameError
from marketsched.play.hindsight import load_asked

if TYPE_CHECKING:
    from marketsched.agents.market import Market

Component = Callable[["Market"], Any]

PARTS = {
    "load": "Load against capacity",
    "prices": "Prices, by round of asking and rounds ahead",
    "welfare": "Welfare so far",
    "utilities": "Utility of an average owner, by strategy",
}
"""Names of the parts, and their titles."""

_SEEN: WeakKeyDictionary[Market, MarketView] = WeakKeyDictionary()  # of the round a market is in: parts share it


def market_components(*names: str) -> list[Component]:
    """Return parts of the dashboard as components for Mesa's ``SolaraViz`` (extra ``viz``).

    Parameters
    ----------
    *names : str
        Of `PARTS`: ``load``, ``prices``, ``welfare``, ``utilities``; none: all four.

    Returns
    -------
    list of function
        Each takes a `Market` and returns an element of Solara: a figure with its title. They do not step the market.

    Raises
    ------
    UnknownNameError
        If there is no such part.
    MarketschedError
        If Solara is not installed.

    Examples
    --------
    A page of one's own, in a file that ``solara run`` serves (``pip install marketsched[viz] mesa[viz]``):

    >>> from marketsched import Market, Scenario
    >>> from mesa.visualization import SolaraViz  # doctest: +SKIP
    >>> settings = {"scenario": Scenario.load("stochastic-mix"), "rng": 7}
    >>> parts = market_components("load", "welfare")  # doctest: +SKIP
    >>> page = SolaraViz(Market(**settings), components=parts, model_params=settings)  # doctest: +SKIP
    """
    for name in names:
        if name not in PARTS:
            raise UnknownNameError(f"component {name!r} is unknown: expected one of {', '.join(PARTS)}")
    try:
        import solara  # noqa: F401 - a missing extra is an error here, not while a page is drawn
    except ModuleNotFoundError:
        raise MarketschedError("components need Solara: expected pip install 'marketsched[viz]'") from None
    return [_component(name) for name in names or PARTS]


def _component(name: str) -> Component:
    # Plain functions: SolaraViz draws these again after every step.
    def part(market: Market) -> Any:
        import solara

        from marketsched.dashboard.figures import FIGURES  # matplotlib

        drawn = FIGURES[name](seen(market))
        with solara.Column() as column:
            solara.Text(PARTS[name], style={"font-weight": "bold"})
            if drawn:
                solara.HTML(tag="div", unsafe_innerHTML=drawn)
            else:
                solara.Text("Nothing to show so far.")
        return column

    part.__name__ = name
    return part


def seen(market: Market) -> MarketView:
    """Return what there is to see of a market now; it is computed once a round."""
    found = _SEEN.get(market)
    if found is None or found.round != market.round:
        strategies = {job.owner: market.setup.strategy_of(job) for job in market.setup.jobs}
        found = _SEEN[market] = view_of(
            market,
            market.result(),
            mechanism=type(market.mechanism).__name__,
            asked=load_asked(market.setup),
            strategies={owner: _called(strategy) for owner, strategy in strategies.items()},
            bound=None,
        )
    return found


def _called(strategy: object) -> str:
    kind = getattr(strategy, "kind", "")
    return TRUTHFUL if type(strategy).__name__ == "Truthful" else str(kind or type(strategy).__name__)
