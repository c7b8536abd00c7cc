"""Custom functions, under the names of PyTorch's `torch.autograd.function`."""

from __future__ import annotations

from weft.eager.tensor.autograd.custom_function import Function
from weft.eager.tensor.autograd.non_differentiable import once_differentiable

__all__ = ["Function", "InplaceFunction", "once_differentiable"]

InplaceFunction = Function  # an old name, for functions that change an argument
