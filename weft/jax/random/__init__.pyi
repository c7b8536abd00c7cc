"""Made by `python -m tools.package_stubs`."""

from weft.jax.random.api import *
