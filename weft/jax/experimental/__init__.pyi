"""Made by `python -m tools.package_stubs`."""

from weft.jax.config import enable_x64 as enable_x64
from weft.jax.experimental import ode as ode
from weft.jax.experimental import sparse as sparse
from weft.jax.example_libraries import optimizers as optimizers
from weft.jax.example_libraries import stax as stax
from weft.jax.device import io_callback as io_callback
