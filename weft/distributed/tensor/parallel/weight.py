"""Styles of layers with weights: divided by columns, by rows, or by what the sequence is cut in."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.collectives.elements import array
from weft.distributed.tensor.parallel.style import Forward, ParallelStyle
from weft.distributed.tensor.placement import Partial, Placement, Replicate, Shard
from weft.distributed.tensor.redistribute import for_divided_work, redistribute
from weft.eager.functions.api import where
from weft.eager.record.mode import no_grad
from weft.eager.tensor.dispatch import leaf
from weft.errors import ArgumentError, DistributedError, ShapeError
from weft.ir.node import at_user_line
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
    """Of `Linear` and `Embedding`.

    Args:
        input_layouts: how the argument lies when the module is called.
        output_layouts: how the result is to lie.
        use_local_output: True; results are ordinary tensors.
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
            raise ArgumentError(
                f"{name}: expected a Linear or an Embedding at {path!r}, got "
                f"{type(module).__name__}{at_user_line()}"
            )
        if isinstance(module, Embedding) and (
            module.max_norm is not None or module.scale_grad_by_freq
        ):
            raise ArgumentError(
                f"{name}: expected an Embedding without max_norm and scale_grad_by_freq at "
                f"{path!r}{at_user_line()}"
            )


class ColwiseParallel(_WeightStyle):
    """Each rank computes a part of the output: of a `Linear`'s features, of an embedding's width.

    The argument is made whole on all ranks. The result is a part along the last dimension, unless
    `output_layouts` says otherwise.

    Raises:
        ShapeError: a size that the number of ranks does not divide.

    Source: Shoeybi et al., "Megatron-LM" (2019).
    """

    default_output = _LAST

    def divide(self, module: Any, path: str, group: Group) -> None:
        """Cut `Linear.weight` and `bias` by rows, `Embedding.weight` by columns."""
        self._check(module, path)
        if isinstance(module, Embedding):
            keep_part(module, "weight", 1, path, group)
            return
        keep_part(module, "weight", 0, path, group)
        if module.bias is not None:
            keep_part(module, "bias", 0, path, group)

    def call(self, module: Any, forward: Forward, group: Group, args: Any, kwargs: Any) -> Any:
        """Whole arguments in, parts of the result out."""
        x, layout = _argument(args, kwargs), self.input_layouts or Replicate()
        if isinstance(module, Embedding):
            x = redistribute(x, layout, Replicate(), group)
        else:
            x = for_divided_work(x, layout, group)
        return redistribute(forward(x), _LAST, self.output_layouts, group)


class RowwiseParallel(_WeightStyle):
    """Each rank sums up a part of the input: of a `Linear`'s features, of an embedding's rows.

    A `Linear`'s argument is made a part along the last dimension, as `ColwiseParallel` gives it.
    The sums of all ranks are added, whole on all of them unless `output_layouts` says otherwise.
    """

    def divide(self, module: Any, path: str, group: Group) -> None:
        """Cut `Linear.weight` by columns, `Embedding.weight` by rows."""
        self._check(module, path)
        keep_part(module, "weight", 0 if isinstance(module, Embedding) else 1, path, group)

    def call(self, module: Any, forward: Forward, group: Group, args: Any, kwargs: Any) -> Any:
        """Parts of arguments in, sums over ranks out."""
        x, layout, to = _argument(args, kwargs), self.input_layouts, self.output_layouts
        if isinstance(module, Embedding):
            x = redistribute(x, layout or Replicate(), Replicate(), group)
            return redistribute(_looked_up(module, x, group), Partial(), to, group)
        x = redistribute(x, layout or _LAST, _LAST, group)
        found = redistribute(linear(x, module.weight), Partial(), to, group)
        return found if module.bias is None else found + self._bias(module.bias, found, group)

    def _bias(self, bias: Any, y: Any, group: Group) -> Any:
        """The bias as it is added to a rank's result, once to each element."""
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
    """Rows of an embedding that this rank has, zeros for those of others."""
    rows = table.weight.shape[0]
    local = ids - group.index * rows
    own = (local >= 0) & (local < rows)
    padding = table.padding_idx
    if padding is not None:
        padding -= group.index * rows
        padding = padding if 0 <= padding < rows else None
    there = (ids >= 0) & (ids < table.num_embeddings)
    local = where(own, local, where(there, 0, ids))  # what no rank has is refused by the lookup
    found = embedding(local, table.weight, padding)
    return where(own.unsqueeze(-1), found, 0.0)


class SequenceParallel(ParallelStyle):
    """A layer that treats positions alike, such as `LayerNorm`, on each rank's part of a sequence.

    Parameters stay whole; their gradients are sums over ranks.

    Args:
        sequence_dim: the dimension that is cut.
        use_local_output: True; results are ordinary tensors.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = True) -> None:
        check_local("SequenceParallel", use_local_output)
        self.sequence_dim = sequence_dim

    def call(self, module: Any, forward: Forward, group: Group, args: Any, kwargs: Any) -> Any:
        """As on a whole sequence, on a part."""
        named = module.named_parameters(remove_duplicate=False)
        whole = {path: for_divided_work(p, Replicate(), group) for path, p in named}
        with module.swapped(whole, tie_weights=False):
            return forward(*args, **kwargs)


ColumnwiseParallel = ColwiseParallel


def check_local(name: str, use_local_output: bool) -> None:
    """Refuse what would need another kind of tensor."""
    if not use_local_output:
        raise ArgumentError(
            f"{name}: expected use_local_output=True, got {use_local_output!r}; results are "
            f"ordinary tensors{at_user_line()}"
        )


def keep_part(module: Module, name: str, dim: int, path: str, group: Group) -> None:
    """Make a parameter this rank's equal part of it along a dimension; it stays the same object.

    Raises:
        ShapeError: the number of ranks does not divide the size.
        DistributedError: it is a part already.
    """
    p: Any = getattr(module, name)
    where_it_is = f"{path}.{name}".lstrip(".")
    if division_of(p) is not None:
        raise DistributedError(
            f"parallelize_module: {where_it_is!r} is divided among ranks already; call "
            f"parallelize_module before fully_shard{at_user_line()}"
        )
    whole = array(p)
    if whole.shape[dim] % group.size:
        raise ShapeError(
            f"parallelize_module: expected a size that {group.size} ranks divide along dimension "
            f"{dim} of {where_it_is!r}, got shape {whole.shape}{at_user_line()}"
        )
    part = whole.shape[dim] // group.size
    begin = group.index * part
    with no_grad():
        p.depart(leaf(np.array(whole.take(range(begin, begin + part), dim))))
    start = tuple([begin if i == dim else 0 for i in range(whole.ndim)])
    divide(p, Division(whole.shape, start, (group,)))
