"""Memory of programs: arenas, variables, and forecasts of their size."""
