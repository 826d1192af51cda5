"""Sweeps: many seeded runs, survived interruptions, one table."""
