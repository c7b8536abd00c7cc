"""The boundary of a graph: feeds, variables, Python calls, checks."""
