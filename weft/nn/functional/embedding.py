"""Lookups in a table: `embedding`, `embedding_bag`, `one_hot`."""

from __future__ import annotations

import math
from typing import Any

from weft import ops
from weft.eager.record.mode import no_grad
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import lazy_of, recorded
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.dtype import DType, int32, int64
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.base import at_user_line, catalogue, constant_of


@recorded(looks_up=True)
def _embedding(indices: Value, weight: Value, *, padding_idx: int | None, shared: bool) -> Value:
    rows = catalogue.gather(weight, indices)
    rows = _seen_once(indices, weight, rows) if shared else rows
    if padding_idx is None:
        return rows
    # The row is looked up as any other, but learns nothing.
    fixed = catalogue.equal(indices, constant_of(padding_idx, indices.dtype))
    mask = catalogue.expand_dims(fixed, axis=-1)
    return catalogue.select(mask, catalogue.stop_gradient(rows), rows)


def table_row(name: str, index: int | None, size: int) -> int | None:
    """A `padding_idx` counted from the front.

    Raises:
        ShapeError: there is no such row.
    """
    if index is None:
        return None
    if not -size <= index < size:
        raise ShapeError(
            f"{name}: expected padding_idx from {-size} to {size - 1}, got {index}{at_user_line()}"
        )
    return index % size


def _check_table(name: str, weight: Any) -> None:
    if len(dims_of(weight)) != 2:
        raise ShapeError(
            f"{name}: expected a weight (rows, width), got {show(dims_of(weight))}{at_user_line()}"
        )


def check_indices(name: str, indices: Any) -> None:
    """Refuse what is not integers."""
    dtype = lazy_of(indices).type.dtype
    if not dtype.is_integer:
        raise DTypeError(f"{name}: expected indices of integers, got {dtype}{at_user_line()}")


@recorded(differentiable=False)
def _shortened(indices: Value, weight: Value, *, longest: float, power: float) -> Value:
    """The table with the rows that are looked up no longer than the longest allowed."""
    flat = catalogue.reshape(indices, shape=(-1,))
    rows = catalogue.gather(weight, flat)
    size = _vector_norm(rows, power)
    small = constant_of(1e-7, weight.dtype)
    scale = catalogue.select(
        catalogue.greater(size, constant_of(longest, weight.dtype)),
        constant_of(longest, weight.dtype) / (size + small),
        constant_of(1, weight.dtype),
    )
    return ops.put_rows(weight, flat, rows * scale, "set")


def _vector_norm(rows: Value, power: float) -> Value:
    """The p-norm of each row of a matrix, as a column."""
    size = catalogue.abs(rows)
    if power == math.inf:
        return catalogue.max(size, axes=(1,), keepdims=True)
    p = constant_of(power, rows.dtype)
    total = catalogue.sum(catalogue.power(size, p), axes=(1,), keepdims=True)
    return catalogue.power(total, constant_of(1 / power, rows.dtype))


def _shorten(indices: Any, weight: Any, longest: float | None, power: float) -> None:
    """Shorten the rows that are looked up, in place, to a norm of at most `longest`."""
    if longest is not None:
        with no_grad():
            weight.copy_(_shortened(indices, weight, longest=float(longest), power=float(power)))


def _shares(indices: Value, rows: int, dtype: DType) -> Value:
    """One over how often each index occurs."""
    flat = catalogue.reshape(indices, shape=(-1,))
    none = catalogue.broadcast_to(constant_of(0, dtype), shape=(rows,))
    one = catalogue.broadcast_to(constant_of(1, dtype), shape=flat.shape)
    counts = catalogue.gather(catalogue.scatter_add(none, flat, one), flat)
    return catalogue.reshape(constant_of(1, dtype) / counts, shape=indices.shape)


