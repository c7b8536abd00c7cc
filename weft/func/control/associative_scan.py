"""associative_scan: all partial results of an associative function, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.eager.functions.creation.constructor import as_tensor
from weft.eager.functions.shape.joining import cat, stack
from weft.errors import ShapeError
from weft.func.tree import flatten, leaves_like
from weft.ops.base import at_user_line

Combine = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Partial results of `fn` along an axis: of the first element, the first two, and so on.

    It takes about log2(n) rounds, each on half of the elements (Blelloch, "Prefix Sums and
    Their Applications", 1990), so each round is one operation on many elements.

    Args:
        fn: associative; takes two nests like `elems`, whose axis may have any length.
        elems: nested tensors of one length along the axis.
        reverse: begin at the end, as in JAX: `fn` gets the later elements first.

    Raises:
        ShapeError: no tensors, or of different lengths.
        TreeError: `fn` returns another structure.

    >>> import weft as wf
    >>> associative_scan(lambda a, b: a * b, wf.tensor([1, 2, 3, 4])).tolist()
    [1, 2, 6, 24]
    """
    leaves, tree = flatten(elems)
    xs = [as_tensor(x) for x in leaves]
    lengths = {x.shape[axis] for x in xs}
    if len(lengths) != 1:
        raise ShapeError(
            f"associative_scan: expected one length along axis {axis}, got {sorted(lengths)}"
            f"{at_user_line()}"
        )
    fronts = [_flipped(x.movedim(axis, 0), reverse) for x in xs]

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        moved = [tree.build([x.movedim(0, axis) for x in side]) for side in (a, b)]
        return [x.movedim(axis, 0) for x in leaves_like(tree, fn(*moved))]

    found = _partial(combine, fronts)
    return tree.build([_flipped(x, reverse).movedim(0, axis) for x in found])


def _flipped(x: Any, reverse: bool) -> Any:
    return x.flip(0) if reverse else x


def _partial(combine: Combine, xs: Sequence[Any]) -> list[Any]:
    """Along the first axis: recursion on pairs gives every second result; one call the rest."""
    length = xs[0].shape[0]
    if length < 2:
        return list(xs)
    even = length // 2 * 2
    pairs = combine([x[0:even:2] for x in xs], [x[1::2] for x in xs])
    odd = _partial(combine, pairs)
    if length == 2:
        return [cat([x[:1], y]) for x, y in zip(xs, odd, strict=True)]
    rest = combine([y[: (length - 1) // 2] for y in odd], [x[2::2] for x in xs])
    return [_woven(x, y, z) for x, y, z in zip(xs, odd, rest, strict=True)]


def _woven(x: Any, odd: Any, even: Any) -> Any:
    """The first element, then results at odd and even positions, interleaved."""
    count = min(odd.shape[0], even.shape[0])
    both = stack([odd[:count], even[:count]], 1).flatten(0, 1)
    return cat([x[:1], both, odd[count:]])
