"""One owner before a market: the plays of a search."""
