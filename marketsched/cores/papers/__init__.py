"""Tables and figures of the papers on the cores."""
