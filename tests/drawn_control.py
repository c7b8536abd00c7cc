"""Random programs of branches and loops on one example, for `vmap`, on any library.

A program carries a number, a row and an integer. Functions with a limited domain (log, sqrt,
powers, quotients, positions in a table) stand in branches and loops that only examples in the
domain enter, so that whatever is computed for the others would show: as NaN, as an error, or as a
loop without an end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

import weft as wf
from weft import func

State = tuple[Any, Any, Any]
Step = Callable[["Library", State, "Outside"], State]
ROWS, WIDTH = 5, 3


class Library(Protocol):
    """What a program is made of: functions of one library, and its control flow."""

    log: Any
    sqrt: Any
    exp: Any
    tanh: Any
    sin: Any
    arcsin: Any
    cond: Any
    switch: Any
    while_loop: Any
    scan: Any
    take: Callable[[Any, Any], Any]
    integer: Callable[[Any], Any]
    floor_divide: Callable[[Any, Any], Any]
    remainder: Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Outside:
    """What bodies capture: a number, a row, a table, a matrix."""

    number: Any
    row: Any
    table: Any
    matrix: Any


@dataclass(frozen=True)
class Limited:
    """A function and its domain."""

    inside: Callable[[State], Any]
    apply: Callable[[Library, State, Outside], State]


LIMITED = (
    Limited(lambda s: s[0] > 0.1, lambda b, s, o: (b.log(s[0]), s[1], s[2])),
    Limited(lambda s: s[0] > 0.1, lambda b, s, o: (b.sqrt(s[0]), s[1], s[2])),
    Limited(lambda s: s[0] > 0.1, lambda b, s, o: (s[0] ** o.number, s[1], s[2])),
    Limited(lambda s: abs(s[0]) > 0.1, lambda b, s, o: (o.number / s[0], s[1], s[2])),
    Limited(lambda s: abs(s[0]) < 0.9, lambda b, s, o: (b.arcsin(s[0]), s[1] * s[0], s[2])),
    Limited(lambda s: s[0] < 0.1, lambda b, s, o: (s[0], b.exp(s[0] * 300) * o.row, s[2])),
    Limited(lambda s: s[1].min() > 0.1, lambda b, s, o: (s[0], b.sqrt(s[1]) * o.row, s[2])),
    Limited(lambda s: s[1].min() > 0.1, lambda b, s, o: (b.log(s[1] * o.row).sum(), s[1], s[2])),
    Limited(
        lambda s: (s[2] >= 0) & (s[2] < ROWS),
        lambda b, s, o: (s[0], s[1] + b.take(o.table, s[2]) * s[0], s[2]),
    ),
    Limited(lambda s: s[2] != 0, lambda b, s, o: (s[0], s[1], b.floor_divide(s[2] * 0 + 7, s[2]))),
    Limited(lambda s: s[2] != 0, lambda b, s, o: (s[0], s[1], b.remainder(s[2] * 0 + 5, s[2]))),
)  # fmt: skip

SMOOTH: tuple[Step, ...] = (
    lambda b, s, o: (b.sin(s[0]) * 2, s[1], s[2]),
    lambda b, s, o: (s[0] * o.number, b.tanh(s[1] + s[0]), s[2]),
    lambda b, s, o: (s[0], b.tanh(o.matrix @ s[1]), s[2] + 1),
    lambda b, s, o: (s[0] + s[1].sum() * 0.5, s[1], s[2] - 2),
    lambda b, s, o: (s[0] * 0, s[1], s[2]),
    lambda b, s, o: (s[0], s[1] * o.row - 0.25, s[2]),
)


class Program:
    """A program drawn from `seed`.

    Args:
        depth: how deep branches and loops are nested.
    """

    def __init__(self, seed: int, depth: int = 2) -> None:
        self.random = np.random.default_rng(seed)
        self.loops = False  # whether any has no known length
        self.steps = [self._drawn(depth), self._drawn(0), self._drawn(1)]

    def __call__(self, b: Library, x: Any, row: Any, n: Any, outside: Outside) -> Any:
        """A number, for one example."""
        state = (x, row, n)
        for step in self.steps:
            state = _bounded(b, step(b, state, outside))
        return state[0] + (state[1] * state[1]).sum()

    def arrays(self, size: int) -> tuple[list[Any], list[Any]]:
        """Examples (number, row, integer), and what all of them share."""
        random = self.random
        numbers = random.choice([-2.0, -0.5, 0.0, 0.25, 1.0, 40.0], size)
        rows = random.choice([-1.0, 0.0, 0.5, 2.0], (size, WIDTH), p=[0.1, 0.1, 0.4, 0.4])
        integers = random.integers(-2, ROWS + 3, size)
        shared = [
            np.array(random.uniform(0.5, 2.0)),
            random.uniform(0.5, 1.5, WIDTH),
            random.uniform(-1, 1, (ROWS, WIDTH)),
            random.uniform(-1, 1, (WIDTH, WIDTH)),
        ]
        return [numbers, rows, integers], shared

    # -- drawing

    def _pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def _drawn(self, depth: int) -> Step:
        if depth == 0:
            return self._pick(SMOOTH)
        return self._pick((self._cond, self._cond, self._switch, self._while, self._scan))(
            depth - 1
        )

    def _body(self, depth: int) -> Step:
        """A step, and perhaps a plain one."""
        steps = [self._drawn(depth), *[self._drawn(0) for _ in range(self.random.integers(2))]]

        def body(b: Library, state: State, o: Outside) -> State:
            for step in steps:
                state = _bounded(b, step(b, state, o))
            return state

        return body

    def _cond(self, depth: int) -> Step:
        limited, inner, other = self._pick(LIMITED), self._body(depth), self._body(depth)

        def step(b: Library, state: State, o: Outside) -> State:
            def inside(*s: Any) -> State:
                return inner(b, _bounded(b, limited.apply(b, s, o)), o)

            return b.cond(limited.inside(state), inside, lambda *s: other(b, s, o), *state)

        return step

    def _switch(self, depth: int) -> Step:
        a, c, rest = self._pick(LIMITED), self._pick(LIMITED), self._body(depth)

        def step(b: Library, state: State, o: Outside) -> State:
            first, second = a.inside(state), c.inside(state)
            index = b.integer(first) * 2 + b.integer(second & ~first)
            branches = [
                lambda *s: rest(b, s, o),
                lambda *s: _bounded(b, c.apply(b, s, o)),
                lambda *s: _bounded(b, a.apply(b, s, o)),
            ]
            return b.switch(index, branches, *state)

        return step

    def _while(self, depth: int) -> Step:
        """As long as the state is in a domain, a few turns at most."""
        limited, inner = self._pick(LIMITED), self._body(depth)
        limit = int(self.random.integers(1, 5))
        self.loops = True

        def step(b: Library, state: State, o: Outside) -> State:
            def holds(s: Any) -> Any:
                return (s[0] < limit) & limited.inside(s[1])

            def turn(s: Any) -> Any:
                return s[0] + 1, inner(b, _bounded(b, limited.apply(b, s[1], o)), o)

            return b.while_loop(holds, turn, (b.integer(state[2] * 0), state))[1]

        return step

    def _scan(self, depth: int) -> Step:
        inner = self._body(depth)

        def step(b: Library, state: State, o: Outside) -> State:
            def turn(s: Any, piece: Any) -> Any:
                new = inner(b, (s[0], s[1] + piece * 0.5, s[2]), o)
                return new, new[0]

            last, stack = b.scan(turn, state, o.table[:2])
            return last[0] + b.tanh(stack).sum(), last[1], last[2]

        return step


def _bounded(b: Library, state: State) -> State:
    """The same in bounds, so that nothing overflows that is in the domain."""
    return b.tanh(state[0] * 0.25) * 4, b.tanh(state[1] * 0.5) * 2, b.remainder(state[2], 11) - 2


class Weft:
    """The library itself."""

    log, sqrt, exp, tanh, sin, arcsin = wf.log, wf.sqrt, wf.exp, wf.tanh, wf.sin, wf.arcsin
    cond, switch, while_loop, scan = func.cond, func.switch, func.while_loop, func.scan
    floor_divide, remainder = wf.floor_divide, wf.remainder
    take = staticmethod(lambda table, i: table[i])
    integer = staticmethod(lambda x: x.long())


class Plain(Weft):
    """Python's own control flow, which computes what is taken and nothing else."""

    @staticmethod
    def cond(pred: Any, yes: Any, no: Any, *operands: Any) -> Any:
        """Python's `if`."""
        return yes(*operands) if bool(pred) else no(*operands)

    @staticmethod
    def switch(index: Any, branches: Any, *operands: Any) -> Any:
        """One of several."""
        return branches[int(index)](*operands)

    @staticmethod
    def while_loop(holds: Any, turn: Any, state: Any) -> Any:
        """Python's `while`."""
        while bool(holds(state)):
            state = turn(state)
        return state

    @staticmethod
    def scan(turn: Any, state: Any, pieces: Any) -> Any:
        """Python's `for`."""
        rows: list[Any] = []
        for piece in pieces:
            state, row = turn(state, piece)
            rows.append(row)
        return state, wf.stack(rows)


