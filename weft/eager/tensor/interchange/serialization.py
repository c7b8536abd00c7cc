"""The arrays that tensors are saved as, and the tensors that saved arrays become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft.eager.record.pending.lazy import Array
from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.handle import Handle

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor


def is_tensor(x: Any) -> bool:
    """Whether something is saved as an array."""
    return isinstance(x, Handle | np.ndarray | np.generic)


def array_of(x: Any) -> Array:
    """The array that is saved for it."""
    return x.array if isinstance(x, Handle) else np.asarray(x)


def tensor_of(array: Array) -> Tensor:
    """The tensor that a saved array becomes."""
    return wrap(leaf(array))
