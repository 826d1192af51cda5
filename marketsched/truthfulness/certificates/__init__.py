"""Upper bounds of what any misreport gains."""
