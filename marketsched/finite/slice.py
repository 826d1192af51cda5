"""What finite mechanisms add to the tables of `marketsched.mechanisms.registry`: names only, nothing is loaded."""

ENTRIES = {"command": {"audit finite": "marketsched.finite.command:finite"}}
