"""The gradient checker accepts correct gradients and finds wrong ones."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from weft import ops
from weft.errors import GraphError, MismatchError
from weft.ops.declaration import REGISTRY, Case
from weft.transform.check import check_gradients

X = np.array([[0.5, -1.25], [2.0, 0.75]])


def test_right_gradients_pass_to_second_order() -> None:
    check_gradients(lambda x, y: ops.tanh(x) * y, [X, X[:, :1]], order=2)


def test_float32_inputs_are_checked_in_double_precision() -> None:
    check_gradients(ops.exp, [X.astype(np.float32)], order=2)


def test_integer_inputs_are_passed_on() -> None:
    check_gradients(lambda x, i: ops.gather(x, i), [X, np.array([1, 1, 0])], order=2)


def test_several_outputs_count() -> None:
    check_gradients(lambda x: (ops.exp(x), ops.sin(x)), [X])


def test_a_piecewise_constant_function_has_no_slope() -> None:
    check_gradients(ops.floor, [X + 0.1], order=2)


def test_a_missing_path_is_caught() -> None:
    with pytest.raises(MismatchError) as caught:
        check_gradients(lambda x: x * ops.stop_gradient(x), [np.array([3.0, 1.0])])
    assert re.fullmatch(
        r"check_gradients: gradient by input 0 differs in 2 of 2 elements, most at \[0\]:"
        r" expected 6\.\d+ by central differences, got 3\.\d+",
        str(caught.value),
    )


def planted(monkeypatch: pytest.MonkeyPatch, vjp: Any) -> Any:
    op = replace(ops.square, name="planted", vjp=vjp, cases=lambda: [Case((X,))])
    monkeypatch.setitem(REGISTRY, "planted", op)
    return op


@pytest.mark.parametrize(
    "vjp",
    [
        pytest.param(lambda g, y, x: (g * x,), id="factor"),
        pytest.param(lambda g, y, x: (g * x * -2,), id="sign"),
        pytest.param(lambda g, y, x: (x * 2,), id="forgets g"),
        pytest.param(lambda g, y, x: (g * x * 2.0001,), id="slightly wrong"),
        pytest.param(lambda g, y, x: (ops.flip(g, axes=(0,)) * x * 2,), id="elements mixed up"),
        pytest.param(lambda g, y, x: (g * x * 2 * ops.log(x),), id="NaN"),
        pytest.param(lambda g, y, x: (None,), id="nothing"),
    ],
)
def test_wrong_rules_are_caught(monkeypatch: pytest.MonkeyPatch, vjp: Any) -> None:
    with pytest.raises(MismatchError):
        check_gradients(planted(monkeypatch, vjp), [X])


def test_a_rule_that_is_right_once_is_caught_at_second_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    op = planted(monkeypatch, lambda g, y, x: (g * ops.stop_gradient(x) * 2,))
    check_gradients(op, [X])
    with pytest.raises(MismatchError, match="second-order gradient by input 0"):
        check_gradients(op, [X], order=2)


def test_order_must_be_1_or_2() -> None:
    with pytest.raises(GraphError, match="expected order 1 or 2, got 3"):
        check_gradients(ops.exp, [X], order=3)


def test_f_must_give_a_floating_value() -> None:
    with pytest.raises(GraphError, match="expected f to give a floating-point value"):
        check_gradients(ops.isnan, [X])
