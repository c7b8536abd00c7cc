"""map_fn, scan, foldl, foldr: a function of every slice along the first axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.errors import ArgumentError
from weft.tf1.control.dependency import stop_gradient
from weft.tf1.control.loop import while_loop
from weft.tf1.control.tensor_array import TensorArray
from weft.tf1.framework.convert import constant, convert_to_tensor
from weft.tf1.framework.dtypes import as_dtype, int32
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.structure import flatten, map_structure, pack
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.slicing import gather
from weft.tf1.shape.arrangement import shape

Function = Callable[..., Any]


class _Slices:
    """Nested tensors of one length along the first axis."""

    def __init__(self, what: str, elems: Any) -> None:
        self.structure = elems
        self.tensors = [convert_to_tensor(x) for x in flatten(elems)]
        if not self.tensors:
            raise fail(ArgumentError, f"{what}: expected elems, got none")
        for x in self.tensors:
            if x.shape.ndims == 0:
                raise fail(ArgumentError, f"{what}: expected elems of rank 1 or more, got {x}")
        known = [x.shape.as_list()[0] for x in self.tensors if x.shape.ndims]
        told = [n for n in known if n is not None]
        self.count: int | None = told[0] if told else None

    @property
    def length(self) -> Any:
        """How many slices there are, as a number where it is known."""
        return shape(self.tensors[0])[0] if self.count is None else self.count

    def at(self, i: Tensor) -> Any:
        """The slice of this number."""
        return pack(self.structure, [gather(x, i) for x in self.tensors])


def map_fn(
    fn: Function,
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """`fn` of each slice of `elems` along the first axis, stacked.

    Args:
        dtype: element types of the results, in their structure; those of `elems` by default.
        back_prop: `False`: no gradient flows through the results.
        parallel_iterations, swap_memory, infer_shape: accepted.

    Raises:
        ArgumentError: no tensors, or scalars.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.map_fn(lambda x: x * x, tf.constant([1.0, 2.0, 3.0]))))
    [1. 4. 9.]
    """
    del parallel_iterations, swap_memory, infer_shape
    with name_scope(name, "map", flatten(elems)):
        slices = _Slices("map_fn", elems)
        kinds = map_structure(lambda x: x.dtype.base_dtype, pack(elems, slices.tensors))
        outline = kinds if dtype is None else dtype
        arrays = [TensorArray(as_dtype(d), slices.length) for d in flatten(outline)]

        def body(i: Tensor, arrays: list[TensorArray]) -> list[Any]:
            results = flatten(fn(slices.at(i)))
            return [i + 1, [a.write(i, y) for a, y in zip(arrays, results, strict=True)]]

        _, found = while_loop(
            lambda i, _: i < slices.length, body, [constant(0, int32), arrays],
            back_prop=back_prop, maximum_iterations=slices.count,
        )  # fmt: skip
        return pack(outline, [_counted(a.stack(), slices.count) for a in found])


def _counted(x: Tensor, count: int | None) -> Tensor:
    if x.shape.ndims is not None:
        x.set_shape([count, *x.shape.as_list()[1:]])
    return x


def scan(
    fn: Function,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All results of `state = fn(state, slice)`, stacked.

    Args:
        initializer: the first state; the first slice by default.
        reverse: begin with the last slice.
        back_prop: `False`: no gradient flows through the results.
        parallel_iterations, swap_memory, infer_shape: accepted.

    Raises:
        ArgumentError: no tensors, or scalars.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.scan(lambda a, x: a + x, tf.constant([1, 2, 3]))))
    [1 3 6]
    """
    del parallel_iterations, swap_memory, infer_shape
    with name_scope(name, "scan", flatten(elems)):
        slices = _Slices("scan", elems)
        state, found = _run(fn, slices, initializer, reverse, True)
        if not back_prop:
            found = [stop_gradient(x) for x in found]
        return pack(state, found)


def foldl(
    fn: Function,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last result of `state = fn(state, slice)`, from the first slice on.

    Arguments are those of `scan`.
    """
    del parallel_iterations, swap_memory
    return _fold("foldl", fn, elems, initializer, back_prop, False, name)


def foldr(
    fn: Function,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last result of `state = fn(state, slice)`, from the last slice on.

    Arguments are those of `scan`.
    """
    del parallel_iterations, swap_memory
    return _fold("foldr", fn, elems, initializer, back_prop, True, name)


def _fold(
    what: str, fn: Function, elems: Any, initializer: Any, back_prop: bool, reverse: bool,
    name: str | None,
) -> Any:  # fmt: skip
    with name_scope(name, what, flatten(elems)):
        state, found = _run(fn, _Slices(what, elems), initializer, reverse, False)
        return pack(state, found if back_prop else [stop_gradient(x) for x in found])


def _run(
    fn: Function, slices: _Slices, initializer: Any, reverse: bool, every: bool
) -> tuple[Any, list[Tensor]]:
    """The structure of the state, and the last one, or all of them stacked."""
    length, last = slices.length, slices.length - 1
    begin = 0 if initializer is not None else 1
    first = constant(0, int32) if not reverse else convert_to_tensor(last, dtype=int32)
    outline = slices.structure if initializer is None else initializer
    state = slices.at(first) if initializer is None else initializer
    start = [convert_to_tensor(x) for x in flatten(state)]
    arrays = [TensorArray(x.dtype.base_dtype, length) for x in start] if every else []
    if initializer is None:
        arrays = [a.write(first, x) for a, x in zip(arrays, start, strict=False)]

    def body(i: Tensor, state: list[Tensor], arrays: list[TensorArray]) -> list[Any]:
        place = last - i if reverse else i
        found = flatten(fn(pack(outline, state), slices.at(place)))
        rows = zip(arrays, found, strict=False)
        return [i + 1, found, [a.write(place, y) for a, y in rows]]

    most = None if slices.count is None else max(slices.count - begin, 0)
    _, end, filled = while_loop(
        lambda i, *_: i < length, body, [constant(begin, int32), start, arrays],
        maximum_iterations=most,
    )  # fmt: skip
    return outline, [_counted(a.stack(), slices.count) for a in filled] if every else list(end)
