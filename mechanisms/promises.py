"""The printed promises of a mechanism, made from what it states: one sentence for lists, summaries and pages.

A mechanism states ``truthful``, ``truthful_hidden`` and ``standing``; an instance may state less, or more, than its
class does by default. Nothing else in the package says whether truth is promised.
"""

from __future__ import annotations

from typing import Any

from marketsched.mechanisms.mechanism import Mechanism, Standing, Truthful

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


def printed_promises(mechanism: Any) -> str:
    """Return what a mechanism promises to owners, in one line.

    Parameters
    ----------
    mechanism : Mechanism, or a class of mechanisms
        Of a class, what holds at its default parameters.

    Examples
    --------
    >>> from marketsched.mechanisms.auctions.first_come import FirstCome
    >>> sizes = {"max_concurrency": 1, "max_duration": 2, "max_value": 9.0, "max_delay": 9}
    >>> printed_promises(FirstCome(1, 9, **sizes, stop_at_loss=True)).split("; ")[1]
    'durations hidden: truth is best for each job, on average over its own duration'
    """
    revealed, hidden = getattr(mechanism, "truthful", "none"), getattr(mechanism, "truthful_hidden", "none")
    standing = getattr(mechanism, "standing", Standing())
    if revealed == hidden and not standing.hidden:
        parts = [TRUTH[revealed]]
    else:
        without = standing.hidden or TRUTH["none"]
        parts = [f"durations revealed: {TRUTH[revealed]}"] if revealed != "none" else []
        parts.append(f"durations hidden: {without if hidden == 'none' else TRUTH[hidden]}")
    if standing.promises:
        parts.append(standing.promises)
    if (revealed, hidden) != ("none", "none") and not getattr(mechanism, "free_of_charge", False):
        parts.append(PAID)
    return "; ".join(parts)


def truth_verdict(mechanism: Any, *, revealed: bool) -> tuple[str, str]:
    """Return what is known of truth-telling under a mechanism: a word of `VERDICTS`, and the lie that it is about.

    Parameters
    ----------
    mechanism : Mechanism, or a class of mechanisms
        One that states a promise and not that it is proved counts as unknown.
    revealed : bool
        Whether jobs reveal their durations when they arrive.

    Examples
    --------
    >>> from marketsched.mechanisms.registry import get
    >>> [truth_verdict(get("mechanism", name), revealed=True) for name in ("bid-price", "pay-as-bid", "vcg")]
    [('proved', ''), ('fails', 'a part of its value'), ('unknown', '')]
    >>> truth_verdict(get("mechanism", "bid-price"), revealed=False)
    ('fails', 'a nearer deadline or a larger value')
    """
    standing = getattr(mechanism, "standing", Standing())
    promise: Truthful = getattr(mechanism, "truthful" if revealed else "truthful_hidden", "none")
    if standing.status == "proved" and standing.but:
        return "in part", standing.but
    if promise == "none":
        return ("fails", standing.lie) if standing.lie else ("unknown", "")
    if standing.status != "proved":
        return "unknown", ""
    return ("up to regret" if promise == "up to regret" else "proved"), ""


def truth_in_short(mechanism: Any, *, revealed: bool) -> str:
    """Return `truth_verdict` as a cell of a list: what is proved, or the lie that pays."""
    verdict, lie = truth_verdict(mechanism, revealed=revealed)
    promise = getattr(mechanism, "truthful" if revealed else "truthful_hidden", "none")
    if verdict == "proved" and promise == "in expectation":
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
