"""TensorArray: an indexed list of tensors of one shape, for loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ops
from weft.documentation import Reads
from weft.errors import ArgumentError, DTypeError, GraphError
from weft.ir.node import Value
from weft.ir.shape import is_static, known
from weft.tf1.creation import zeros
from weft.tf1.elementwise.arithmetic import maximum
from weft.tf1.framework.convert import constant, convert_to_tensor, static_value
from weft.tf1.framework.dtypes import as_dtype, int32
from weft.tf1.framework.graph import computes_at_once, emit, fail, get_default_graph
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import TensorShape, as_shape
from weft.tf1.indexing.slicing import gather
from weft.tf1.reduction import reduce_max
from weft.tf1.shaping.arrangement import concat, reshape, shape


class _Elements:
    """What is known of the elements of an array and of those derived from it."""

    def __init__(self, known: TensorShape) -> None:
        self.shape = known
        self.example: Tensor | None = None  # an element that was written
        self.clears = True
        self.reads: dict[int, list[Operation]] = {}  # by index


class TensorArray:
    """An array of `size` tensors, each of which is usually written once.

    Methods that change it return a new array, as in TensorFlow. All elements have one shape.

    Args:
        dtype: of the elements.
        size: the number of elements: a number, or a scalar.
        dynamic_size: it grows when written beyond its end; see `while_loop` for its number of rows
            after a loop.
        clear_after_read: an element may be read once in a run (checked for indices that are
            known when the graph is built, outside of loops); `False` allows more.
        tensor_array_name, handle, infer_shape, colocate_with_first_write_call: accepted.
        flow: the elements, stacked.
        element_shape: the elements' shape, if known.

    Raises:
        ArgumentError: there is no size.
        OutOfRangeError: at execution, an index beyond the end of an array that does not grow, or an
            element that was written or read already (if its index is known).

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     array = tf.TensorArray(tf.float32, size=2)
    ...     array = array.write(0, [1.0, 2.0]).write(1, [3.0, 4.0])
    ...     print(session.run(array.stack()).tolist())
    [[1.0, 2.0], [3.0, 4.0]]
    """

    def __init__(
        self, dtype: Any, size: Any = None, dynamic_size: bool | None = None,
        clear_after_read: bool | None = None, tensor_array_name: str | None = None,
        handle: Any = None, flow: Any = None, infer_shape: bool = True, element_shape: Any = None,
        colocate_with_first_write_call: bool = True, name: str | None = None,
    ) -> None:  # fmt: skip
        del tensor_array_name, handle, infer_shape
        del colocate_with_first_write_call, name
        if size is None and flow is None and not dynamic_size:
            raise fail(ArgumentError, "TensorArray: expected a size, got None")
        self._dtype = as_dtype(dtype)
        self._size = 0 if size is None and flow is None else size
        self._flow: Tensor | None = flow
        self._grows = bool(dynamic_size)
        self._is_full = False  # in a loop, which has allocated room for all writes
        self._elements = _Elements(as_shape(element_shape))
        self._elements.clears = clear_after_read is not False
        self._written: frozenset[int] | None = frozenset()  # known indices; `None`: all

    # properties
    dtype = Reads[Any]("_dtype", "The elements' type.")
    element_shape = Reads[TensorShape]("_elements.shape", "The static shape of elements.")

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been written, and nothing is known of the elements."""
        return self._flow is None

    example = Reads[Tensor | None](
        "_elements.example", "An element that was written to it, or to an array derived from it."
    )

    @property
    def flow(self) -> Tensor:
        """The elements, stacked.

        Raises:
            GraphError: the elements' shape is not known yet.
        """
        if self._flow is None:
            if not self.element_shape.is_fully_defined():
                raise fail(
                    GraphError,
                    "TensorArray: nothing was written to it yet; say element_shape=",
                )
            self._flow = self.room(constant(self.element_shape.as_list(), int32))
        return self._flow

    handle = Reads[Tensor]("flow", "The same as `flow`.")
    grows = Reads[bool]("_grows", "Whether it grows: then loops carry its size with its elements.")

    def room(self, element: Tensor, count: Any = None) -> Tensor:
        """Zeros for elements of this shape, an int32 tensor; `count` of them, or its size."""
        number = convert_to_tensor(self._size if count is None else count, dtype=int32)
        return zeros(concat([reshape(number, [1]), reshape(element, [-1])], 0), self._dtype)

    def padded(self, element: Tensor, count: Any) -> Tensor:
        """Its elements, padded with zeros to `count`."""
        if self._flow is None:
            return self.room(element, count)
        more = convert_to_tensor(count, dtype=int32) - shape(self._flow)[0]
        return concat([self._flow, self.room(shape(self._flow)[1:], more)], 0)

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements; for a growing array, up to the last written one."""
        if self._size is not None:
            return convert_to_tensor(self._size, dtype=int32, name=name)
        return shape(self.flow)[0]

    def with_flow(self, flow: Tensor, size: Any = None, full: bool = False) -> TensorArray:
        """The array with other elements.

        Args:
            size: the current number of elements, for a growing array.
            full: it is in a loop, which has allocated its room.
        """
        known = size if self._grows else self._size
        found = TensorArray(self._dtype, known, self._grows, flow=flow)
        found._elements = self._elements
        found._is_full = full
        found._written = self._written
        return found

    # reading
    def read(self, index: Any, name: str | None = None) -> Tensor:
        """An element."""
        del name
        number = convert_to_tensor(index, dtype=int32)
        found = self._typed(gather(self.flow, number))
        self._note_read(found.op, static_value(number))
        return found

    def _note_read(self, op: Operation, index: Any) -> None:
        """Has runs refuse a second read of the same element."""
        graph = get_default_graph()
        if index is None or computes_at_once(graph) or graph.in_body or not self._elements.clears:
            return
        readers = self._elements.reads.setdefault(int(index), [])
        readers.append(op)
        if len(readers) == 2:
            text = (
                f"TensorArray: read: index {index} was cleared by a previous read in this run; say"
                " clear_after_read=False to read it again"
            )
            graph.keys.setdefault("one_of", []).append((readers, text))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Some of the elements, stacked."""
        del name
        return gather(self.flow, convert_to_tensor(indices, dtype=int32))

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, stacked."""
        del name
        return self.flow

    def concat(self, name: str | None = None) -> Tensor:
        """All elements along their first axis."""
        del name
        flow = self.flow
        return reshape(flow, concat([[-1], shape(flow)[2:]], 0))

    def identity(self) -> TensorArray:
        """The same array."""
        return self.with_flow(self.flow, self._size, self._is_full)

    def close(self, name: str | None = None) -> Operation:
        """Accepted for old programs."""
        return get_default_graph().emit("NoOp", (), "group", name=name or "NoOp")

    def _typed(self, element: Tensor) -> Tensor:
        if self.element_shape.ndims is not None:
            element.set_shape(self.element_shape)
        return element

    # writing
    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with another element."""
        element = self._checked(value)
        rank = element.shape.ndims
        if rank is None:
            raise fail(GraphError, "TensorArray: write: expected an element of known rank")
        number = convert_to_tensor(index, dtype=int32)
        flow, size = self._with_room(shape(element), number + 1)
        index = static_value(number)
        place = None if index is None else int(index)
        again = place is not None and (self._written is None or place in self._written)

        def build(flow: Value, element: Value, number: Value) -> Value:
            start = [ops.reshape(_inside(number, flow, again), shape=(1,))]
            if rank:
                start.append(ops.constant([0] * rank, "int32"))
            begin = ops.concatenate(*start, axis=0)
            return ops.dynamic_update_slice(flow, ops.expand_dims(element, axis=0), begin)

        title = name or "TensorArrayWriteV3"
        op = get_default_graph().emit(
            "TensorArrayWriteV3", [flow, element, number], build, name=title
        )
        found = self.with_flow(op.outputs[0], size, self._is_full)
        if place is not None and self._written is not None:
            found._written = self._written | {place}
        return found

    def _with_room(self, element: Tensor, needed: Tensor) -> tuple[Tensor, Any]:
        """Elements and size, grown to `needed` elements if possible."""
        if not self._grows:
            return self.room(element) if self._flow is None else self._flow, None
        size = maximum(self.size(), needed)
        if self._is_full:
            return self.flow, size
        rows = size if self._flow is None else maximum(shape(self._flow)[0], needed)
        return self.padded(element, rows), size

    def _checked(self, value: Any) -> Tensor:
        element = convert_to_tensor(value, dtype=None if hasattr(value, "dtype") else self._dtype)
        if element.dtype.base_dtype is not self._dtype:
            raise fail(
                DTypeError,
                f"TensorArray: expected an element of {self._dtype.name}, got {element}",
            )
        self._elements.shape = self._elements.shape.merge_with(element.shape)
        self._elements.example = element
        return element

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array of the slices of `value` along the first axis."""
        del name
        whole = convert_to_tensor(value, dtype=None if hasattr(value, "dtype") else self._dtype)
        self._elements.shape = self._elements.shape.merge_with(whole.shape[1:])
        found = self.with_flow(_elements_of(whole), shape(whole)[0])
        found._written = None
        return found

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the slices of `value` at these places."""
        whole = convert_to_tensor(value, dtype=None if hasattr(value, "dtype") else self._dtype)
        places = convert_to_tensor(indices, dtype=int32)
        self._elements.shape = self._elements.shape.merge_with(whole.shape[1:])
        flow, size = self._with_room(shape(whole)[1:], reduce_max(places) + 1)
        title = name or "TensorArrayScatterV3"
        op = get_default_graph().emit(
            "TensorArrayScatterV3", [flow, places, whole], "scatter_set", name=title
        )
        return self.with_flow(op.outputs[0], size, self._is_full)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array of parts of `value`, which must have equal lengths.

        Raises:
            ArgumentError: the lengths differ or are not known.
        """
        del name
        told = static_value(lengths)
        if told is None or len({int(n) for n in told}) > 1:
            raise fail(
                ArgumentError, f"TensorArray: split: expected lengths that are equal, got {lengths}"
            )
        whole = convert_to_tensor(value)
        count, length = len(told), int(told[0]) if len(told) else 0
        return self.unstack(reshape(whole, concat([[count, length], shape(whole)[1:]], 0)))


def _elements_of(whole: Tensor) -> Tensor:
    """The same tensor; its gradient is dense, even if only some elements are read."""
    if whole.shape.ndims is None:
        return whole
    kind = "TensorArrayScatterV3"
    found = emit(kind, [whole], _unchanged, name=kind)
    found.set_shape(whole.shape)
    return found


def _unchanged(x: Value) -> Value:
    return ops.reshape(x, shape=known(x.shape) if is_static(x.shape) else ops.shape_of(x))


def _inside(number: Value, flow: Value, again: bool) -> Value:
    """The index of an element, with a check that it exists, and is not written `again`."""
    if again:
        text = "TensorArray: write: expected an index that was not written before"
        number = ops.check(number, ops.constant(1, "int32"), text=text)
    end = ops.slice(ops.shape_of(flow), begin=(0,), end=(1,))
    there = ops.logical_and(ops.less(number, ops.reshape(end, shape=())), ops.less(-1, number))
    text = "TensorArray: write: expected an index of an element (or dynamic_size=True)"
    return ops.check(number, ops.cast(ops.logical_not(there), dtype="int32"), text=text)


def spread(xs: Sequence[Any]) -> list[Any]:
    """Loop variables as a loop carries them: a growing array is followed by its size."""
    found: list[Any] = []
    for x in xs:
        found += [x, x.size()] if isinstance(x, TensorArray) and x.grows else [x]
    return found


def gathered(xs: Sequence[Any], flows: Sequence[Tensor], full: bool = False) -> list[Any]:
    """Loop variables from `flows`, the values that `spread` returned."""
    rest = iter(flows)
    found: list[Any] = []
    for x in xs:
        flow = next(rest)
        if isinstance(x, TensorArray):
            found.append(x.with_flow(flow, next(rest) if x.grows else None, full))
        else:
            found.append(flow)
    return found


def flow_of(x: Any) -> Tensor:
    """The tensor of a loop variable."""
    return x.flow if isinstance(x, TensorArray) else x


def has_final_shape(x: Any) -> bool:
    """Whether a loop variable has a value of its final shape before the loop."""
    if not isinstance(x, TensorArray):
        return True
    return not x.grows and (not x.is_empty or is_static(x.element_shape.as_dims()))
