"""The live market: the rules of `replay` fed from a journal, over HTTP, against a clock."""
