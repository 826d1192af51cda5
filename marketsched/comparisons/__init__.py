"""Mechanisms compared on the same jobs, and the search for the jobs a mechanism does worst on."""
