"""Control flow inside the program: branches and loops, named as in `jax.lax`."""
