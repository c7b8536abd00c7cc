"""Made by `python -m tools.package_stubs`."""

from weft.jax.lax.api import *
