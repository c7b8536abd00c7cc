"""Branches and loops over tensors that stay in the program, named as in `jax.lax`."""
