"""Drawn configurations of a trainer; `python -m tools.attack --only trainers` draws more."""

import numpy as np
import pytest

from tools.attack import trainers
from tools.attack.verdict import Verdict


@pytest.mark.parametrize("seed", [4, 13, 24, 33, 35, 57, 115])
def test_a_drawn_configuration(seed):
    assert trainers.case(None, np.random.default_rng(seed)) == Verdict()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1060))
def test_more_of_them(seed):
    assert trainers.case(None, np.random.default_rng(seed)) == Verdict()
