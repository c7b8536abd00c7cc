"""Random graphs: operations of several kinds chained at random, for tests of whole programs.

Every value stays of moderate size, so that compiled and reference results can be compared closely.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import ops
from weft.errors import MismatchError
from weft.ir.dtype import DType, float32, float64
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.runtime.engine import Function, State
from weft.transform.gradient import dense, gradients
from weft.transform.interpreter import evaluate

Array = np.ndarray[Any, Any]
Step = Callable[["Drawing"], Value | None]
# A dozen operations of a few roundings each, sums of at most 20,000: relative to the largest value.
CLOSE = {float32: 2e-4, float64: 1e-11}
SIZES = (1, 2, 3, 5, 8, 16, 17, 33, 70)


class Drawing:
    """A graph that grows by random operations on random earlier values."""

    def __init__(self, seed: int, dtype: DType = float32) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = dtype
        self.graph = Graph()
        self.feeds: dict[Value, Array] = {}
        self.values: list[Value] = []

    def grow(self, steps: int) -> list[Value]:
        """Add about `steps` operations; returns some values to fetch, the last among them."""
        with self.graph.as_default():
            for _ in range(int(self.rng.integers(1, 4))):
                self.feed()
            while len(self.values) < steps + len(self.feeds):
                step = STEPS[int(self.rng.integers(len(STEPS)))]
                value = step(self)
                if value is not None:
                    self.values.append(value)
        count = int(self.rng.integers(1, 4))
        chosen = {int(i) for i in self.rng.integers(len(self.feeds), len(self.values), count)}
        return [self.values[i] for i in sorted({*chosen, len(self.values) - 1})]

    def feed(self) -> None:
        """A new placeholder."""
        shape = tuple(int(d) for d in self.rng.choice(SIZES, int(self.rng.integers(0, 4))))
        array = self.rng.uniform(-2, 2, shape).astype(self.dtype.numpy)
        value = ops.placeholder(dtype=self.dtype, shape=shape)
        self.feeds[value] = np.asarray(array)
        self.values.append(value)

    def pick(self) -> Value:
        """An earlier value, recent ones more often."""
        back = int(self.rng.geometric(0.35))
        return self.values[-min(back, len(self.values))]

    def shape(self, x: Value) -> tuple[int, ...]:
        return known(x.shape)

    def axes(self, x: Value) -> tuple[int, ...]:
        """Axes of `x`: the last ones most often."""
        rank = len(self.shape(x))
        if self.rng.random() < 0.6:
            return tuple(range(int(self.rng.integers(0, rank + 1)), rank))
        return tuple(a for a in range(rank) if self.rng.random() < 0.5)


def _unary(d: Drawing) -> Value:
    name = d.rng.choice(["tanh", "sigmoid", "relu", "sin", "abs", "negative", "erf"])
    return getattr(ops, str(name))(d.pick())


def _binary(d: Drawing) -> Value | None:
    x, y = d.pick(), d.pick()
    try:
        shape = np.broadcast_shapes(d.shape(x), d.shape(y))
    except ValueError:
        return None
    if np.prod(shape, dtype=int) > 20000:
        return None
    name = d.rng.choice(["add", "subtract", "multiply", "maximum", "minimum"])
    return (
        ops.tanh(getattr(ops, str(name))(x, y))
        if name == "multiply"
        else getattr(ops, str(name))(x, y)
    )


def _select(d: Drawing) -> Value:
    x = d.pick()
    return ops.select(ops.less(x, x * 0.5), x, ops.constant(np.asarray(0.25, d.dtype.numpy)))


def _reduce(d: Drawing) -> Value:
    x = d.pick()
    name = str(d.rng.choice(["mean", "max", "min", "logsumexp", "variance"]))
    return getattr(ops, name)(x, axes=d.axes(x), keepdims=bool(d.rng.random() < 0.7))


def _softmax(d: Drawing) -> Value | None:
    x = d.pick()
    rank = len(d.shape(x))
    return ops.softmax(x, axis=int(d.rng.integers(rank))) if rank else None


def _transpose(d: Drawing) -> Value:
    x = d.pick()
    return ops.transpose(x, perm=tuple(int(p) for p in d.rng.permutation(len(d.shape(x)))))


def _flatten(d: Drawing) -> Value:
    x = d.pick()
    shape = d.shape(x)
    split = int(d.rng.integers(0, len(shape) + 1))
    halves = (int(np.prod(shape[:split])), int(np.prod(shape[split:])))
    return ops.reshape(x, shape=halves if d.rng.random() < 0.7 else (-1,))


def _slice(d: Drawing) -> Value:
    x = d.pick()
    shape = d.shape(x)
    begin = tuple(int(d.rng.integers(0, n)) for n in shape)
    return ops.slice(x, begin=begin, end=shape)


def _broadcast(d: Drawing) -> Value | None:
    x = d.pick()
    if len(d.shape(x)) > 3 or np.prod(d.shape(x), dtype=int) > 4000:
        return None
    return ops.broadcast_to(x, shape=(int(d.rng.choice((1, 2, 5))), *d.shape(x)))


def _flip(d: Drawing) -> Value:
    x = d.pick()
    return ops.flip(x, axes=d.axes(x))


def _concatenate(d: Drawing) -> Value | None:
    x = d.pick()
    rank = len(d.shape(x))
    if not rank or np.prod(d.shape(x), dtype=int) > 8000:
        return None
    return ops.concatenate(x, ops.tanh(x), axis=int(d.rng.integers(rank)))


def _matmul(d: Drawing) -> Value | None:
    x = d.pick()
    shape = d.shape(x)
    if len(shape) < 2:
        return None
    columns = int(d.rng.choice(SIZES))
    w = d.rng.uniform(-1, 1, (shape[-1], columns)).astype(d.dtype.numpy)
    y = ops.matmul(x, ops.constant(w)) * (1.0 / max(shape[-1], 1))
    return ops.relu(y + np.full(columns, 0.1, d.dtype.numpy)) if d.rng.random() < 0.5 else y


def _gather(d: Drawing) -> Value | None:
    x = d.pick()
    shape = d.shape(x)
    if not shape:
        return None
    axis = int(d.rng.integers(len(shape)))
    return ops.gather(x, d.rng.integers(0, shape[axis], 7).astype(np.int32), axis=axis)


def _cumsum(d: Drawing) -> Value | None:
    x = d.pick()
    rank = len(d.shape(x))
    if not rank:
        return None
    axis = int(d.rng.integers(rank))
    reverse = bool(d.rng.random() < 0.5)
    return ops.cumsum(x, axis=axis, reverse=reverse) * (1.0 / d.shape(x)[axis])


def _pad(d: Drawing) -> Value | None:
    x = d.pick()
    if np.prod(d.shape(x), dtype=int) > 4000:
        return None
    sides = d.rng.integers(0, 3, (len(d.shape(x)), 2)).tolist()
    return ops.pad(x, paddings=sides, value=0.5)


def _sort(d: Drawing) -> Value | None:
    x = d.pick()
    return ops.sort(x, axis=-1, descending=bool(d.rng.random() < 0.5)) if d.shape(x) else None


def _image(d: Drawing) -> Value | None:
    """An earlier value as an image: batch, height, width, channels."""
    x = d.pick()
    rank = len(d.shape(x))
    if rank < 2 or np.prod(d.shape(x), dtype=int) > 8000:
        return None
    return ops.reshape(x, shape=((1,) * max(0, 4 - rank) + d.shape(x))[-4:]) if rank < 4 else None


def _conv(d: Drawing) -> Value | None:
    x = _image(d)
    if x is None:
        return None
    inputs, outputs = d.shape(x)[-1], int(d.rng.choice((1, 4, 17)))
    shape = (int(d.rng.integers(1, 4)), int(d.rng.integers(1, 4)), inputs, outputs)
    w = d.rng.uniform(-1, 1, shape).astype(d.dtype.numpy)
    strides = tuple(int(s) for s in d.rng.integers(1, 3, 2))
    y = ops.conv(x, w, padding="same", strides=strides) * (1.0 / (shape[0] * shape[1] * inputs))
    return ops.relu(y + np.full(outputs, 0.1, d.dtype.numpy)) if d.rng.random() < 0.5 else y


def _pool(d: Drawing) -> Value | None:
    x = _image(d)
    if x is None:
        return None
    name = str(d.rng.choice(["max_pool", "avg_pool"]))
    window = tuple(int(k) for k in d.rng.integers(1, 4, 2))
    return getattr(ops, name)(x, window=window, strides=(2, 1), padding="same")


def _layer_norm(d: Drawing) -> Value | None:
    x = d.pick()
    if not d.shape(x) or d.shape(x)[-1] < 2:
        return None
    scale = d.rng.uniform(0.5, 1.5, d.shape(x)[-1:]).astype(d.dtype.numpy)
    return ops.layer_norm(x, scale, scale, epsilon=0.1)


STEPS: list[Step] = [
    _unary, _unary, _binary, _binary, _binary, _select, _reduce, _reduce, _softmax, _transpose,
    _flatten, _slice, _broadcast, _flip, _concatenate, _matmul,
    _gather, _cumsum, _pad, _sort, _conv, _pool, _layer_norm,
]  # fmt: skip


def compiled(drawing: Drawing, ys: list[Value], threads: int = 2) -> list[Any]:
    function = Function(drawing.graph, ys, feeds=list(drawing.feeds), threads=threads)
    return function(list(drawing.feeds.values()), State())


def check(drawing: Drawing, ys: list[Value], found: list[Any]) -> None:
    for value, y, want in zip(ys, found, evaluate(drawing.graph, ys, drawing.feeds), strict=True):
        scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
        atol = CLOSE[drawing.dtype] * scale
        if not np.allclose(y, want, rtol=0, atol=atol, equal_nan=True):
            raise MismatchError(f"{value.name} differs: {[n.op for n in drawing.graph.nodes]}")


def slopes(drawing: Drawing, ys: list[Value]) -> list[Value]:
    with drawing.graph.as_default():
        found = gradients(ys, list(drawing.feeds))
        return [dense(g) for g in found if g is not None]
