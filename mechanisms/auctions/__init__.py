"""Auctions and flat prices to compare the truthful mechanism with."""
