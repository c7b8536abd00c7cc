"""Recurrent layers, one direction of one layer per call, and recurrent cells.

The matmuls of all time steps with the inputs are one matmul. Sequences are (L, N, width), or (N, L,
width) with `batch_first`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.dtype import float32
from weft.ir.node import TensorType, Value
from weft.ir.shape import known
from weft.ops.call import trace
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.declaration.numeric import HALVES
from weft.ops.sequence import cell_equation

Step = Callable[..., tuple[Value, ...]]


LOOPED: Final = 4
"""Time steps from which a loop is used: fewer are unrolled."""


def _product(x: Value, weight: Value, bias: Value | None) -> Value:
    y = catalogue.matmul(x, weight, transpose_y=True)
    return y if bias is None else y + bias


def _products(x: Value, weight: Value, bias: Value | None) -> Value:
    """The matmuls of all time steps with the inputs, in the shape of the sequence."""
    *lead, width = known(x.shape)
    rows = _product(catalogue.reshape(x, shape=(math.prod(lead), width)), weight, bias)
    return catalogue.reshape(rows, shape=(*lead, known(weight.shape)[0]))


def _unrolled(
    step: Step, z: Value, carry: Sequence[Value], weights: Sequence[Value | None], reverse: bool,
    axis: int,
) -> tuple[Value, ...]:  # fmt: skip
    """All states and the last carry, with the time steps unrolled."""
    steps = list(catalogue.unstack.all(z, count=known(z.shape)[axis], axis=axis))
    states: list[Value] = []
    for g in steps[::-1] if reverse else steps:
        carry = step(g, *carry, *weights)
        states.append(carry[0])
    return (catalogue.stack(*(states[::-1] if reverse else states), axis=axis), *carry)


def _run(
    step: Step, z: Value, carry: Sequence[Value], weights: Sequence[Value | None], reverse: bool,
    batch_first: bool,
) -> tuple[Value, ...]:  # fmt: skip
    """All states and the last carry; a loop if there are more than a few time steps.

    Args:
        step: returns the next carry, the state first, from a step's matmul with the inputs.
    """
    length = known(z.shape)[int(batch_first)]
    if length < LOOPED:
        return _unrolled(step, z, carry, weights, reverse, int(batch_first))
    rows = catalogue.transpose(z, perm=(1, 0, 2)) if batch_first else z
    given = [w for w in weights if w is not None]
    count = len(carry)

    def iteration(*vs: Value) -> tuple[Value, ...]:
        rest = iter(vs[count + 1 :])
        found = step(vs[count], *vs[:count], *[None if w is None else next(rest) for w in weights])
        return (*found, found[0])

    kinds = [v.type for v in (*carry, z, *given)]
    kinds[count] = TensorType(z.dtype, known(rows.shape)[1:])
    *last, states = catalogue.scan.all(
        *carry, rows, *given, body=trace(iteration, kinds), length=length, carried=count, mapped=1,
        reverse=reverse,
    )  # fmt: skip
    return (catalogue.transpose(states, perm=(1, 0, 2)) if batch_first else states, *last)


def _gates(x: Value, count: int) -> tuple[Value, ...]:
    size = known(x.shape)[-1] // count
    return catalogue.split.all(x, sizes=(size,) * count, axis=-1)


def _sum(a: Value | None, b: Value | None) -> Value | None:
    return a if b is None else b if a is None else a + b


def _start(state: Value | None, x: Value, width: int, axis: int = -2) -> Value:
    """The initial state: as given, or zeros; `axis` of x is the batch axis."""
    n = known(x.shape)[axis]
    if state is None:
        return catalogue.broadcast_to(constant_of(0, x.dtype), shape=(n, width))
    return state


def _last(states: Value, reverse: bool, batch_first: bool) -> Value:
    """The state after the last step."""
    axis = int(batch_first)
    begin, end = [0] * 3, list(known(states.shape))
    if reverse:
        end[axis] = 1
    else:
        begin[axis] = end[axis] - 1
    row = catalogue.slice(states, begin=tuple(begin), end=tuple(end))
    return catalogue.squeeze(row, axes=(axis,))


def _rnn_step(g: Value, h: Value, weight: Value, bias: Value | None, relu: bool) -> Value:
    return cell_equation.simple(
        g, _product(h, weight, bias), catalogue.relu if relu else catalogue.tanh
    )


def _lstm_step(
    g: Value, h: Value, c: Value, weight: Value, projection: Value | None
) -> tuple[Value, Value]:
    parts = _gates(g + _product(h, weight, None), 4)
    h, c = cell_equation.lstm(parts, c, "ifno", catalogue.sigmoid, catalogue.tanh)
    return h if projection is None else _product(h, projection, None), c


def _gru_step(g: Value, h: Value, weight: Value, bias: Value | None) -> Value:
    xs, hs = _gates(g, 3), _gates(_product(h, weight, bias), 3)
    return cell_equation.gru(
        xs, hs, h, "rzn", catalogue.sigmoid, catalogue.tanh, by_difference=True
    )


@autocasting(Autocast.LOW)
def rnn(
    x: Value, h: Value | None, w_ih: Value, w_hh: Value, b_ih: Value | None, b_hh: Value | None,
    *, reverse: bool, batch_first: bool, relu: bool,
) -> tuple[Value, Value]:  # fmt: skip
    """`h = tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)`, or `relu`: all of them, and the last."""
    state = _start(h, x, known(w_hh.shape)[1], 1 - batch_first)
    z = _products(x, w_ih, _sum(b_ih, b_hh))

    def step(g: Value, h: Value, w: Value) -> tuple[Value]:
        return (_rnn_step(g, h, w, None, relu),)

    states, last = _run(step, z, (state,), (w_hh,), reverse, batch_first)
    return states, last


@autocasting(Autocast.LOW)
def lstm(
    x: Value, h: Value | None, c: Value | None, w_ih: Value, w_hh: Value, b_ih: Value | None,
    b_hh: Value | None, w_hr: Value | None, *, reverse: bool, batch_first: bool,
) -> tuple[Value, ...]:  # fmt: skip
    """Long short-term memory: all states h, the last one, and the last c.

    Results may follow that the gradient reads.

    Source: Hochreiter and Schmidhuber (1997); with `w_hr`, Sak et al. (2014).
    """
    h = _start(h, x, known(w_hh.shape)[1], 1 - batch_first)
    c = _start(c, x, known(w_hh.shape)[0] // 4, 1 - batch_first)
    z = _products(x, w_ih, _sum(b_ih, b_hh))
    if w_hr is None:
        return _lstm_sequence(z, h, c, w_hh, reverse, batch_first)
    states, h, c = _run(_lstm_step, z, (h, c), (w_hh, w_hr), reverse, batch_first)
    return states, h, c


def _lstm_sequence(
    z: Value, h: Value, c: Value, w: Value, reverse: bool, batch_first: bool
) -> tuple[Value, ...]:
    """Run by one operation for all steps; half precision is computed in float32."""
    dtype, xs = z.dtype, [z, w, h, c]
    if dtype in HALVES:
        xs = [catalogue.cast(v, dtype=float32) for v in xs]
    y, cells, gates = catalogue.lstm_sequence.all(*xs, reverse=reverse, batch_first=batch_first)
    found = [y, *[_last(v, reverse, batch_first) for v in (y, cells)]]
    if dtype in HALVES:
        return *[catalogue.cast(v, dtype=dtype) for v in found], y, cells, gates
    return *found, cells, gates


@autocasting(Autocast.LOW)
def gru(
    x: Value, h: Value | None, w_ih: Value, w_hh: Value, b_ih: Value | None, b_hh: Value | None,
    *, reverse: bool, batch_first: bool,
) -> tuple[Value, Value]:  # fmt: skip
    """Gated recurrent unit: all states, and the last.

    Source: Cho et al., "Learning Phrase Representations" (2014).
    """
    state = _start(h, x, known(w_hh.shape)[1], 1 - batch_first)
    z = _products(x, w_ih, b_ih)

    def step(g: Value, h: Value, w: Value, bias: Value | None) -> tuple[Value]:
        return (_gru_step(g, h, w, bias),)

    states, last = _run(step, z, (state,), (w_hh, b_hh), reverse, batch_first)
    return states, last


@autocasting(Autocast.LOW)
def rnn_cell(
    x: Value, h: Value | None, w_ih: Value, w_hh: Value, b_ih: Value | None, b_hh: Value | None,
    *, relu: bool,
) -> Value:  # fmt: skip
    """One step of `rnn`: (N, width) to (N, states)."""
    state = _start(h, x, known(w_hh.shape)[1])
    return _rnn_step(_product(x, w_ih, _sum(b_ih, b_hh)), state, w_hh, None, relu)


@autocasting(Autocast.LOW)
def lstm_cell(
    x: Value, h: Value | None, c: Value | None, w_ih: Value, w_hh: Value, b_ih: Value | None,
    b_hh: Value | None,
) -> tuple[Value, Value]:  # fmt: skip
    """One step of `lstm`: (N, width) to h and c, (N, states) each."""
    width = known(w_hh.shape)[1]
    h, c = _start(h, x, width), _start(c, x, width)
    return _lstm_step(_product(x, w_ih, _sum(b_ih, b_hh)), h, c, w_hh, None)


@autocasting(Autocast.LOW)
def gru_cell(
    x: Value, h: Value | None, w_ih: Value, w_hh: Value, b_ih: Value | None, b_hh: Value | None
) -> Value:
    """One step of `gru`: (N, width) to (N, states)."""
    state = _start(h, x, known(w_hh.shape)[1])
    return _gru_step(_product(x, w_ih, b_ih), state, w_hh, b_hh)
