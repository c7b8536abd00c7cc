"""Matmuls: the problem, its blocking, and the loops around the microkernel."""
