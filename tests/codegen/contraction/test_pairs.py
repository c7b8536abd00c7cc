"""bfloat16 matmuls by pair instructions, emulated on machines without AVX512_BF16."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from families import check, group_for, machine
from guarded import run
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pairs import emulated
from strategies import at_most
from test_matmul import check_product

from weft.codegen import llvm, microkernel
from weft.codegen.attention.backward import flash_attention_grad
from weft.codegen.attention.forward import flash_attention
from weft.codegen.contraction.matmul import matmul
from weft.codegen.contraction.order import in_pairs
from weft.codegen.contraction.product import product_of
from weft.ir import dtype as types
from weft.ir.dtype import as_dtype
from weft.ops.declaration import REGISTRY
from weft.ops.declaration.numeric import draw

INSTRUCTION = microkernel.multiply_pairs
NAMES = ("pairs",) if machine("native").vector_bits == 512 else ()
TURNS = [(False, False), (True, False), (False, True), (True, True)]
BATCHES = (((), ()), ((), ()), ((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 1), (3,)))


@pytest.fixture(autouse=True)
def _emulate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(microkernel, "multiply_pairs", emulated)


@at_most(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from((16, 17, 31, 45, 64, 130, 300)),
    st.sampled_from((32, 33, 34, 63, 66, 130, 514, 531, 1030, 1031)),
    st.sampled_from((64, 65, 70, 96, 129, 200)),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from(BATCHES),
)
def test_products(m: int, k: int, n: int, turns: tuple[bool, bool], batches: Any) -> None:
    check_product(m, k, n, turns, types.bfloat16, batches, NAMES)


@at_most(8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 90), st.integers(1, 90), st.sampled_from((16, 32, 112)),
    st.sampled_from((16, 48)), st.booleans(),
)  # fmt: skip
def test_attention(queries: int, keys: int, width: int, depth: int, causal: bool) -> None:
    shapes = (queries, width), (keys, width), (keys, depth)
    arrays = [draw((2, *shape), types.bfloat16, seed=i) for i, shape in enumerate(shapes)]
    attrs = {"causal": causal, "scale": 0.3}
    check(flash_attention, "flash_attention", arrays, attrs, names=NAMES)
    y, log_sums = REGISTRY["flash_attention"].reference(*arrays, **attrs)
    g, shared = (draw(z.shape, as_dtype(z.dtype), seed=4) for z in (y, log_sums))
    inputs = [g, *arrays, log_sums, shared]
    check(flash_attention_grad, "flash_attention_grad", inputs, attrs, atol=2e-3, names=NAMES)


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("k", [33, 531])
def test_reads_end_with_the_operands(k: int, turns: tuple[bool, bool]) -> None:
    """Also where k is odd and a pair hangs over the end; what was not copied is not read."""
    x, y = (np.ones((3, a, b), types.bfloat16.numpy) for a, b in ((45, k), (k, 70)))
    x, y = (np.swapaxes(z, 1, 2).copy() if t else z for z, t in zip((x, y), turns, strict=True))
    group = group_for("matmul", (x, y), {"transpose_x": turns[0], "transpose_y": turns[1]})
    for name in NAMES:
        launches = matmul(group, machine(name))
        feeds = dict(zip(group.inputs, (x, y), strict=True))
        for seed in (None, 1):
            found = run(launches, feeds, group.outputs[0], machine(name), seed)
            assert (found == np.float32(k).astype(types.bfloat16.numpy)).all()


def test_the_products_meant_are_those_in_pairs() -> None:
    for batches in BATCHES:
        shapes = ((*batches[0], 45, 66), (*batches[1], 66, 70))
        arrays = [np.zeros(shape, types.bfloat16.numpy) for shape in shapes]
        group = group_for("matmul", arrays, {"transpose_x": False, "transpose_y": False})
        for name in NAMES:
            assert in_pairs(product_of(group.nodes[0]), machine(name))


def test_the_test_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(microkernel, "multiply_pairs", microkernel.fma)
    for name in NAMES:
        with pytest.raises(AssertionError):
            check_product(45, 66, 70, dtype=types.bfloat16, names=(name,))


def test_the_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in the place of every multiply-add, its factor broadcast from memory as it reads it."""
    monkeypatch.setattr(microkernel, "multiply_pairs", INSTRUCTION)
    arrays = [np.zeros(shape, types.bfloat16.numpy) for shape in ((45, 66), (66, 70))]
    group = group_for("matmul", arrays, {"transpose_x": False, "transpose_y": False})
    target = replace(machine("native"), vector_bits=512, registers=32, masked=True, bf16=True)
    launch = matmul(group, target)[-1]
    text = llvm.to_assembly(launch.kernel.ir, "x86-64-v4", "+avx512bf16")
    assert text.count("vdpbf16ps") >= 24
    assert "vfmadd" not in text
