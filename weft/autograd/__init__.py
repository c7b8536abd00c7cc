"""`torch.autograd` under PyTorch's names: `grad`, `backward`, `Function`, gradient checks."""

from __future__ import annotations

from weft.autograd import forward_ad, function, functional, graph
from weft.autograd.gradcheck import gradcheck, gradgradcheck
from weft.autograd.gradient import grad
from weft.autograd.variable import Variable
from weft.eager.record.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from weft.eager.tensor.autograd.anomaly import (
    detect_anomaly,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from weft.eager.tensor.autograd.autograd import backward
from weft.eager.tensor.autograd.custom_function import Function

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
