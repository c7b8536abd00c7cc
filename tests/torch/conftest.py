"""What the modules of this folder share."""

import pytest

from weft.eager.record import program


@pytest.fixture(scope="module")
def interpreted():
    """What each operation computes is checked here; that compiled programs agree, elsewhere."""
    before, program.INTERPRETED_RUNS = program.INTERPRETED_RUNS, 1 << 30
    yield
    program.INTERPRETED_RUNS = before
