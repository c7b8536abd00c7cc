"""The names of `jax.lax`, which imports them on first use."""

from __future__ import annotations

from weft import exports as _exports
from weft.jax.lax import linalg as linalg
from weft.jax.lax.collective import *
from weft.jax.lax.control import *
from weft.jax.lax.convolution import *
from weft.jax.lax.elementwise import *
from weft.jax.lax.slicing import *
from weft.jax.lax.structure import *
from weft.jax.lax.window import *

_exports.gather(globals(), "linalg")
