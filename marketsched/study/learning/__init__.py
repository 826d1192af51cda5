"""Owners that learn, in markets that are repeated."""
