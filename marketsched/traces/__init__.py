"""Readers of recorded traces, one file per format."""
