"""Batches of elements that threads compute: the queue between, and what is put into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.errors import DTypeError, ShapeError, TreeError
from weft.tf1.data_flow.queue import FIFOQueue, PaddingFIFOQueue, SteadyShuffleQueue
from weft.tf1.data_flow.queue_base import QueueBase
from weft.tf1.data_flow.sparse_element import Stored, restored, stored
from weft.tf1.elementwise.arithmetic import cast, maximum
from weft.tf1.framework.convert import convert_to_tensor, static_value
from weft.tf1.framework.dtypes import DType, bool_, float32
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.sparse_tensor import SparseTensor, SparseTensorValue
from weft.tf1.framework.tensor import Tensor
from weft.tf1.framework.tensor_shape import TensorShape, as_shape
from weft.tf1.summary import operation as summary
from weft.tf1.train.queue_runner import QueueRunner, add_queue_runner


class Wanted(NamedTuple):
    """What all functions here are asked for.

    Attributes:
        what: the function.
        size: of a batch.
        capacity: of the queue.
        many: whether tensors are batches already.
        shapes: of the elements, if the tensors do not tell.
        smaller: whether the last batch may be smaller.
        shared_name: of the queue.
        keep: which elements are wanted.
        pad: whether elements are padded to the largest.
        draw: the minimum that a drawing queue keeps, and its seed.
    """

    what: str
    size: Any
    capacity: int
    many: bool
    shapes: Any
    smaller: bool
    shared_name: str | None
    keep: Any = True
    pad: bool = False
    draw: tuple[int, int | None] | None = None

    def queue(self, dtypes: list[DType], shapes: list[TensorShape]) -> QueueBase:
        """The queue of the elements."""
        shared = self.shared_name
        if self.draw is not None:
            least, seed = self.draw
            return SteadyShuffleQueue(self.capacity, least, dtypes, shapes, seed=seed,
                                      shared_name=shared)  # fmt: skip
        kind = PaddingFIFOQueue if self.pad else FIFOQueue
        return kind(self.capacity, dtypes, shapes, shared_name=shared)


def batched(lists: Sequence[Any], threads: int, wanted: Wanted, name: str | None) -> Any:
    """Batches of what the threads of each list compute, in the nesting of the first."""
    flat = [_flat(tensors) for tensors in lists]
    keys = [sorted(x, key=str) if isinstance(x, dict) else None for x in lists]
    if not flat or not all(flat) or any(len(x) != len(flat[0]) for x in flat):
        counts = [len(x) for x in flat]
        text = f"Expected at least one tensor, and as many in each list, got {counts}"
        raise fail(TreeError, f"{wanted.what}: {text}")
    if any(k != keys[0] for k in keys):
        raise fail(TreeError, f"{wanted.what}: dictionaries must have the same keys, got {keys}")
    with name_scope(name, wanted.what, [x for part in flat for x in part]) as scope:
        pairs = [[_component(x, wanted.many) for x in part] for part in flat]
        infos = _same_infos([[info for _, info in part] for part in pairs], wanted)
        tensors = [[x for x, _ in part] for part in pairs]
        keep = _kept(wanted)
        queue = wanted.queue(_types(tensors, wanted), _shapes(tensors, wanted))
        fill = [_enqueue(queue, part, keep, wanted.many) for part in tensors]
        add_queue_runner(QueueRunner(queue, fill * threads))
        _summarize(queue, wanted)
        take = queue.dequeue_up_to if wanted.smaller else queue.dequeue_many
        found = take(wanted.size, name=scope)
        parts = found if isinstance(found, list) else [found]
        whole = [x if i is None else restored(x, i) for x, i in zip(parts, infos, strict=True)]
        return _nested(lists[0], whole)


def _component(x: Any, many: bool) -> tuple[Tensor, Stored | None]:
    """What is put into the queue, and how to make a sparse tensor of it again."""
    if isinstance(x, SparseTensorValue):
        x = SparseTensor(*x)
    return stored(x, many) if isinstance(x, SparseTensor) else (convert_to_tensor(x), None)


def _same_infos(infos: Sequence[Sequence[Stored | None]], wanted: Wanted) -> list[Stored | None]:
    found: list[Stored | None] = []
    for column in zip(*infos, strict=True):
        kinds = {None if info is None else info.dtype for info in column}
        ranks = {info.rank for info in column if info is not None}
        if len(kinds) > 1 or len(ranks - {None}) > 1:
            text = f"SparseMetaData objects are incompatible: {column}"
            raise fail(ShapeError, f"{wanted.what}: {text}")
        rank = None if None in ranks or not ranks else max(r for r in ranks if r is not None)
        first = column[0]
        found.append(None if first is None else Stored(first.dtype, rank))
    return found


def _flat(tensors: Any) -> list[Any]:
    if isinstance(tensors, dict):
        return [tensors[key] for key in sorted(tensors, key=str)]
    return list(tensors) if isinstance(tensors, list | tuple) else [tensors]


def _nested(given: Any, found: list[Any]) -> Any:
    if isinstance(given, dict):
        return dict(zip(sorted(given, key=str), found, strict=True))
    return found[0] if len(found) == 1 else found


def _types(lists: Sequence[list[Tensor]], wanted: Wanted) -> list[DType]:
    types = [[x.dtype.base_dtype for x in part] for part in lists]
    if any(other != types[0] for other in types):
        text = f"Expected types to be consistent: {types}"
        raise fail(DTypeError, f"{wanted.what}: {text}")
    return types[0]


def _shapes(lists: Sequence[list[Tensor]], wanted: Wanted) -> list[TensorShape]:
    """The shapes of an element's components."""
    if wanted.shapes is not None:
        return _told(wanted.shapes, len(lists[0]))
    found: list[TensorShape] = []
    for parts in zip(*lists, strict=True):
        shape = TensorShape(None)
        for x in parts:
            if x.shape.ndims is None:
                raise fail(ShapeError, f"{wanted.what}: Cannot infer Tensor's rank: {x}")
            shape = shape.merge_with(x.shape.with_rank_at_least(1)[1:] if wanted.many else x.shape)
        if not wanted.pad and not shape.is_fully_defined():
            text = f"All shapes must be fully defined, got {shape} of {parts[0].name}"
            raise fail(ShapeError, f"{wanted.what}: {text}; set_shape tells, or dynamic_pad pads")
        found.append(shape)
    return found


