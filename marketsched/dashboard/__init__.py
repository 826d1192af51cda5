"""The dashboard: a live page of a market, on loopback."""
