"""The rules: statements of work, menus, launch plans, posted prices, eviction, oracles. Pure."""
