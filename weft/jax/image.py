"""`jax.image`: images of other sizes."""

from __future__ import annotations

import enum
from typing import Any, Final

from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show
from weft.jax.array import given
from weft.jax.config import without_effect
from weft.jax.numpy.common import floating_of
from weft.ops.image import resample

__all__ = ["ResizeMethod", "resize"]

_resized = recorded(resample.resized)


class ResizeMethod(enum.Enum):
    """How pixels between others are found."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name, such as `bilinear`.

        Raises:
            ArgumentError: there is none.
        """
        if s not in _NAMES:
            raise ArgumentError.here(f"resize: expected a method of {(*_NAMES,)}, got {s!r}")
        return _NAMES[s]


_NAMES: Final = {
    "nearest": ResizeMethod.NEAREST, "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
}  # fmt: skip


def resize(
    image: Any,
    shape: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = None,
) -> Any:
    """An array with axes of other lengths.

    Args:
        method: `nearest`, `linear`, `cubic`, `lanczos3` or `lanczos5`.
        antialias: whether fewer pixels are means of many.

    Raises:
        ShapeError: another number of axes.

    >>> import weft.jax.numpy as jnp
    >>> resize(jnp.arange(4.0), (2,), "linear")
    Array([0.71428573, 2.2857144 ], dtype=float32)
    """
    without_effect("resize", precision=precision)
    x = floating_of(image)
    if len(shape) != x.ndim:
        raise ShapeError.here(f"resize: expected {x.ndim} sizes, got {show(tuple(shape))}")
    found = ResizeMethod.from_string(method) if isinstance(method, str) else method
    mode = "nearest-exact" if found is ResizeMethod.NEAREST else found.name.lower()
    return given(_resized(x, shape=tuple(map(int, shape)), mode=mode, antialias=antialias))
