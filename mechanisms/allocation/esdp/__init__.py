"""ESDP: channels whose speed has to be learnt, by dynamic programs for all budgets at once."""
