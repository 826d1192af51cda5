"""Play a market: run a scenario, replay a log of events."""
