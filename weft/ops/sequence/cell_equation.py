"""The equations of recurrent cells, for whatever adds and multiplies: graph values, tensors.

Callers split the matmuls with the inputs and the state into parts and say what each part is, as
frameworks differ in the order of gates: i, f, o are an LSTM's input, forget and output gates, r and
z a GRU's reset and update gates, n is the new value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Function = Callable[[Any], Any]


def simple(x: Any, h: Any, activation: Function) -> Any:
    """The next state of a simple recurrent cell: `activation(x + h)`.

    Source: Elman, "Finding Structure in Time" (1990).
    """
    return activation(x + h)


def lstm(
    parts: Sequence[Any], c: Any, order: str, gate: Function, activation: Function,
    forget_bias: float | None = None, peepholes: Sequence[Any] = (), clip: Function | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The next h and c of an LSTM.

        c = gate(f) * c + gate(i) * activation(n)       h = gate(o) * activation(c)

    Source: Hochreiter and Schmidhuber (1997); with peepholes, Gers and Schmidhuber (2000).

    Args:
        parts: the sums of the matmuls with inputs and state.
        c: the cell before.
        order: what each part is, such as `"ifno"`.
        gate, activation: the functions of the gates, and of new values.
        forget_bias: added to the forget gate.
        peepholes: weights of the cell in the gates f, i and o.
        clip: applied to the next cell.
    """
    part = dict(zip(order, parts, strict=True))
    i, f, n, o = (part[name] for name in "ifno")
    if peepholes:
        f, i = f + peepholes[0] * c, i + peepholes[1] * c
    f = f if forget_bias is None else f + forget_bias
    c = gate(f) * c + gate(i) * activation(n)
    c = c if clip is None else clip(c)
    o = o + peepholes[2] * c if peepholes else o
    return gate(o) * activation(c), c


def gru(
    xs: Sequence[Any], hs: Sequence[Any], h: Any, order: str, gate: Function, activation: Function,
    product: Function | None = None, by_difference: bool = False,
) -> Any:  # fmt: skip
    """The next state of a gated recurrent unit.

        z = gate(x_z + h_z)     r = gate(x_r + h_r)     n = activation(x_n + r * h_n)

    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder" (2014).

    Args:
        xs, hs: the matmuls with the inputs and with the state, biases included.
        h: the state before.
        order: what each part is, such as `"rzn"`.
        gate, activation: the functions of the gates, and of new values.
        product: from the reset gate to h_n, if it applies before the matmul with the state; `hs`
            then ends before n.
        by_difference: see `mixed`.
    """
    x, held = dict(zip(order, xs, strict=True)), dict(zip(order, hs, strict=False))
    z, r = (gate(x[name] + held[name]) for name in "zr")
    n = activation(x["n"] + (r * held["n"] if product is None else product(r)))
    return mixed(z, h, n, by_difference)


def mixed(z: Any, h: Any, n: Any, by_difference: bool = False) -> Any:
    """`z * h + (1 - z) * n`, the next state of a gated recurrent unit.

    Args:
        by_difference: rounded as PyTorch does, `n + z * (h - n)`; else as TensorFlow.
    """
    return n + z * (h - n) if by_difference else z * h + (1.0 - z) * n
