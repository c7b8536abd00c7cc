"""Linear algebra: matmuls, factorizations, solvers."""
