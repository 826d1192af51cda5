"""The fractional problem: bounds on what any schedule could have earned. The only room for cvxpy."""
