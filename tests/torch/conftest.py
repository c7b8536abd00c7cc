"""Fixtures shared by the modules of this folder."""

import pytest

from weft.eager.record import prepared_program as programs


@pytest.fixture(scope="module")
def interpreted():
    """What each operation computes is checked here; that compiled programs agree, elsewhere."""
    before, programs.INTERPRETED_RUNS = programs.INTERPRETED_RUNS, 1 << 30
    yield
    programs.INTERPRETED_RUNS = before
