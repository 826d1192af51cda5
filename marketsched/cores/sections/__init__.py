"""Scenarios of the three allocation cores as files: the keys of each section, and the world built from it."""
