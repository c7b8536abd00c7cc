"""Differentiation of tensors, under PyTorch's names: `grad`, `backward`, `Function`, checks."""

from __future__ import annotations

from weft.eager.autograd import backward, grad
from weft.eager.custom import Function
from weft.eager.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
