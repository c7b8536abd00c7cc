"""The tensor of the define-by-run front end.

The class and its bases hold what a tensor is; `weft.eager.functions.table` adds the operations.
"""

from __future__ import annotations

import weakref
from typing import Any

from weft.eager.record.pending.state import needs_gradient, set_runner, trace
from weft.eager.record.run import program
from weft.eager.tensor.attribute import Attributes
from weft.eager.tensor.autograd import autograd
from weft.eager.tensor.autograd.hook import Hooked
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.interchange.interchange import Interchange
from weft.eager.tensor.interchange.printing import Printing
from weft.errors import DTypeError, GradientError


class Tensor(Attributes, Hooked, Interchange, Printing):
    """An array whose operations are recorded, and computed when a value is read."""

    __slots__ = ("__dict__",)  # as in PyTorch, programs may set attributes on a tensor
    __module__ = "weft"  # found there by its name, with all methods, for example when unpickled

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through it; false if only forward mode follows it."""
        return needs_gradient(self.lazy)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    # -- gradients

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether this leaf requires grad.

        Raises:
            DTypeError: it is neither True nor False.
            GradientError: the tensor is no leaf, or cannot have a gradient.
        """
        if type(requires_grad) is not bool:
            raise DTypeError.here(f"requires_grad: expected True or False, got {requires_grad!r}")
        lazy = self.lazy
        if lazy.tracked and lazy.leaf is None and not requires_grad:
            raise GradientError.here(
                "requires_grad_: only a leaf can stop requiring grad; detach() the tensor"
            )
        if lazy.leaf is None and lazy.tracked:
            return self
        if requires_grad and self.is_inference() and not trace.now.inference:
            raise GradientError.here(
                "requires_grad_: a tensor of inference_mode() has no gradient outside; clone() it "
                "first"
            )
        if requires_grad and not lazy.type.dtype.is_inexact:
            raise GradientError.here(
                f"requires_grad_: expected floating elements, got {lazy.type.dtype}; convert the "
                f"tensor with float() first"
            )
        lazy.tracked = requires_grad
        lazy.leaf = weakref.ref(self) if requires_grad else None
        return self

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
        inputs: Any = None,
    ) -> None:  # fmt: skip
        """Add the gradients of this value to `.grad` of its leaves."""
        autograd.backward(self, gradient, retain_graph, create_graph, inputs)


Tensor.kind = Handle.default = Tensor
set_runner(program.flush, program.compute_part)
