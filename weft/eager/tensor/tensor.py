"""The tensor of the define-by-run front end."""

from __future__ import annotations

import weakref
from typing import Any

from weft.eager.functions.creation.constructor import Creation, of_type
from weft.eager.functions.elementwise.activation import Activations
from weft.eager.functions.elementwise.complex_number import Imaginary
from weft.eager.functions.elementwise.from_op import of_op
from weft.eager.functions.elementwise.inplace import Mutation
from weft.eager.functions.elementwise.integer import Numbers
from weft.eager.functions.elementwise.operator import Operators
from weft.eager.functions.elementwise.python_map import Mapping
from weft.eager.functions.indexing.gather import Placing
from weft.eager.functions.indexing.slice_scatter import Replacing
from weft.eager.functions.indexing.subscript import Indexing
from weft.eager.functions.linalg.factorization import Factoring
from weft.eager.functions.linalg.product import Linear
from weft.eager.functions.linalg.solve import Solving
from weft.eager.functions.random.inplace import Random
from weft.eager.functions.reduction.norm import Norming
from weft.eager.functions.reduction.reduce import Reductions
from weft.eager.functions.reduction.statistic import Statistics
from weft.eager.functions.shape.movement import Movement
from weft.eager.functions.shape.reshape import Shaping
from weft.eager.functions.shape.stride import Striding
from weft.eager.functions.sort.counting import Counting
from weft.eager.functions.sort.order import Sorting
from weft.eager.record import program
from weft.eager.record.lazy import needs_gradient, set_runner, trace
from weft.eager.tensor import autograd, promotion
from weft.eager.tensor.attribute import Attributes
from weft.eager.tensor.dispatch import set_tensor
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.hook import Hooked
from weft.eager.tensor.interchange import Interchange
from weft.eager.tensor.printing import Printing
from weft.errors import GradientError
from weft.ops.base import REGISTRY, Elementwise, Op, at_user_line, declared
from weft.ops.refusal import guard_methods


class Tensor(
    Attributes,
    Operators,
    Mutation,
    Shaping,
    Indexing,
    Reductions,
    Movement,
    Mapping,
    Linear,
    Factoring,
    Solving,
    Norming,
    Activations,
    Sorting,
    Statistics,
    Replacing,
    Striding,
    Placing,
    Counting,
    Imaginary,
    Numbers,
    Creation,
    Hooked,
    Random,
    Interchange,
    Printing,
):
    """An array whose operations are recorded, and computed when someone looks."""

    __slots__ = ("__dict__",)  # as in PyTorch, a program may keep what it likes on a tensor

    def __init__(self, *given: Any, size: Any = None, device: Any = None) -> None:
        like = given[0].lazy.type.dtype if given and isinstance(given[0], Handle) else None
        made = of_type(like or promotion.default_dtype(), given, size, device)
        self.adopt(made.lazy, made.view_of)
        if hasattr(made, "lent"):
            self.lend()

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through it; not where it moves with a dual tensor alone."""
        return needs_gradient(self.lazy)

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
        if requires_grad and self.is_inference() and not trace.now.inference:
            raise GradientError(
                "requires_grad_: a tensor of inference_mode() has no gradient outside; clone() it "
                f"first{at_user_line()}"
            )
        if requires_grad and not lazy.type.dtype.is_inexact:
            raise GradientError(
                f"requires_grad_: expected floating elements, got {lazy.type.dtype}; convert the "
                f"tensor with float() first{at_user_line()}"
            )
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


def _offer(op: Op) -> None:
    """Give tensors the method of an exported operation by element, unless they have their own."""
    by_element = op.facts.exported and isinstance(op.lower, Elementwise)
    if by_element and not hasattr(Tensor, op.name):
        setattr(Tensor, op.name, of_op(op))


declared.append(_offer)
for _op in list(REGISTRY.values()):
    _offer(_op)
Tensor.kind = Tensor
guard_methods(Tensor, Handle)
set_tensor(Tensor)
set_runner(program.flush, program.compute_apart)
