"""Scenarios of the three allocation cores as files: what each section may say, and how its world is built."""