def _seen_once(indices: Value, weight: Value, rows: Value) -> Value:
    """Rows whose gradient is divided by how often each is looked up."""
    share = _shares(indices, known(weight.shape)[0], weight.dtype)
    share = catalogue.stop_gradient(catalogue.expand_dims(share, axis=-1))
    fixed = catalogue.stop_gradient(rows)
    return fixed + (rows - fixed) * share


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """The rows of `weight` that `input` names.

    Args:
        input: integers of any shape.
        weight: (rows, width).
        padding_idx: a row that gets no gradient.
        max_norm: rows that are looked up are first shortened, in place, to this `norm_type`-norm.
        scale_grad_by_freq: the gradient of a row is divided by how often it is looked up.
        sparse: accepted; gradients of tables are row-sparse inside wherever that is faster.

    Raises:
        OutOfRangeError: an index is no row; when the value is looked at, with this line's place.

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


@recorded(looks_up=True)
def _bag_of_rows(
    indices: Value, weight: Value, scale: Value | None,
    *, mode: str, padding_idx: int | None, shared: bool,
) -> Value:  # fmt: skip
    """Bags are the rows of a matrix of indices."""
    rows = catalogue.gather(weight, indices)  # bags, size, width
    rows = _seen_once(indices, weight, rows) if shared else rows
    if scale is not None:
        rows = rows * catalogue.expand_dims(scale, axis=-1)
    size = known(indices.shape)[1]
    if padding_idx is None:
        if size == 0:
            return catalogue.sum(rows, axes=(1,))
        return getattr(catalogue, mode)(rows, axes=(1,))
    kept = catalogue.not_equal(indices, constant_of(padding_idx, indices.dtype))
    mask = catalogue.expand_dims(kept, axis=-1)
    zero = constant_of(0, weight.dtype)
    counts = catalogue.sum(catalogue.cast(mask, dtype=weight.dtype), axes=(1,))
    if mode == "max":
        low = constant_of(-math.inf, weight.dtype)
        y = catalogue.max(catalogue.select(mask, rows, low), axes=(1,))
        return catalogue.select(catalogue.greater(counts, zero), y, zero)
    total = catalogue.sum(catalogue.select(mask, rows, zero), axes=(1,))
    if mode == "sum":
        return total
    return total / catalogue.maximum(counts, constant_of(1, weight.dtype))


def _misplaced(offsets: Value, count: int) -> Value:
    """How many offsets are less than the one before, the first than 0, or beyond the input."""
    size = known(offsets.shape)[0]
    if not size:
        return constant_of(0, int32)
    after = catalogue.slice(offsets, begin=(1,), end=(size,))
    before = catalogue.slice(offsets, begin=(0,), end=(size - 1,))
    falls = catalogue.sum(catalogue.cast(catalogue.less(after, before), dtype=int32))
    first = catalogue.slice(offsets, begin=(0,), end=(1,))
    return falls + ops.count_outside(first, 0, 0) + ops.count_outside(offsets, 0, count)


@recorded(looks_up=True)
def _bags_by_offset(
    indices: Value, weight: Value, offsets: Value, scale: Value | None,
    *, mode: str, padding_idx: int | None, last: bool, shared: bool,
) -> Value:  # fmt: skip
    """Bags are stretches of a row of indices, beginning at the offsets."""
    count, bags = known(indices.shape)[0], known(offsets.shape)[0] - last
    text = f"embedding_bag: expected offsets that begin at 0 and rise to at most {count}"
    offsets = catalogue.check(offsets, _misplaced(offsets, count), text=text)
    rows = catalogue.gather(weight, indices)
    rows = _seen_once(indices, weight, rows) if shared else rows
    if scale is not None:
        rows = rows * catalogue.expand_dims(scale, axis=-1)
    starts = catalogue.slice(offsets, begin=(0,), end=(bags,)) if last else offsets
    places = catalogue.iota(shape=(count,), dtype=offsets.dtype)
    # The bag of a place: how many bags begin at or before it, less one.
    bag = catalogue.searchsorted(starts, places, side="right") - 1
    bag = catalogue.cast(bag, dtype=int64)
    inside = catalogue.greater_equal(bag, constant_of(0, int64))
    if last:
        inside = catalogue.logical_and(inside, catalogue.less(places, offsets[bags]))
    if padding_idx is not None:
        inside = catalogue.logical_and(
            inside, catalogue.not_equal(indices, constant_of(padding_idx, indices.dtype))
        )
    # What is in no bag goes to one more, which is dropped.
    bag = catalogue.select(inside, bag, constant_of(bags, int64))
    return _gathered(rows, bag, bags, mode)


def _gathered(rows: Value, bag: Value, bags: int, mode: str) -> Value:
    width, dtype = known(rows.shape)[1], rows.dtype
    zeros = catalogue.broadcast_to(constant_of(0, dtype), shape=(bags + 1, width))
    one = catalogue.broadcast_to(constant_of(1, dtype), shape=(known(rows.shape)[0], 1))
    empty = catalogue.broadcast_to(constant_of(0, dtype), shape=(bags + 1, 1))
    counts = catalogue.scatter_add(empty, bag, one)
    if mode == "max":
        low = catalogue.broadcast_to(constant_of(-math.inf, dtype), shape=(bags + 1, width))
        best = catalogue.scatter_max(low, bag, rows)
        some = catalogue.greater(counts, constant_of(0, dtype))
        y = catalogue.select(some, best, constant_of(0, dtype))
    else:
        y = catalogue.scatter_add(zeros, bag, rows)
        if mode == "mean":
            y = y / catalogue.maximum(counts, constant_of(1, dtype))
    return catalogue.slice(y, begin=(0, 0), end=(bags, width))


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
    """The sum, mean or maximum of the rows of `weight` that each bag of indices names.

    Args:
        input: integers, (bags, size), or (n) with `offsets`.
        weight: (rows, width).
        offsets: where each bag begins, (bags).
        per_sample_weights: factors of the rows, of the shape of `input`; for `mode="sum"`.
        include_last_offset: `offsets` has one more entry, the end of the last bag.
        max_norm, norm_type, scale_grad_by_freq: as for `embedding`.
        padding_idx: a row that counts for nothing.

    Raises:
        OutOfRangeError: when it is computed, offsets that do not begin at 0, fall, or go too far.
        NotImplementedError: `per_sample_weights` with another mode than `sum`.
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
        raise ArgumentError(
            f"embedding_bag: expected mode sum, mean or max, got {mode!r}{at_user_line()}"
        )
    if len(shape) != (2 if offsets is None else 1):
        raise ShapeError(
            "embedding_bag: expected an input (bags, size), or (n) with offsets, got "
            f"{show(shape)}{at_user_line()}"
        )
    if factors is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights go with mode 'sum', got {mode!r}{at_user_line()}"
        )


@recorded(differentiable=False)
def _one_hot(indices: Value, *, depth: int) -> Value:
    text = f"one_hot: expected indices from 0 to {depth - 1}"
    hot = catalogue.one_hot(indices, depth=depth, dtype=int64)
    return catalogue.check(hot, ops.count_outside(indices, 0, depth - 1), text=text)


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """A new last dimension with a 1 at the place of each index; int64.

    Args:
        num_classes: the size of it; the largest index and one by default, for which the values
            are looked at.

    Raises:
        ShapeError: no elements, and no `num_classes`.
        OutOfRangeError: when it is computed, an index is negative or not below `num_classes`.
    """
    check_indices("one_hot", tensor)
    if num_classes == -1:
        values = tensor.array
        if not values.size:
            raise ShapeError(
                f"one_hot: expected num_classes for a tensor without elements{at_user_line()}"
            )
        num_classes = int(values.max()) + 1
    return _one_hot(tensor, depth=num_classes)
