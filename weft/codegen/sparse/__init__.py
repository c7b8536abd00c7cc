"""Kernels of sparse matrices in compressed rows."""
