"""Fixtures of recorded programs."""

import pytest

from weft.eager.record.run import tier_choice


@pytest.fixture
def unstitched(monkeypatch):
    """Structures have programs from their first run on: none runs on library kernels."""
    monkeypatch.setattr(tier_choice, "is_compiled_at_once", lambda types: True)
