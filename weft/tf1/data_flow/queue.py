"""`tf.FIFOQueue` and the other queues."""

from __future__ import annotations

import hashlib
from typing import Any

from weft.documentation import arguments_of
from weft.errors import ShapeError
from weft.tf1.data_flow.component import name_list, shape_list, type_list
from weft.tf1.data_flow.handle import dims_of, names_of, resource
from weft.tf1.data_flow.queue_base import QueueBase
from weft.tf1.framework.dtypes import int64
from weft.tf1.framework.graph import fail
from weft.tf1.framework.tensor_shape import TensorShape
from weft.tf1.random.distribution import get_seed

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue"]


def _options(
    capacity: int, dtypes: list[Any], shapes: list[TensorShape] | None, **more: Any
) -> dict[str, Any]:
    return {
        "capacity": max(int(capacity), -1),
        "dtypes": names_of(dtypes),
        "shapes": dims_of(shapes),
        **more,
    }


class FIFOQueue(QueueBase):
    """A queue from which elements are taken in the order in which they came.

    Args:
        capacity: the most elements that wait; without limit if negative.
        dtypes: the element types of the components.
        shapes: their shapes; without them, elements may differ in shape, and there are no batches.
        names: of the components: elements are dictionaries then.
        shared_name: queues of this name are the same one, in all sessions of a server.
        name: of the operation.
    """

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None,
        shared_name: str | None = None, name: str = "fifo_queue",
    ) -> None:  # fmt: skip
        kinds = type_list(dtypes)
        dims = shape_list(shapes, "FIFOQueue")
        known = name_list(names, kinds, "FIFOQueue")
        ref = resource("FIFOQueueV2", _options(capacity, kinds, dims), shared_name, name)
        super().__init__(kinds, dims, known, ref.tensor)


@arguments_of(FIFOQueue)
class RandomShuffleQueue(QueueBase):
    """A queue from which elements are drawn at random.

    Args:
        min_after_dequeue: the fewest elements that a dequeue leaves, until the queue is closed.
        seed: of the draws.
    """

    _steady = False

    def __init__(
        self, capacity: int, min_after_dequeue: int, dtypes: Any, shapes: Any = None,
        names: Any = None, seed: int | None = None, shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:  # fmt: skip
        kinds = type_list(dtypes)
        dims = shape_list(shapes, "RandomShuffleQueue")
        known = name_list(names, kinds, "RandomShuffleQueue")
        seeds = draw_seeds(seed, shared_name)
        options = _options(
            capacity, kinds, dims, min_after_dequeue=int(min_after_dequeue), random_seeds=seeds,
            steady=self._steady and seeds is not None,
        )  # fmt: skip
        ref = resource("RandomShuffleQueueV2", options, shared_name, name)
        super().__init__(kinds, dims, known, ref.tensor)


def draw_seeds(seed: int | None, shared_name: str | None) -> tuple[int, int] | None:
    """The seeds of a queue's draws; `None` if nothing was set."""
    graph_seed, own = get_seed(seed)
    if graph_seed is None and own is None:
        return None
    if seed is None and shared_name is not None:  # the same in each program that shares it
        digest = hashlib.md5(f"{graph_seed}{shared_name}".encode(), usedforsecurity=False)
        own = int(digest.hexdigest()[:8], 16) & 0x7FFFFFFF
    return int(graph_seed or 0), int(own or 0)


class SteadyShuffleQueue(RandomShuffleQueue):
    """A queue whose seeded draws do not depend on how fast it is filled."""

    _steady = True


@arguments_of(FIFOQueue)
class PaddingFIFOQueue(QueueBase):
    """A queue whose elements may differ in size: batches are padded with zeros to the largest.

    Args:
        shapes: the shapes of the components, `None` for dimensions that differ.

    Raises:
        ShapeError: there is not a shape for each component.
    """

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any, names: Any = None,
        shared_name: str | None = None, name: str = "padding_fifo_queue",
    ) -> None:  # fmt: skip
        kinds = type_list(dtypes)
        dims = shape_list(shapes, "PaddingFIFOQueue", partial=True) or []
        known = name_list(names, kinds, "PaddingFIFOQueue")
        if len(kinds) != len(dims):
            text = f"but received {len(kinds)} dtypes and {len(dims)} shapes."
            raise fail(ShapeError, f"Shapes must be provided for all components, {text}")
        ref = resource("PaddingFIFOQueueV2", _options(capacity, kinds, dims), shared_name, name)
        super().__init__(kinds, dims, known, ref.tensor)


class PriorityQueue(QueueBase):
    """A queue whose elements begin with a priority; the smallest is taken first.

    Args:
        capacity: the most elements that wait; without limit if negative.
        types: the element types of the components, without that of the priority, which is int64.
        shapes: their shapes; without them, elements may differ in shape, and there are no batches.
        names: of all components, the priority included: elements are dictionaries then.
        shared_name: queues of this name are the same one, in all sessions of a server.
        name: of the operation.
    """

    def __init__(
        self, capacity: int, types: Any, shapes: Any = None, names: Any = None,
        shared_name: str | None = None, name: str = "priority_queue",
    ) -> None:  # fmt: skip
        kinds = [int64, *type_list(types)]
        rest = shape_list(shapes, "PriorityQueue")
        dims = None if rest is None else [TensorShape([]), *rest]
        known = name_list(names, kinds, "PriorityQueue")
        ref = resource("PriorityQueueV2", _options(capacity, kinds, dims), shared_name, name)
        super().__init__(kinds, dims, known, ref.tensor)
