"""Collectives between ranks: those of `weft.func`."""

from __future__ import annotations

from typing import Any

from weft import func
from weft.jax.config import refuse_given
from weft.jax.tree_util import tree_map

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pmax", "pmean", "pmin", "ppermute",
    "psum", "psum_scatter",
]  # fmt: skip

all_to_all = func.all_to_all
axis_index = func.axis_index
axis_size = func.axis_size
psum_scatter = func.psum_scatter


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum over the ranks along an axis, of each leaf; a number counts the ranks."""
    refuse_given("psum", axis_index_groups=axis_index_groups)
    if isinstance(x, int | float):
        return x * func.axis_size(axis_name)
    return tree_map(lambda leaf: func.psum(leaf, axis_name), x)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean over the ranks along an axis, of each leaf."""
    refuse_given("pmean", axis_index_groups=axis_index_groups)
    return tree_map(lambda leaf: func.pmean(leaf, axis_name), x)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The largest value of the ranks along an axis, of each leaf."""
    refuse_given("pmax", axis_index_groups=axis_index_groups)
    return tree_map(lambda leaf: func.pmax(leaf, axis_name), x)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The smallest value of the ranks along an axis, of each leaf."""
    refuse_given("pmin", axis_index_groups=axis_index_groups)
    return tree_map(lambda leaf: func.pmin(leaf, axis_name), x)


def all_gather(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False, **_: Any) -> Any:
    """The values of all ranks along an axis, of each leaf."""
    return tree_map(lambda leaf: func.all_gather(leaf, axis_name, axis=axis, tiled=tiled), x)


def ppermute(x: Any, axis_name: Any, perm: Any) -> Any:
    """Values sent from rank to rank, of each leaf."""
    return tree_map(lambda leaf: func.ppermute(leaf, axis_name, perm), x)
