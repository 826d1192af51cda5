"""One owner before a market: what a search plays, and how."""
