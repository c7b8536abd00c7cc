"""Comparison in units in the last place finds errors that an absolute tolerance hides."""

import exact
import numpy as np
import pytest

X = np.array([5.0, 0.5], np.float32)


def test_a_small_result_must_be_as_exact_as_a_large_one():
    found = np.float32(1) - exact.SPECIAL["erf"](X).astype(np.float32)
    np.testing.assert_allclose(found, exact.SPECIAL["erfc"](X), atol=1e-5)
    with pytest.raises(AssertionError, match=r"erfc\(5.0\) of float32 gives 0.0"):
        exact.check("erfc", found, exact.SPECIAL["erfc"], (X,), 4)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -3.0, 0.0])
def test_special_values_are_no_match_for_numbers(wrong):
    found = np.array([wrong, np.sqrt(0.5)], np.float32)
    assert exact.errors(found, np.sqrt, (X,))[0] > 1e5
    assert exact.errors(np.sqrt(X), np.sqrt, (X,)).max() <= 0.5
