"""Random programs of vmapped branches and loops: as Python's own control flow has them, and JAX.

The programs are those of the tests: `tests/drawn_control.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

import numpy as np

from tools.attack.graphs import TESTS, judged
from tools.attack.verdict import Case, Verdict
from weft import config

SIZE = 4


def begin() -> Case:
    """Loads the program generator; JAX too, where it is installed."""
    sys.path.insert(0, str(TESTS))
    library: Any = importlib.import_module("drawn_control")
    peer: Any = None
    if importlib.util.find_spec("jax") is not None:
        peer = importlib.import_module("drawn_control_jax")

    def case(random: np.random.Generator) -> Verdict:
        seed, depth = int(random.integers(1 << 32)), int(random.integers(1, 3))
        compiled = bool(random.integers(2))

        def check() -> None:
            with config.override(compile=compiled):
                library.check(seed, SIZE, depth)
                if peer is not None and depth == 1:  # JAX compiles deeper ones for minutes
                    peer.check(seed, SIZE, depth)

        return judged(check, f"a program of seed {seed}, depth {depth}, compile={compiled}")

    return case
