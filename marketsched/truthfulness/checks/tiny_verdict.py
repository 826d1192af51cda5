"""What tiny domains say of truth-telling under a mechanism of which nothing is stated: a row of a comparison."""

from __future__ import annotations

from marketsched.agents.call_limit import calls_end_within
from marketsched.results.views import exact_amount
from marketsched.truthfulness.checks.tiny_domains import Factory, TinyPlays, largest_gain, tiny_domains
from marketsched.truthfulness.sentences import lie_in_words

SECONDS = 10.0  # of a call: the markets are tiny


def tiny_verdict(build: Factory) -> tuple[str, str]:
    """Return a word of `VERDICTS`, and the lie that it is about: the first that pays, as `check_truthful` plays them.

    The word is ``"fails"`` with a lie that pays; ``"searched"``: none does in any domain; ``"unknown"`` where a domain
    cannot be played.
    """
    played = False
    for domain in tiny_domains().values():
        try:
            with calls_end_within(SECONDS):
                best, asked = largest_gain(TinyPlays(build, domain))
        except Exception:  # whatever it raises in a market that it was not written for, it says nothing of lies
            continue
        if best is not None:
            return "fails", f"{lie_in_words(best.truth, best.report)}: gains {exact_amount(best.gain)} credits"
        played = played or asked > 0
    return ("searched" if played else "unknown"), ""
