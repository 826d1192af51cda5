"""What a mechanism promises in a market, made from what it states: `promised`, and its sentences for lists and pages.

A mechanism states ``truthful``, ``truthful_hidden``, ``hidden_alone`` and ``standing``; an instance may state less, or
more, than its class does by default. Nothing else in the package says whether truth is promised.
"""

from __future__ import annotations

from typing import Any, Literal

from marketsched.mechanisms.mechanism import Mechanism, Standing, Truthful

Disclosure = Literal["revealed", "hidden", "mixed"]  # of a market's durations, when jobs arrive: of all, none, some

TRUTH = {  # what each promise means, in a sentence
    "ex post": "truth is best for each job, whatever happens",
    "in expectation": "truth is best for each job, on average over its own duration",
    "up to regret": "truth is best for each job up to a computable regret, if others report truly",
    "none": "truth is not promised",
}

VERDICTS = {  # what each word of `truth_verdict` means
    "proved": "truth is proved best for each job",
    "up to regret": "proved up to a computable regret, if others report truly",
    "in part": "proved, but for what is named",
    "fails": "a lie is known to pay",
    "searched": "no lie pays in markets so small that each is played; `marketsched audit` searches larger ones",
    "unknown": "nothing is proved; `marketsched audit` searches for a lie that pays",
}

CHARGES_STOPS = {
    "pays on completion only": "a run that is stopped at a loss pays for the rounds it used",
    "pays nothing when evicted": "a run that is stopped at a loss pays for the rounds it used",
    "pays at most the declared value": "a run goes on while that is best in expectation, and may cost more in the end",
}  # what ``stop_at_loss`` does not claim

PAID = "all this for owners who care for the credits that they pay"  # utility is value less payments


def promised(mechanism: Any, market: Disclosure, *, hidden: bool) -> Truthful:
    """Return the promise of truth to a job whose duration is hidden, or not, in a market of such jobs.

    Examples
    --------
    >>> from marketsched.mechanisms import BidPrice
    >>> sizes = {"max_concurrency": 1, "max_duration": 2, "max_value": 9.0, "max_delay": 9}
    >>> market = BidPrice(1, 9, **sizes, stop_at_loss=True)
    >>> [promised(market, jobs, hidden=True) for jobs in ("hidden", "mixed")]
    ['in expectation', 'none']
    """
    if hidden and market == "mixed" and getattr(mechanism, "hidden_alone", False):
        return "none"
    stated: Truthful = getattr(mechanism, "truthful_hidden" if hidden else "truthful", "none")
    return stated


def printed_promises(mechanism: Any, market: Disclosure | None = None) -> str:
    """Return what a mechanism (of a class: at its default parameters) promises to owners, in one line.

    ``market`` says of which jobs' durations are revealed; None: of any.

    Examples
    --------
    >>> from marketsched.mechanisms.auctions.first_come import FirstCome
    >>> sizes = {"max_concurrency": 1, "max_duration": 2, "max_value": 9.0, "max_delay": 9}
    >>> printed_promises(FirstCome(1, 9, **sizes, stop_at_loss=True)).split("; ")[1]
    'durations hidden: truth is best for each job, on average over its own duration'
    >>> printed_promises(FirstCome, "revealed").split(": ")[0]
    'durations known at arrival (revealed, or announced as certain)'
    """
    revealed = promised(mechanism, market or "revealed", hidden=False)
    hidden = promised(mechanism, market or "hidden", hidden=True)
    standing = getattr(mechanism, "standing", Standing())
    without = standing.hidden if getattr(mechanism, "truthful_hidden", "none") == "none" else ""
    if revealed == hidden and not without:
        parts = [TRUTH[revealed]]
    else:
        known = (
            "durations revealed" if market is None else "durations known at arrival (revealed, or announced as certain)"
        )
        parts = [f"{known}: {TRUTH[revealed]}"] if revealed != "none" and market != "hidden" else []
        alone = ", and those of all other jobs" if market is None and getattr(mechanism, "hidden_alone", False) else ""
        said = without if hidden == "none" and without else TRUTH[hidden]
        parts += [] if market == "revealed" else [f"durations hidden{alone if not without else ''}: {said}"]
    if standing.promises:
        parts.append(standing.promises)
    if (revealed, hidden) != ("none", "none") and not getattr(mechanism, "free_of_charge", False):
        parts.append(PAID)
    return "; ".join(parts)


def truth_verdict(mechanism: Any, market: Disclosure) -> tuple[str, str]:
    """Return what is known of truth-telling under a mechanism: a word of `VERDICTS`, and the lie that it is about.

    One that states a promise and not that it is proved counts as unknown.

    Examples
    --------
    >>> from marketsched.mechanisms.registry import get
    >>> [truth_verdict(get("mechanism", name), "revealed") for name in ("bid-price", "vcg", "credits")]
    [('proved', ''), ('fails', 'a part of its value'), ('unknown', '')]
    >>> truth_verdict(get("mechanism", "bid-price"), "hidden")
    ('fails', 'a nearer deadline or a larger value')
    """
    standing = getattr(mechanism, "standing", Standing())
    promise = promised(mechanism, market, hidden=market != "revealed")
    if standing.status == "proved" and standing.but:
        return "in part", standing.but
    if promise != promised(mechanism, "hidden", hidden=market != "revealed"):
        return "in part", "hidden durations beside revealed ones"
    if promise == "none":
        return ("fails", standing.lie) if standing.lie else ("unknown", "")
    if standing.status != "proved":
        return "unknown", ""
    return ("up to regret" if promise == "up to regret" else "proved"), ""


def truth_in_short(mechanism: Any, market: Disclosure) -> str:
    """Return `truth_verdict` as a cell of a list: what is proved, or the lie that pays."""
    verdict, lie = truth_verdict(mechanism, market)
    if verdict == "proved" and promised(mechanism, market, hidden=market != "revealed") == "in expectation":
        return "proved, on average"
    return f"no: {lie}" if verdict == "fails" else verdict


def state_promises(market: Mechanism, home: type[Mechanism], stop_at_deadline: bool, stop_at_loss: bool) -> None:
    """Let a market of the class ``home`` state what these rules promise to jobs of hidden duration.

    A class below ``home`` that states something of its own keeps it.
    """
    promise: Truthful = "none" if stop_at_deadline and not stop_at_loss else "in expectation"
    stated = {"truthful_hidden": promise} | ({"does_not_claim": CHARGES_STOPS} if stop_at_loss else {})
    below = type(market).__mro__[: type(market).__mro__.index(home)]
    vars(market).update({name: each for name, each in stated.items() if not any(name in vars(c) for c in below)})