def _told(shapes: Any, count: int) -> list[TensorShape]:
    one = isinstance(shapes, TensorShape) or all(d is None or isinstance(d, int) for d in shapes)
    return [as_shape(s) for s in ([shapes] if one and (shapes or count == 1) else shapes)]


def _kept(wanted: Wanted) -> Tensor | None:
    """Which elements are wanted; `None` for all."""
    keep = convert_to_tensor(wanted.keep, bool_, name="keep_input")
    rank = keep.shape.ndims
    if rank is None:
        text = "`keep_input` dimensions must be known at graph construction."
    elif not wanted.many and rank == 1:
        text = "`keep_input` cannot be a vector when `enqueue_many=False`."
    elif rank > 1:
        text = "`keep_input` must be 0 or 1 dimensions."
    else:
        known = static_value(keep)
        return None if known is not None and rank == 0 and known else keep
    raise fail(ShapeError, f"{wanted.what}: {text}")


def _enqueue(queue: QueueBase, tensors: list[Tensor], keep: Tensor | None, many: bool) -> Any:
    if keep is not None:
        return queue.enqueue_kept(keep, tensors, many)
    return queue.enqueue_many(tensors) if many else queue.enqueue(tensors)


def _summarize(queue: QueueBase, wanted: Wanted) -> None:
    """A summary of how full the queue is."""
    size = cast(queue.size(), float32)
    least = 0 if wanted.draw is None else wanted.draw[0]
    room = wanted.capacity - least
    name = f"fraction_of_{room}_full"
    if wanted.draw is not None:
        name, size = f"fraction_over_{least}_of_{room}_full", maximum(0.0, size - float(least))
    summary.scalar(name, size * (1.0 / room))
