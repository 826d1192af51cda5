"""The dashboard's controls: typed texts, read into settings and applied to a scenario.

Every control holds text. A fault is shown beside it, in one line, and nothing is
started from settings that are not all legal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marketsched.agents.lies import KINDS
from marketsched.agents.lies.base import Number
from marketsched.config.owner_mix import LIES
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.registry import mechanism_names

MOST_NODES = 1_000_000
MOST_LOAD = 400.0  # per cent
MOST_ROUNDS = 1_000  # in one step
MOST_SEED = 2**63 - 1
MOST_AMOUNT = {True: 10_000.0, False: 1000.0}  # of a lie: rounds or nodes, and factors
LEAST_FACTOR = 0.01  # where 0 is not legal


@dataclass(frozen=True)
class Settings:
    """The market to play. Shares are shares, not per cent.

    Attributes
    ----------
    mechanism : str
        Its name.
    capacity : int or None
        Nodes; None: the scenario's number.
    load : float
        Jobs, as a multiple of the scenario's.
    liars : float
        Share of the owners that misreport.
    lie : str
        How: a key of ``LIES``.
    amount : float
        By how much, in the unit of that lie.
    seed : int
        Root of all randomness.
    rounds : int
        Rounds per step; changes nothing about the market.
    """

    mechanism: str
    capacity: int | None
    load: float
    liars: float
    lie: str
    amount: float
    seed: int
    rounds: int


Form = dict[str, str]  # control: what it holds


def first_form(scenario: Scenario, seed: int) -> Form:
    """Return the initial values of the controls: the scenario as it is."""
    strategy = scenario.owners.strategy
    kind = KINDS[strategy.kind].kind if strategy.kind in KINDS else ""  # not of one that learns
    lie = kind if kind in LIES else "scale-value"
    own = getattr(strategy, amount_of(lie).name, None)
    capacity = scenario.mechanism.capacity
    return {
        "mechanism": scenario.mechanism.name,
        "capacity": "" if capacity is None else str(capacity),
        "load": "100",
        "liars": f"{100 * scenario.owners.misreporting:g}",
        "lie": lie,
        "amount": f"{LIES[lie].telling:g}" if own is None else f"{own:g}",
        "seed": str(seed),
        "rounds": "4",
    }


def read_form(form: Mapping[str, str]) -> tuple[Settings | None, dict[str, str]]:
    """Read the controls.

    Returns
    -------
    settings : Settings or None
        None if a control has an illegal value.
    faults : dict of str
        Control: its legal values.

    Examples
    --------
    >>> form = first_form(Scenario.load("synthetic-pipelines"), seed=0)
    >>> read_form(form)[0].mechanism
    'posted-price'
    >>> read_form({**form, "liars": "150"})
    (None, {'liars': "'150': expected a number from 0 to 100"})
    """
    faults: dict[str, str] = {}

    def text(control: str) -> str:
        return str(form.get(control) or "").strip()

    def one_of(control: str, legal: tuple[str, ...]) -> str:
        if text(control) not in legal:
            faults[control] = f"{_seen(text(control))}: expected one of {', '.join(legal)}"
        return text(control)

    def between(control: str, low: float, high: float, whole: bool) -> float:
        number = _number(text(control), whole)
        if number is None or not low <= number <= high:
            kind = "a whole number" if whole else "a number"
            faults[control] = f"{_seen(text(control))}: expected {kind} from {low:g} to {high:,.0f}"
            return low
        return number

    lie = one_of("lie", tuple(LIES))
    settings = Settings(
        mechanism=one_of("mechanism", mechanism_names()),
        capacity=int(between("capacity", 1, MOST_NODES, True)) if text("capacity") else None,
        load=between("load", 1.0, MOST_LOAD, False) / 100.0,
        liars=between("liars", 0.0, 100.0, False) / 100.0,
        lie=lie,
        amount=between("amount", *_amounts(lie)),
        seed=_seed(text("seed"), faults),
        rounds=int(between("rounds", 1, MOST_ROUNDS, True)),
    )
    return (None, faults) if faults else (settings, {})


def apply(settings: Settings, base: Scenario) -> Scenario:
    """Return ``base`` under these settings; the load is not in it, see `scaled_jobs`.

    Raises
    ------
    InvalidParameterError
        If the settings do not go together with the scenario.
    """
    data = base.with_mechanism(settings.mechanism).to_dict()
    if settings.capacity is None:
        data["mechanism"].pop("capacity", None)
    else:
        data["mechanism"]["capacity"] = settings.capacity
    own = amount_of(settings.lie)
    amount = int(settings.amount) if own.whole else settings.amount
    data["owners"] = {"misreporting": settings.liars, "strategy": {"kind": settings.lie, own.name: amount}}
    return Scenario.from_dict(data, source="dashboard")


def amount_of(lie: str) -> Number:
    """Return the number of a lie that the control ``amount`` holds."""
    return next(iter(LIES[lie].numbers().values()))


def _amounts(lie: str) -> tuple[float, float, bool]:
    """Return the amounts of a lie that can be typed: lowest, highest, and whether they are whole."""
    if lie not in LIES:  # which is a fault of its own
        return -MOST_AMOUNT[True], MOST_AMOUNT[True], True
    own = amount_of(lie)
    most = MOST_AMOUNT[own.whole]
    if isinstance(own.legal, tuple):
        return max(own.legal[0], -most), most, True
    return LEAST_FACTOR if own.legal[0] == "(" else 0.0, most, False


def _number(text: str, whole: bool) -> float | None:
    """Return the number that ``text`` is, or None; a digit too many is no reason to fail."""
    try:
        return int(text) if whole and len(text) < 20 else float(text) if not whole else None
    except ValueError:
        return None


def _seed(text: str, faults: dict[str, str]) -> int:
    """Read a seed: whole, and too large for floating point."""
    try:
        seed = int(text) if len(text) < 20 else -1
    except ValueError:
        seed = -1
    if not 0 <= seed <= MOST_SEED:
        faults["seed"] = f"{_seen(text)}: expected a whole number >= 0, of at most 19 digits"
        return 0
    return seed


def _seen(text: str) -> str:
    """Quote what was typed, shortened."""
    return repr(text if len(text) <= 24 else text[:24] + "...") if text else "nothing"


def check_rounds(rounds: object) -> int:
    """Return ``rounds`` if it is a legal step; otherwise raise an error."""
    if not isinstance(rounds, int) or isinstance(rounds, bool) or not 1 <= rounds <= MOST_ROUNDS:
        raise InvalidParameterError(f"rounds = {rounds!r}: expected a whole number from 1 to {MOST_ROUNDS}")
    return rounds
