"""Fixtures shared by the modules of this folder; PyTorch has one thread, as NumPy has."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from weft.eager.record.run import stitched_tier


@pytest.fixture(scope="module")
def interpreted():
    """What each operation computes is checked here; that compiled programs agree, elsewhere."""
    before, stitched_tier.STITCHED_RUNS = stitched_tier.STITCHED_RUNS, 1 << 30
    yield
    stitched_tier.STITCHED_RUNS = before
