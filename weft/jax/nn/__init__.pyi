"""Made by `python -m tools.package_stubs`."""

from weft.jax.nn.api import *
