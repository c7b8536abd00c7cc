"""Arguments that describe the components of elements: types, shapes, names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.documentation import Reads
from weft.errors import DTypeError, ShapeError, TreeError
from weft.tf1.framework.dtypes import DType, as_dtype
from weft.tf1.framework.graph import fail
from weft.tf1.framework.tensor_shape import Dimension, TensorShape, as_shape, unknown_shape


class Components:
    """The components of an element of a queue or a staging area."""

    _dtypes: list[DType]
    _shapes: list[TensorShape]
    _names: list[str] | None

    dtypes = Reads[list[DType]]("_dtypes", "The element types of the components.")
    shapes = Reads[list[TensorShape]]("_shapes", "The shapes of the components.")
    names = Reads[list[str] | None]("_names", "The names of the components, or `None`.")


def type_list(dtypes: Any) -> list[DType]:
    """One element type, or a list of them, as a list."""
    many = isinstance(dtypes, list | tuple)
    return [as_dtype(d) for d in (dtypes if many else [dtypes])]


def shape_list(
    shapes: Any, what: str, partial: bool = False, ranks: bool = True
) -> list[TensorShape] | None:
    """One shape, or a list of them, as a list; `None` for none.

    Args:
        shapes: the argument.
        what: for messages.
        partial: whether dimensions may be unknown; then a list of shapes is needed.
        ranks: whether all ranks must be known.

    Raises:
        ShapeError: a shape is not known enough.
        DTypeError: it is something else.
    """
    if partial and (not isinstance(shapes, list | tuple) or not shapes or _is_dims(shapes)):
        text = "When providing partial shapes, a list of shapes must be provided."
        raise fail(ShapeError, f"{what}: {text}")
    if shapes is None:
        return None
    if isinstance(shapes, TensorShape):
        shapes = [shapes]
    if not isinstance(shapes, list | tuple):
        text = "shapes must be a TensorShape or a list or tuple of TensorShapes."
        raise fail(DTypeError, f"{what}: {text}")
    found = [as_shape(s) for s in ([shapes] if _is_dims(shapes) else shapes)]
    if not partial and not all(s.is_fully_defined() for s in found):
        raise fail(ShapeError, f"{what}: All shapes must be fully defined: {found}")
    if ranks and any(s.ndims is None for s in found):
        raise fail(ShapeError, f"{what}: All shapes must have a defined rank: {found}")
    return found


def _is_dims(shapes: Sequence[Any]) -> bool:
    return all(s is None or isinstance(s, int | Dimension) for s in shapes)


def name_list(names: Any, dtypes: Sequence[Any], what: str) -> list[str] | None:
    """One name, or a list of them, as a list.

    Raises:
        TreeError: there is not one for each component.
    """
    if names is None:
        return None
    found = list(names) if isinstance(names, list | tuple) else [names]
    require_length(found, dtypes, "names", what)
    return found


def require_length(found: Sequence[Any], dtypes: Sequence[Any], role: str, what: str) -> None:
    """Check that there is one for each component.

    Raises:
        TreeError: there is not.
    """
    if len(found) != len(dtypes):
        text = f"Queue {role} must have the same length as dtypes, got {len(found)}"
        raise fail(TreeError, f"{what}: {text} for {len(dtypes)}")


def common_shape(shapes: Sequence[TensorShape]) -> TensorShape:
    """What several shapes have in common."""
    first, *others = [s.as_dims() for s in shapes]
    for dims in others:
        if first is None or dims is None or len(first) != len(dims):
            return unknown_shape()
        first = tuple([a if a == b else None for a, b in zip(first, dims, strict=True)])
    return TensorShape(first)
