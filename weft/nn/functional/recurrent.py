"""Recurrent layers, one direction of one layer a call, unrolled over time.

The products of all time steps with the inputs are one product. Sequences are (L, N, width).
"""

from __future__ import annotations

from weft.eager.call import recorded
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.base import catalogue, constant_of


def _product(x: Value, weight: Value, bias: Value | None) -> Value:
    y = catalogue.matmul(x, weight, transpose_y=True)
    return y if bias is None else y + bias


def _inputs(x: Value, weight: Value, bias: Value | None, reverse: bool) -> list[Value]:
    """Each time step's product with the inputs (N, gates), in the order in which they come."""
    length, n, width = known(x.shape)
    rows = _product(catalogue.reshape(x, shape=(length * n, width)), weight, bias)
    steps = catalogue.reshape(rows, shape=(length, n, known(weight.shape)[0]))
    found = list(catalogue.unstack.all(steps, count=length, axis=0))
    return found[::-1] if reverse else found


def _gates(x: Value, count: int) -> tuple[Value, ...]:
    size = known(x.shape)[-1] // count
    return catalogue.split.all(x, sizes=(size,) * count, axis=-1)


def _sum(a: Value | None, b: Value | None) -> Value | None:
    return a if b is None else b if a is None else a + b


def _start(state: Value | None, x: Value, width: int) -> Value:
    """The state at first: as given, or zeros."""
    n = known(x.shape)[-2]
    if state is None:
        return catalogue.broadcast_to(constant_of(0, x.dtype), shape=(n, width))
    return state


def _sequence(steps: list[Value], reverse: bool) -> Value:
    return catalogue.stack(*(steps[::-1] if reverse else steps), axis=0)


# One time step, given its product with the inputs


def _rnn_step(g: Value, h: Value, weight: Value, bias: Value | None, relu: bool) -> Value:
    z = g + _product(h, weight, bias)
    return catalogue.relu(z) if relu else catalogue.tanh(z)


def _lstm_step(
    g: Value, h: Value, c: Value, weight: Value, projection: Value | None
) -> tuple[Value, Value]:
    i, f, n, o = _gates(g + _product(h, weight, None), 4)
    c = catalogue.sigmoid(f) * c + catalogue.sigmoid(i) * catalogue.tanh(n)
    h = catalogue.sigmoid(o) * catalogue.tanh(c)
    return h if projection is None else _product(h, projection, None), c


def _gru_step(g: Value, h: Value, weight: Value, bias: Value | None) -> Value:
    (xr, xz, xn), (hr, hz, hn) = _gates(g, 3), _gates(_product(h, weight, bias), 3)
    z = catalogue.sigmoid(xz + hz)
    n = catalogue.tanh(xn + catalogue.sigmoid(xr + hr) * hn)
    return n + z * (h - n)


# One direction of one layer


@recorded
def rnn(
    x: Value, h: Value | None, w_ih: Value, w_hh: Value, b_ih: Value | None, b_hh: Value | None,
    *, reverse: bool, relu: bool,
) -> tuple[Value, Value]:  # fmt: skip
    """`h = tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)`, or `relu`: all of them, and the last."""
    state = _start(h, x, known(w_hh.shape)[1])
    steps: list[Value] = []
    for g in _inputs(x, w_ih, _sum(b_ih, b_hh), reverse):
        state = _rnn_step(g, state, w_hh, None, relu)
        steps.append(state)
    return _sequence(steps, reverse), state


@recorded
def lstm(
    x: Value, h: Value | None, c: Value | None, w_ih: Value, w_hh: Value, b_ih: Value | None,
    b_hh: Value | None, w_hr: Value | None, *, reverse: bool,
) -> tuple[Value, Value, Value]:  # fmt: skip
    """Long short-term memory: all states h, the last one, and the last c.

    Source: Hochreiter and Schmidhuber (1997); with `w_hr`, Sak et al. (2014).
    """
    h = _start(h, x, known(w_hh.shape)[1])
    c = _start(c, x, known(w_hh.shape)[0] // 4)
    steps: list[Value] = []
    for g in _inputs(x, w_ih, _sum(b_ih, b_hh), reverse):
        h, c = _lstm_step(g, h, c, w_hh, w_hr)
        steps.append(h)
    return _sequence(steps, reverse), h, c


@recorded
def gru(
    x: Value, h: Value | None, w_ih: Value, w_hh: Value, b_ih: Value | None, b_hh: Value | None,
    *, reverse: bool,
) -> tuple[Value, Value]:  # fmt: skip
    """Gated recurrent unit: all states, and the last.

    Source: Cho et al., "Learning Phrase Representations" (2014).
    """
    state = _start(h, x, known(w_hh.shape)[1])
    steps: list[Value] = []
    for g in _inputs(x, w_ih, b_ih, reverse):
        state = _gru_step(g, state, w_hh, b_hh)
        steps.append(state)
    return _sequence(steps, reverse), state


# One time step as a call


@recorded
def rnn_cell(
    x: Value, h: Value | None, w_ih: Value, w_hh: Value, b_ih: Value | None, b_hh: Value | None,
    *, relu: bool,
) -> Value:  # fmt: skip
    """One step of `rnn`: (N, width) to (N, states)."""
    state = _start(h, x, known(w_hh.shape)[1])
    return _rnn_step(_product(x, w_ih, _sum(b_ih, b_hh)), state, w_hh, None, relu)


@recorded
def lstm_cell(
    x: Value, h: Value | None, c: Value | None, w_ih: Value, w_hh: Value, b_ih: Value | None,
    b_hh: Value | None,
) -> tuple[Value, Value]:  # fmt: skip
    """One step of `lstm`: (N, width) to h and c, (N, states) each."""
    width = known(w_hh.shape)[1]
    h, c = _start(h, x, width), _start(c, x, width)
    return _lstm_step(_product(x, w_ih, _sum(b_ih, b_hh)), h, c, w_hh, None)


@recorded
def gru_cell(
    x: Value, h: Value | None, w_ih: Value, w_hh: Value, b_ih: Value | None, b_hh: Value | None
) -> Value:
    """One step of `gru`: (N, width) to (N, states)."""
    state = _start(h, x, known(w_hh.shape)[1])
    return _gru_step(_product(x, w_ih, b_ih), state, w_hh, b_hh)


# States and outputs


@recorded
def unstacked(x: Value) -> tuple[Value, ...]:
    """The parts of the first dimension."""
    return catalogue.unstack.all(x, count=known(x.shape)[0], axis=0)


@recorded
def stacked(*xs: Value) -> Value:
    """Values side by side in a new first dimension."""
    return catalogue.stack(*xs, axis=0)


@recorded
def joined(*xs: Value) -> Value:
    """Both directions side by side."""
    return catalogue.concatenate(*xs, axis=-1)


@recorded
def turned(x: Value) -> Value:
    """(L, N, ...) as (N, L, ...), and back."""
    return catalogue.transpose(x, perm=(1, 0, 2))


@recorded
def widened(x: Value, *, axis: int) -> Value:
    """A new dimension of size 1."""
    return catalogue.expand_dims(x, axis=axis)


@recorded
def narrowed(x: Value, *, axis: int) -> Value:
    """Without a dimension of size 1."""
    return catalogue.squeeze(x, axes=(axis,))
