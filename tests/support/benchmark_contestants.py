"""Contestants of the benchmark that earn nothing, or fail."""

from marketsched.mechanisms import ArrivalMarket, register


@register("nobody-served")
class NobodyServed(ArrivalMarket):
    """Turns everybody away: its welfare is 0."""

    def foresee(self, x, signal):
        x.limit = self.max_duration

    def serve(self, waiting):
        return [None for _ in waiting]

    def charge(self, x):
        return 0.0


@register("breaks")
class Breaks(NobodyServed):
    """Fails when the first job comes."""

    def foresee(self, x, signal):
        raise RuntimeError("no idea\nand more")


@register("not-to-be-copied")
class NotToBeCopied(NobodyServed):
    """Holds what cannot be pickled, so that lies cannot be played from the middle of a market."""

    def __init__(self, capacity, horizon, **sizes):
        super().__init__(capacity, horizon, **sizes)
        self.held = lambda: None
