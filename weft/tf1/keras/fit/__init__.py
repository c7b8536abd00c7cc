"""How models are trained: what `compile` was told, steps, data, and the run itself."""
