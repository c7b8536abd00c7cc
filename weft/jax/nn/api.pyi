"""Made by `python -m tools.package_stubs`."""

from weft.jax.nn.activation import *
from weft.jax.nn import initializers as initializers
