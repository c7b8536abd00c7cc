"""The tensor of the define-by-run front end."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from weft.eager import autograd, program
from weft.eager.arithmetic import Arithmetic
from weft.eager.call import leaf, set_tensor
from weft.eager.lazy import set_flush
from weft.errors import GradientError
from weft.ir.dtype import DType
from weft.ir.shape import known
from weft.ops.base import at_user_line


class Tensor(Arithmetic):
    """An array whose operations are recorded, and computed when someone looks."""

    __slots__ = ()

    def __init__(self, data: Any) -> None:
        self.adopt(leaf(np.asarray(data)))

    # -- what it is

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._lazy.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions."""
        return known(self._lazy.type.shape)

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through it."""
        return self._lazy.tracked

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    # -- gradients

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Make it a leaf that needs a gradient, or not."""
        lazy = self.lazy
        if lazy.tracked and lazy.leaf is None and not requires_grad:
            raise GradientError(
                "requires_grad_: only a leaf can stop to need a gradient; detach() the tensor"
                f"{at_user_line()}"
            )
        if lazy.leaf is None and lazy.tracked:
            return self
        lazy.tracked = requires_grad
        lazy.leaf = weakref.ref(self) if requires_grad else None
        return self

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradient of this value to `.grad` of the leaves that led to it."""
        autograd.backward(self, gradient, retain_graph, create_graph, inputs)

    # -- values

    def numpy(self) -> np.ndarray[Any, Any]:
        """The memory as a NumPy array."""
        return self.array

    def item(self) -> Any:
        """The one element, as a Python number."""
        return self.array.item()


Tensor.kind = Tensor
set_tensor(Tensor)
set_flush(program.flush)
