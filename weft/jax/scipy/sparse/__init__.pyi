"""Made by `python -m tools.package_stubs`."""

from weft.jax.scipy.sparse import linalg as linalg
