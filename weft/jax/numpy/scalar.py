"""JAX's scalar types: dtypes that make arrays where they are called."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.errors import DTypeError
from weft.ir.dtype import COMPLEX, DTYPES, DType, as_dtype
from weft.jax.array import Array
from weft.jax.numpy import creation


class ScalarType(type):
    """The class of scalar types.

    >>> from weft.jax.numpy import float32, zeros
    >>> float32(3), zeros(1, float32).dtype == float32
    (Array(3., dtype=float32), True)
    """

    weft: DType

    def __call__(cls, x: Any) -> Array:
        """An array of this dtype."""
        return creation.asarray(x, cls.weft)

    @property
    def dtype(cls) -> np.dtype[Any]:
        """NumPy's dtype."""
        return cls.weft.numpy

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(cls.weft, name)

    def __eq__(cls, other: object) -> bool:
        try:
            return other is not None and as_dtype(other) is cls.weft
        except DTypeError:
            return False

    def __hash__(cls) -> int:
        return hash(cls.weft)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.weft.numpy.type)


SCALARS: Final = {
    name: ScalarType(name, (), {"weft": dtype, "__module__": __name__})
    for name, dtype in (DTYPES | COMPLEX).items()
}
globals().update(SCALARS)
