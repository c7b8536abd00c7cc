"""Kernels of CSR (compressed sparse row) matrices."""
