"""Attention has the same bits for one size or many, on any number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from families import machine
from harness import Array
from many import Making, same_bits, variants
from pairwise import pairwise

from weft.eager.record.call.plan import placeholders
from weft.ir.dtype import DType, bfloat16, float32
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.ops.declaration import REGISTRY
from weft.passes.group import Group

WIDTH, DEPTH, SCALE = 64, 32, 0.125
SIZES = (
    (2, 1, 1), (2, 1, 70), (2, 3, 5), (2, 17, 100), (3, 26, 33), (2, 100, 64), (2, 130, 300),
    (1, 300, 530),
)  # fmt: skip
"""Heads, queries and keys."""


def making(op: str, dtype: DType, causal: bool = False) -> Making:
    """Makes a node of attention."""

    def make(sizes: Sequence[int]) -> Group:
        heads, queries, keys = sizes
        queries = 1 if op == "query_attention" else queries
        q, k, v = (heads, queries, WIDTH), (heads, keys, WIDTH), (heads, keys, DEPTH)
        shapes = [q, k, v]
        attrs: dict[str, Any] = {"scale": SCALE}
        if op != "query_attention":
            attrs["causal"] = causal
        kinds = [TensorType(dtype, shape) for shape in shapes]
        if op == "flash_attention_grad":
            rows = TensorType(float32, (heads, queries))
            kinds = [TensorType(dtype, (heads, queries, DEPTH)), *kinds, rows, rows]
        with Graph().as_default():
            values = placeholders(kinds)
            node = REGISTRY[op].all(*values, **attrs)[0].node
        return Group((node,), tuple(values), node.outputs)

    return make


def inputs(op: str, sizes: tuple[int, int, int], dtype: DType, causal: bool) -> list[Array]:
    """Random inputs; log-sum-exps are those of the scores."""
    heads, queries, keys = sizes
    rng = np.random.default_rng(3)

    def draw(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(dtype.numpy)

    qkv = [draw(heads, queries, WIDTH), draw(heads, keys, WIDTH), draw(heads, keys, DEPTH)]
    if op != "flash_attention_grad":
        return qkv
    _, logs = REGISTRY["flash_attention"].reference(*qkv, causal=causal, scale=SCALE)
    shared = rng.standard_normal((heads, queries)).astype(np.float32)
    return [draw(heads, queries, DEPTH), *qkv, np.asarray(logs, np.float32), shared]


@pytest.mark.parametrize(
    ("op", "dtype", "causal"),
    [
        *pairwise(("flash_attention", "flash_attention_grad"), (float32, bfloat16), (False, True)),
        ("query_attention", float32, False),
        ("query_attention", bfloat16, False),
    ],
    ids=str,
)
def test_sizes_and_threads(op: str, dtype: DType, causal: bool) -> None:
    """Of causal and other attention, each of every other size; of one query all."""
    make = making(op, dtype, causal)
    one = op == "query_attention"
    for sizes in [s for s in SIZES if s[1] == 1] if one else SIZES[causal::2]:
        heads, queries, keys = sizes
        far = (5, queries if queries < 32 else 64, 2000 if keys > 256 else keys + 5)
        others = [(1, queries, keys + 7), far, (heads, queries + 1, keys)]
        plan = [others[SIZES.index(sizes) % 3]]
        same_bits(make, inputs(op, sizes, dtype, causal), sizes, plan, machine("native"))


@pytest.mark.parametrize(
    ("op", "most"),
    [("flash_attention", 8), ("flash_attention_grad", 9), ("query_attention", 1)],
)
def test_few_variants_cover_many_sizes(op: str, most: int) -> None:
    make = making(op, float32)
    for family in ([(2, 1, n) for n in range(1, 400)], [(2, n, n) for n in range(1, 700)]):
        if op == "query_attention" and family[1][1] > 1:
            continue
        assert variants(make, family, machine("native")) <= most


@pytest.mark.parametrize("width", [16, 32, 64])
def test_one_query_of_a_width_that_may_vary(width: int) -> None:
    def make(sizes: Sequence[int]) -> Group:
        heads, keys, own = sizes
        shapes = (heads, 1, own), (heads, keys, own), (heads, keys, own)
        with Graph().as_default():
            values = placeholders([TensorType(float32, shape) for shape in shapes])
            node = REGISTRY["query_attention"].all(*values, scale=SCALE)[0].node
        return Group((node,), tuple(values), node.outputs)

    rng = np.random.default_rng(3)
    shapes = (3, 1, width), (3, 9, width), (3, 9, width)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    same_bits(make, arrays, (3, 9, width), [(2, 5, width)], machine("native"))
