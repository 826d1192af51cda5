"""Entries of the live market in the tables of `marketsched.mechanisms.registry`."""

# `slurm_command` adds its commands to those of `live_app`.
ENTRIES = {"command": {"live": "marketsched.live.slurm_command:live_app"}}
