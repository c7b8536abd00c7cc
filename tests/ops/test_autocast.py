"""Autocast: the dtype in which every operation runs, and the casts."""

from __future__ import annotations

import gc
import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
import weft.eager
import weft.nn.functional
import weft.numpy
import weft.scipy
from weft import ops
from weft.eager.tensor.dispatch import Recorded, recorded
from weft.errors import DTypeError
from weft.ir.dtype import DTYPES, DType, bfloat16, float16, float32, float64, int32
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ops.declaration import REGISTRY, Case
from weft.ops.declaration.autocast import cast_inputs, declared, input_dtypes
from weft.ops.declaration.fact import Autocast
from weft.runtime.engine import Function, State
from weft.transform.gradient import gradients

FLOATS = (bfloat16, float16, float32, float64)
RANK = {bfloat16: 0, float16: 0, float32: 1, float64: 2}


def all_recorded() -> list[Recorded]:
    """The functions that are recorded as one call."""
    for package in (weft.eager, weft.nn.functional, weft.numpy, weft.scipy):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    return [x for x in gc.get_objects() if type(x) is Recorded]


def test_functions_whose_name_says_loss_or_norm_run_in_float32() -> None:
    for x in all_recorded():
        if getattr(x, "__name__", "").endswith(
            ("_loss", "_norm", "cross_entropy")
        ):  # not a partial
            assert x.autocast is Autocast.FLOAT32, x


def test_an_operation_recorded_as_a_function_runs_as_it_declares() -> None:
    x = wf.ones(3, dtype=wf.bfloat16)
    with wf.autocast("cpu", dtype=wf.bfloat16):
        assert recorded(ops.softplus)(x).dtype is float32


@given(
    st.sampled_from(sorted(REGISTRY)),
    st.lists(st.sampled_from(sorted(DTYPES.values(), key=lambda d: d.name)), max_size=4),
    st.sampled_from((bfloat16, float16)),
)
def test_types_of_inputs(name: str, given_: list[DType], low: DType) -> None:
    rule = declared(REGISTRY[name])
    found = input_dtypes(rule, given_, low)
    assert len(found) == len(given_)
    floats = {d for d in given_ if d.is_floating}
    for before, after in zip(given_, found, strict=True):
        assert after.is_floating if before.is_floating else after is before
    after = {d for d in found if d.is_floating}
    if rule is Autocast.KEPT:
        assert found == tuple(given_)
    elif floats:
        (to,) = after
        if float64 in floats:
            assert to is float64
        elif rule is Autocast.LOW:
            assert to is low
        elif rule is Autocast.FLOAT32:
            assert to is float32
        else:
            assert to is (float32 if len(floats) > 1 else next(iter(floats)))
            assert RANK[to] >= max(RANK[d] for d in floats)


@pytest.mark.parametrize(
    "name", [n for n, op in sorted(REGISTRY.items()) if declared(op) is not Autocast.KEPT]
)
def test_every_operation_takes_what_it_is_cast_to(name: str) -> None:
    """With its inputs in half precision, cast as the policy says, an operation's rules hold."""
    op = REGISTRY[name]
    case = next(iter(op.cases()), None)
    if case is None:
        return
    assert isinstance(case, Case)
    types = [bfloat16 if a.dtype.kind == "f" else a.dtype for a in case.inputs]
    with Graph().as_default():
        xs = [
            ops.placeholder(dtype=d, shape=a.shape) for d, a in zip(types, case.inputs, strict=True)
        ]
        y = op.all(*cast_inputs(op, xs, bfloat16), **case.attrs)
    assert y


def test_low_means_half_precision_or_nothing() -> None:
    with pytest.raises(DTypeError, match="autocast: expected bfloat16 or float16, got float32"):
        input_dtypes(Autocast.LOW, [float32], float32)


def test_bare_numbers_and_integers_stay() -> None:
    with Graph().as_default():
        x = ops.placeholder(dtype=bfloat16, shape=(3,))
        i = ops.placeholder(dtype=int32, shape=(3,))
        assert cast_inputs(ops.multiply, (x, 0.5), bfloat16) == (x, 0.5)
        assert cast_inputs(ops.add, (i, 1), bfloat16) == (i, 1)
        wide = ops.cast(x, dtype=float32)
        (y, z) = cast_inputs(ops.add, (x, wide), bfloat16)
        assert (y.dtype, z) == (float32, wide)


def cast_call(name: str, low: DType, *args: Any, **attrs: Any) -> Value:
    return REGISTRY[name](*cast_inputs(REGISTRY[name], args, low), **attrs)


@pytest.mark.parametrize("low", [bfloat16, float16], ids=str)
def test_weights_have_float32_gradients(low: DType) -> None:
    rng = np.random.default_rng(0)
    data, weights = (rng.standard_normal(s).astype(np.float32) for s in ((9, 8), (8, 5)))
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype=float32, shape=data.shape)
        w = ops.placeholder(dtype=float32, shape=weights.shape)
        y = cast_call("matmul", low, x, w)
        loss = cast_call("sum", low, cast_call("multiply", low, y, y))
        assert (y.dtype, loss.dtype) == (low, float32)
        (g,) = gradients([loss], [w])
    assert g is not None and g.dtype is float32
    (found,) = Function(graph, [g], feeds=[x, w])([data, weights], State())
    exact = 2 * data.T @ (data @ weights)
    assert np.abs(found - exact).max() < 0.03 * np.abs(exact).max()
