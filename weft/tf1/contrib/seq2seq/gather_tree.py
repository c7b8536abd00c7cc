"""gather_tree: whole sequences from each step's tokens and parent beams."""

from __future__ import annotations

from typing import Any

from weft.tf1.control.slice_loop import over_slices
from weft.tf1.creation import fill, ones_like, sequence_mask
from weft.tf1.creation import range as range_
from weft.tf1.elementwise.arithmetic import cast, equal, logical_or, minimum
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import name_scope
from weft.tf1.framework.structure import map_structure
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.slicing import gather, gather_nd, where
from weft.tf1.reduction import reduce_max
from weft.tf1.shaping.arrangement import (
    broadcast_to,
    concat,
    expand_dims,
    reshape,
    shape,
    stack,
    tile,
    transpose,
)

__all__ = ["gather_tree", "gather_tree_from_array", "tile_batch"]


def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The tokens of each beam, traced back from its last step.

    Args:
        step_ids: [time, batch, beam], int32: the token of each beam at each step.
        parent_ids: the same shape: the beam of the previous step that it continues.
        max_sequence_lengths: [batch]: the number of valid steps.
        end_token: fills later steps, and those after the first end token.

    Returns:
        [time, batch, beam], int32.

    >>> import weft.tf1 as tf
    >>> ids, parents = [[[1, 2]], [[3, 4]]], [[[0, 0]], [[1, 0]]]
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     print(session.run(tf.contrib.seq2seq.gather_tree(ids, parents, [2], 9)).tolist())
    [[[2, 1]], [[3, 4]]]
    """
    with name_scope(name, "GatherTree", [step_ids, parent_ids]):
        ids = convert_to_tensor(step_ids, dtype=int32)
        parents = convert_to_tensor(parent_ids, dtype=int32)
        end = convert_to_tensor(end_token, dtype=int32)
        dims = shape(ids)
        lengths = minimum(cast(max_sequence_lengths, int32), dims[0])
        every = broadcast_to(range_(dims[2]), dims[1:])

        def back(state: list[Tensor], rows: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            (places,) = state
            time, tokens, above = rows
            inside = broadcast_to(expand_dims(time < lengths, 1), dims[1:])
            found = where(inside, beams_of(tokens, places), fill(dims[1:], end))
            return [where(inside, beams_of(above, places), places)], [found]

        rows = [range_(dims[0]), ids, parents]
        (tokens,) = over_slices(back, [every], rows, reverse=True)[1]

        def on(state: list[Tensor], rows: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            (ended,) = state
            found = where(ended, ones_like(rows[0]) * end, rows[0])
            return [logical_or(ended, equal(found, end))], [found]

        (found,) = over_slices(on, [fill(dims[1:], False)], [tokens])[1]
        return found


def beams_of(x: Tensor, places: Tensor) -> Tensor:
    """Beams selected by index: [batch, beam, ...] by `places` [batch, beam]."""
    return gather(x, places, axis=1, batch_dims=1)


def gather_tree_from_array(t: Any, parent_ids: Any, sequence_length: Any) -> Tensor:
    """Each beam's values at each step, traced back from its last step.

    Args:
        t: [time, batch * beam, ...] or [time, batch, beam, ...].
        parent_ids: [time, batch, beam].
        sequence_length: [batch, beam]: later steps keep each beam's own values.
    """
    x, parents = convert_to_tensor(t), convert_to_tensor(parent_ids, dtype=int32)
    dims = shape(parents)
    own = broadcast_to(range_(dims[2]), dims)
    longest = reduce_max(cast(sequence_length, int32), 1)
    sorted_ = gather_tree(own, parents, longest, dims[2] + 1)
    inside = transpose(sequence_mask(sequence_length, dims[0]), [2, 0, 1])
    beams = where(inside, sorted_, own)
    times = broadcast_to(reshape(range_(dims[0]), [-1, 1, 1]), dims)
    batches = broadcast_to(reshape(range_(dims[1]), [1, -1, 1]), dims)
    flat = reshape(x, concat([dims, [-1]], 0))
    return reshape(gather_nd(flat, stack([times, batches, beams], 3)), shape(x))


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Each example repeated: [batch, ...] to [batch * multiplier, ...].

    Args:
        t: nested tensors, such as an encoder's outputs and state.
        multiplier: the number of beams.
    """
    with name_scope(name, "tile_batch"):
        return map_structure(lambda x: _tiled(convert_to_tensor(x), multiplier), t)


def _tiled(x: Tensor, times: int) -> Tensor:
    rank = x.shape.ndims or 1
    wide = tile(expand_dims(x, 1), [1, times, *[1] * (rank - 1)])
    found = reshape(wide, concat([[-1], shape(x)[1:]], 0))
    known = x.shape.as_list()
    found.set_shape([None if known[0] is None else known[0] * times, *known[1:]])
    return found
