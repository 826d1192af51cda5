"""Owners as Mesa agents: a place in the model, and an identifier in every version of Mesa."""

from __future__ import annotations

import mesa


class MarketAgent(mesa.Agent):
    """An agent with a number of its own.

    Mesa 3.4 and newer let the model count its agents; 3.3 counts them in a table of the class that keeps every model
    for ever. There the agent registers by the public parts of Mesa alone, so that an unused market is freed.

    Parameters
    ----------
    model : mesa.Model
    unique_id : int
        Its number in the model, >= 1.

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
