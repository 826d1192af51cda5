"""OPS and OPM: budgeted jobs on machines of unknown rates."""
