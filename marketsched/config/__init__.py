"""Scenarios: what to run, as plain typed data read from YAML."""
