"""Shared by the family tests: one node, its kernels and its reference, on every target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from catalogue import distinct, is_complex
from harness import Array, check_group

from weft import config, ops
from weft.codegen import target as targets
from weft.codegen.lower import Family
from weft.ir.graph import Graph
from weft.ops.declaration import REGISTRY
from weft.passes.group import Group

TARGETS = (str(config.get("target")),)
"""All of it is run for another target: `WEFT_TARGET=x86-64-v3 make test-target`."""


def machine(name: str) -> targets.Target:
    """A target by name; `pairs` has AVX512_BF16, which a test must emulate to run."""
    with config.override(target="x86-64-v4" if name == "pairs" else name):
        found = targets.current()
    return replace(found, bf16=True) if name == "pairs" else found


def group_for(op: str, arrays: Sequence[Array], attrs: Mapping[str, Any]) -> Group:
    """A group of one node on placeholders."""
    with Graph().as_default():
        xs = [ops.placeholder(dtype=a.dtype, shape=a.shape) for a in arrays]
        node = REGISTRY[op].all(*xs, **attrs)[0].node
    return Group((node,), tuple(xs), node.outputs)


def check(
    family: Family,
    op: str,
    arrays: Sequence[Array],
    attrs: Mapping[str, Any],
    rtol: float = 2e-6,
    atol: float = 1e-6,
    names: Sequence[str] = TARGETS,
) -> None:
    """Kernels of one node against its reference."""
    group = group_for(op, arrays, attrs)
    inputs = dict(zip(group.inputs, arrays, strict=True))
    for name in names:
        goal = machine(name)
        with np.errstate(all="ignore"):
            check_group(group, family(group, goal), inputs, goal, rtol, atol)


def check_cases(family: Family, op: str, names: Sequence[str] = TARGETS) -> None:
    """Every example that the operation itself gives, of one type: `test_catalogue.py` has all."""
    for case in distinct(REGISTRY[op]):
        if not is_complex(REGISTRY[op], case):
            check(family, op, case.inputs, case.attrs, case.rtol, case.atol, names)
