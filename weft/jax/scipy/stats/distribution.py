"""Distributions: those of `weft.scipy.stats`, and those with a location and a scale."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from weft.eager.tensor.dispatch import recorded
from weft.jax.array import given, jaxed
from weft.jax.numpy import api as _numpy
from weft.jax.numpy.kind import promoted
from weft.ops.linalg.fault import as_data
from weft.ops.random import standard

jnp: Any = _numpy

__all__ = ["NAMES", "module_of"]

_OF_SCIPY: Final = (
    "beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t",
)  # fmt: skip
_OTHERS: Final = {
    "bernoulli": ("pmf", standard.bernoulli), "geom": ("pmf", standard.geometric),
    "pareto": ("pdf", standard.pareto),
}  # fmt: skip
NAMES: Final = tuple(sorted([*_OF_SCIPY, *_OTHERS, *standard.STANDARD]))


def _floats(*xs: Any) -> Any:
    return promoted(*[jnp.asarray(x, None if jnp.result_type(x).is_inexact else float) for x in xs])


def _placed(formula: Callable[..., Any]) -> Callable[..., Any]:
    of = recorded(formula)

    def run(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return given(of(*_floats(x, loc, scale)))

    return run


def _shaped(formula: Callable[..., Any], exp: bool) -> Callable[..., Any]:
    def run(x: Any, shape: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return given(_of_shape(*_floats(x, shape, loc, scale), density=formula, exp=exp))

    return run


_of_shape = recorded(standard.placed)


def _functions(name: str) -> dict[str, Callable[..., Any]]:
    if name in standard.STANDARD:
        return {n: _placed(standard.function(name, n)) for n in standard.FUNCTIONS}
    if name in _OTHERS:
        kind, formula = _OTHERS[name]
        return {kind: _shaped(formula, True), f"log{kind}": _shaped(formula, False)}
    module = importlib.import_module(f"weft.scipy.stats.{name}")
    return {n: as_data(jaxed(getattr(module, n))) for n in module.__all__}


def module_of(name: str) -> ModuleType:
    """The module of a distribution, which programs can import."""
    full = f"weft.jax.scipy.stats.{name}"
    module = sys.modules[full] = ModuleType(full, f"`jax.scipy.stats.{name}`.")
    vars(module).update(_functions(name))
    return module
