"""Checks of a mechanism, from its own test suite."""
