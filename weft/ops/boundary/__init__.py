"""Where a graph meets what is outside: feeds, variables, Python, checks."""
