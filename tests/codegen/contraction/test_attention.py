"""Attention kernels against their references: every case, bands and blocks that overlap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from families import TARGETS, check, check_cases, group_for, machine
from harness import check_group, execute
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

from weft.codegen.attention.backward import flash_attention_grad
from weft.codegen.attention.forward import flash_attention
from weft.codegen.attention.single import query_attention
from weft.ir.dtype import DType, bfloat16, bool_, float16, float32
from weft.ops.declaration import REGISTRY
from weft.ops.declaration.numeric import draw

FAMILIES = {
    "flash_attention": flash_attention,
    "flash_attention_grad": flash_attention_grad,
    "head_attention": flash_attention,
    "head_attention_grad": flash_attention_grad,
    "query_attention": query_attention,
}


@pytest.mark.parametrize("name", FAMILIES)
def test_cases_of_the_operations(name: str) -> None:
    check_cases(FAMILIES[name], name)


def _arrays(
    batch: int, queries: int, keys: int, width: int, depth: int, dtype: DType = float32
) -> list[np.ndarray]:
    shapes = (batch, queries, width), (batch, keys, width), (batch, keys, depth)
    return [draw(shape, dtype, seed=i) for i, shape in enumerate(shapes)]


@at_most(12)
@given(
    st.integers(1, 3), st.integers(1, 90), st.integers(1, 90), st.sampled_from((16, 32, 112)),
    st.sampled_from((16, 48)), st.booleans(), st.sampled_from((float32, float16, bfloat16)),
    st.sampled_from(TARGETS),
)  # fmt: skip
def test_any_shape(
    batch: int, queries: int, keys: int, width: int, depth: int, causal: bool, dtype: DType,
    target: str,
) -> None:  # fmt: skip
    arrays = _arrays(batch, queries, keys, width, depth, dtype)
    attrs = {"causal": causal, "scale": 0.3}
    check(flash_attention, "flash_attention", arrays, attrs, 1e-5, 4e-5, (target,))
    y, log_sums = REGISTRY["flash_attention"].reference(*arrays, **attrs)
    g, shared = draw(y.shape, dtype, seed=4), draw(log_sums.shape, float32, seed=5)
    inputs = [g, *arrays, log_sums, shared]
    check(flash_attention_grad, "flash_attention_grad", inputs, attrs, 1e-5, 2e-3, (target,))


@at_most(12)
@given(
    st.integers(1, 3), st.integers(1, 90), st.sampled_from((16, 64, 144)),
    st.sampled_from((16, 144)), st.sampled_from((None, bool_, float32)),
    st.sampled_from((float32, bfloat16)), st.sampled_from(TARGETS),
)  # fmt: skip
def test_one_query_with_any_mask(
    batch: int, keys: int, width: int, depth: int, kind: DType | None, dtype: DType, target: str
) -> None:
    arrays = _arrays(batch, 1, keys, width, depth, dtype)
    if kind is not None:
        mask = draw((batch, 1, keys), bool_ if kind is bool_ else dtype, seed=3)
        mask[0, 0, : keys // 2] = 0 if kind is bool_ else -np.inf
        mask[-1] = 0 if kind is bool_ else -np.inf  # it sees nothing
        arrays.append(mask)
    check(query_attention, "query_attention", arrays, {"scale": 0.3}, 1e-5, 2e-5, (target,))


def test_one_query_reads_no_block_that_is_masked() -> None:
    q, k, v = _arrays(1, 1, 64, 16, 16)
    seen = np.zeros((1, 1, 64), bool)
    seen[..., :16] = True
    k[:, 16:], v[:, 16:] = np.nan, np.nan
    group = group_for("query_attention", (q, k, v, seen), {"scale": 0.3})
    feeds = dict(zip(group.inputs, (q, k, v, seen), strict=True))
    for name in TARGETS:
        y, _ = execute(query_attention(group, machine(name)), feeds, machine(name)).values()
        assert np.isfinite(y).all()


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("queries", "keys"), [(70, 90), (71, 90), (97, 90), (9, 70), (130, 33)])
def test_blocks_of_queries_and_keys_that_overlap(queries: int, keys: int, causal: bool) -> None:
    """A small second-level cache makes several blocks, the last of which begins early."""
    arrays = _arrays(2, queries, keys, 16, 32)
    attrs = {"causal": causal, "scale": 0.3}
    y, log_sums = REGISTRY["flash_attention"].reference(*arrays, **attrs)
    g, shared = draw(y.shape, float32, seed=4), draw(log_sums.shape, float32, seed=5)
    inputs = [g, *arrays, log_sums, shared]
    group = group_for("flash_attention_grad", inputs, attrs)
    for name in TARGETS:
        target = replace(machine(name), l2=64 * 1024)
        launches = flash_attention_grad(group, target)
        given_values = dict(zip(group.inputs, inputs, strict=True))
        check_group(group, launches, given_values, target, 1e-5, 1e-3)


@pytest.mark.parametrize("dtype", [float32, float16])
def test_heads_side_by_side_in_blocks(dtype: DType) -> None:
    """Rows of several heads follow each other; blocks of queries overlap."""
    x = draw((2, 70, 6, 16), dtype)
    attrs = {"causal": True, "scale": 0.3, "heads": 2, "first": (0, 2, 4)}
    y, log_sums = REGISTRY["head_attention"].reference(x, x, x, **attrs)
    g, shared = draw(y.shape, dtype, seed=4), draw(log_sums.shape, float32, seed=5)
    inputs = [g, x, x, x, log_sums, shared]
    group = group_for("head_attention_grad", inputs, attrs)
    for name in TARGETS:
        target = replace(machine(name), l2=64 * 1024)
        launches = flash_attention_grad(group, target)
        given_values = dict(zip(group.inputs, inputs, strict=True))
        check_group(group, launches, given_values, target, 1e-5, 2e-3)
