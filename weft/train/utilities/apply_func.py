"""Functions of the tensors in nested containers, by Lightning's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.eager.functions.api import Tensor
from weft.errors import ShapeError
from weft.host.nested import Nesting

__all__ = ["apply_to_collection", "convert_tensors_to_scalars", "move_data_to_device"]

_TYPED: Final = Nesting(types=True)


def apply_to_collection(
    data: Any, dtype: type | tuple[type, ...], function: Callable[..., Any], *args: Any,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """Containers with `function` applied to the leaves of some types.

    >>> apply_to_collection({"a": [1, "b"]}, int, lambda x, y: x + y, 2)
    {'a': [3, 'b']}
    """
    return _TYPED.mapped(
        lambda x: function(x, *args, **kwargs) if isinstance(x, dtype) else x, data
    )


def move_data_to_device(batch: Any, device: Any) -> Any:
    """Containers with what has `to` moved."""
    return _TYPED.mapped(lambda x: x.to(device) if hasattr(x, "to") else x, batch)


def convert_tensors_to_scalars(data: Any) -> Any:
    """Containers with numbers in place of tensors.

    Raises:
        ShapeError: a tensor has several elements.
    """

    def scalar(x: Tensor) -> Any:
        if x.numel() != 1:
            raise ShapeError.here(f"expected tensors of one element, got {tuple(x.shape)}")
        return x.item()

    return apply_to_collection(data, Tensor, scalar)
