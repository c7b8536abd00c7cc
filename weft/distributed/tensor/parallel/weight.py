"""Styles of layers with weights: sharded by columns or rows, or for a sharded sequence."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.collectives.elements import array
from weft.distributed.tensor.parallel.style import Forward, ParallelStyle
from weft.distributed.tensor.placement import Partial, Placement, Replicate, Shard
from weft.distributed.tensor.redistribute import for_divided_work, redistribute
from weft.eager.functions.api import where
from weft.eager.record.pending.mode import no_grad
from weft.eager.tensor.dispatch import leaf
from weft.errors import ArgumentError, DistributedError, ShapeError
from weft.nn.functional.embedding import embedding
from weft.nn.functional.linear import linear
from weft.nn.layer.embedding import Embedding
from weft.nn.layer.linear import Linear
from weft.nn.module.module import Module
from weft.transport.division import Division, divide, division_of
from weft.transport.group import Group

__all__ = ["ColumnwiseParallel", "ColwiseParallel", "RowwiseParallel", "SequenceParallel"]

_LAST: Final = Shard(-1)


class _WeightStyle(ParallelStyle):
    """A style of `Linear` and `Embedding`.

    Args:
        input_layouts: the placement of the argument.
        output_layouts: the placement of the result.
        use_local_output: must be True; results are ordinary tensors.
    """

    default_output: Placement = Replicate()

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        check_local(type(self).__name__, use_local_output)
        self.input_layouts = input_layouts
        self.output_layouts = self.default_output if output_layouts is None else output_layouts

    def __repr__(self) -> str:
        layouts = f"input_layouts={self.input_layouts}, output_layouts={self.output_layouts}"
        return f"{type(self).__name__}({layouts})"

    def _check(self, module: Module, path: str) -> None:
        name = type(self).__name__
        if not isinstance(module, Linear | Embedding):
            raise ArgumentError.here(
                f"{name}: expected a Linear or an Embedding at {path!r}, got "
                f"{type(module).__name__}"
            )
        if isinstance(module, Embedding) and (
            module.max_norm is not None or module.scale_grad_by_freq
        ):
            raise ArgumentError.here(
                f"{name}: expected an Embedding without max_norm and scale_grad_by_freq at {path!r}"
            )


class ColwiseParallel(_WeightStyle):
    """Each rank computes a shard of the output features of a `Linear` or an `Embedding`.

    The argument is replicated. The result is sharded along the last dimension, unless
    `output_layouts` says otherwise.

    Args:
        input_layouts: the placement of the argument; by default `Replicate()`.
        output_layouts: the placement of the result; by default `Shard(-1)`.
        use_local_output: must be True; results are ordinary tensors.

    Raises:
        ShapeError: a size that is not divisible by the number of ranks.

    Source: Shoeybi et al., "Megatron-LM" (2019).
    """

    default_output = _LAST

    def divide(self, module: Any, path: str, group: Group) -> None:
        """Shard `Linear.weight` and `bias` by rows, `Embedding.weight` by columns."""
        self._check(module, path)
        if isinstance(module, Embedding):
            keep_part(module, "weight", 1, path, group)
            return
        keep_part(module, "weight", 0, path, group)
        if module.bias is not None:
            keep_part(module, "bias", 0, path, group)

    def call(self, module: Any, forward: Forward, group: Group, args: Any, kwargs: Any) -> Any:
        """Take replicated arguments, and return a sharded result."""
        x, layout = _argument(args, kwargs), self.input_layouts or Replicate()
        if isinstance(module, Embedding):
            x = redistribute(x, layout, Replicate(), group)
        else:
            x = for_divided_work(x, layout, group)
        return redistribute(forward(x), _LAST, self.output_layouts, group)


class RowwiseParallel(_WeightStyle):
    """Each rank computes a partial sum: over a shard of the input features, or of the table's rows.

    A `Linear`'s argument is sharded along the last dimension, as `ColwiseParallel` returns it. The
    partial sums are reduced; the result is replicated unless `output_layouts` says otherwise.

    Args:
        input_layouts: the placement of the argument; by default `Shard(-1)` for a `Linear`, and
            `Replicate()` for the indices of an `Embedding`.
        output_layouts: the placement of the result; by default `Replicate()`.
        use_local_output: must be True; results are ordinary tensors.
    """

    def divide(self, module: Any, path: str, group: Group) -> None:
        """Shard `Linear.weight` by columns, `Embedding.weight` by rows."""
        self._check(module, path)
        keep_part(module, "weight", 0 if isinstance(module, Embedding) else 1, path, group)

    def call(self, module: Any, forward: Forward, group: Group, args: Any, kwargs: Any) -> Any:
        """Take sharded arguments, and return sums over ranks."""
        x, layout, to = _argument(args, kwargs), self.input_layouts, self.output_layouts
        if isinstance(module, Embedding):
            x = redistribute(x, layout or Replicate(), Replicate(), group)
            return redistribute(_looked_up(module, x, group), Partial(), to, group)
        x = redistribute(x, layout or _LAST, _LAST, group)
        y = redistribute(linear(x, module.weight), Partial(), to, group)
        return y if module.bias is None else y + self._bias(module.bias, y, group)

    def _bias(self, bias: Any, y: Any, group: Group) -> Any:
        """The bias to add to a rank's partial sum, so that the sum contains it once."""
        layout = self.output_layouts
        if not isinstance(layout, Shard):
            return bias
        if layout.dim % y.ndim == y.ndim - 1:
            return redistribute(bias, Replicate(), _LAST, group)
        return for_divided_work(bias, Replicate(), group)


