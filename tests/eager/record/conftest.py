"""Fixtures of recorded programs."""

import pytest

from weft.eager.record import tier


@pytest.fixture
def unstitched(monkeypatch):
    """Structures have programs from their first run on: none runs on library kernels."""
    monkeypatch.setattr(tier, "STITCHED_RUNS", 0)
