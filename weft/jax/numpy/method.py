"""Methods of JAX's arrays: NumPy's, whose results have 32 bits by default."""

from __future__ import annotations

from typing import Any, Final

from weft.ir.dtype import as_dtype
from weft.jax.array import ALL, Array, canonical, jaxed
from weft.jax.numpy import creation
from weft.numpy import elementwise, manipulation, searching
from weft.numpy.array import ndarray

__all__: list[str] = []
WEAK: Final = {name: ALL for name in (
    "abs", "absolute", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "cbrt", "ceil", "clip", "conj", "conjugate", "copysign", "cos", "cosh",
    "divide", "dot", "exp", "exp2", "expm1", "fabs", "float_power", "floor",
    "floor_divide", "fmax", "fmin", "fmod", "imag", "inner", "log", "log1p", "logaddexp", "matmul",
    "maximum", "minimum", "mod", "multiply", "negative", "outer", "positive", "pow", "power",
    "real", "reciprocal", "remainder", "sign", "sin", "sinh", "sqrt", "square", "subtract", "tan",
    "tanh", "true_divide", "trunc",
)} | {name: slice(1) for name in (
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "diag", "diff", "expand_dims",
    "flip", "fliplr", "flipud", "moveaxis", "pad", "ravel", "repeat", "reshape", "roll", "rot90",
    "sort", "squeeze", "swapaxes", "take", "tile", "transpose", "tril", "triu",
)}  # fmt: skip
"""Functions whose results are weak, and the arguments that tell: all, or the first."""
_NARROWED: Final = (
    "argmax argmin argsort conj conjugate diagonal dot nonzero ptp ravel repeat "
    "reshape round searchsorted squeeze swapaxes take trace"
)

for _name in _NARROWED.split():
    setattr(Array, _name, jaxed(getattr(ndarray, _name), WEAK.get(_name)))


_reshaped: Any = Array.reshape


class _Methods:
    """Methods that JAX's arrays have in their own way."""

    def astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Array:
        """The array as another dtype."""
        return creation.astype(self, dtype)

    def reshape(self: Any, *shape: Any, **how: Any) -> Array:
        """The same elements in another shape, without arguments that of a scalar."""
        return _reshaped(self, *(shape or ((),)), **how)

    def sort(self: Any, axis: int = -1, *, stable: bool = True, descending: bool = False) -> Array:
        """The sorted array."""
        return _sorted(self, axis, descending=descending)

    def clip(self: Any, min: Any = None, max: Any = None, **old: Any) -> Array:
        """The array within limits."""
        return _clipped(self, min, max, **old)

    def split(self: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
        """Equal parts along an axis, or parts that begin at indices."""
        return list(_parts(self, indices_or_sections, axis))

    def copy(self: Any) -> Array:
        """The array: it never changes."""
        return self

    def flatten(self: Any, order: str = "C") -> Array:
        """The elements in a row."""
        return _flat(self, order)

    def view(self: Any, dtype: Any = None) -> Array:
        """The same bits as another dtype."""
        return self if dtype is None else ndarray.view(self, canonical(as_dtype(dtype)))  # pyright: ignore[reportReturnType]

    def to_device(self: Any, device: Any, *, stream: Any = None) -> Array:
        """The array itself: there is one device."""
        return self

    def addressable_data(self: Any, index: int) -> Array:
        """The array itself."""
        return self

    def delete(self: Any) -> None:
        """Nothing: memory is freed with the last reference."""

    def is_deleted(self: Any) -> bool:
        """Whether it was deleted: it was not."""
        return False


_parts = jaxed(manipulation.split)
_sorted = jaxed(searching.sort)
_clipped = jaxed(elementwise.clip, ALL)
_flat = jaxed(manipulation.ravel)

for _name, _member in vars(_Methods).items():
    if not _name.startswith("__"):
        setattr(Array, _name, _member)
