"""A mechanism: a fixed price per node and round; first submitted, first served."""

import numpy as np

from marketsched.mechanisms import RoundAuction, Settlement
from marketsched.mechanisms.legal import Positive, legal


class FlatRate(RoundAuction):
    """A job that finds free nodes worth ``rate`` credits each and per round gets them."""

    @legal
    def __init__(self, capacity, horizon, *, rate: Positive = 2.0, **limits):
        super().__init__(capacity, horizon, **limits)
        self.rate = rate

    def settle(self, bids, free):
        answer = [None] * bids.worth.size
        for i in np.flatnonzero(bids.worth > self.rate * bids.nodes * bids.rounds):
            if bids.nodes[i] <= free:
                answer[i], free = Settlement(rate=self.rate * bids.nodes[i]), free - bids.nodes[i]
        return answer
