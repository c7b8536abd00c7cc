"""`seed_everything`: one seed for all random numbers of a program."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np

from weft.eager.functions.api import manual_seed
from weft.errors import ArgumentError

__all__ = ["seed_everything"]


def seed_everything(seed: int | None = None, workers: bool = False, verbose: bool = True) -> int:
    """Seed all random number generators: Weft's, NumPy's, Python's; returns the seed.

    Args:
        seed: an integer; by default the environment variable `PL_GLOBAL_SEED`, or 0.
        workers: taken for programs that give it: workers of loaders are seeded anyway.
        verbose: taken for programs that give it: nothing is printed.

    Raises:
        ArgumentError: the seed is not an integer.
    """
    given: Any = int(os.environ.get("PL_GLOBAL_SEED", "0")) if seed is None else seed
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise ArgumentError.here(f"seed_everything: expected seed as an integer, got {given!r}")
    seed = int(given)
    os.environ["PL_GLOBAL_SEED"] = str(seed)
    manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    return seed