class Found(NamedTuple):
    """Values of the examples, gradients and a tangent of their sum, gradients of each."""

    values: Any
    slopes: list[Any]
    tangent: Any
    each: list[Any]


def of_weft(program: Program, own: list[Any], shared: list[Any], jit: bool = False) -> Found:
    """A vmapped program."""
    xs, rows, ns = map(wf.tensor, own)
    outside = list(map(wf.tensor, shared))

    def one(x: Any, row: Any, n: Any, *shared: Any) -> Any:
        return program(Weft, x, row, n, Outside(*shared))

    axes = (0, 0, 0, None, None, None, None)
    many = func.vmap(one, axes)
    if jit:
        many = func.jit(many)

    def total(x: Any, row: Any, *shared: Any) -> Any:
        return many(x, row, ns, *shared).sum()

    inputs = (xs, rows, *outside)
    slopes = func.grad(total, tuple(range(6)))(*inputs)
    tangent = func.jvp(total, inputs, tuple([x * 0 + 0.5 for x in inputs]))[1]
    each = func.vmap(func.grad(one, (0, 1, 3, 4, 5, 6)), axes)(xs, rows, ns, *outside)
    values = many(xs, rows, ns, *outside)
    return Found(
        values.numpy(), [g.numpy() for g in slopes], tangent.numpy(), [g.numpy() for g in each]
    )


