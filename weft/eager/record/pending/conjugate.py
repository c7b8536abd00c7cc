"""Gradients of complex numbers: converts between the graph's convention and PyTorch's.

The graph pairs a cotangent `g` with a change `dz` as the real part of `g * dz` (see
`weft.ops.elementwise.complex_number`). PyTorch's gradient is the conjugate of that, the direction
of steepest ascent: `z -= rate * z.grad` descends. So gradients are conjugated wherever they enter
or leave a backward pass: those it starts from, those it returns, and those that hooks and custom
functions see. `weft.func` uses the graph's convention.
"""

from __future__ import annotations

from typing import Final

from weft.eager.record.call.plan import op_plan
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.ops.declaration import REGISTRY

_CONJ: Final = REGISTRY["conj"]


def conjugated(g: Lazy) -> Lazy:
    """The conjugate, which converts in either direction; a real gradient is returned as is."""
    if not g.type.dtype.is_complex:
        return g
    return trace.now.record(op_plan(_CONJ, (g.type,), {}), (g,))[0]
