"""associative_scan: all partial results of an associative function, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.eager.functions.shape.joining import cat, stack
from weft.eager.functions.shape.movement import flip
from weft.eager.functions.shape.permutation import movedim
from weft.eager.functions.shape.reshape import reshape
from weft.errors import ArgumentError, OutOfRangeError, ShapeError
from weft.func.control.body import nest
from weft.func.tree import leaves_like
from weft.ir.shape import known, show

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
        OutOfRangeError: an axis that a tensor does not have.
        TreeError: `fn` returns another structure, or an element is no tensor.

    >>> import weft as wf
    >>> associative_scan(lambda a, b: a * b, wf.tensor([1, 2, 3, 4])).tolist()
    [1, 2, 6, 24]
    """
    if not callable(fn):
        raise ArgumentError.here(f"associative_scan: fn: expected a function, got {fn!r}")
    given = nest(elems, "associative_scan: elems")
    tree, xs = given.tree, given.handles()
    lengths = {known(x.lazy.type.shape)[_front(x, axis)] for x in xs}
    if len(lengths) != 1:
        raise ShapeError.here(
            f"associative_scan: expected one length along axis {axis}, got {sorted(lengths)}"
        )

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        moved = [tree.build([movedim(x, 0, axis) for x in side]) for side in (a, b)]
        return [movedim(x, axis, 0) for x in leaves_like(tree, fn(*moved))]

    found = _partial(combine, [_flipped(movedim(x, axis, 0), reverse) for x in xs])
    return tree.build([movedim(_flipped(x, reverse), 0, axis) for x in found])


def _front(x: Any, axis: int) -> int:
    """The axis counted from the front.

    Raises:
        OutOfRangeError: there is none.
    """
    shape = known(x.lazy.type.shape)
    rank = len(shape)
    if not -rank <= axis < rank:
        raise OutOfRangeError.here(
            f"associative_scan: elems: expected tensors with an axis {axis}, got one of shape "
            f"{show(shape)}"
        )
    return axis % rank


def _flipped(x: Any, reverse: bool) -> Any:
    return flip(x, 0) if reverse else x


def _partial(combine: Combine, xs: Sequence[Any]) -> list[Any]:
    """Along the first axis: recursion on pairs gives every second result; one call the rest."""
    length = _length(xs[0])
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
    count = min(_length(odd), _length(even))
    return cat([x[:1], _interleaved(odd[:count], even[:count]), odd[count:]])


def _interleaved(a: Any, b: Any) -> Any:
    pairs = stack([a, b], 1)
    return reshape(pairs, (2 * _length(pairs), *known(pairs.lazy.type.shape)[2:]))


def _length(x: Any) -> int:
    return known(x.lazy.type.shape)[0]