def _argument(args: Any, kwargs: Any) -> Any:
    """The only argument of these layers."""
    return args[0] if args else kwargs["input"]


def _looked_up(table: Any, ids: Any, group: Group) -> Any:
    """Rows of this rank's shard of an embedding, zeros for those of other shards."""
    rows = table.weight.shape[0]
    local = ids - group.index * rows
    own = (local >= 0) & (local < rows)
    padding = table.padding_idx
    if padding is not None:
        padding -= group.index * rows
        padding = padding if 0 <= padding < rows else None
    there = (ids >= 0) & (ids < table.num_embeddings)
    local = where(own, local, where(there, 0, ids))  # the lookup raises where no rank has a row
    return where(own.unsqueeze(-1), embedding(local, table.weight, padding), 0.0)


class SequenceParallel(ParallelStyle):
    """A layer that treats all positions alike, such as `LayerNorm`, on a sharded sequence.

    Parameters are replicated; their gradients are summed over ranks.

    Args:
        sequence_dim: the sharded dimension.
        use_local_output: must be True; results are ordinary tensors.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = True) -> None:
        check_local("SequenceParallel", use_local_output)
        self.sequence_dim = sequence_dim

    def call(self, module: Any, forward: Forward, group: Group, args: Any, kwargs: Any) -> Any:
        """Call the layer on this rank's shard of the sequence."""
        named = module.named_parameters(remove_duplicate=False)
        whole = {path: for_divided_work(p, Replicate(), group) for path, p in named}
        with module.swapped(whole, tie_weights=False):
            return forward(*args, **kwargs)


ColumnwiseParallel = ColwiseParallel


def check_local(name: str, use_local_output: bool) -> None:
    """Raise unless results are to be ordinary tensors."""
    if not use_local_output:
        raise ArgumentError.here(
            f"{name}: expected use_local_output=True, got {use_local_output!r}; results are "
            f"ordinary tensors"
        )


def keep_part(module: Module, name: str, dim: int, path: str, group: Group) -> None:
    """Keep this rank's shard of a parameter along a dimension; it stays the same object.

    Raises:
        ShapeError: the size is not divisible by the number of ranks.
        DistributedError: it is already sharded.
    """
    p: Any = getattr(module, name)
    where_it_is = f"{path}.{name}".lstrip(".")
    if division_of(p) is not None:
        raise DistributedError.here(
            f"parallelize_module: {where_it_is!r} is divided among ranks already; call "
            f"parallelize_module before fully_shard"
        )
    whole = array(p)
    if whole.shape[dim] % group.size:
        raise ShapeError.here(
            f"parallelize_module: expected a size that {group.size} ranks divide along dimension "
            f"{dim} of {where_it_is!r}, got shape {whole.shape}"
        )
    part = whole.shape[dim] // group.size
    begin = group.index * part
    with no_grad():
        p.depart(leaf(np.array(whole.take(range(begin, begin + part), dim))))
    start = tuple([begin if i == dim else 0 for i in range(whole.ndim)])
    divide(p, Division(whole.shape, start, (group,)))
