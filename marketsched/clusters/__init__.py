"""Cluster scenarios: the three allocation cores, run and compared over seeds, and what their owners gain by lying."""
