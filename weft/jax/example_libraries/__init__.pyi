"""Made by `python -m tools.package_stubs`."""

from weft.jax.example_libraries import optimizers as optimizers
from weft.jax.example_libraries import stax as stax
