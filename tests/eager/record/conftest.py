"""Fixtures of recorded programs."""

from collections.abc import Iterator

import pytest

from weft.eager.record.pending import state
from weft.eager.record.run import shortcut, tier_choice


@pytest.fixture
def unstitched(monkeypatch):
    """Structures have programs from their first run on: none runs on library kernels."""
    monkeypatch.setattr(tier_choice, "is_compiled_at_once", lambda types: True)


@pytest.fixture
def taken() -> Iterator[list[bool]]:
    """Whether each computation took a shortcut."""
    seen: list[bool] = []

    def noted(now: state.State) -> bool:
        seen.append(shortcut.taken(now))
        return seen[-1]

    state.set_shortcut(noted)
    yield seen
    state.set_shortcut(shortcut.taken)
