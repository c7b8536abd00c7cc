"""Sparse matrices in CSR format, and segment reductions."""
