"""Credits that renew: the mechanism `marketsched.mechanisms.credits.credits.Credits` for clusters without money."""
