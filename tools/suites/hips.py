"""The test suite of HIPS autograd: its NumPy is `weft.numpy`, its transformations `weft.func`."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest

import weft
from tools.suites.mirror import Library
from tools.suites.raising import at_once
from weft import func
from weft import numpy as np
from weft.func.tree import flatten, map_structure

MODULES = {
    "autograd": "weft.func",
    "autograd.extend": "weft.func",
    "autograd.tracer": "weft.func",
    "autograd.numpy": "weft.numpy",
    "autograd.scipy": "weft.scipy",
}


_raises = pytest.raises


@contextmanager
def raises(expected: Any, match: object = None) -> Generator[Any, None, None]:
    """`pytest.raises` of a block in which everything is computed at once; ignores the message."""
    with _raises(expected) as caught, at_once():
        yield caught


def library(folder: Path) -> Library:
    """The mirror of `autograd`, with the checkout in `folder`."""
    pytest.raises = raises  # type: ignore[assignment]  # its tests have no base class of their own
    return Library(
        name="autograd",
        folder=folder.resolve(),
        modules=MODULES,
        supplied=supplied(),
        own=("autograd.test_util", "autograd.wrap_util", "autograd.util"),
        before=partial(np.random.seed, 42),  # as its conftest.py does with NumPy's
    )


def supplied() -> dict[str, dict[str, Any]]:
    """Names that differ in Weft, and what the suite's gradient checks consist of."""
    named = ("list", "tuple", "dict", "isinstance", "type")
    python = {name: getattr(builtins, name) for name in named}
    by_argument = ("grad", "value_and_grad", "jacobian", "hessian", "elementwise_grad", "make_vjp")
    return {
        "autograd": {
            **python,
            **{name: partial(by_position, getattr(func, name)) for name in by_argument},
            "make_jvp": partial(by_position, func.make_jvp),
            "grad_and_aux": partial(by_position, partial(func.grad, has_aux=True)),
            "hessian_vector_product": partial(by_position, func.hessian_vector_product),
            "deriv": partial(by_position, derivative),
            "holomorphic_grad": partial(by_position, derivative),
        },
        "autograd.builtins": python,
        "autograd.numpy.random": {"RandomState": numpy.random.RandomState},  # of data only
        "autograd.tracer": {"isbox": is_followed},
        "autograd.core": {"make_vjp": make_vjp, "make_jvp": make_jvp, "vspace": Space},
    }


def by_position(
    transform: Callable[..., Any], function: Callable[..., Any], argnum: Any = 0
) -> Callable[..., Any]:
    """`transform(function, argnum)` on numbers: autograd has no tensors."""
    made = transform(function, argnum)
    positions = (argnum,) if isinstance(argnum, int) else tuple(argnum)

    def called(*arguments: Any, **named: Any) -> Any:
        given = [lift(x) if i in positions else x for i, x in enumerate(arguments)]
        return made(*given, **named)

    return called


def derivative(function: Callable[..., Any], argnum: int) -> Callable[..., Any]:
    """The derivative with respect to a number in its own direction, which may be complex."""

    def slope(*arguments: Any) -> Any:
        def of_one(x: Any) -> Any:
            return function(*arguments[:argnum], x, *arguments[argnum + 1 :])

        x = arguments[argnum]
        return func.jvp(of_one, (x,), (np.ones_like(x),))[1]

    return slope


def is_followed(x: object) -> bool:
    """Whether a value requires gradients."""
    return isinstance(x, weft.Tensor) and x.requires_grad


def lift(value: Any) -> Any:
    """A structure whose numbers and arrays are Weft's."""
    return map_structure(_lifted, value)


def _lifted(x: Any) -> Any:
    numbers = float | complex | numpy.ndarray | numpy.generic
    return np.asarray(x) if isinstance(x, numbers) and not isinstance(x, weft.Tensor) else x


def make_vjp(function: Callable[..., Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """The function from cotangents to gradients, and the result."""
    result, pull = func.vjp(function, lift(x))
    return lambda g: pull(lift(g))[0], result


def make_jvp(function: Callable[..., Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """A function from tangents of `x` to tangents of the result."""
    return lambda v: func.jvp(function, (lift(x),), (lift(v),))


class Space:
    """The values of one structure with given shapes and dtypes, as a vector space."""

    def __init__(self, value: Any) -> None:
        leaves, self.tree = flatten(lift(value))
        self.likes = [np.asarray(x) for x in leaves]
        self.size = sum(x.size for x in self.likes)
        self.iscomplex = any(x.dtype.is_complex for x in self.likes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self._types() == other._types()

    __hash__ = None  # type: ignore[assignment]

    def _types(self) -> tuple[Any, list[tuple[Any, Any]]]:
        return self.tree, [(x.shape, x.dtype) for x in self.likes]

    def __repr__(self) -> str:
        return f"Space{self._types()}"

    def _built(self, make: Callable[[Any], Any]) -> Any:
        return self.tree.build([make(x) for x in self.likes])

    def zeros(self) -> Any:
        """The zero vector."""
        return self._built(np.zeros_like)

    def ones(self) -> Any:
        """Ones everywhere."""
        return self._built(np.ones_like)

    def randn(self) -> Any:
        """A random vector."""
        return self._built(_drawn)

    def standard_basis(self) -> Iterator[Any]:
        """Unit vectors (and, for complex numbers, imaginary unit vectors)."""
        for n, like in enumerate(self.likes):
            for unit in (1.0, 1.0j) if like.dtype.is_complex else (1.0,):
                for place in numpy.ndindex(*like.shape):
                    parts: list[Any] = [np.zeros_like(x) for x in self.likes]
                    array = numpy.array(parts[n])
                    array[place] = unit
                    parts[n] = np.asarray(array)
                    yield self.tree.build(parts)

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two vectors."""
        return map_structure(lambda a, b: a + b, x, y)

    def scalar_mul(self, x: Any, factor: Any) -> Any:
        """A vector times a number."""
        return map_structure(lambda a: a * factor, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The real part of the inner product."""
        pairs: Sequence[Any] = flatten(map_structure(_product, x, y))[0]
        return sum(pairs)

    def covector(self, x: Any) -> Any:
        """The dual vector; conjugates complex numbers."""
        return map_structure(np.conj, x)


def _drawn(like: Any) -> Any:
    drawn = np.random.randn(*like.shape)
    drawn = drawn + 1j * np.random.randn(*like.shape) if like.dtype.is_complex else drawn
    return np.astype(drawn, like.dtype)


def _product(x: Any, y: Any) -> Any:
    return np.sum(np.real(np.conj(x) * y))