def check(seed: int, size: int = 4, depth: int = 2) -> None:
    """Values, gradients and tangents of a vmapped program, against Python's control flow.

    Raises:
        AssertionError: they differ.
    """
    program = Program(seed, depth)
    own, shared = program.arrays(size)
    values, slopes = _one_by_one(program, own, shared)
    found = of_weft(program, own, shared, jit=bool(seed % 2))
    close("values", found.values, values)
    sums = [g if i < 2 else g.sum(0) for i, g in enumerate(slopes)]
    for i, (a, b) in enumerate(zip(found.slopes, sums, strict=True)):
        close(f"gradient {i}", a, b)
    close("tangent", found.tangent, np.array(sum([g.sum() * 0.5 for g in sums])))
    for i, (a, b) in enumerate(zip(found.each, slopes, strict=True)):
        close(f"gradients of examples {i}", a, b)


def _one_by_one(program: Program, own: Any, shared: Any) -> tuple[Any, list[Any]]:
    """Values, and gradients by the number, the row, and what is shared, of each example."""
    values: list[float] = []
    slopes: list[list[Any]] = []
    for x, row, n in zip(*own, strict=True):
        leaves = [wf.tensor(np.array(v)).requires_grad_() for v in (x, row, *shared)]
        y = program(Plain, leaves[0], leaves[1], wf.tensor(n), Outside(*leaves[2:]))
        if y.requires_grad:
            y.backward()
        values.append(y.item())
        slopes.append([np.zeros(v.shape) if v.grad is None else v.grad.numpy() for v in leaves])
    return np.array(values), [np.stack(column) for column in zip(*slopes, strict=True)]


def close(what: str, found: Any, expected: Any) -> None:
    """Refuses arrays that differ.

    Raises:
        AssertionError: they do.
    """
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9, err_msg=what)
