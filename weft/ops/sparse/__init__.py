"""Sparse matrices in compressed rows (CSR), and reductions of rows by segments."""
