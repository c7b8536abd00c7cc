"""`Module` and what it is made of: tree, hooks, state dicts, containers."""
