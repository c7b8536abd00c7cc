"""Python functions applied to each element: slow, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.lazy import Array
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import lazy_of, leaf
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import write
from weft.errors import DTypeError, GradientError, ShapeError
from weft.ir.shape import show
from weft.ops.refusal import check_function


def _mapped(x: Handle, name: str, others: tuple[Any, ...], function: Callable[..., Any]) -> Any:
    """`x` with a function applied to each element and the corresponding elements of others.

    Raises:
        DTypeError: no function, or one that returns no numbers.
        ShapeError: others that do not broadcast to the shape of `x`.
        GradientError: a tensor requires grad, which would be lost.
    """
    check_function(function, name)
    if any([isinstance(y, Handle) and y.lazy.tracked for y in (x, *others)]):
        raise GradientError.here(
            f"{name}: no gradients flow through functions of Python; detach() the tensors"
        )
    old = x.array
    try:
        wide = [np.broadcast_to(array_of(lazy_of(y)), dims_of(x)) for y in others]
    except ValueError:
        text = f"{name}: expected tensors that broadcast to shape {show(dims_of(x))}"
        raise ShapeError.here(text) from None
    rows = zip(*[np.asarray(a).reshape(-1).tolist() for a in (old, *wide)], strict=True)
    try:
        found: Array = np.array([function(*row) for row in rows], old.dtype).reshape(old.shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise DTypeError.here(f"{name}: {error}") from None
    return write(x, leaf(found, x.lazy), name)


class Methods(Handle):
    """The methods of this module."""

    def apply_(self, function: Callable[[Any], Any]) -> Any:
        """Replace each element by `function(element)`.

        >>> import weft as wf
        >>> wf.arange(3).apply_(lambda a: a * a).tolist()
        [0, 1, 4]
        """
        return _mapped(self, "apply_", (), function)

    def map_(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        """Replace each element by `function(element, element of other)`; `other` broadcasts."""
        return _mapped(self, "map_", (other,), function)

    def map2_(self, first: Any, second: Any, function: Callable[[Any, Any, Any], Any]) -> Any:
        """`map_` with two other tensors."""
        return _mapped(self, "map2_", (first, second), function)
