"""Bid prices: menus at arrival, from the dual prices of what is still to come; no job is ever evicted."""
