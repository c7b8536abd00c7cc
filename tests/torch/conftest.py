"""Fixtures shared by the modules of this folder."""

import pytest

from weft.eager.record import stitched_runs


@pytest.fixture(scope="module")
def interpreted():
    """What each operation computes is checked here; that compiled programs agree, elsewhere."""
    before, stitched_runs.STITCHED_RUNS = stitched_runs.STITCHED_RUNS, 1 << 30
    yield
    stitched_runs.STITCHED_RUNS = before
