"""The registry's checks fail on operations with wrong declarations, each in its own way."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from catalogue import (
    check_compiled,
    check_compiled_gradient,
    check_gradient,
    check_gradient_of_unknown_shapes,
    check_lowering,
    check_normal_form,
    check_types,
    check_unknown_shapes,
)

import weft.ops
from weft.errors import MismatchError
from weft.ops.declaration import REGISTRY, Case, Composite, Elementwise, Op, catalogue

X = np.array([[0.5, -1.25, 2.0], [0.75, 1.5, -0.25]])
GOOD = Op(
    name="planted",
    inputs=("x",),
    attrs={},
    dtype=lambda x: x,
    shape=lambda x: x,
    reference=lambda x: x * x * x,
    vjp=lambda g, y, x: (g * x * x * 3.0,),
    lower=Elementwise(lambda b, x: x * x * x),
    cases=lambda: [Case((X,))],
    partial=True,
)
NUMBERS = itertools.count()
CHECKS = (
    check_types, check_unknown_shapes, check_normal_form, check_lowering, check_gradient,
)  # fmt: skip


def compiled(op: Op, case: Case) -> None:
    check_compiled(op, [case])


def compiled_gradient(op: Op, case: Case) -> None:
    check_compiled_gradient(op, [case])


def unknown_shapes(op: Op, case: Case) -> None:
    check_gradient_of_unknown_shapes(op, [case])


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Op, Case]]:
    """Declares `GOOD` with some fields replaced, in a registry of this test's own."""

    def declare(**fields: Any) -> tuple[Op, Case]:
        # A unique name: kernels are cached by the structure of what they compute.
        op = replace(GOOD, name=f"planted_{next(NUMBERS)}", **fields)
        monkeypatch.setitem(REGISTRY, op.name, op)
        return op, next(iter(op.cases()))

    return declare


@pytest.mark.parametrize("check", [*CHECKS, compiled, compiled_gradient, unknown_shapes])
def test_a_right_operation_passes(planted: Any, check: Any) -> None:
    check(*planted())


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        pytest.param({"shape": lambda x: x and x[:1]}, check_types, id="shape rule"),
        pytest.param({"dtype": lambda x: REGISTRY["isnan"].dtype(x)}, check_types, id="dtype rule"),
        pytest.param({"reference": lambda x: x.sum()}, check_types, id="reference's shape"),
        pytest.param(
            {"reference": lambda x: np.multiply(x, 2, out=x)}, check_types, id="changes its input"
        ),
        pytest.param(
            {"shape": lambda x: x if x and None not in x else (7, 3)}, check_unknown_shapes,
            id="shape rule on unknown shapes",
        ),
        pytest.param(
            {"attrs": {"n": 1}, "normal": lambda x, n: {"n": n + 1},
             "reference": lambda x, n: x, "shape": lambda x, n: x, "dtype": lambda x, n: x},
            check_normal_form, id="normal form that moves on",
        ),
        pytest.param({"reference": lambda x: x * x}, check_lowering, id="reference's values"),
        pytest.param({"reference": lambda x: x * x}, compiled, id="reference, compiled"),
        pytest.param(
            {"lower": Elementwise(lambda b, x: x * x * 1.0001)}, check_lowering, id="lowering rule"
        ),
        pytest.param(
            {"lower": Elementwise(lambda b, x: b.less(x, x))}, check_lowering, id="lowering's type"
        ),
        pytest.param(
            {"lower": Composite(lambda x: catalogue.square(x))}, check_lowering, id="expansion"
        ),
        pytest.param(
            {"lower": Elementwise(lambda b, x: x * x)}, compiled, id="lowering rule, compiled"
        ),
        pytest.param({"vjp": lambda g, y, x: (g * x * x,)}, check_gradient, id="vjp"),
        pytest.param({"vjp": lambda g, y, x: (None,)}, check_gradient, id="vjp that gives nothing"),
        pytest.param(
            {"vjp": lambda g, y, x: (catalogue.stop_gradient(g * x * x * 3.0),)}, check_gradient,
            id="vjp that is right once only",
        ),
    ],
)  # fmt: skip
def test_a_wrong_rule_is_caught(planted: Any, wrong: dict[str, Any], check: Any) -> None:
    with pytest.raises(MismatchError):
        check(*planted(**wrong))


def test_a_wrong_backward_kernel_is_caught(planted: Any) -> None:
    wrong = {"lower": Elementwise(lambda b, x: x * x), "vjp": lambda g, y, x: (g * y,)}
    with pytest.raises(MismatchError):
        compiled_gradient(*planted(**wrong))


def test_a_rule_that_needs_static_shapes_is_caught(planted: Any) -> None:
    def vjp(g: Any, y: Any, x: Any) -> Any:
        return (g * x * x * (3.0 if x.shape == (2, 3) else 2.0),)

    with pytest.raises(AssertionError):
        unknown_shapes(*planted(vjp=vjp))


def test_a_wrong_shape_of_a_cotangent_is_caught(planted: Any) -> None:
    with pytest.raises(weft.errors.WeftError, match="expected its gradient rule to give float64"):
        check_gradient(*planted(vjp=lambda g, y, x: (catalogue.sum(g),)))
