"""`import weft.as_jax`, a program's first line: Weft answers imports of JAX.

From then on `jax` is Weft, with its submodules, in this process and in those that `multiprocessing`
starts; an installed copy is not loaded. Packages that import `jax`, such as optax, find Weft. What
Weft lacks raises where it is used. `weft run SCRIPT` does the same for a program that is not
changed.

>>> import weft.as_jax
>>> import jax.numpy as jnp
>>> jnp.arange(3) * 2
Array([0, 2, 4], dtype=int32)
"""

from __future__ import annotations

from weft.mirror import table
from weft.mirror.finder import install

__all__ = ["install"]

install(table.JAX)
