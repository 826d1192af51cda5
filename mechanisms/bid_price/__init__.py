"""Bid prices: menus at arrival, from the dual prices of expected arrivals; no job is ever evicted."""
