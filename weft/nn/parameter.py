"""Tensors that belong to a module: parameters, which are trained, and buffers, which are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.eager.call import lazy_of
from weft.eager.creation import copied
from weft.eager.handle import Handle
from weft.eager.lazy import Lazy
from weft.eager.tensor import Tensor


def own(data: Any) -> Lazy:
    """A value for a new tensor: its own, so that no two tensors share memory that one changes."""
    return copied(data.lazy) if isinstance(data, Handle) else lazy_of(data)


class Parameter(Tensor):
    """A tensor that a module registers as a parameter when it is assigned to an attribute.

    Args:
        data: a tensor, of which the value is taken, an array (which is not copied) or numbers.
        requires_grad: whether it is trained.
    """

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        self.adopt(own(np.empty(0, np.float32) if data is None else data))
        self.lasting = True
        if isinstance(data, np.ndarray):
            self.lend()
        self.requires_grad_(requires_grad)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned to an attribute.

    Args:
        data: as for `Parameter`.
        persistent: whether it is part of the module's state dict.
    """

    persistent: bool

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        self.adopt(own(np.empty(0, np.float32) if data is None else data))
        if isinstance(data, np.ndarray):
            self.lend()
        self.persistent = persistent


Parameter.kind = Tensor
Buffer.kind = Tensor
