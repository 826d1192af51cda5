"""What the dashboard adds to the tables of `marketsched.mechanisms.registry`."""

ENTRIES = {"command": {"dashboard": "marketsched.dashboard.command:dashboard"}}
