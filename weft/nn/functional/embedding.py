"""Table lookups: `embedding`, `embedding_bag`, `one_hot`."""

from __future__ import annotations

from typing import Any

from weft.documentation import arguments_of
from weft.eager.record.pending.mode import no_grad
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import lazy_of, recorded
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.node import at_user_line
from weft.ir.shape import show
from weft.ops.indexing import embedding as formulas

__all__ = ["embedding", "embedding_bag", "one_hot"]

_embedding = recorded(formulas.embedding, looks_up=True)


def table_row(name: str, index: int | None, size: int) -> int | None:
    """`padding_idx` as an index from 0.

    Raises:
        ShapeError: it is out of range.
    """
    if index is None:
        return None
    if not -size <= index < size:
        raise ShapeError.here(
            f"{name}: expected padding_idx from {-size} to {size - 1}, got {index}"
        )
    return index % size


def _check_table(name: str, weight: Any) -> None:
    if len(dims_of(weight)) != 2:
        raise ShapeError.here(
            f"{name}: expected a weight (rows, width), got {show(dims_of(weight))}"
        )


def check_indices(name: str, indices: Any) -> None:
    """Require integer indices."""
    dtype = lazy_of(indices).type.dtype
    if not dtype.is_integer:
        raise DTypeError.here(f"{name}: expected indices of integers, got {dtype}")


_shortened = recorded(formulas.shortened, differentiable=False)


def _shorten(indices: Any, weight: Any, longest: float | None, power: float) -> None:
    """Rescale the rows that are looked up, in place, to a norm of at most `longest`."""
    if longest is not None:
        with no_grad():
            weight.copy_(_shortened(indices, weight, longest=float(longest), power=float(power)))


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """The rows of `weight` at the indices `input`.

    Args:
        input: integers of any shape.
        weight: (rows, width).
        padding_idx: a row that gets no gradient.
        max_norm: rows that are looked up are first rescaled, in place, to this `norm_type`-norm.
        norm_type: the exponent of the norm.
        scale_grad_by_freq: divide a row's gradient by how often it is looked up.
        sparse: accepted; gradients of tables are row-sparse internally wherever that is faster.

    Raises:
        OutOfRangeError: at execution, an index is out of range; the message names this line.

    Example:
        >>> import weft as wf
        >>> table = wf.tensor([[3.0, 4.0], [0.0, 1.0]])
        >>> embedding(wf.tensor([0, 0]), table, max_norm=2.5).tolist()
        [[1.5, 2.0], [1.5, 2.0]]
    """
    check_indices("embedding", input)
    _check_table("embedding", weight)
    row = table_row("embedding", padding_idx, dims_of(weight)[0])
    _shorten(input, weight, max_norm, norm_type)
    return _embedding(input, weight, padding_idx=row, shared=bool(scale_grad_by_freq))


_bag_of_rows = recorded(formulas.bag_of_rows, looks_up=True)


_bags_by_offset = recorded(formulas.bags_by_offset, looks_up=True)


@arguments_of(embedding)
def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """The sum, mean or maximum of the rows of `weight` in each bag of indices.

    Args:
        input: integers, (bags, size), or (n) with `offsets`.
        weight: (rows, width).
        offsets: the start of each bag, (bags).
        mode: `sum`, `mean` or `max`.
        per_sample_weights: factors of the rows, of the shape of `input`; only for `mode="sum"`.
        include_last_offset: `offsets` has one more entry, the end of the last bag.
        padding_idx: a row that is not counted.

    Raises:
        OutOfRangeError: at execution, offsets do not start at 0, decrease, or exceed the input.
        NotImplementedError: `per_sample_weights` with a mode other than `sum`.
    """
    _check_bag(input, offsets, mode, per_sample_weights)
    _check_table("embedding_bag", weight)
    rows = dims_of(weight)[0]
    static: dict[str, Any] = {
        "mode": mode, "padding_idx": table_row("embedding_bag", padding_idx, rows),
        "shared": bool(scale_grad_by_freq),
    }  # fmt: skip
    _shorten(input, weight, max_norm, norm_type)
    if offsets is None:
        return _bag_of_rows(input, weight, per_sample_weights, **static)
    last = bool(include_last_offset)
    return _bags_by_offset(input, weight, offsets, per_sample_weights, **static, last=last)


def _check_bag(input: Any, offsets: Any, mode: str, factors: Any) -> None:
    check_indices("embedding_bag", input)
    shape = dims_of(input)
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError.here(f"embedding_bag: expected mode sum, mean or max, got {mode!r}")
    if len(shape) != (2 if offsets is None else 1):
        raise ShapeError.here(
            f"embedding_bag: expected an input (bags, size), or (n) with offsets, got {show(shape)}"
        )
    if factors is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights need mode 'sum', got {mode!r}{at_user_line()}"
        )


_one_hot = recorded(formulas.one_hot, differentiable=False)


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """One-hot rows along a new last dimension; int64.

    Args:
        tensor: integers of any shape.
        num_classes: its size; by default the largest index plus 1, which needs the values.

    Raises:
        ShapeError: there are no elements, and no `num_classes`.
        OutOfRangeError: at execution, an index is negative or not below `num_classes`.
    """
    check_indices("one_hot", tensor)
    if num_classes == -1:
        values = tensor.array
        if not values.size:
            raise ShapeError.here("one_hot: expected num_classes for a tensor without elements")
        num_classes = max(int(values.max()) + 1, 1)
    return _one_hot(tensor, depth=num_classes)
