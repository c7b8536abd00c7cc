"""map_fn, scan, foldl, foldr: loops over the slices along the first axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.documentation import named
from weft.errors import ArgumentError, DTypeError, TreeError
from weft.tf1.control.dependency import stop_gradient
from weft.tf1.control.slice_loop import over_slices
from weft.tf1.creation import range as range_
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import DType, as_dtype
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.structure import flatten, pack
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.slicing import gather
from weft.tf1.shaping.arrangement import concat, expand_dims, shape

__all__ = ["foldl", "foldr", "map_fn", "scan"]

Function = Callable[..., Any]


def _slices(what: str, elems: Any) -> list[Tensor]:
    """The tensors to slice."""
    found = [convert_to_tensor(x) for x in flatten(elems)]
    if not found:
        raise fail(ArgumentError, f"{what}: expected elems, got none")
    for x in found:
        if x.shape.ndims == 0:
            raise fail(ArgumentError, f"{what}: expected elems of rank 1 or more, got {x}")
    return found


def _divided(x: Tensor, reverse: bool) -> tuple[Tensor, Tensor]:
    """The slice that begins a loop, and the others."""
    if x.shape.ndims is not None:
        return (x[-1], x[:-1]) if reverse else (x[0], x[1:])
    return _divided_of_any_rank(x, reverse)


def _divided_of_any_rank(x: Tensor, reverse: bool) -> tuple[Tensor, Tensor]:
    count = shape(x)[0]
    last = count - 1
    places = (last, range_(last)) if reverse else (0, range_(1, count))
    first, others = [gather(x, place) for place in places]
    return first, others


def map_fn(
    fn: Function, elems: Any, dtype: Any = None, parallel_iterations: int | None = None,
    back_prop: bool = True, swap_memory: bool = False, infer_shape: bool = True,
    name: str | None = None,
) -> Any:  # fmt: skip
    """`fn` of each slice of `elems` along the first axis, stacked.

    Args:
        dtype: the results' element types, in their structure; by default those of `elems`.
        back_prop: if `False`, no gradient flows through the results.
        parallel_iterations, swap_memory, infer_shape: accepted.

    Raises:
        ArgumentError: there are no tensors, or they are scalars.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.map_fn(lambda x: x * x, tf.constant([1.0, 2.0, 3.0]))))
    [1. 4. 9.]
    """
    del parallel_iterations, swap_memory, infer_shape
    with name_scope(name, "map", flatten(elems)):
        xs = _slices("map_fn", elems)
        outline = pack(elems, [x.dtype.base_dtype for x in xs]) if dtype is None else dtype
        kinds = [as_dtype(d) for d in flatten(outline)]

        def step(_: list[Tensor], rows: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            results = flatten(fn(pack(elems, rows)))
            if len(results) != len(kinds):
                raise fail(
                    TreeError,
                    f"map_fn: expected {len(kinds)} results, got {len(results)}; say dtype=",
                )
            return [], [_typed("map_fn", y, d) for y, d in zip(results, kinds, strict=True)]

        _, found = over_slices(step, [], xs)
        return pack(outline, found if back_prop else [stop_gradient(y) for y in found])


def _typed(what: str, y: Any, dtype: DType) -> Tensor:
    """A result with the requested element type."""
    found = convert_to_tensor(y, dtype=None if hasattr(y, "dtype") else dtype)
    if found.dtype.base_dtype is not dtype:
        raise fail(DTypeError, f"{what}: expected a result of {dtype.name}, got {found}")
    return found


def scan(
    fn: Function, elems: Any, initializer: Any = None, parallel_iterations: int = 10,
    back_prop: bool = True, swap_memory: bool = False, infer_shape: bool = True,
    reverse: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """All states of `state = fn(state, slice)`, stacked.

    Args:
        initializer: the initial state; the first slice by default.
        reverse: start with the last slice.
        back_prop: if `False`, no gradient flows through the results.
        parallel_iterations, swap_memory, infer_shape: accepted.

    Raises:
        ArgumentError: there are no tensors, or they are scalars.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.scan(lambda a, x: a + x, tf.constant([1, 2, 3]))))
    [1 3 6]
    """
    del parallel_iterations, swap_memory, infer_shape
    with name_scope(name, "scan", flatten(elems)):
        state, states = _run("scan", fn, elems, initializer, reverse, True)
        return pack(state, states if back_prop else [stop_gradient(x) for x in states])


def _fold(title: str, reverse: bool, begin: str):
    @named(
        title,
        f"The last state of `state = fn(state, slice)`, from the {begin} slice on.\n\n"
        "Arguments are those of `scan`.",
    )
    def fold(
        fn: Function, elems: Any, initializer: Any = None, parallel_iterations: int = 10,
        back_prop: bool = True, swap_memory: bool = False, name: str | None = None,
    ) -> Any:  # fmt: skip
        del parallel_iterations, swap_memory
        with name_scope(name, title, flatten(elems)):
            state, last = _run(title, fn, elems, initializer, reverse, False)
            return pack(state, last if back_prop else [stop_gradient(x) for x in last])

    return fold


foldl = _fold("foldl", False, "first")
foldr = _fold("foldr", True, "last")


def _run(
    what: str, fn: Function, elems: Any, initializer: Any, reverse: bool, every: bool
) -> tuple[Any, list[Tensor]]:
    """The structure of the state, and the last state, or all states stacked."""
    xs = _slices(what, elems)
    outline = elems if initializer is None else initializer
    if initializer is None:
        state, rest = map(list, zip(*[_divided(x, reverse) for x in xs], strict=True))
    else:
        state, rest = [convert_to_tensor(x) for x in flatten(initializer)], xs

    def step(now: list[Tensor], rows: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        results = flatten(fn(pack(outline, now), pack(elems, rows)))
        if len(results) != len(now):
            raise fail(
                TreeError,
                f"{what}: expected the state back, {len(now)} tensors, got {len(results)}",
            )
        pairs = zip(results, now, strict=True)
        new = [_typed(what, y, x.dtype.base_dtype) for y, x in pairs]
        return new, new if every else []

    last, stacks = over_slices(step, state, rest, reverse)
    if not every:
        return outline, last
    if initializer is not None:
        return outline, stacks
    sides = [(y, expand_dims(x, 0)) for x, y in zip(state, stacks, strict=True)]
    return outline, [concat([y, x] if reverse else [x, y], 0) for y, x in sides]
