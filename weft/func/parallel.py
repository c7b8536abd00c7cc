"""One function on several ranks: `pmap`, and what its calls exchange, with gradients.

Every rank runs the same program (`weft launch`). An axis name stands for the ranks.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from weft.eager.functions.api import Tensor
from weft.eager.tensor.dispatch import lazy_of, record, wrap
from weft.errors import ArgumentError, ShapeError
from weft.func.tree import map_structure
from weft.ops.base import REGISTRY, at_user_line
from weft.transport import session
from weft.transport.group import Group

_axes: Final[list[tuple[str, Group]]] = []


def pmap(fun: Callable[..., Any], axis_name: str = "ranks") -> Callable[..., Any]:
    """Call `fun` on each rank with its part; arguments and results have one more axis, of ranks.

    All ranks pass the same arguments, and get all results. Inside, `psum` and the like exchange
    values over `axis_name`. Gradients flow through it as if one process had computed all parts.

    Raises:
        ShapeError: an argument whose first dimension is not the number of ranks.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> from weft.func import pmap, psum
        >>> dist.init_process_group()
        >>> pmap(lambda x: x / psum(x.sum(), "ranks"))(wf.tensor([[1.0, 3.0]])).tolist()
        [[0.25, 0.75]]
        >>> dist.destroy_process_group()
    """

    @functools.wraps(fun)
    def mapped(*args: Any) -> Any:
        group = session.world()
        parts = map_structure(lambda x: _part(x, group), args)
        with _bound(axis_name, group):
            found = fun(*parts)
        return map_structure(lambda y: _call("join_parts", y, group), found)

    return mapped


def _part(x: Any, group: Group) -> Any:
    shape = tuple(x.shape) if isinstance(x, Tensor) else ()
    if not shape or shape[0] != group.size:
        raise ShapeError(
            f"pmap: expected tensors whose first dimension is {group.size}, the number of ranks, "
            f"got {shape or type(x).__name__}{at_user_line()}"
        )
    return _call("own_part", x, group)


@contextlib.contextmanager
def _bound(axis_name: str, group: Group) -> Iterator[None]:
    _axes.append((axis_name, group))
    try:
        yield
    finally:
        _axes.pop()


def _group(axis_name: str | None, name: str) -> Group:
    """The ranks that an axis name stands for; all of them where none is given."""
    if axis_name is None:
        return session.world()
    for bound, group in reversed(_axes):
        if bound == axis_name:
            return group
    names = ", ".join(sorted({bound for bound, _ in _axes})) or "none"
    raise ArgumentError(
        f"{name}: expected the axis name of a pmap around it ({names}), got {axis_name!r}"
        f"{at_user_line()}"
    )


def _call(op: str, x: Any, group: Group, **attrs: Any) -> Any:
    return wrap(record(REGISTRY[op], [lazy_of(x)], {"group": group.number, **attrs})[0])


def psum(x: Any, axis_name: str | None = None) -> Any:
    """The sum over ranks, on all of them; of each tensor in a structure."""
    return _reduced(x, axis_name, "sum", "psum")


def pmean(x: Any, axis_name: str | None = None) -> Any:
    """The mean over ranks, on all of them."""
    return _reduced(x, axis_name, "mean", "pmean")


def pmax(x: Any, axis_name: str | None = None) -> Any:
    """The largest over ranks, on all of them."""
    return _reduced(x, axis_name, "max", "pmax")


def pmin(x: Any, axis_name: str | None = None) -> Any:
    """The smallest over ranks, on all of them."""
    return _reduced(x, axis_name, "min", "pmin")


def _reduced(x: Any, axis_name: str | None, reduction: str, name: str) -> Any:
    group = _group(axis_name, name)
    return map_structure(lambda y: _call("all_reduce", y, group, reduction=reduction), x)


def all_gather(x: Any, axis_name: str | None = None) -> Any:
    """All ranks' tensors along a new first axis, on all of them."""
    group = _group(axis_name, "all_gather")
    return map_structure(lambda y: _call("all_gather", y, group), x)


def psum_scatter(x: Any, axis_name: str | None = None) -> Any:
    """The part of the sum over ranks that is this rank's: the first dimension is that of ranks."""
    group = _group(axis_name, "psum_scatter")
    return map_structure(lambda y: _call("reduce_scatter", y, group), x)


def ppermute(x: Any, axis_name: str | None, perm: Sequence[tuple[int, int]]) -> Any:
    """What the rank has that sends to this one, by pairs (from, to); zeros where none does.

    Raises:
        ArgumentError: a rank sends or receives twice, or is none.
    """
    group = _group(axis_name, "ppermute")
    pairs = tuple([(int(a), int(b)) for a, b in perm])
    for side in zip(*pairs, strict=True):
        if len(set(side)) != len(side) or not all(0 <= r < group.size for r in side):
            raise ArgumentError(
                f"ppermute: expected pairs of different ranks from 0 to {group.size - 1}, got "
                f"{list(pairs)}{at_user_line()}"
            )
    return map_structure(lambda y: _call("permute_parts", y, group, pairs=pairs), x)


def axis_index(axis_name: str | None = None) -> int:
    """This rank's number along an axis."""
    return _group(axis_name, "axis_index").index


def axis_size(axis_name: str | None = None) -> int:
    """The number of ranks along an axis."""
    return _group(axis_name, "axis_size").size
