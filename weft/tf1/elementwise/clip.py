"""Clipping of values and of norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ops
from weft.errors import DTypeError
from weft.ir.node import Value
from weft.ops.reduction.total_norm import norm_of, scaled_to, share_of
from weft.tf1.control.dependency import identity
from weft.tf1.elementwise import arithmetic
from weft.tf1.framework.convert import convert_to_tensor, static_axes
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Tensor

__all__ = [
    "clip_by_average_norm", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "global_norm",
]  # fmt: skip


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Values clipped to a minimum and a maximum."""
    if isinstance(t, IndexedSlices):
        rows = clip_by_value(t.values, clip_value_min, clip_value_max, name)
        return IndexedSlices(rows, t.indices, t.dense_shape)
    with name_scope(name, "clip_by_value", [t]) as scope:
        x = convert_to_tensor(t, name="t")
        low = convert_to_tensor(clip_value_min, x.dtype.base_dtype)
        high = convert_to_tensor(clip_value_max, x.dtype.base_dtype)
        smaller = arithmetic.minimum(x, high)
        return emit("Maximum", [smaller, low], "maximum", name=scope)


def _clip(t: Any, clip_norm: Any, axes: Any, name: str | None, default: str, average: bool) -> Any:
    if isinstance(t, IndexedSlices):
        rows = _clip(t.values, clip_norm, axes, name, default, average)
        return IndexedSlices(rows, t.indices, t.dense_shape)
    with name_scope(name, default, [t]) as scope:
        x = convert_to_tensor(t, name="t")
        limit = convert_to_tensor(clip_norm, x.dtype.base_dtype, name="clip_norm")
        along = static_axes(axes, default)
        return emit("Identity", [x, limit], scaled_to, axes=along, average=average, name=scope)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """`t`, scaled down if its norm exceeds `clip_norm`."""
    return _clip(t, clip_norm, axes, name, "clip_by_norm", False)


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Any:
    """`t`, scaled down if its norm divided by its number of elements exceeds `clip_norm`."""
    return _clip(t, clip_norm, None, name, "clip_by_average_norm", True)


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The square root of the sum of all squares; `None` entries are skipped."""
    _require_list("global_norm", t_list)
    rows = [t.values if isinstance(t, IndexedSlices) else t for t in t_list if t is not None]
    with name_scope(name, "global_norm", rows):
        tensors = [convert_to_tensor(t) for t in rows]

        def build(*values: Value) -> Value:
            found = norm_of(values, 2, ((),) * len(values))
            return ops.cast(found, dtype=values[0].dtype)

        return emit("Sqrt", tensors, build, name="global_norm")


def _require_list(kind: str, t_list: Any) -> None:
    if not isinstance(t_list, list | tuple):
        raise fail(DTypeError, f"{kind}: expected a list of tensors, got {t_list!r}")


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """All tensors scaled by one factor so that their global norm is at most `clip_norm`.

    Returns:
        The scaled tensors, and the norm before clipping.
    """
    _require_list("clip_by_global_norm", t_list)
    norm = global_norm(t_list, name) if use_norm is None else convert_to_tensor(use_norm)
    with name_scope(name, "clip_by_global_norm", [t for t in t_list if t is not None]):
        limit = convert_to_tensor(clip_norm, norm.dtype.base_dtype)
        scale = emit("Mul", [norm, limit], share_of, name="mul")
        clipped = [_times(t, scale, i) for i, t in enumerate(t_list)]
    return clipped, norm


def _times(t: Any, scale: Tensor, index: int) -> Any:
    if t is None:
        return None
    if isinstance(t, IndexedSlices):
        return IndexedSlices(t.values * scale, t.indices, t.dense_shape)
    scaled = arithmetic.multiply(t, scale)
    return identity(scaled, name=f"clip_by_global_norm/_{index}")
