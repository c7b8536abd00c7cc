"""Collectives along named axes, of ranks or of examples: those of `weft.func`."""

from __future__ import annotations

from typing import Any

from weft import func
from weft.jax.config import refuse_given
from weft.jax.numpy import api as _numpy
from weft.jax.tree_util import tree_map

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pmax", "pmean", "pmin",
    "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes",
]  # fmt: skip

all_to_all = func.all_to_all
axis_size = func.axis_size
psum_scatter = func.psum_scatter


def axis_index(axis_name: Any) -> Any:
    """The index of this rank or example along an axis."""
    return _numpy.asarray(func.axis_index(axis_name), "int32")


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum along an axis, of each leaf; a number is multiplied by its size."""
    refuse_given("psum", axis_index_groups=axis_index_groups)
    if isinstance(x, int | float):
        return x * func.axis_size(axis_name)
    return tree_map(lambda leaf: func.psum(leaf, axis_name), x)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean along an axis, of each leaf."""
    refuse_given("pmean", axis_index_groups=axis_index_groups)
    return tree_map(lambda leaf: func.pmean(leaf, axis_name), x)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The largest value along an axis, of each leaf."""
    refuse_given("pmax", axis_index_groups=axis_index_groups)
    return tree_map(lambda leaf: func.pmax(leaf, axis_name), x)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The smallest value along an axis, of each leaf."""
    refuse_given("pmin", axis_index_groups=axis_index_groups)
    return tree_map(lambda leaf: func.pmin(leaf, axis_name), x)


def all_gather(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False, **_: Any) -> Any:
    """The values along an axis, of each leaf."""
    return tree_map(lambda leaf: func.all_gather(leaf, axis_name, axis=axis, tiled=tiled), x)


def ppermute(x: Any, axis_name: Any, perm: Any) -> Any:
    """Values sent from one to another, of each leaf."""
    return tree_map(lambda leaf: func.ppermute(leaf, axis_name, perm), x)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value of one rank along an axis, on all of them, of each leaf."""
    return tree_map(lambda leaf: func.all_gather(leaf, axis_name)[source], x)


def pshuffle(x: Any, axis_name: Any, perm: Any) -> Any:
    """Values in another order: rank i gets that of `perm[i]`."""
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)), strict=True)))


def pswapaxes(x: Any, axis_name: Any, axis: int, **_: Any) -> Any:
    """Exchanges the axis of ranks and another one."""
    return all_to_all(x, axis_name, axis, axis)
