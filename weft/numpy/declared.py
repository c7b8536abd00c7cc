"""NumPy's functions of the operations and formulas whose faces tell their names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft.eager.functions.elementwise import declared
from weft.numpy import cumulative
from weft.numpy.convert import array_like, operands
from weft.ops.declaration import Takes
from weft.ops.declaration.face import FACES, own_name
from weft.ops.refusal import REFUSABLE, guarded, refuse

if TYPE_CHECKING:
    from weft.numpy.array import ndarray


_TITLE: Final = ("__module__", "__name__", "__qualname__", "__doc__")


def of_one(function: Callable[[Any], Any]) -> Callable[[Any], ndarray]:
    """A unary function of tensors as one of arguments that can be converted to arrays."""

    @functools.wraps(function, _TITLE)
    def single(x: Any, /) -> ndarray:
        try:
            return function(array_like(x))
        except REFUSABLE as error:
            return refuse(error, single.__name__, single, (x,), {})

    return guarded(single)


def of_two(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], ndarray]:
    """A binary function of tensors as one of arguments that can be converted to arrays."""

    @functools.wraps(function, _TITLE)
    def double(x1: Any, x2: Any, /) -> ndarray:
        try:
            return function(*operands(x1, x2))
        except REFUSABLE as error:
            return refuse(error, double.__name__, double, (x1, x2), {})

    return guarded(double)


def built(source: Any) -> list[Callable[..., ndarray]]:
    """The functions of an operation or formula, by name in its face; the last for further names."""
    if source.face.takes is Takes.ALONG:
        functions = [cumulative.of_numpy(source), cumulative.of_standard(source)]
        for name, function in zip(source.face.names("numpy"), functions, strict=True):
            function.__name__ = function.__qualname__ = name
    else:
        plain = declared.function_of(source)
        if plain.__kwdefaults__:  # options of PyTorch's
            plain = vars(declared)[own_name(source)]
        functions = [of_one(plain) if plain.__code__.co_argcount == 1 else of_two(plain)]
    for function in functions:
        function.__doc__ = source.face.doc
    return functions


def _all() -> dict[str, Callable[..., ndarray]]:
    functions: dict[str, Callable[..., ndarray]] = {}
    for source in FACES.values():
        if names := source.face.names("numpy"):
            made = built(source)
            functions |= zip(names, made + made[-1:] * len(names), strict=False)
    return functions


def cumulative_names() -> list[str]:
    """The cumulative functions that are methods, too."""
    return [
        source.face.names("numpy")[0]
        for source in FACES.values()
        if source.face.takes is Takes.ALONG and source.face.numpy
    ]


_ALL = _all()
globals().update(_ALL)
__all__ = [*_ALL]  # pyright: ignore[reportUnsupportedDunderAll]
