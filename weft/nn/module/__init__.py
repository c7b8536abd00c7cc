"""`Module` and its parts: tree, hooks, state dicts, containers."""
