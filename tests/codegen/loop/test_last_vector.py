"""The last, partial vector of a row writes only its own elements."""

from __future__ import annotations

import numpy as np
import pytest
from families import TARGETS, machine
from harness import check_group, group_of

from weft import ops
from weft.codegen.loop.schedule import loops
from weft.ir.dtype import DTYPES
from weft.ir.graph import Graph


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["bool", "int8", "int16", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize("length", [1, 17, 31, 33, 65, 129, 1105])
def test_a_row_of_any_length(length: int, name: str, target: str) -> None:
    """LLVM 22 makes a 4-byte store of a masked one with a single, constant, narrow lane."""
    dtype = DTYPES[name]
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype=dtype, shape=(length, 1))
        y = ops.broadcast_to(x, shape=(3, length, 1))
    group, goal = group_of(graph, [y]), machine(target)
    array = (np.arange(length) % 5 + 1).astype(dtype.numpy).reshape(length, 1)
    check_group(group, loops(group, goal), {x: array}, goal)
