"""Random eager programs beside PyTorch: views, in-place changes, branches, gradients."""

import pytest
from beside_torch import check
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

from weft import config

SEEDS = st.integers(0, 2**32 - 1)


@at_most(400)
@given(SEEDS, st.integers(2, 25))
def test_it_runs_as_in_pytorch(interpreted, seed, steps):
    check(seed, steps, 1)


@at_most(40)
@given(SEEDS, st.integers(2, 12))
@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
def test_compiled(target, seed, steps):
    with config.override(target=target, compile=True):
        check(seed, steps, 1)


@at_most(40)
@given(SEEDS, st.integers(2, 12))
def test_repeated(seed, steps):
    """The third run and later ones are compiled."""
    check(seed, steps, 4)
