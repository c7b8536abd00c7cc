"""Where programs keep what they compute: arenas, variables, and how much was needed before."""
