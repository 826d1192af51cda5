"""Entries of markets side by side in the tables of `marketsched.mechanisms.registry`."""

ENTRIES = {
    "command": {"sites": "marketsched.sites.command:sites"},
    "result": {"sites": "marketsched.sites.sites_kind:SitesKind"},
}
