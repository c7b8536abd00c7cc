"""The function of each operation and formula with a face, by the name of its declaration.

They take tensors and no options. What takes more, such as `add` with `alpha=`, is written by hand
in another module and marked `@written`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import ops as ops  # which declares all
from weft.eager.functions.elementwise.division import dividing
from weft.eager.functions.elementwise.from_op import (
    WRITTEN,
    along,
    of_bools,
    of_floats,
    of_one,
    of_op,
    of_truths,
    of_two,
    rounding,
    takes_dtype,
)
from weft.ir.dtype import bool_, int64
from weft.ops.declaration import Alias, Elementwise, Face, Op, Takes
from weft.ops.declaration.face import FACES, arity, own_name


def function_of(source: Any) -> Callable[..., Any]:
    """The function `weft.NAME` of an operation or formula: written by hand, else built here."""
    name = own_name(source)
    return WRITTEN.get(name) or globals().get(name) or built(name, source)


def built(name: str, source: Any) -> Callable[..., Any]:
    """The function of tensors that a face tells, without options."""
    face: Face = source.face
    if not isinstance(source, Op) or face.wide is not None:
        return of_floats(name, source)
    if face.takes is Takes.ALONG:
        return along(name)
    if source.attrs or arity(source) > 2 or not isinstance(source.lower, Elementwise | Alias):
        return of_op(source)
    if face.takes is Takes.ROUNDING:
        return rounding(name)
    if face.takes is Takes.DIVISOR:
        return dividing(name)
    floats = face.takes is Takes.FLOATS or not takes_dtype(source, int64)
    if floats and takes_dtype(source, bool_):
        return of_truths(name)
    if arity(source) == 2:
        return of_two(name, floats)
    function = of_one(name, floats)
    return function if face.booleans is None else of_bools(function, face.booleans)


def _is_plain(source: Any) -> bool:
    """Whether all that it takes are tensors, or also an axis."""
    face: Face = source.face
    if isinstance(source, Op):
        return not source.attrs or face.takes is Takes.ALONG
    return set(source.__annotations__.values()) == {"Value"}


def _all() -> dict[str, Callable[..., Any]]:
    return {
        name: built(name, source)
        for name, source in FACES.items()
        if _is_plain(source) and (source.face.torch or source.face.numpy or source.face.special)
    }


_ALL = _all()
globals().update(_ALL)
__all__ = [*_ALL]  # pyright: ignore[reportUnsupportedDunderAll]
