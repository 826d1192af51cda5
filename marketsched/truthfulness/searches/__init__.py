"""The search for profitable lies."""
