"""Structures and types of control flow: order of keys, Python numbers, values nobody reads."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft import func
from weft.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError, TreeError
from weft.func.tree import flatten

AB = {"a": wf.tensor(1.0), "b": wf.tensor([2.0, 3.0])}
BA = {"b": wf.tensor([4.0, 5.0]), "a": wf.tensor(6.0)}


def turned(d: Any) -> Any:
    """The same values, the keys in the other order."""
    return {key: d[key] * 2 for key in reversed([*d])}


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda: func.cond(True, turned, lambda d: d, AB), [2, 4, 6]),
        (lambda: func.switch(1, [turned, lambda d: d], AB), [1, 2, 3]),
        (lambda: func.while_loop(lambda d: d["a"] < 4, turned, AB), [4, 8, 12]),
        (lambda: func.fori_loop(0, 2, lambda i, d: turned(d), AB), [4, 8, 12]),
        (lambda: func.scan(lambda d, _: (turned(d), None), AB, length=3)[0], [8, 16, 24]),
        (lambda: func.jvp(turned, (AB,), (BA,))[1], [12, 8, 10]),
        (lambda: func.vjp(turned, AB)[1](BA)[0], [12, 8, 10]),
        (lambda: func.map_structure(lambda x, y: x + y, AB, BA), [7, 6, 8]),
        (lambda: func.vmap(lambda x, d: x + d["b"], in_axes=(0, {"b": 0, "a": None}))(
            AB["b"], AB), [4, 6]),
        (lambda: func.jit(turned)(turned(AB)), [4, 8, 12]),
        (lambda: func.associative_scan(
            lambda x, y: {k: x[k] + y[k] for k in reversed([*x])},
            {"b": wf.ones(2), "a": wf.arange(2.0)}), [0, 1, 1, 2]),
    ],
)  # fmt: skip
def test_keys_in_any_order(run: Callable[[], Any], expected: list[float]) -> None:
    leaves = flatten(run())[0]
    assert [v for y in leaves for v in np.ravel(y.numpy())] == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda **d: d,
        OrderedDict,
        Counter,
        lambda **d: defaultdict(list, d),
        lambda **d: {1: d["b"], "a": d["a"]},
    ],
)
def test_dictionaries_keep_their_kind_and_order(make: Callable[..., Any]) -> None:
    given = make(b=wf.tensor(2.0), a=wf.tensor(3.0))
    found = func.map_structure(lambda x: x * 2, given)
    assert (type(found), [*found]) == (type(given), [*given])
    assert [v.item() for v in found.values()] == [4.0, 6.0]
    if isinstance(given, defaultdict):
        assert found.default_factory is list


F16, I32 = wf.ones(3, dtype=wf.float16), wf.ones(3, dtype=wf.int32)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda: func.scan(lambda c, x: (c + x, None), 0, wf.ones(3))[0], (3.0, "float32")),
        (lambda: func.scan(lambda c, x: (c + x, None), 0.1, wf.ones(3).double())[0],
         (3.1, "float64")),
        (lambda: func.scan(lambda c, x: (x, None), 0.5, F16)[0], (1.0, "float16")),
        (lambda: func.scan(lambda c, x: (x, None), 0, I32)[0], (1, "int32")),
        (lambda: func.scan(lambda c, x: (0, None), F16[0], F16)[0], (0.0, "float16")),
        (lambda: func.while_loop(lambda c: c < 5, lambda c: c * 2.5, 1), (6.25, "float32")),
        (lambda: func.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[0] * 0.5), (0, 0))[1],
         (1.0, "float32")),
        (lambda: func.fori_loop(0, 3, lambda i, c: c + 0.5, 0), (1.5, "float32")),
        (lambda: func.fori_loop(0, wf.tensor(3), lambda i, c: c + 0.5, 0), (1.5, "float32")),
        (lambda: func.cond(True, lambda x: 0, lambda x: x, I32[0]), (0, "int32")),
        (lambda: func.cond(False, lambda x: 2, lambda x: x, F16[0]), (1.0, "float16")),
        (lambda: func.cond(True, lambda: 2, lambda: 1.5), (2.0, "float32")),
        (lambda: func.cond(True, lambda x: x, lambda x: x * 1.5, 2), (2.0, "float32")),
        (lambda: func.switch(2, [lambda: I32[0], lambda: 7, lambda: 8]), (8, "int32")),
        (lambda: func.scan(lambda c, x: (c + x, None), 0, wnp.ones(3))[0], (3.0, "float64")),
    ],
)  # fmt: skip
def test_python_numbers_take_the_type_of_what_they_meet(
    run: Callable[[], Any], expected: tuple[float, str]
) -> None:
    found = run()
    assert (found.item(), found.dtype.name) == (pytest.approx(expected[0]), expected[1])


@pytest.mark.parametrize("transform", [func.jvp, func.vjp, func.linearize])
def test_a_result_may_be_a_number(transform: Any) -> None:
    x = wf.tensor(1.0)
    if transform is func.jvp:
        value, tangent = func.jvp(lambda x: (3.0, x * 2), (x,), (x,))
        assert [v.item() for v in (*value, *tangent)] == [3.0, 2.0, 0.0, 2.0]
        return
    value, move = transform(lambda x: 3.0, x)
    assert (value.item(), flatten(move(x))[0][0].item()) == (3.0, 0.0)


NAN = float("nan")


def dead(c: Any, x: Any) -> Any:
    """The second carried value is not a number, and nobody reads it."""
    return c[0] * 2, wf.sqrt(c[1] - x) + NAN * c[1]


@pytest.mark.parametrize(
    "loop",
    [
        lambda x: func.scan(lambda c, _: (dead(c, x), None), (x, x), length=2)[0][0],
        lambda x: func.fori_loop(0, 2, lambda i, c: dead(c, x), (x, x))[0],
        lambda x: func.while_loop(lambda c: c[0] < 4, lambda c: dead(c, x), (x, x))[0],
        lambda x: func.scan(
            lambda c, _: (func.fori_loop(0, 2, lambda i, c: dead(c, x), c), None), (x, x), length=1
        )[0][0],
        lambda x: func.scan(
            lambda c, _: (func.cond(x > 0, lambda c: dead(c, x), lambda c: c, c), None), (x, x),
            length=2,
        )[0][0],
        lambda x: func.scan(
            lambda c, _: ((c[0] * 2, wf.log(c[1] - x), c[1] + c[2]), c[0]), (x, x, x), length=2
        )[0][0],
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "under", [lambda f: f, func.jit, lambda f: lambda x: func.vmap(f)(x[None])[0]]
)
def test_a_carried_value_that_nobody_reads_has_no_gradient(loop: Any, under: Any) -> None:
    f, x = under(loop), wf.tensor(1.0)
    assert func.grad(f)(x).item() == 4.0
    assert func.jvp(f, (x,), (x,))[1].item() == 4.0
    assert func.grad(lambda x: func.grad(lambda x: f(x) * x)(x))(x).item() == 8.0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: func.fori_loop(0, 2.5, lambda i, c: c, 0), DTypeError,
         r"fori_loop: upper: expected an integer, got float32"),
        (lambda: func.fori_loop(wf.ones(2).long(), 2, lambda i, c: c, 0), ShapeError,
         r"fori_loop: lower: expected a scalar, got \(2,\)"),
        (lambda: func.associative_scan(42, wf.ones(2)), ArgumentError,
         "associative_scan: fn: expected a function, got 42"),
        (lambda: func.associative_scan(lambda a, b: a, 0), OutOfRangeError,
         r"associative_scan: elems: expected tensors with an axis 0, got one of shape \(\)"),
        (lambda: func.scan(lambda c, x: (c, x), 0, wf.ones(3), length=4), ShapeError,
         r"\n  xs float32\[3\]\n  length 4"),
        (lambda: func.cond(True, lambda: [1], lambda: (1,)), TreeError,
         r"containers: \(\*,\) \| \[\*\]"),
        (lambda: func.jvp(lambda x: x, ({"a": 1.0},), ([1.0],)), TreeError,
         r"got \(\{'a': \*\},\) and \(\[\*\],\)"),
        (lambda: func.vjp(lambda x: [x], wf.ones(()))[1]((1.0, None)), TreeError,
         r"expected the structure \[\*\], got \(\*, None\)"),
        (lambda: func.vmap(lambda n: func.fori_loop(0, n, lambda i, c: wf.ones(3), wf.ones(2)))(
            wf.arange(3)), TreeError,
         r"fori_loop: expected the carry back as the function \(at test_control_structure.py:"),
        (lambda: func.while_loop(lambda c: c < 3, lambda c: wf.tensor(1), 0.5), TreeError,
         r"float32\[\] \| int64\[\]"),
        (lambda: wf.nn.GRU(3, 4)(wf.zeros(0, 2, 3)), ShapeError,
         r"GRU: expected a sequence length of 1 or more, got an input of shape \(0, 2, 3\)"),
        (lambda: wf.nn.LSTM(3, 4, batch_first=True)(wf.zeros(2, 0, 3)), ShapeError,
         "LSTM: expected a sequence length of 1 or more"),
    ],
)  # fmt: skip
def test_refusals(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_traced_functions_read_an_outside_index_at_each_call() -> None:
    at, table = wf.tensor(1), wf.arange(5.0)
    f = func.jit(lambda x: table[at] + x)
    assert f(wf.tensor(0.0)).item() == 1
    at.fill_(3)
    assert f(wf.tensor(0.0)).item() == 3
