"""Checks every operation of the registry; nothing here names an operation."""

from __future__ import annotations

import pytest
from catalogue import (
    batches,
    check_compiled,
    check_compiled_gradient,
    check_gradient,
    check_gradient_of_unknown_shapes,
    check_interpreted,
    check_lowering,
    check_normal_form,
    check_types,
    check_unknown_shapes,
    differentiable,
    distinct,
)

from weft.ops.declaration import REGISTRY, Op

OPS = [pytest.param(op, id=name) for name, op in REGISTRY.items()]
PROGRAM = 24  # cases compiled as one program


@pytest.mark.parametrize("op", OPS)
def test_rules_agree(op: Op) -> None:
    for case in op.cases():
        check_types(op, case)
        check_unknown_shapes(op, case)
        check_normal_form(op, case)
        check_lowering(op, case)
        check_interpreted(op, case)


@pytest.mark.parametrize("op", OPS)
def test_gradients_to_second_order(op: Op) -> None:
    for case in distinct(op):
        check_gradient(op, case)


@pytest.mark.parametrize("op", OPS)
def test_compiled_equals_reference(op: Op) -> None:
    for group in batches(list(op.cases()), PROGRAM):
        check_compiled(op, group)


@pytest.mark.parametrize("op", OPS)
def test_compiled_gradient_equals_interpreted(op: Op) -> None:
    cases = [case for case in distinct(op) if differentiable(op, case)]
    for group in batches(cases, PROGRAM):
        check_compiled_gradient(op, group)


@pytest.mark.parametrize("op", OPS)
def test_gradients_of_unknown_shapes(op: Op) -> None:
    cases = [case for case in distinct(op) if differentiable(op, case)]
    for group in batches(cases, PROGRAM):
        check_gradient_of_unknown_shapes(op, group)
