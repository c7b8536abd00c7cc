"""Recurrent layers over whole sequences, given the matmuls of their inputs.

    i, f, o = sigmoid(z + h @ w.T)    n = tanh(z + h @ w.T)     (parts of the width, in order ifno)
    c = f * c + i * n                 h = o * tanh(c)

Hochreiter and Schmidhuber, "Long Short-Term Memory" (1997), with the order of PyTorch: i, f, n, o.
Work that is common to all time steps (matmuls with the inputs, the gradient of weights) is one
matmul outside; these operations do the rest step by step. Activated gates and cells are outputs,
for the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, as_dtype, float32, float64
from weft.ir.node import Value
from weft.ir.shape import Shape, compatible, known, show
from weft.ops.declaration import BY_EXPANSION, Array, Case, Opaque, catalogue, constant_of, defop
from weft.ops.declaration.fact import IN_FLOAT32
from weft.ops.declaration.numeric import draw
from weft.ops.declaration.rule import floating
from weft.ops.elementwise.arithmetic import multiply
from weft.ops.elementwise.transcendental import tanh
from weft.ops.linalg.matmul import matmul
from weft.ops.shape.creation import is_zeros

_ATTRS: Final[dict[str, Any]] = {"reverse": False, "batch_first": False}


def _dtype(*dtypes: DType, **_: Any) -> tuple[DType, DType, DType]:
    found = floating(*dtypes)
    if found not in (float32, float64):
        raise DTypeError(f"expected float32 or float64, got {found}")
    return found, found, found


def _check(name: str, shape: Shape, expected: Shape) -> None:
    if not compatible(shape, expected):
        raise ShapeError(f"expected {name} of shape {show(expected)}, got {show(shape)}")


def _shape(
    z: Shape, w: Shape, h: Shape, c: Shape, reverse: bool, batch_first: bool
) -> tuple[Shape, Shape, Shape]:
    if w is None or len(w) != 2 or (None not in w and w[0] != 4 * known(w)[1]):
        raise ShapeError(f"expected w of shape (4 * width, width), got {show(w)}")
    if z is None or len(z) != 3:
        raise ShapeError(f"expected z of rank 3, got {show(z)}")
    rows = z[0] if batch_first else z[1]
    _check("z", z, (*z[:2], w[0]))
    _check("h", h, (rows, w[1]))
    _check("c", c, (rows, w[1]))
    return (*z[:2], w[1]), (*z[:2], w[1]), (*z[:2], w[0])


# References, on arrays with time first


def _timed(x: Array, batch_first: bool) -> Array:
    return np.swapaxes(x, 0, 1) if batch_first else x


def _order(steps: int, reverse: bool) -> range:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def _run(
    z: Array, w: Array, h: Array, c: Array, reverse: bool, batch_first: bool
) -> tuple[Array, Array, Array]:
    """In the precision of the arrays."""
    width = w.shape[1]
    y = np.empty((*z.shape[:2], width), z.dtype)
    cells, gates = np.empty_like(y), np.empty(z.shape, z.dtype)
    out = [_timed(x, batch_first) for x in (z, y, cells, gates)]
    turned = np.ascontiguousarray(w.T)
    for t in _order(len(out[0]), reverse):
        total = out[0][t] + h @ turned
        own = out[3][t]
        own[...] = _sigmoid(total)
        own[:, 2 * width : 3 * width] = np.tanh(total[:, 2 * width : 3 * width])
        i, f, n, o = np.split(own, 4, axis=1)
        c = f * c + i * n
        h = o * np.tanh(c)
        out[1][t], out[2][t] = h, c
    return y, cells, gates


def _reference(
    z: Array, w: Array, h: Array, c: Array, reverse: bool, batch_first: bool
) -> tuple[Array, ...]:
    wide = [x.astype(np.float64) for x in (z, w, h, c)]
    found = _run(wide[0], wide[1], wide[2], wide[3], reverse, batch_first)
    return tuple(x.astype(z.dtype) for x in found)


def _run_back(
    g: Array, g_cells: Array, w: Array, c: Array, cells: Array, gates: Array, *g_gates: Array,
    reverse: bool, batch_first: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """In the precision of the arrays."""
    by_z = np.empty_like(gates)
    g, g_cells, cells, gates, out = (
        _timed(x, batch_first) for x in (g, g_cells, cells, gates, by_z)
    )
    by_h, by_c = np.zeros_like(c), np.zeros_like(c)
    before = c
    order = _order(len(gates), reverse)
    for number in range(len(order) - 1, -1, -1):
        t = order[number]
        before = cells[order[number - 1]] if number else c
        i, f, n, o = np.split(gates[t], 4, axis=1)
        by_h = by_h + g[t]
        top = np.tanh(cells[t])
        by_c = by_c + g_cells[t] + by_h * o * (1 - top * top)
        slopes = np.concatenate([by_c * n, by_c * before, by_c * i, by_h * top], axis=1)
        if g_gates:
            slopes = slopes + _timed(g_gates[0], batch_first)[t]
        steep = np.concatenate([i * (1 - i), f * (1 - f), 1 - n * n, o * (1 - o)], axis=1)
        out[t] = slopes * steep
        by_h, by_c = out[t] @ w, by_c * f
    return by_z, by_h, by_c


def _reference_back(*arrays: Array, reverse: bool, batch_first: bool) -> tuple[Array, ...]:
    wide = [x.astype(np.float64) for x in arrays]
    found = _run_back(*wide, reverse=reverse, batch_first=batch_first)  # type: ignore[arg-type]
    return tuple(x.astype(arrays[0].dtype) for x in found)


# Gradients


def _previous(first: Value, states: Value, reverse: bool, batch_first: bool) -> Value:
    """The states before each step: `first`, then all but the last."""
    axis = 1 if batch_first else 0
    start = catalogue.expand_dims(first, axis=axis)
    dims = known(states.shape)
    begin, end = [0] * 3, list(dims)
    if reverse:
        begin[axis] = 1
    else:
        end[axis] -= 1
    rest = catalogue.slice(states, begin=tuple(begin), end=tuple(end))
    parts = (rest, start) if reverse else (start, rest)
    return catalogue.concatenate(*parts, axis=axis)


def _vjp(
    gs: Any, ys: Any, z: Any, w: Any, h: Any, c: Any, reverse: bool, batch_first: bool
) -> tuple[Any, ...]:
    (g, g_cells, g_gates), (y, cells, gates) = gs, ys
    attrs: dict[str, Any] = {"reverse": reverse, "batch_first": batch_first}
    more = () if is_zeros(g_gates) else (g_gates,)
    by_z, by_h, by_c = lstm_sequence_grad.all(g, g_cells, w, c, cells, gates, *more, **attrs)
    before = _previous(h, y, reverse, batch_first) if 0 not in known(z.shape) else y
    return by_z, matmul(*_rows(by_z, before), transpose_x=True), by_h, by_c


def _rows(*xs: Value) -> list[Value]:
    """All steps of all sequences, flattened to rows."""
    dims = [known(x.shape) for x in xs]
    return [catalogue.reshape(x, shape=(d[0] * d[1], d[2])) for x, d in zip(xs, dims, strict=True)]


def _expand_back(
    g: Value, g_cells: Value, w: Value, c: Value, cells: Value, gates: Value, *g_gates: Value,
    reverse: bool, batch_first: bool,
) -> tuple[Value, Value, Value]:  # fmt: skip
    """Unrolled into operations, step by step."""
    axis = 1 if batch_first else 0
    steps, width = known(gates.shape)[axis], known(w.shape)[1]
    stacked = (g, g_cells, cells, gates, *g_gates)
    parts = [catalogue.unstack.all(x, count=steps, axis=axis) for x in stacked]
    by_h = by_c = catalogue.broadcast_to(constant_of(0, c.dtype), shape=known(c.shape))
    found: dict[int, Value] = {}
    order = _order(steps, reverse)
    for number in range(steps - 1, -1, -1):
        t = order[number]
        g_now, g_cell, cell, gate, *more = (x[t] for x in parts)
        before = parts[2][order[number - 1]] if number else c
        i, f, n, o = catalogue.split.all(gate, sizes=(width,) * 4, axis=-1)
        by_h, top = by_h + g_now, tanh(cell)
        by_c = by_c + g_cell + by_h * o * (1 - top * top)
        slopes = catalogue.concatenate(by_c * n, by_c * before, by_c * i, by_h * top, axis=-1)
        slopes = slopes + more[0] if more else slopes
        steep = catalogue.concatenate(i * (1 - i), f * (1 - f), 1 - n * n, o * (1 - o), axis=-1)
        found[t] = multiply(slopes, steep)
        by_h, by_c = matmul(found[t], w), by_c * f
    if not steps:
        return gates, by_h, by_c
    return catalogue.stack(*[found[t] for t in range(steps)], axis=axis), by_h, by_c


def _dtype_back(*dtypes: DType, **attrs: Any) -> tuple[DType, DType, DType]:
    if len(dtypes) > 7:
        raise DTypeError(f"expected at most one cotangent of the gates, got {len(dtypes) - 6}")
    return _dtype(*dtypes, **attrs)


def _shape_back(
    g: Shape, g_cells: Shape, w: Shape, c: Shape, cells: Shape, gates: Shape, *g_gates: Shape,
    reverse: bool, batch_first: bool,
) -> tuple[Shape, Shape, Shape]:  # fmt: skip
    states, _, _ = _shape(gates, w, c, c, reverse, batch_first)
    for name, shape in (("g", g), ("g_cells", g_cells), ("cells", cells)):
        _check(name, shape, states)
    for shape in g_gates:
        _check("g_gates", shape, gates)
    return gates, c, c


def _cases() -> Iterator[Case]:
    sizes = ((3, 2, 1), (2, 1, 3), (4, 17, 20), (3, 2, 48), (1, 3, 16), (0, 2, 3))
    for dtype in (float32, float64):
        for n, (steps, rows, width) in enumerate(sizes):
            batch_first = n % 2 == 1
            lead = (rows, steps) if batch_first else (steps, rows)
            shapes = (*lead, 4 * width), (4 * width, width), (rows, width), (rows, width)
            arrays = [draw(s, dtype, -1, 1, seed=i) for i, s in enumerate(shapes)]
            attrs = {"reverse": n % 3 == 1, "batch_first": batch_first}
            yield Case(tuple(arrays), attrs, rtol=1e-5, atol=1e-5)


def _cases_back() -> Iterator[Case]:
    for n, case in enumerate(_cases()):
        _, w, _, c = case.inputs
        y, cells, gates = _reference(*case.inputs, **case.attrs)  # type: ignore[arg-type]
        dtype = as_dtype(y.dtype)
        gs = [draw(x.shape, dtype, -1, 1, seed=4 + i) for i, x in enumerate((y, cells, gates))]
        more = gs[2:] if n % 2 else []
        inputs = (*gs[:2], w, c, cells, gates, *more)
        yield Case(inputs, case.attrs, rtol=1e-5, atol=1e-4)


lstm_sequence = defop(
    "lstm_sequence",
    inputs="z w h c",
    attrs=_ATTRS,
    dtype=_dtype,
    shape=_shape,
    reference=_reference,
    fast=_run,
    vjp=_vjp,
    lower=Opaque("lstm_sequence"),
    cases=_cases,
    outputs=3,
    facts=IN_FLOAT32,
)
"""An LSTM layer.

Inputs: z, the matmuls of the inputs plus biases (L, N, 4 * width), w (4 * width, width), and the
initial states h and c (N, width). Outputs: h and c after every step (L, N, width), and the
activated gates (L, N, 4 * width). `batch_first` puts N before L in all of them; `reverse` begins
with the last step.
"""

lstm_sequence_grad = defop(
    "lstm_sequence_grad",
    inputs="g g_cells w c cells gates *g_gates",
    attrs=_ATTRS,
    dtype=_dtype_back,
    shape=_shape_back,
    reference=_reference_back,
    fast=_run_back,
    vjp=BY_EXPANSION,
    lower=Opaque("lstm_sequence_grad", _expand_back),
    cases=_cases_back,
    outputs=3,
    facts=IN_FLOAT32,
)
"""Cotangents of z, h and c, for `lstm_sequence`.

Inputs: the cotangents of its first two outputs, its inputs w and c, its outputs cells and gates,
and optionally the cotangent of the gates.
"""
