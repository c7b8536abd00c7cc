"""Kernels of recurrent layers against their references: every case, bands and ragged tiles."""

from __future__ import annotations

import numpy as np
import pytest
from families import TARGETS, check, check_cases
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

from weft.codegen.recurrent.backward import lstm_sequence_grad
from weft.codegen.recurrent.forward import lstm_sequence
from weft.ir.dtype import DType, float32, float64
from weft.ops.declaration import REGISTRY
from weft.ops.declaration.numeric import draw

FAMILIES = {"lstm_sequence": lstm_sequence, "lstm_sequence_grad": lstm_sequence_grad}


@pytest.mark.parametrize("name", FAMILIES)
def test_cases_of_the_operations(name: str) -> None:
    check_cases(FAMILIES[name], name)


@at_most(8)
@given(
    st.integers(1, 4), st.sampled_from((1, 2, 7, 16, 31, 70)), st.sampled_from((1, 5, 16, 70, 96)),
    st.booleans(), st.booleans(), st.booleans(), st.sampled_from((float32, float64)),
    st.sampled_from(TARGETS),
)  # fmt: skip
def test_any_shape(
    steps: int, rows: int, width: int, reverse: bool, batch_first: bool, more: bool, dtype: DType,
    target: str,
) -> None:  # fmt: skip
    lead = (rows, steps) if batch_first else (steps, rows)
    shapes = (*lead, 4 * width), (4 * width, width), (rows, width), (rows, width)
    arrays = [draw(shape, dtype, -0.5, 0.5, seed=i) for i, shape in enumerate(shapes)]
    attrs = {"reverse": reverse, "batch_first": batch_first}
    check(lstm_sequence, "lstm_sequence", arrays, attrs, 1e-5, 1e-5, (target,))
    found = REGISTRY["lstm_sequence"].reference(*arrays, **attrs)
    gs = [draw(x.shape, dtype, -1, 1, seed=4 + i) for i, x in enumerate(found)]
    inputs: list[np.ndarray] = [
        *gs[:2],
        arrays[1],
        arrays[3],
        *found[1:],
        *(gs[2:] if more else []),
    ]
    check(lstm_sequence_grad, "lstm_sequence_grad", inputs, attrs, 1e-4, 1e-4, (target,))
