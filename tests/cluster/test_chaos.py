"""Tasks that are killed or stopped at random moments; `python -m tools.attack` does more of it."""

import numpy as np
import pytest

from tools.attack import tasks
from tools.attack.verdict import PASSED


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(tasks.KINDS))
def test_faults_at_random_moments(kind, monkeypatch):
    """Two in a cluster of each kind: errors that name the task, or recovery; nothing is lost."""
    monkeypatch.setattr(tasks, "KINDS", {kind: 1.0})
    found = tasks.case(np.random.default_rng([31, len(kind)]), faults=2)
    assert found.kind == PASSED, f"{found.what}: {found.detail}"
