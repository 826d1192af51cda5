"""Owners as Mesa agents, and their models: a place in the model, and an identifier in every version of Mesa."""

from __future__ import annotations

import mesa
import numpy as np


class MarketAgent(mesa.Agent):
    """An agent with a number of its own.

    Mesa 3.4 and newer let the model count its agents; 3.3 counts them in a table of the class that keeps every model
    for ever. There the agent registers by the public parts of Mesa alone, so that an unused market is freed.

    Examples
    --------
    >>> model = mesa.Model(rng=1)
    >>> agent = MarketAgent(model, 7)
    >>> agent.unique_id, agent in model.agents
    (7, True)
    """

    def __init__(self, model: mesa.Model, unique_id: int) -> None:
        if hasattr(model, "agent_id_counter"):
            super().__init__(model)
        else:
            self.model, self.unique_id, self.pos = model, unique_id, None
            model.register_agent(self)
        self.unique_id = unique_id


class OwnersModel(mesa.Model):
    """A model whose agents are owners, for the games that are played slot by slot or day by day.

    Mesa's own draws (there are none here) come from a stream of their own, so that they move nothing.

    Examples
    --------
    >>> model = OwnersModel(np.random.default_rng(3))
    >>> owner = MarketAgent(model, 1)
    >>> model.running, len(model.agents)
    (True, 1)
    """

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng=int(rng.spawn(1)[0].integers(2**31)))
