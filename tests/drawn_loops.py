"""Random loops and branches, nested in each other, carrying a matrix, a row, a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import ops
from weft.ir.dtype import DType, float32, int32
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.ops.call import trace
from weft.ops.linalg.factorization import cholesky
from weft.runtime.engine import Function, State
from weft.transform.gradient import dense, gradients
from weft.transform.interpreter import evaluate

Carry = list[Value]
SHAPES = ((4, 3), (3,), ())
"""A matrix, a row, a number."""


class Loops:
    """A graph of loops drawn from `seed`, with feeds and what it computes.

    Args:
        depth: how deep loops and branches are nested.
        dtype: of the matrix and the row.
        python: whether Python computes something, by LAPACK.
    """

    def __init__(
        self, seed: int, depth: int = 3, dtype: DType = float32, python: bool = True
    ) -> None:
        self.seed, self.random = seed, np.random.default_rng(seed)
        self.graph = Graph()
        self.depth = depth
        self.python = python
        self.dtype = dtype
        with self.graph.as_default():
            self.feeds = [ops.placeholder(dtype=dtype, shape=s) for s in SHAPES[:2]]
            self.feeds.append(ops.placeholder(dtype="int32", shape=()))
            self.table = ops.placeholder(dtype=dtype, shape=(5, 3))
            self.feeds.append(self.table)
            self.results = self._region([*self.feeds[:3]], self.table, depth)
            self.results += [ops.sum(self.results[0]), self.feeds[0]]
        self.arrays = [
            self.random.standard_normal(SHAPES[0]).astype(dtype.numpy),
            self.random.standard_normal(SHAPES[1]).astype(dtype.numpy),
            np.array(self.random.integers(-2, 4), np.int32),
            self.random.standard_normal((5, 3)).astype(dtype.numpy),
        ]

    def differentiate(self, order: int) -> None:
        """Compute the squared gradients' sum as well, by which to differentiate, `order` times."""
        wanted = [x for x in self.feeds if x.dtype.is_inexact]
        with self.graph.as_default():
            ends = [ops.sum(y) for y in self.results if y.dtype.is_inexact]
            for _ in range(order):
                found = [g for g in gradients(ends, wanted) if g is not None]
                slopes = [dense(g) for g in found]
                self.results += [ops.add_n(*ends), *slopes]
                ends = [ops.sum(g * g) for g in slopes]

    def expected(self) -> list[Any]:
        """As the interpreter has it."""
        feeds = dict(zip(self.feeds, self.arrays, strict=True))
        return evaluate(self.graph, self.results, feeds)

    def compiled(self, threads: int = 1, runs: int = 2) -> list[Any]:
        """As compiled; the last of several runs."""
        function = Function(self.graph, self.results, feeds=self.feeds, threads=threads)
        state = State()
        return [function(self.arrays, state) for _ in range(runs)][-1]

    # -- drawing

    def _types(self) -> list[TensorType]:
        dtypes = (self.dtype, self.dtype, int32)
        return [TensorType(d, s) for d, s in zip(dtypes, SHAPES, strict=True)]

    def _pick(self, *choices: Any) -> Any:
        return choices[self.random.integers(len(choices))]

    def _step(self, carry: Sequence[Value], table: Value) -> Carry:
        """A few operations."""
        x, row, n = carry
        for _ in range(self.random.integers(4)):
            match self.random.integers(8 + self.python):
                case 0:
                    x = ops.tanh(x * row)
                case 1:
                    x = ops.tanh(x @ table[:3])
                case 2:
                    row = ops.sum(x, axes=(0,)) * 0.1
                case 3:
                    row = ops.gather(table, ops.remainder(n, 5)) + row * 0.5
                case 4:
                    n = ops.remainder(n * 3 + 1, 7)
                case 5:
                    x = ops.flip(x, axes=(0,))
                case 6:
                    row = ops.constant(np.array([0.5, -1.0, 2.0], self.dtype.numpy))
                case 7 if self.python:
                    square = ops.transpose(x, perm=(1, 0)) @ x
                    eye = ops.constant(np.eye(3, dtype=self.dtype.numpy))
                    x = ops.tanh(x @ cholesky(square + eye))
                case _:
                    x = x * ops.cast(n, dtype=self.dtype) * 0.125
        return [x, row, n]

    def _body(self, carry: Sequence[Value], table: Value, depth: int) -> Carry:
        found = self._step(carry, table)
        for _ in range(self._pick(0, 1, 1, 2) if depth > 0 else 0):
            found = self._step(self._region(found, table, depth), table)
        return found

    def _region(self, carry: Carry, table: Value, depth: int) -> Carry:
        make = self._pick(self._scan, self._while, self._switch)
        return make(carry, table, depth - 1)

    def _switch(self, carry: Carry, table: Value, depth: int) -> Carry:
        kinds = [*self._types(), table.type]
        branches = tuple([
            trace(lambda *xs: self._body(xs[:3], xs[3], depth), kinds)
            for _ in range(self.random.integers(1, 4))
        ])  # fmt: skip
        return list(ops.switch.all(carry[2], *carry, table, branches=branches))

    def _while(self, carry: Carry, table: Value, depth: int) -> Carry:
        number = TensorType(int32, ())
        kinds = [number, *self._types(), table.type]
        limit = int(self.random.integers(4))
        flag = self._pick(True, False)

        def goes_on(i: Value, x: Value, row: Value, n: Value, table: Value) -> Value:
            small = ops.less(ops.sum(x * x), 1e6)
            return ops.logical_and(ops.less(i, limit), small) if flag else ops.less(i, limit)

        def turn(i: Value, *xs: Value) -> Carry:
            return [i + 1, *self._body(xs[:3], xs[3], depth)]

        found = ops.while_loop.all(
            ops.constant(0, dtype="int32"), *carry, table, condition=trace(goes_on, kinds),
            body=trace(turn, kinds), carried=4, maximum=self._pick(None, 2),
        )  # fmt: skip
        return list(found[1:])

    def _scan(self, carry: Carry, table: Value, depth: int) -> Carry:
        length = int(self.random.integers(5))
        swaps = self._pick(True, False)
        kinds = [*self._types(), TensorType(self.dtype, (3,)), table.type]

        def turn(x: Value, row: Value, n: Value, piece: Value, table: Value) -> Carry:
            new, other, n = self._body([x, row + piece, n], table, depth)
            if swaps:
                other = piece
            return [new, other, n, self._pick(row, other, piece, x[0]), self._pick(new, x)]

        reverse = self._pick(True, False)
        found = ops.scan.all(
            *carry, table[:length], table, body=trace(turn, kinds), length=length, carried=3,
            mapped=1, reverse=reverse,
        )  # fmt: skip
        x, row, n, rows, matrices = found
        return [x + ops.sum(matrices, axes=(0,)) * 0.1, row + ops.sum(rows, axes=(0,)), n]
