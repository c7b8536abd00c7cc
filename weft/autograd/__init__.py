"""`torch.autograd` under PyTorch's names: `grad`, `backward`, `Function`, gradient checks."""

from __future__ import annotations

from weft import exports as _exports
from weft.autograd import forward_ad as forward_ad
from weft.autograd import function as function
from weft.autograd import functional as functional
from weft.autograd import graph as graph
from weft.autograd.gradcheck import *
from weft.autograd.gradient import grad as grad
from weft.autograd.variable import *
from weft.eager.record.pending.mode import *
from weft.eager.tensor.autograd.anomaly import *
from weft.eager.tensor.autograd.autograd import backward as backward
from weft.eager.tensor.autograd.custom_function import Function as Function

_exports.gather(globals(), "forward_ad", "function", "functional", "graph")
