"""Made by `python -m tools.package_stubs`."""

from weft.jax.scipy import integrate as integrate
from weft.jax.scipy import linalg as linalg
from weft.jax.scipy import ndimage as ndimage
from weft.jax.scipy import optimize as optimize
from weft.jax.scipy import signal as signal
from weft.jax.scipy import sparse as sparse
from weft.jax.scipy import special as special
from weft.jax.scipy import stats as stats
