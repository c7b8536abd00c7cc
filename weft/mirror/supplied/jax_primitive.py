"""`jax.extend.core.Primitive` and `jax.interpreters`: packages declare operations on import.

Weft has functions, no primitives: a declared one runs what `def_impl` set on the arrays of its
call, so all transformations go through that. Rules for JAX's own interpreters are kept, and not
called: under `vmap`, the function is that of one example.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from weft.jax import lax

__all__ = [
    "Primitive", "axis_primitive_batchers", "custom_typechecks", "fancy_primitive_batchers",
    "initial_style_staging_rules", "lower_fun", "primitive_batchers", "primitive_jvps",
    "primitive_linearizations", "primitive_transposes", "register_lowering",
]  # fmt: skip

axis_primitive_batchers: Final[dict[Any, Any]] = {}
custom_typechecks: Final[dict[Any, Any]] = {}
fancy_primitive_batchers: Final[dict[Any, Any]] = {}
initial_style_staging_rules: Final[dict[Any, Any]] = {}
primitive_batchers: Final[dict[Any, Any]] = {}
primitive_jvps: Final[dict[Any, Any]] = {}
primitive_linearizations: Final[dict[Any, Any]] = {}
primitive_transposes: Final[dict[Any, Any]] = {}


_ELEMENTWISE: Final = frozenset((
    "abs", "acos", "acosh", "add", "and_", "asin", "asinh", "atan", "atan2", "atanh", "cbrt",
    "ceil", "clamp", "conj", "cos", "cosh", "digamma", "div", "eq", "erf", "erf_inv", "erfc",
    "exp", "exp2", "expm1", "floor", "ge", "gt", "igamma", "igammac", "imag", "integer_pow",
    "is_finite", "le", "lgamma", "log", "log1p", "logistic", "lt", "max", "min", "mul", "ne",
    "neg", "nextafter", "not_", "or_", "pow", "real", "rem", "round", "rsqrt", "sign", "sin",
    "sinh", "sqrt", "square", "stop_gradient", "sub", "tan", "tanh",
))  # fmt: skip


class Primitive:
    """A named operation, which `def_impl` gives a function.

    >>> twice = Primitive("twice")
    >>> _ = twice.def_impl(lambda x: 2 * x)
    >>> twice.bind(3)
    6
    """

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.function: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return self.name

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Set the function that computes it."""
        self.function = impl
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """No effect: shapes follow from what the function computes."""
        return rule

    def_effectful_abstract_eval = def_effectful_abstract_eval2 = def_custom_bind = def_abstract_eval

    def bind(self, *args: Any, **params: Any) -> Any:
        """Compute it.

        Raises:
            NotImplementedError: no function was set.
        """
        if self.function is None:
            raise NotImplementedError(
                f"Evaluation rule for '{self.name}' not implemented: Weft runs what def_impl sets"
            )
        return self.function(*args, **params)


def register_lowering(prim: Primitive, rule: Any = None, platform: Any = None, **_: Any) -> Any:
    """Nothing: Weft compiles what the function computes."""
    return rule


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """The function, for `register_lowering`."""
    return fun


@cache
def _elementwise(name: str) -> Primitive:
    found = Primitive(name)
    found.def_impl(getattr(lax, name))
    return found


def __getattr__(name: str) -> Primitive:
    """The operation of an elementwise function, such as `exp_p`."""
    function = name.removesuffix("_p")
    if name == function or function not in _ELEMENTWISE:
        raise AttributeError(name)
    return _elementwise(function)
