"""Memory forecasts from earlier processes: kept, corrected, never required."""

from __future__ import annotations

import pytest

from weft import config
from weft.runtime.memory import forecast
from weft.runtime.memory.forecast import WORTH, Forecast


@pytest.fixture
def expected(tmp_path, monkeypatch):
    """The requested memory, with a separate cache."""
    found: list[int] = []
    monkeypatch.setattr(forecast, "expect", found.append)
    with config.override(cache=str(tmp_path)):
        yield found


def test_what_was_noted_is_expected_by_programs_of_that_kind(expected):
    Forecast("a", "b").note(3 * WORTH)
    assert not expected
    Forecast("a", "c")
    Forecast("ab")
    assert not expected
    Forecast("a", "b").note(2 * WORTH)
    assert expected == [3 * WORTH]
    Forecast("a", "b")
    assert expected == [3 * WORTH, 2 * WORTH]


def test_little_memory_is_not_worth_a_file(expected, tmp_path):
    Forecast("a").note(WORTH - 1)
    assert not list(tmp_path.glob("*.o")) and not expected
